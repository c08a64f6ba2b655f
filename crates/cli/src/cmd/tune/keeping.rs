//! How what was proven is kept, and what may defeat that at the next boot.

use std::path::PathBuf;

use linerate_change::{Keep, drop_in};
use linerate_model::change::{Plan, Target};
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
    let warnings = if file.is_some() { defeats(facts::read().settings, &settings) } else { Vec::new() };
    Keep { file, evidence: evidence.to_owned(), warnings }
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
    use super::*;

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
