//! Very long receive backlog per processor.

use linerate_model::change::ChangeGroup;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_units::PacketCount;

use super::AuditRule;
use super::settings_support::{SettingFindingDraft, finding, host, present_and_later};

const ID: &str = "netdev-backlog-long";
const KEY: &str = "net.core.netdev_max_backlog";
const CITATION: &str = "Documentation/networking/scaling.rst (RPS flow limit: 1000 to 10000); net/core/dev.c \
                        (enqueue_to_backlog)";
const MAX_BACKLOG: i64 = 30_000;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "The receive backlog (netdev_max_backlog) is very long.",
    explanation: "Only packets that are passed from one processor to another are queued there: with RPS, in tunnels, \
    on veth and loopback. Packets of a network card with NAPI are not. A longer backlog hides an overloaded processor \
    behind delay; drops are counted in the second column of /proc/net/softnet_stat, and only they are a reason to \
    raise it.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host(&[(KEY, "300000")]),
    silent: || host(&[(KEY, "10000")]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let values = present_and_later(host, KEY).into_iter();
    let mut values = values.filter_map(|(value, prefix)| Some((value.parse::<i64>().ok()?, prefix)));
    let Some((value, prefix)) = values.find(|(value, _)| *value >= MAX_BACKLOG) else { return Vec::new() };
    let rows = host.counters.softnet.known();
    let dropped = rows.map(|rows| rows.iter().map(|row| row.dropped.get()).sum::<u64>());
    if dropped.is_some_and(|dropped| dropped > 0) {
        return Vec::new();
    }
    let seen = if dropped.is_some() { "No packet was dropped there since boot" } else { "No counter shows a need" };
    let draft = SettingFindingDraft {
        rule: ID,
        severity: FindingSeverity::Advice,
        text: format!(
            "{prefix}{value} packets may wait for one processor: at 1500 bytes that is {} of delay at 1 Gbit/s. {seen}.",
            delay(value)
        ),
        to: Some("1000".to_owned()),
        group: ChangeGroup::Processors,
        source: CITATION,
        risk: "with RPS or on a veth, bursts may be dropped: watch the second column of /proc/net/softnet_stat",
    };
    let mut finding = finding(host, KEY, draft);
    if let Some(dropped) = dropped {
        finding.evidence.push(format!("/proc/net/softnet_stat: {} dropped", PacketCount::new(dropped)));
    }
    vec![finding]
}

/// `packets × 1500 B × 8 / 1 Gbit/s`.
fn delay(packets: i64) -> String {
    let microseconds = packets.saturating_mul(12);
    format!("{}.{:02} s", microseconds / 1_000_000, microseconds % 1_000_000 / 10_000)
}
