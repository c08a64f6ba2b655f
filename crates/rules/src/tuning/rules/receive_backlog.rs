//! Packets were dropped at a full backlog of a processor.

use core::time::Duration;

use linerate_model::change::{Group, TakesEffect};
use linerate_model::diagnosis::Cause;
use linerate_units::PacketCount;

use super::super::cases::{diagnosed, host, rhel};
use super::super::inputs::Receiving;
use super::super::support::Setting;
use super::super::{Answer, Inputs, TuningRule};

const ID: &str = "receive-backlog";
const KEY: &str = "net.core.netdev_max_backlog";
/// A longer backlog only delays what it cannot save.
const LONGEST: u64 = 10_000;

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Processors,
    explanation: "The backlog holds packets that are handed to another processor (receive packet steering), or that come \
                  from virtual interfaces. Network cards with queues of their own do not use it, and without counted drops a \
                  longer one changes nothing.",
    citation: "Documentation/admin-guide/sysctl/net.rst (netdev_max_backlog); Documentation/networking/scaling.rst",
    causes: &[Cause::HostDrops],
    unmeasured: true,
    propose,
    fires: || dropped(50),
    silent: || dropped(0),
};

/// A receiver that dropped so many packets within ten seconds.
fn dropped(packets: u64) -> Inputs {
    let mut inputs = diagnosed(rhel(host(&[(KEY, "1000")])), Cause::HostDrops);
    inputs.near.receiving = Some(Receiving {
        elapsed: Duration::from_secs(10),
        processors: 2,
        dropped: PacketCount::new(packets),
        backlog: PacketCount::new(1000),
        ..Receiving::default()
    });
    inputs
}

fn propose(inputs: &Inputs) -> Vec<Answer> {
    let dropping = inputs.ends().filter_map(|(end, host)| {
        let seen = host.receiving.filter(|seen| !seen.dropped.is_zero() && !seen.backlog.is_zero())?;
        // Twice the length at which packets were dropped: applied once, not with every look at the same count.
        let to = (seen.backlog.get() * 2).min(LONGEST);
        (host.number(KEY)? < to).then_some((end, seen, to))
    });
    let dropping: Vec<_> = dropping.collect();
    dropping
        .into_iter()
        .flat_map(|(end, seen, to)| {
            Setting {
                rule: ID,
                end,
                key: KEY,
                to: to.to_string(),
                group: Group::Processors,
                takes_effect: TakesEffect::Now,
                text: "Packets that had arrived were dropped at the full backlog of a processor.".to_owned(),
                arithmetic: Some(format!("2 x {} packets, at most {LONGEST}", seen.backlog)),
                evidence: vec![format!("dropped in {:.0} s: {}", seen.elapsed.as_secs_f64(), seen.dropped)],
                risk: "what is queued longer arrives later",
            }
            .answer(inputs)
        })
        .collect()
}
