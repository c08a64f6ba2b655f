//! Variables of the role `kernel_settings` of the Linux system roles.

use core::fmt::Write;

use linerate_model::change::{Change, Target};

use super::{Format, quoted, reason};

pub(super) const FORMAT: Format = Format {
    name: "ansible",
    title: "variables for the role fedora.linux_system_roles.kernel_settings",
    use_it: "As variables of hosts or groups; the role keeps them by a profile of tuned.",
    source: "README of linux-system-roles/kernel_settings",
    comment: "#",
    takes,
    write,
};

fn takes(change: &Change) -> Result<(), &'static str> {
    match &change.target {
        Target::Setting { .. } => Ok(()),
        Target::File { path } if path.starts_with("/sys/") => Ok(()),
        _ => Err("the role has settings and files of /sys only"),
    }
}

fn write(changes: &[&Change]) -> String {
    let mut text = String::new();
    let is_setting = |change: &&&Change| matches!(change.target, Target::Setting { .. });
    let (settings, files): (Vec<&&Change>, Vec<&&Change>) = changes.iter().partition(is_setting);
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
