//! Large initial buffer of every new connection.

use linerate_model::change::ChangeGroup;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::numbers;

use super::AuditRule;
use super::settings_support::{SettingFindingDraft, finding, host, present_and_later};
use crate::advisable::MAX_INITIAL_BUFFER;

const ID: &str = "first-buffer-large";
const KEYS: &[&str] = &["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];
const CITATION: &str = "Red Hat Enterprise Linux, Tuning TCP connections for high throughput (at most 524288); \
                        Documentation/networking/ip-sysctl.rst";
const DEFAULT_INITIAL_BUFFERS: [i64; 2] = [131_072, 16_384];

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Every connection begins with a large buffer.",
    explanation: "The second number of tcp_rmem and tcp_wmem is the initial size, before auto-tuning starts. \
    It is no limit: the third number is. A large one lets a burst fill the memory with small \
    packets in large buffers, which the kernel then has to copy together (TCPRcvCollapsed, \
    PruneCalled), with delay spikes.",
    citation: CITATION,
    keys: KEYS,
    check,
    fires: || host(&[("net.ipv4.tcp_rmem", "4096 16777216 16777216")]),
    silent: || host(&[("net.ipv4.tcp_rmem", "4096 262144 33554432"), ("net.ipv4.tcp_wmem", "4096 16384 4194304")]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let of_key = |(key, usual): (&&'static str, i64)| {
        let is_large = |found: &Vec<i64>| found.len() == 3 && found[1] > MAX_INITIAL_BUFFER;
        let values = present_and_later(host, key).into_iter();
        let mut values = values.filter_map(|(value, prefix)| Some((numbers(&value)?, prefix)));
        let (found, prefix) = values.find(|(found, _)| is_large(found))?;
        let draft = SettingFindingDraft {
            rule: ID,
            severity: FindingSeverity::Advice,
            text: format!(
                "{prefix}Every new connection begins with a buffer of {} bytes ({key}, second number): above {MAX_INITIAL_BUFFER} bytes \
                 bursts lead to copying and delay spikes, and auto-tuning would grow it anyway.",
                found[1]
            ),
            to: Some(format!("{} {usual} {}", found[0].min(usual), found[2])),
            group: ChangeGroup::Buffers,
            source: CITATION,
            risk: "transfers that end within few round trips on a long path may get slower",
        };
        Some(finding(host, key, draft))
    };
    KEYS.iter().zip(DEFAULT_INITIAL_BUFFERS).filter_map(of_key).collect()
}
