//! Processors stopped receiving with packets left.

use core::time::Duration;

use linerate_model::change::{Group, TakesEffect};
use linerate_model::diagnosis::Cause;
use linerate_units::PacketCount;

use super::super::cases::{diagnosed, host, rhel};
use super::super::inputs::Receiving;
use super::super::support::Setting;
use super::super::{Answer, Inputs, TuningRule};

const ID: &str = "receive-budget";
const KEY: &str = "net.core.netdev_budget_usecs";
/// More holds a processor back from everything else.
const LONGEST: Duration = Duration::from_millis(50);
/// Up to so many times per second and processor it is the way it is meant.
const USUAL: f64 = 1.0;

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Processors,
    explanation: "A processor that receives stops after a time, so that others get their turn, and counts when packets were \
                  left. Now and then that is as meant; every second, and with drops behind it, a longer turn helps.",
    citation: "Documentation/admin-guide/sysctl/net.rst (netdev_budget_usecs); bpftune, netns and net buffer tuners",
    causes: &[Cause::HostDrops],
    unmeasured: true,
    propose,
    fires: || squeezed(500),
    silent: || squeezed(5),
};

/// A receiver with two processors that were squeezed so many times within ten seconds.
fn squeezed(times: u64) -> Inputs {
    let mut inputs = diagnosed(rhel(host(&[(KEY, "8000")])), Cause::HostDrops);
    inputs.near.receiving = Some(Receiving {
        elapsed: Duration::from_secs(10),
        processors: 2,
        squeezed: times,
        budget: Duration::from_millis(8),
        ..Receiving::default()
    });
    inputs
}

fn often(seen: &Receiving) -> Option<f64> {
    let times = PacketCount::new(seen.squeezed).as_f64();
    let often = times / seen.elapsed.as_secs_f64() / f64::from(seen.processors);
    (often.is_finite() && often > USUAL).then_some(often)
}

fn propose(inputs: &Inputs) -> Vec<Answer> {
    let squeezed = inputs.ends().filter_map(|(end, host)| {
        let seen = host.receiving.filter(|seen| !seen.budget.is_zero())?;
        let to = u64::try_from((seen.budget * 2).min(LONGEST).as_micros()).ok()?;
        (host.number(KEY)? < to).then_some((end, seen, to, often(&seen)?))
    });
    let squeezed: Vec<_> = squeezed.collect();
    squeezed
        .into_iter()
        .flat_map(|(end, seen, to, often)| {
            Setting {
                rule: ID,
                end,
                key: KEY,
                to: to.to_string(),
                group: Group::Processors,
                takes_effect: TakesEffect::Now,
                text: "Processors stopped receiving with packets left, again and again.".to_owned(),
                arithmetic: Some(format!("2 x {} µs, at most {} µs", seen.budget.as_micros(), LONGEST.as_micros())),
                evidence: vec![format!("{often:.0} times per second and processor")],
                risk: "programs on the same processor wait longer",
            }
            .answer(inputs)
        })
        .collect()
}
