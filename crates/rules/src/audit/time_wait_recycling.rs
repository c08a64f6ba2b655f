//! `tcp_tw_recycle` is set.

use linerate_model::change::ChangeGroup;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;

use super::AuditRule;
use super::settings_support::{
    SettingFindingDraft, about_lines, all_lines, delete_line, finding, host, host_with_files,
};

const ID: &str = "time-wait-recycling";
const KEY: &str = "net.ipv4.tcp_tw_recycle";
const CITATION: &str = "commit 4396e46187ca (removed in 4.12); RFC 6191";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "tcp_tw_recycle is set.",
    explanation: "It recycled TIME-WAIT sockets early by comparing timestamps per address, and so refused clients that \
    share an address behind NAT. It was removed in 4.12. tcp_tw_reuse, which is for outgoing \
    connections, is harmless.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host_with_files(&[], &[("/etc/sysctl.conf", "net.ipv4.tcp_tw_recycle = 1\n")]),
    silent: || host(&[(KEY, "0")]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    if host.settings.number(KEY).is_some_and(|value| value != 0) {
        let draft = SettingFindingDraft {
            rule: ID,
            severity: FindingSeverity::Critical,
            text: "Clients that share an address behind NAT are refused at random (tcp_tw_recycle = 1).".to_owned(),
            to: Some("0".to_owned()),
            group: ChangeGroup::Features,
            source: CITATION,
            risk: "more sockets stay in TIME-WAIT: some kilobytes",
        };
        return vec![finding(host, KEY, draft)];
    }
    let lines = all_lines(host);
    let lines = lines.iter().filter(|line| line.assignment.key == KEY && line.value() != Some("0"));
    let of_line = |line| {
        let text = format!("{KEY} was removed in 4.12, as it refused clients behind NAT: the line has no effect.");
        let mut finding = about_lines(ID, FindingSeverity::Note, KEY, text, &[line]);
        CITATION.clone_into(&mut finding.source);
        "none: nothing changes".clone_into(&mut finding.risk);
        finding.remedy.push(delete_line(host, line));
        finding
    };
    lines.map(of_line).collect()
}
