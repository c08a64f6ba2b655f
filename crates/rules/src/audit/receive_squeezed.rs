//! Processors stop receiving with packets left.

use linerate_model::change::{Group, TakesEffect, Target};
use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::counters::SoftnetRow;
use linerate_model::host::processors::ProcessorTicks;

use super::Rule;
use super::link_support::{Edit, Saying, and_setting};

const ID: &str = "receive-squeezed";
const CITATION: &str = "kernel: net/core/dev.c (net_rx_action); bpftune's rule of one a second";
const BUDGET: &str = "net.core.netdev_budget";
const TIME: &str = "net.core.netdev_budget_usecs";
/// Ticks of `/proc/stat` in a second (`USER_HZ`).
const TICKS_A_SECOND: f64 = 100.0;
/// Squeezes a second and processor that cost something, and that are worth a note.
const COSTLY: f64 = 1.0;
const NOTABLE: f64 = 0.01;
/// Longer budgets keep programs from the processor for too long.
const MOST_PACKETS: i64 = 2400;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Processors stop receiving with packets left (softnet time_squeeze).",
    explanation: "In one go a processor takes at most net.core.netdev_budget packets from its devices, for at most net.core.netdev_budget_usecs. When there is more, it goes on a little later, and other work may come in between. Some of that is how it is meant to be. Often, and with ring losses, it says that the processor has more to do than it can: then more queues help more than a longer budget.",
    citation: CITATION,
    keys: &[BUDGET, TIME],
    check,
    fires: || and_setting(squeezed(3600 * 4), BUDGET, "300"),
    silent: || and_setting(squeezed(20), BUDGET, "300"),
};

/// An hour of one processor with this many squeezes.
fn squeezed(count: u32) -> HostFacts {
    let mut host = HostFacts::default();
    host.counters.softnet = Fact::Known(vec![SoftnetRow { squeezed: count, ..SoftnetRow::default() }]);
    let hour = ProcessorTicks { idle: 360_000, ..ProcessorTicks::default() };
    host.processors.each = Fact::Known([(0, hour)].into());
    host
}

fn check(host: &HostFacts) -> Vec<Finding> {
    let (Some(rows), Some(each)) = (host.counters.softnet.known(), host.processors.each.known()) else {
        return Vec::new();
    };
    #[expect(clippy::cast_precision_loss, reason = "seconds since the boot")]
    let seconds = |row: &SoftnetRow| Some(each.get(&row.processor)?.total() as f64 / TICKS_A_SECOND);
    let rates = rows.iter().filter_map(|row| {
        let seconds = seconds(row).filter(|seconds| *seconds > 0.0)?;
        Some((row, f64::from(row.squeezed) / seconds))
    });
    let worst = rates.max_by(|(_, one), (_, other)| one.total_cmp(other));
    worst.filter(|(_, rate)| *rate >= NOTABLE).map(|(row, rate)| finding(host, row, rate)).into_iter().collect()
}

fn finding(host: &HostFacts, row: &SoftnetRow, rate: f64) -> Finding {
    let is_costly = rate >= COSTLY;
    let now = host.settings.number(BUDGET);
    let to = now.map(|now| now.saturating_mul(2).min(MOST_PACKETS)).filter(|to| Some(*to) > now && is_costly);
    let mut evidence = vec![format!(
        "processor {}: {} squeezes since the boot, {} packets",
        row.processor, row.squeezed, row.processed
    )];
    for key in [BUDGET, TIME] {
        evidence.extend(host.settings.value(key).map(|value| format!("{key} = {value}")));
    }
    let mut remedy = vec!["cat /proc/net/softnet_stat (does the third column grow under load?)".to_owned()];
    remedy.extend(to.map(|to| format!("sysctl -w {BUDGET}={to}")));
    let saying = Saying {
        rule: (ID, CITATION),
        severity: if is_costly { Severity::Advice } else { Severity::Note },
        subject: BUDGET.to_owned(),
        text: format!(
            "Processor {} stopped receiving with packets left {rate:.2} times a second since the boot.",
            row.processor
        ),
        evidence,
        remedy,
        risk: "programs wait longer for a processor that receives longer in one go",
    };
    match (now, to) {
        (Some(now), Some(to)) => saying.with_change(Edit {
            target: Target::Setting { key: BUDGET.to_owned() },
            from: now.to_string(),
            to: to.to_string(),
            group: Group::Processors,
            takes_effect: TakesEffect::Now,
            arithmetic: Some(format!("2 x {now} = {to} packets, at most {MOST_PACKETS}")),
        }),
        _ => saying.finding(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_worth_a_note_without_a_change() {
        let found = check(&and_setting(squeezed(360), BUDGET, "300"));
        assert!(found[0].severity == Severity::Note && found[0].change.is_none());
        let found = check(&and_setting(squeezed(36_000), BUDGET, "300"));
        assert_eq!(found[0].change.as_ref().map(|change| change.to.as_str()), Some("600"));
        assert_eq!(check(&and_setting(squeezed(36_000), BUDGET, "2400"))[0].change, None);
    }
}
