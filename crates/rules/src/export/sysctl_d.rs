//! `sysctl.d(5)`.

use core::fmt::Write;

use linerate_model::change::{Change, Target};

use super::{Format, one_line, reason};

pub(super) const FORMAT: Format = Format {
    name: "sysctl.d",
    title: "settings of the kernel for sysctl.d",
    use_it: "As /etc/sysctl.d/90-linerate.conf; `sysctl -p FILE` puts it into effect, each boot does by itself.",
    source: "sysctl.d(5)",
    comment: "#",
    takes,
    write,
};

fn takes(change: &Change) -> Result<(), &'static str> {
    match change.target {
        Target::Setting { .. } => Ok(()),
        _ => Err("sysctl.d has settings of the kernel only"),
    }
}

fn write(changes: &[&Change]) -> String {
    changes.iter().fold(String::new(), |mut text, change| {
        let _ = writeln!(text, "# {}\n{} = {}", reason(change), change.target, one_line(&change.to));
        text
    })
}
