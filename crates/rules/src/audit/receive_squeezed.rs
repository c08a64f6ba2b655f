//! Processors stop receiving with packets left (softnet `time_squeeze`).

use linerate_model::change::{ChangeGroup, ChangeTarget, EffectTiming};
use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::counters::SoftnetRow;
use linerate_model::host::processors::ProcessorTicks;

use super::AuditRule;
use super::link_support::{FindingChange, FindingDraft, and_setting};

const ID: &str = "receive-squeezed";
const CITATION: &str = "kernel: net/core/dev.c (net_rx_action); bpftune's rule of one a second";
const BUDGET: &str = "net.core.netdev_budget";
const BUDGET_TIME: &str = "net.core.netdev_budget_usecs";
/// Ticks of `/proc/stat` in a second (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;
/// Squeezes per second and processor that reduce throughput, and that are worth a note.
const MIN_ADVICE_RATE: f64 = 1.0;
const MIN_NOTE_RATE: f64 = 0.01;
/// Largest budget in packets: longer ones keep programs from the processor for too long.
const MAX_BUDGET_PACKETS: i64 = 2400;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Processors stop receiving with packets left (softnet time_squeeze).",
    explanation: "In one polling cycle a processor takes at most net.core.netdev_budget packets from its devices, for \
        at most net.core.netdev_budget_usecs. When more are left, it continues later, and other work may run in \
        between. Some squeezes are normal. Frequent ones, with ring losses, mean that the processor is overloaded: \
        then more queues help more than a longer budget.",
    citation: CITATION,
    keys: &[BUDGET, BUDGET_TIME],
    check,
    fires: || and_setting(squeezed(3600 * 4), BUDGET, "300"),
    silent: || and_setting(squeezed(20), BUDGET, "300"),
};

/// Returns a host with one processor that was squeezed this many times within an hour.
fn squeezed(count: u32) -> HostFacts {
    let mut host = HostFacts::default();
    host.counters.softnet = Fact::Known(vec![SoftnetRow { squeezed: count, ..SoftnetRow::default() }]);
    let hour = ProcessorTicks { idle: 360_000, ..ProcessorTicks::default() };
    host.processors.ticks_by_processor = Fact::Known([(0, hour)].into());
    host
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let (Some(rows), Some(each)) = (host.counters.softnet.known(), host.processors.ticks_by_processor.known()) else {
        return Vec::new();
    };
    #[expect(clippy::cast_precision_loss, reason = "seconds since the boot")]
    let seconds = |row: &SoftnetRow| Some(each.get(&row.processor)?.total() as f64 / TICKS_PER_SECOND);
    let rates = rows.iter().filter_map(|row| {
        let seconds = seconds(row).filter(|seconds| *seconds > 0.0)?;
        Some((row, f64::from(row.squeezed) / seconds))
    });
    let worst = rates.max_by(|(_, one), (_, other)| one.total_cmp(other));
    worst.filter(|(_, rate)| *rate >= MIN_NOTE_RATE).map(|(row, rate)| finding(host, row, rate)).into_iter().collect()
}

fn finding(host: &HostFacts, row: &SoftnetRow, rate: f64) -> AuditFinding {
    let is_costly = rate >= MIN_ADVICE_RATE;
    let now = host.settings.number(BUDGET);
    let to = now.map(|now| now.saturating_mul(2).min(MAX_BUDGET_PACKETS)).filter(|to| Some(*to) > now && is_costly);
    let mut evidence =
        vec![format!("processor {}: {} squeezes since boot, {} packets", row.processor, row.squeezed, row.processed)];
    for key in [BUDGET, BUDGET_TIME] {
        evidence.extend(host.settings.value(key).map(|value| format!("{key} = {value}")));
    }
    let mut remedy = vec!["cat /proc/net/softnet_stat (does the third column grow under load?)".to_owned()];
    remedy.extend(to.map(|to| format!("sysctl -w {BUDGET}={to}")));
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: if is_costly { FindingSeverity::Advice } else { FindingSeverity::Note },
        subject: BUDGET.to_owned(),
        text: format!(
            "Processor {} stopped receiving with packets left {rate:.2} times a second since boot.",
            row.processor
        ),
        evidence,
        remedy,
        risk: "programs wait longer for a processor that receives longer per polling cycle",
    };
    match (now, to) {
        (Some(now), Some(to)) => draft.with_change(FindingChange {
            target: ChangeTarget::Setting { key: BUDGET.to_owned() },
            from: now.to_string(),
            to: to.to_string(),
            group: ChangeGroup::Processors,
            takes_effect: EffectTiming::Now,
            arithmetic: Some(format!("2 x {now} = {to} packets, at most {MAX_BUDGET_PACKETS}")),
        }),
        _ => draft.finding(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_worth_a_note_without_a_change() {
        let found = check(&and_setting(squeezed(360), BUDGET, "300"));
        assert!(found[0].severity == FindingSeverity::Note && found[0].change.is_none());
        let found = check(&and_setting(squeezed(36_000), BUDGET, "300"));
        assert_eq!(found[0].change.as_ref().map(|change| change.to.as_str()), Some("600"));
        assert_eq!(check(&and_setting(squeezed(36_000), BUDGET, "2400"))[0].change, None);
    }
}
