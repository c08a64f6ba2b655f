//! Settings files with different results at boot and for `sysctl --system`.

use linerate_units::CompactCollect;
use std::collections::BTreeSet;

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::order::SYSCTL_CONF;
use linerate_model::host::settings::{ReadOrder, SettingSource};

use super::AuditRule;
use super::settings_support::{about_lines, delete_line, host_with_files, is_advisable, own_file_line};

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
        .collect_compactly();
    keys.iter().filter_map(|key| key_finding(host, key)).collect()
}

fn key_finding(host: &HostFacts, key: &str) -> Option<AuditFinding> {
    let by_hand = host.settings.decides(key, ReadOrder::Procps)?;
    let at_boot = host.settings.decides_at_boot(key);
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
    finding.remedy = remedy(host, key, at_boot.as_ref(), &by_hand);
    Some(finding)
}

/// Offers each of the two values that is advisable; where neither is, both lines are deleted.
fn remedy(host: &HostFacts, key: &str, at_boot: Option<&SettingSource>, by_hand: &SettingSource) -> Vec<String> {
    let is_good = |source: &SettingSource| source.value().is_some_and(|value| is_advisable(host, key, value));
    let Some(boot) = at_boot else {
        let all_good = host.settings.files.iter().filter(|file| file.path == SYSCTL_CONF).all(|file| {
            file.sources().all(|line| line.value().is_none_or(|value| is_advisable(host, &line.assignment.key, value)))
        });
        return match (is_good(by_hand), all_good) {
            (true, true) => vec!["ln -s ../sysctl.conf /etc/sysctl.d/99-sysctl.conf".to_owned()],
            (true, false) => vec![own_file_line(key, by_hand.value().unwrap_or_default())],
            (false, _) => vec![delete_line(host, by_hand)],
        };
    };
    let mut lines = Vec::new();
    if is_good(boot) {
        lines.push(format!("if {} is right: {}", boot.location(), delete_line(host, by_hand)));
    }
    if is_good(by_hand) {
        lines.push(format!("if {} is right: {}", by_hand.location(), delete_line(host, boot)));
    }
    if lines.is_empty() {
        lines.extend([boot, by_hand].map(|line| delete_line(host, line)));
    }
    lines
}
