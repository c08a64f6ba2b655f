//! How what was proven is kept, and what may defeat that at the next boot.

use std::path::PathBuf;

use linerate_change::{Keep, drop_in};
use linerate_model::change::{Plan, Target};
use linerate_model::host::managers::{InterfaceManager, Managers};
use linerate_model::host::settings::{Order, Settings, SettingsFile};
use linerate_sys::facts;

/// For this host: settings in the file of `sysctl.d(5)`, unless they are to hold until the next boot only.
pub(super) fn keep(plan: &Plan, evidence: &str, until_reboot: bool) -> Keep {
    let settings: Vec<(&str, &str)> = plan
        .changes
        .iter()
        .filter_map(|change| match &change.target {
            Target::Setting { key } => Some((key.as_str(), change.to.as_str())),
            _ => None,
        })
        .collect();
    let file = (!until_reboot && !settings.is_empty()).then(|| PathBuf::from(drop_in::PATH));
    if until_reboot {
        return Keep { file, evidence: evidence.to_owned(), warnings: Vec::new() };
    }
    let host = facts::read();
    let mut warnings = defeats(host.settings, &settings);
    warnings.extend(plan.changes.iter().filter_map(|change| holds_until_boot(&change.target, &host.managers)));
    Keep { file, evidence: evidence.to_owned(), warnings }
}

/// What a file of settings cannot say belongs to whoever looks after the interface: linerate does not write in others' files.
fn holds_until_boot(target: &Target, managers: &Managers) -> Option<String> {
    if let Target::Setting { .. } = target {
        return None;
    }
    let owner = target.interface().and_then(|interface| managers.interfaces.get(interface));
    let (owner, form) = match owner.map(|owner| owner.manager) {
        Some(InterfaceManager::NetworkManager) => ("NetworkManager", "network-manager"),
        Some(InterfaceManager::Networkd) => ("systemd-networkd", "systemd-link"),
        Some(InterfaceManager::Netplan) => ("netplan", "systemd-link"),
        Some(InterfaceManager::Ifupdown) => ("ifupdown", "systemd-link"),
        None => ("whoever sets it up", "systemd-link"),
    };
    Some(format!(
        "{target} holds until the next boot: {owner} has to set it then (`linerate tune export --format {form}` prints how)"
    ))
}

/// Which other lines are read after ours, in the order of either reader.
fn defeats(mut known: Settings, settings: &[(&str, &str)]) -> Vec<String> {
    let lines: Vec<String> = settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    known.files.retain(|file| file.path != drop_in::PATH);
    known.files.push(SettingsFile::parsed(drop_in::PATH, &lines.join("\n")));
    let mut warnings = Vec::new();
    for (order, reader) in [(Order::Systemd, "at boot"), (Order::Procps, "by `sysctl --system`")] {
        for (key, value) in settings {
            let Some(winner) = known.decides(key, order) else { continue };
            if winner.value() != Some(value) && !winner.place().starts_with(drop_in::PATH) {
                warnings.push(format!(
                    "{} sets {key}, too, and is read later {reader}: change it there",
                    winner.edit_place()
                ));
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use linerate_model::host::managers::Ownership;

    use super::*;

    #[test]
    fn what_no_file_of_settings_can_say_belongs_to_the_interfaces_manager() {
        let target = Target::Queueing { interface: "eth0".into() };
        let owner = |manager| Ownership { manager, evidence: "a file".into() };
        let interfaces = [("eth0".to_owned(), owner(InterfaceManager::NetworkManager))];
        let managers = Managers { interfaces: interfaces.into(), ..Managers::default() };
        let said = holds_until_boot(&target, &managers).expect("a warning");
        assert!(said.contains("eth0 queueing") && said.contains("NetworkManager") && said.contains("network-manager"));
        assert!(holds_until_boot(&target, &Managers::default()).expect("a warning").contains("systemd-link"));
        assert_eq!(holds_until_boot(&Target::Setting { key: "net.ipv4.tcp_sack".into() }, &managers), None);
    }

    #[test]
    fn what_is_read_later_is_named() {
        let mut known = Settings::default();
        known.files.push(SettingsFile::parsed("/etc/sysctl.d/99-site.conf", "net.ipv4.tcp_sack = 0\n"));
        known.files.push(SettingsFile::parsed("/etc/sysctl.d/50-site.conf", "net.ipv4.tcp_timestamps = 0\n"));
        known.files.push(SettingsFile::parsed("/etc/sysctl.conf", "net.ipv4.tcp_rmem = 1 2 3\n"));
        let ours = [("net.ipv4.tcp_sack", "1"), ("net.ipv4.tcp_timestamps", "1"), ("net.ipv4.tcp_rmem", "4 5 6")];
        let warnings = defeats(known, &ours);
        let said = |words: &[&str]| warnings.iter().any(|text| words.iter().all(|word| text.contains(word)));
        assert!(said(&["/etc/sysctl.d/99-site.conf", "tcp_sack", "at boot"]), "{warnings:?}");
        assert!(said(&["/etc/sysctl.conf", "tcp_rmem", "sysctl --system"]), "{warnings:?}");
        assert!(!said(&["tcp_timestamps"]), "{warnings:?}");
        assert!(!said(&["tcp_rmem", "at boot"]), "{warnings:?}");
    }
}
