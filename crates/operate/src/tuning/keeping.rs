//! Persistence of confirmed changes, and conflicts at the next boot.

use std::path::PathBuf;

use linerate_change::{KeepOptions, drop_in};
use linerate_model::change::{ChangePlan, ChangeTarget};
use linerate_model::host::managers::{InterfaceManager, SettingsManagers};
use linerate_model::host::settings::{KernelSettings, ReadOrder, SettingsFile};
use linerate_sys::facts;

/// Keeps changes of this host: settings in a `sysctl.d(5)` file, unless only until reboot.
pub(super) fn keep(plan: &ChangePlan, evidence: &str, until_reboot: bool) -> KeepOptions {
    let settings: Vec<(&str, &str)> = plan
        .changes
        .iter()
        .filter_map(|change| match &change.target {
            ChangeTarget::Setting { key } => Some((key.as_str(), change.to.as_str())),
            _ => None,
        })
        .collect();
    let file = (!until_reboot && !settings.is_empty()).then(|| PathBuf::from(drop_in::DEFAULT_FILE));
    if until_reboot {
        return KeepOptions { file, evidence: evidence.to_owned(), warnings: Vec::new() };
    }
    let host = facts::read();
    let mut warnings = override_warnings(host.settings, &settings);
    warnings.extend(plan.changes.iter().filter_map(|change| until_reboot_warning(&change.target, &host.managers)));
    KeepOptions { file, evidence: evidence.to_owned(), warnings }
}

/// Warning for a target that no settings file can express: its interface's manager has to set it at boot.
fn until_reboot_warning(target: &ChangeTarget, managers: &SettingsManagers) -> Option<String> {
    if let ChangeTarget::Setting { .. } = target {
        return None;
    }
    let owner = target.interface().and_then(|interface| managers.interfaces.get(interface));
    let (owner, form) = match owner.map(|owner| owner.manager) {
        Some(InterfaceManager::NetworkManager) => ("NetworkManager", "network-manager"),
        Some(InterfaceManager::Networkd) => ("systemd-networkd", "systemd-link"),
        Some(InterfaceManager::Netplan) => ("netplan", "systemd-link"),
        Some(InterfaceManager::Ifupdown) => ("ifupdown", "systemd-link"),
        None => ("its manager", "systemd-link"),
    };
    Some(format!(
        "{target} is active until reboot; configure {owner} to set it at boot (`linerate tune export --format {form}`)"
    ))
}

/// Warns of other settings read after ours, in the order of either reader.
fn override_warnings(mut known: KernelSettings, settings: &[(&str, &str)]) -> Vec<String> {
    let lines: Vec<String> = settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    known.files.retain(|file| file.path != drop_in::DEFAULT_FILE);
    known.files.push(SettingsFile::parsed(drop_in::DEFAULT_FILE, &lines.join("\n")));
    let mut warnings = Vec::new();
    for (order, reader) in [(ReadOrder::Systemd, "at boot"), (ReadOrder::Procps, "by `sysctl --system`")] {
        for (key, value) in settings {
            let Some(winner) = known.decides(key, order) else { continue };
            if winner.value() != Some(value) && !winner.location().starts_with(drop_in::DEFAULT_FILE) {
                warnings.push(format!(
                    "{} also sets {key} and is read later {reader}; change it there",
                    winner.edit_location()
                ));
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use linerate_model::host::managers::InterfaceOwnership;

    use super::*;

    #[test]
    fn targets_without_a_settings_file_belong_to_the_interfaces_manager() {
        let target = ChangeTarget::Queueing { interface: "eth0".into() };
        let owner = |manager| InterfaceOwnership { manager, evidence: "a file".into() };
        let interfaces = [("eth0".to_owned(), owner(InterfaceManager::NetworkManager))];
        let managers = SettingsManagers { interfaces: interfaces.into(), ..SettingsManagers::default() };
        let said = until_reboot_warning(&target, &managers).expect("a warning");
        assert!(said.contains("eth0 queueing") && said.contains("NetworkManager") && said.contains("network-manager"));
        assert!(
            until_reboot_warning(&target, &SettingsManagers::default()).expect("a warning").contains("systemd-link")
        );
        assert_eq!(until_reboot_warning(&ChangeTarget::Setting { key: "net.ipv4.tcp_sack".into() }, &managers), None);
    }

    #[test]
    fn settings_read_later_are_named() {
        let mut known = KernelSettings::default();
        known.files.push(SettingsFile::parsed("/etc/sysctl.d/99-site.conf", "net.ipv4.tcp_sack = 0\n"));
        known.files.push(SettingsFile::parsed("/etc/sysctl.d/50-site.conf", "net.ipv4.tcp_timestamps = 0\n"));
        known.files.push(SettingsFile::parsed("/etc/sysctl.conf", "net.ipv4.tcp_rmem = 1 2 3\n"));
        let ours = [("net.ipv4.tcp_sack", "1"), ("net.ipv4.tcp_timestamps", "1"), ("net.ipv4.tcp_rmem", "4 5 6")];
        let warnings = override_warnings(known, &ours);
        let said = |words: &[&str]| warnings.iter().any(|text| words.iter().all(|word| text.contains(word)));
        assert!(said(&["/etc/sysctl.d/99-site.conf", "tcp_sack", "at boot"]), "{warnings:?}");
        assert!(said(&["/etc/sysctl.conf", "tcp_rmem", "sysctl --system"]), "{warnings:?}");
        assert!(!said(&["tcp_timestamps"]), "{warnings:?}");
        assert!(!said(&["tcp_rmem", "at boot"]), "{warnings:?}");
    }
}
