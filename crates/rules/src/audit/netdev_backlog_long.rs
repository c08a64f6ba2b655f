//! A very long backlog in front of the processors.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_units::PacketCount;

use super::Rule;
use super::settings_support::{Saying, finding, host};

const ID: &str = "netdev-backlog-long";
const KEY: &str = "net.core.netdev_max_backlog";
const CITATION: &str = "Documentation/networking/scaling.rst (RPS flow limit: 1000 to 10000); net/core/dev.c \
                        (enqueue_to_backlog)";
const MOST: i64 = 30_000;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Very many packets may wait for a processor.",
    explanation: "Only packets that are handed from one processor to another wait there: with RPS, in tunnels, on \
                  veth and loopback. Packets of a network card with NAPI do not. A longer backlog hides an overloaded \
                  processor behind delay; packets that were dropped there are counted in the second column of \
                  /proc/net/softnet_stat, and nothing else is a reason to raise it.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host(&[(KEY, "300000")]),
    silent: || host(&[(KEY, "10000")]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let Some(value) = host.settings.number(KEY).filter(|value| *value >= MOST) else { return Vec::new() };
    let rows = host.counters.softnet.known();
    let dropped = rows.map(|rows| rows.iter().map(|row| row.dropped.get()).sum::<u64>());
    if dropped.is_some_and(|dropped| dropped > 0) {
        return Vec::new();
    }
    let seen = if dropped.is_some() { "No packet was dropped there since the boot" } else { "Nothing shows a need" };
    let saying = Saying {
        rule: ID,
        severity: Severity::Advice,
        text: format!(
            "{value} packets may wait for one processor: at 1500 bytes that is {} of delay at 1 Gbit/s. {seen}.",
            delay(value)
        ),
        to: Some("1000".to_owned()),
        group: Group::Processors,
        source: CITATION,
        risk: "with RPS or on a veth, bursts may be dropped: watch the second column of /proc/net/softnet_stat",
    };
    let mut finding = finding(host, KEY, saying);
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
