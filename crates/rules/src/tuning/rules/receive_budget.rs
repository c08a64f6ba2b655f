//! Processors stopped receiving with packets left.

use core::time::Duration;

use linerate_model::change::{ChangeGroup, EffectTiming};
use linerate_model::diagnosis::Cause;
use linerate_units::PacketCount;

use super::super::inputs::ReceiveCounters;
use super::super::support::SettingProposal;
use super::super::test_cases::{diagnosed, host, rhel};
use super::super::{RuleAnswer, TuningInputs, TuningRule};

const ID: &str = "receive-budget";
const KEY: &str = "net.core.netdev_budget_usecs";
/// Longest proposed budget: a longer one keeps other work from the processor.
const MAX_BUDGET: Duration = Duration::from_millis(50);
/// Squeezes per second and processor up to which they are normal.
const MAX_USUAL_SQUEEZE_RATE: f64 = 1.0;

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: ChangeGroup::Processors,
    explanation: "A receiving processor stops after a time, so that other work can run, and counts when packets were \
    left. Occasional squeezes are normal; every second, and with drops, a longer budget helps.",
    citation: "Documentation/admin-guide/sysctl/net.rst (netdev_budget_usecs); bpftune, netns and net buffer tuners",
    causes: &[Cause::HostDrops],
    unmeasured: true,
    propose,
    fires: || squeezed(500),
    silent: || squeezed(5),
};

/// Returns a receiver with two processors that were squeezed this number of times within ten seconds.
fn squeezed(times: u64) -> TuningInputs {
    let mut inputs = diagnosed(rhel(host(&[(KEY, "8000")])), Cause::HostDrops);
    inputs.near.receiving = Some(ReceiveCounters {
        elapsed: Duration::from_secs(10),
        processors: 2,
        squeezed: times,
        budget: Duration::from_millis(8),
        ..ReceiveCounters::default()
    });
    inputs
}

fn squeeze_rate(seen: &ReceiveCounters) -> Option<f64> {
    let times = PacketCount::new(seen.squeezed).as_f64();
    let rate = times / seen.elapsed.as_secs_f64() / f64::from(seen.processors);
    (rate.is_finite() && rate > MAX_USUAL_SQUEEZE_RATE).then_some(rate)
}

fn propose(inputs: &TuningInputs) -> Vec<RuleAnswer> {
    let squeezed = inputs.known_hosts().filter_map(|(end, host)| {
        let seen = host.receiving.filter(|seen| !seen.budget.is_zero())?;
        let to = u64::try_from((seen.budget * 2).min(MAX_BUDGET).as_micros()).ok()?;
        (host.number(KEY)? < to).then_some((end, seen, to, squeeze_rate(&seen)?))
    });
    let squeezed: Vec<_> = squeezed.collect();
    squeezed
        .into_iter()
        .flat_map(|(end, seen, to, rate)| {
            SettingProposal {
                rule: ID,
                end,
                key: KEY,
                to: to.to_string(),
                group: ChangeGroup::Processors,
                takes_effect: EffectTiming::Now,
                text: "Processors repeatedly stopped receiving with packets left.".to_owned(),
                arithmetic: Some(format!("2 x {} µs, at most {} µs", seen.budget.as_micros(), MAX_BUDGET.as_micros())),
                evidence: vec![format!("{rate:.0} times per second and processor")],
                risk: "programs on the same processor wait longer",
            }
            .answer(inputs)
        })
        .collect()
}
