//! Variables of the role `kernel_settings` of the Linux system roles.

use core::fmt::Write;

use linerate_model::change::{ChangeTarget, HostChange};

use super::{PlanFormat, quoted, reason};

pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "ansible",
    title: "variables for the role fedora.linux_system_roles.kernel_settings",
    use_it: "As variables of hosts or groups; the role makes them persistent with a tuned profile.",
    source: "README of linux-system-roles/kernel_settings",
    comment: "#",
    takes: supports,
    write,
};

fn supports(change: &HostChange) -> Result<(), &'static str> {
    match &change.target {
        ChangeTarget::Setting { .. } => Ok(()),
        ChangeTarget::File { path } if path.starts_with("/sys/") => Ok(()),
        _ => Err("the role supports only settings and files of /sys"),
    }
}

fn write(changes: &[&HostChange]) -> String {
    let mut text = String::new();
    let is_setting = |change: &&&HostChange| matches!(change.target, ChangeTarget::Setting { .. });
    let (settings, files): (Vec<&&HostChange>, Vec<&&HostChange>) = changes.iter().partition(is_setting);
    for (name, group) in [("kernel_settings_sysctl", settings), ("kernel_settings_sysfs", files)] {
        if group.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{name}:");
        for change in group {
            let (reason, to) = (reason(change), quoted(&change.to));
            let _ = writeln!(text, "  # {reason}\n  - name: {}\n    value: {to}", change.target);
        }
    }
    text
}
