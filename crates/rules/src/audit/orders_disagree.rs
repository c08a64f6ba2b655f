//! Settings files with different results at boot and for `sysctl --system`.

use std::collections::BTreeSet;

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::order::SYSCTL_CONF;
use linerate_model::host::settings::{ReadOrder, SettingSource};

use super::AuditRule;
use super::settings_support::{about_lines, host_with_files};

const ID: &str = "orders-disagree";
const CITATION: &str = "sysctl.d(5) and sysctl(8): systemd-sysctl does not read /etc/sysctl.conf, `sysctl --system` \
                        reads it last";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "The next boot and `sysctl --system` set different values.",
    explanation: "At boot systemd-sysctl sorts all drop-in files by name, and reads /etc/sysctl.conf only through a \
    link in /etc/sysctl.d. procps' `sysctl --system`, which administrators and packages run, does the same and then \
    reads /etc/sysctl.conf last. The same files give two results.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || {
        host_with_files(
            &[("net.ipv4.tcp_rmem", "1 2 3")],
            &[
                ("/etc/sysctl.conf", "net.ipv4.tcp_rmem = 1 2 3\n"),
                ("/etc/sysctl.d/zz.conf", "net.ipv4.tcp_rmem = 4 5 6\n"),
            ],
        )
    },
    silent: || {
        host_with_files(
            &[("net.ipv4.tcp_rmem", "1 2 3")],
            &[
                ("/etc/sysctl.conf", "net.ipv4.tcp_rmem = 1 2 3\n"),
                ("/etc/sysctl.d/99.conf", "net.ipv4.tcp_rmem = 1 2 3\n"),
            ],
        )
    },
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    if host.settings.systemd.known() == Some(&false) {
        return Vec::new();
    }
    let lines = host.settings.all_sources(ReadOrder::Procps);
    let keys: BTreeSet<String> = lines
        .into_iter()
        .filter(|line| line.file.as_deref() == Some(SYSCTL_CONF) && !line.assignment.is_pattern())
        .map(|line| line.assignment.key)
        .filter(|key| key.starts_with("net."))
        .collect();
    keys.iter().filter_map(|key| key_finding(host, key)).collect()
}

fn key_finding(host: &HostFacts, key: &str) -> Option<AuditFinding> {
    let by_hand = host.settings.decides(key, ReadOrder::Procps)?;
    let at_boot = host.settings.decides(key, ReadOrder::Systemd);
    let (value, other) = (by_hand.value()?, at_boot.as_ref().and_then(SettingSource::value));
    if other == Some(value) {
        return None;
    }
    let boot = other.map_or_else(|| "leaves the kernel's default".to_owned(), |other| format!("sets {other}"));
    let text = format!("{key}: `sysctl --system` sets {value}, but the next boot {boot}.");
    let lines: Vec<&SettingSource> = at_boot.iter().chain([&by_hand]).collect();
    let mut finding = about_lines(ID, FindingSeverity::Warning, key, text, &lines);
    CITATION.clone_into(&mut finding.source);
    "none, once it is clear which of the two was meant".clone_into(&mut finding.risk);
    finding.remedy.push(match &at_boot {
        Some(boot) => format!("if {} is right: delete {}", boot.location(), by_hand.edit_location()),
        None => "ln -s ../sysctl.conf /etc/sysctl.d/99-sysctl.conf".to_owned(),
    });
    if let Some(boot) = &at_boot {
        finding.remedy.push(format!("if {} is right: delete {}", by_hand.location(), boot.edit_location()));
    }
    Some(finding)
}
