//! Drops at a full receive backlog (softnet).

use linerate_model::change::{ChangeGroup, ChangeTarget, EffectTiming};
use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::counters::SoftnetRow;
use linerate_units::PacketCount;

use super::AuditRule;
use super::link_support::{FindingChange, FindingDraft, and_setting, by_share, part_of};

const ID: &str = "receive-backlog-drops";
const CITATION: &str =
    "kernel: Documentation/networking/scaling.rst, net/core/dev.c (enqueue_to_backlog); docs/seeds-checklist.md";
const KEY: &str = "net.core.netdev_max_backlog";
const MAX_HARMLESS_DROP_RATIO: f64 = 1e-6;
/// Largest backlog that the kernel's documentation found useful.
const MAX_BACKLOG: i64 = 10_000;
/// The kernel's default.
const MIN_BACKLOG: i64 = 1000;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A processor's receive backlog was full (softnet dropped).",
    explanation: "Packets that receive packet steering passes to another processor, and those of loopback, veth and \
        tunnels, wait in a per-processor queue of net.core.netdev_max_backlog packets. Packets of a hardware device's \
        driver (NAPI) do not use it: raising it without such drops has no effect, however fast the link.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || and_setting(host_that_dropped(900), KEY, "1000"),
    silent: || and_setting(host_that_dropped(0), KEY, "1000"),
};

fn host_that_dropped(dropped: u64) -> HostFacts {
    let row = SoftnetRow {
        processed: PacketCount::new(1_000_000),
        dropped: PacketCount::new(dropped),
        ..SoftnetRow::default()
    };
    let mut host = HostFacts::default();
    host.counters.softnet = Fact::Known(vec![row]);
    host
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let Some(rows) = host.counters.softnet.known() else { return Vec::new() };
    let sum = |of: fn(&SoftnetRow) -> PacketCount| rows.iter().map(|row| of(row).get()).fold(0, u64::saturating_add);
    let (dropped, processed) = (sum(|row| row.dropped), sum(|row| row.processed));
    if dropped == 0 {
        return Vec::new();
    }
    let severity = by_share(dropped, processed.saturating_add(dropped), MAX_HARMLESS_DROP_RATIO);
    let now = host.settings.number(KEY);
    let to = now
        .map(|now| now.saturating_mul(2).clamp(MIN_BACKLOG, MAX_BACKLOG))
        .filter(|to| Some(*to) > now && severity > FindingSeverity::Note);
    let mut evidence: Vec<String> = rows
        .iter()
        .filter(|row| !row.dropped.is_zero())
        .take(4)
        .map(|row| format!("processor {}: {} dropped, {} received", row.processor, row.dropped, row.processed))
        .collect();
    evidence.extend(now.map(|now| format!("{KEY} = {now}")));
    let mut remedy = vec!["cat /proc/net/softnet_stat (does the second column grow under load?)".to_owned()];
    remedy.extend(to.map(|to| format!("sysctl -w {KEY}={to}")));
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity,
        subject: KEY.to_owned(),
        text: format!(
            "{} received packets were dropped because a processor's receive backlog was full.",
            part_of(dropped, processed.saturating_add(dropped))
        ),
        evidence,
        remedy,
        risk: "a longer queue adds delay; a processor that is too slow fills any queue",
    };
    match (now, to) {
        (Some(now), Some(to)) => vec![draft.with_change(FindingChange {
            target: ChangeTarget::Setting { key: KEY.to_owned() },
            from: now.to_string(),
            to: to.to_string(),
            group: ChangeGroup::Processors,
            takes_effect: EffectTiming::Now,
            arithmetic: Some(format!("min(2 x {now}, {MAX_BACKLOG}) = {to} packets")),
        })],
        _ => vec![draft.finding()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_not_made_longer_than_documented_nor_for_few_drops() {
        let change = |dropped, now: &str| check(&and_setting(host_that_dropped(dropped), KEY, now))[0].change.clone();
        assert_eq!(change(900, "8000").map(|change| change.to), Some("10000".to_owned()));
        assert_eq!(change(900, "30000"), None);
        // Kernels count in 32 bits: at most one in four thousand million.
        let mut rare = host_that_dropped(1);
        if let Fact::Known(rows) = &mut rare.counters.softnet {
            rows[0].processed = PacketCount::new(4_000_000_000);
        }
        assert_eq!(check(&and_setting(rare, KEY, "1000"))[0].change, None);
    }
}
