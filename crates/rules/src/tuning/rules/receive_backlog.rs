//! Packets were dropped at a processor's full receive backlog.

use core::time::Duration;

use linerate_model::change::{ChangeGroup, EffectTiming};
use linerate_model::diagnosis::Cause;
use linerate_units::PacketCount;

use super::super::inputs::ReceiveCounters;
use super::super::support::SettingProposal;
use super::super::test_cases::{diagnosed, host, rhel};
use super::super::{RuleAnswer, TuningInputs, TuningRule};
use crate::advisable::MAX_BACKLOG_PACKETS;

const ID: &str = "receive-backlog";
const KEY: &str = "net.core.netdev_max_backlog";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: ChangeGroup::Processors,
    explanation: "The backlog holds packets that are passed to another processor (receive packet steering), or that \
    come from virtual interfaces. Network cards with queues of their own do not use it, and without counted drops a \
    longer one changes nothing.",
    citation: "Documentation/admin-guide/sysctl/net.rst (netdev_max_backlog); Documentation/networking/scaling.rst",
    causes: &[Cause::HostDrops],
    unmeasured: true,
    propose,
    fires: || dropped(50),
    silent: || dropped(0),
};

/// Returns a receiver that dropped this number of packets within ten seconds.
fn dropped(packets: u64) -> TuningInputs {
    let mut inputs = diagnosed(rhel(host(&[(KEY, "1000")])), Cause::HostDrops);
    inputs.near.receiving = Some(ReceiveCounters {
        elapsed: Duration::from_secs(10),
        processors: 2,
        dropped: PacketCount::new(packets),
        backlog: PacketCount::new(1000),
        ..ReceiveCounters::default()
    });
    inputs
}

fn propose(inputs: &TuningInputs) -> Vec<RuleAnswer> {
    let dropping = inputs.known_hosts().filter_map(|(end, host)| {
        let seen = host.receiving.filter(|seen| !seen.dropped.is_zero() && !seen.backlog.is_zero())?;
        // Twice the length at which packets were dropped: applied once, not with every check of the same count.
        let to = (seen.backlog.get() * 2).min(MAX_BACKLOG_PACKETS);
        (host.number(KEY)? < to).then_some((end, seen, to))
    });
    let dropping: Vec<_> = dropping.collect();
    dropping
        .into_iter()
        .flat_map(|(end, seen, to)| {
            SettingProposal {
                rule: ID,
                end,
                key: KEY,
                to: to.to_string(),
                group: ChangeGroup::Processors,
                takes_effect: EffectTiming::Now,
                text: "Received packets were dropped at a processor's full receive backlog.".to_owned(),
                arithmetic: Some(format!("2 x {} packets, at most {MAX_BACKLOG_PACKETS}", seen.backlog)),
                evidence: vec![format!("dropped in {:.0} s: {}", seen.elapsed.as_secs_f64(), seen.dropped)],
                risk: "a longer queue adds delay",
            }
            .answer(inputs)
        })
        .collect()
}
