//! One setting with different values in several lines.

use std::collections::BTreeMap;

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::{FileOwner, SettingSource};

use super::AuditRule;
use super::settings_support::{about_lines, delete_line, host_with_files, is_advisable};

const ID: &str = "setting-overridden";
const CITATION: &str = "sysctl.d(5): files are sorted by name whatever their directory, and the last line counts";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Two lines set the same setting to different values.",
    explanation: "The line that is read last counts. The other file is misleading: its value never takes \
    effect.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || {
        host_with_files(
            &[],
            &[
                ("/etc/sysctl.d/60-a.conf", "net.ipv4.tcp_rmem = 1 2 3\n"),
                ("/etc/sysctl.d/99-b.conf", "net.ipv4.tcp_rmem = 4 5 6\n"),
            ],
        )
    },
    silent: || {
        host_with_files(
            &[],
            &[
                ("/etc/sysctl.d/60-a.conf", "net.ipv4.tcp_rmem = 1 2 3\n"),
                ("/etc/sysctl.d/99-b.conf", "net.ipv4.tcp_rmem = 1 2 3\n"),
            ],
        )
    },
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let mut findings = Vec::new();
    for (key, lines) in lines_at_boot(host) {
        let Some((winner, earlier)) = lines.split_last() else { continue };
        // Overriding a package is what the administrator's files are for, and those below /run come and go.
        let is_own = |line: &&SettingSource| matches!(line.owner(), FileOwner::Administrator | FileOwner::CommandLine);
        let losers: Vec<&SettingSource> =
            earlier.iter().filter(|line| line.value() != winner.value()).filter(is_own).collect();
        if losers.is_empty() || losers.iter().any(|line| super::vendor_file_wins::is_overridden_by_vendor(line, winner))
        {
            continue;
        }
        let value = winner.value().unwrap_or_default();
        let text =
            format!("{key} is set {} times; {} is read last and sets {value}.", losers.len() + 1, winner.location());
        let shown: Vec<&SettingSource> = losers.iter().copied().chain([winner]).collect();
        let mut finding = about_lines(ID, FindingSeverity::Advice, &key, text, &shown);
        CITATION.clone_into(&mut finding.source);
        "none: the overridden values have no effect now".clone_into(&mut finding.risk);
        let is_good = |line: &SettingSource| line.value().is_some_and(|value| is_advisable(host, &key, value));
        finding.remedy = losers
            .iter()
            .filter(|line| is_good(winner) || !is_good(line))
            .map(|line| delete_line(host, line))
            .collect();
        finding.remedy.extend((!is_good(winner)).then(|| delete_line(host, winner)));
        findings.push(finding);
    }
    findings
}

/// Returns the lines of each network setting that has more than one, in boot order.
pub(super) fn lines_at_boot(host: &HostFacts) -> BTreeMap<String, Vec<SettingSource>> {
    let mut by_key: BTreeMap<String, Vec<SettingSource>> = BTreeMap::new();
    for line in host.settings.all_sources(host.settings.order_at_boot()) {
        let own = line.file.is_some() && !line.assignment.is_pattern() && line.value().is_some();
        if own && line.assignment.key.starts_with("net.") {
            by_key.entry(line.assignment.key.clone()).or_default().push(line);
        }
    }
    by_key.retain(|_, lines| lines.len() > 1);
    by_key
}
