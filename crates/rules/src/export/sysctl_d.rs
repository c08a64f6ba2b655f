//! Settings file for `sysctl.d(5)`.

use core::fmt::Write;

use linerate_model::change::{ChangeTarget, HostChange};

use super::text::{comment, one_line, reason};
use super::{ExportedFile, HostChanges, PlanFormat};

/// Location of the settings.
pub(super) const FILE: &str = "etc/sysctl.d/90-linerate.conf";

pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "sysctl.d",
    title: "kernel settings for sysctl.d",
    use_it: "As /etc/sysctl.d/90-linerate.conf; `sysctl -p FILE` applies it now, each boot does so automatically.",
    source: "sysctl.d(5)",
    takes: supports,
    write,
};

fn supports(change: &HostChange) -> Result<(), &'static str> {
    match change.target {
        ChangeTarget::Setting { .. } => Ok(()),
        _ => Err("sysctl.d supports only kernel settings"),
    }
}

fn write(hosts: &[HostChanges<'_>]) -> Vec<ExportedFile> {
    hosts.iter().map(|host| host.file(FILE, settings(&host.changes))).collect()
}

/// Returns the lines of the settings among these changes.
pub(super) fn settings(changes: &[&HostChange]) -> String {
    let settings = changes.iter().filter(|change| matches!(change.target, ChangeTarget::Setting { .. }));
    settings.fold(String::new(), |mut text, change| {
        let (key, to) = (one_line(&change.target.to_string()), one_line(&change.to));
        let _ = writeln!(text, "{}{key} = {to}", comment(0, &reason(change)));
        text
    })
}
