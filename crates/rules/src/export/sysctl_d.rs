//! Settings file for `sysctl.d(5)`.

use core::fmt::Write;

use linerate_model::change::{ChangeTarget, HostChange};

use super::{PlanFormat, one_line, reason};

pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "sysctl.d",
    title: "kernel settings for sysctl.d",
    use_it: "As /etc/sysctl.d/90-linerate.conf; `sysctl -p FILE` applies it now, each boot does so automatically.",
    source: "sysctl.d(5)",
    comment: "#",
    takes: supports,
    write,
};

fn supports(change: &HostChange) -> Result<(), &'static str> {
    match change.target {
        ChangeTarget::Setting { .. } => Ok(()),
        _ => Err("sysctl.d supports only kernel settings"),
    }
}

fn write(changes: &[&HostChange]) -> String {
    changes.iter().fold(String::new(), |mut text, change| {
        let _ = writeln!(text, "# {}\n{} = {}", reason(change), change.target, one_line(&change.to));
        text
    })
}
