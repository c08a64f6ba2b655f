//! Many connections with BBR need one pacing timer each without fq.

use linerate_model::change::{ChangeGroup, ChangeReason, ChangeTarget, EffectTiming, HostChange};
use linerate_model::diagnosis::Cause;
use linerate_units::StreamCount;

use super::super::inputs::EgressInterface;
use super::super::support::{SettingProposal, fair_queue};
use super::super::test_cases::{host, rhel};
use super::super::{RuleAnswer, TuningInputs, TuningRule};
use super::planned_congestion_control;

const ID: &str = "default-queueing";
const KEY: &str = "net.core.default_qdisc";
/// Number of connections up to which the timers cost little.
const MAX_CONNECTIONS_WITH_TIMERS: StreamCount = StreamCount::new(100);

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: ChangeGroup::Queueing,
    explanation: "BBR paces. Without the fair queue (fq) each connection has its own timer, and hundreds of them cost \
    processor time; fq paces all of them with one. The setting applies to interfaces that come up later; the \
    interface towards the other end is changed directly.",
    citation: "Linux, net/ipv4/tcp_bbr.c (comment at its head); tc-fq(8)",
    causes: &[Cause::SenderProcessor],
    unmeasured: true,
    propose,
    fires: || host_with_connections(500),
    silent: || host_with_connections(10),
};

/// Returns a host with this number of connections that use BBR.
fn host_with_connections(flows: u64) -> TuningInputs {
    let mut inputs = rhel(host(&[(KEY, "fq_codel"), ("net.ipv4.tcp_congestion_control", "bbr")]));
    inputs.flows = Some(StreamCount::new(flows));
    inputs.near.interface =
        Some(EgressInterface { name: "eth0".to_owned(), queueing: Some("# made by the kernel: fq_codel".to_owned()) });
    inputs
}

fn propose(inputs: &TuningInputs) -> Vec<RuleAnswer> {
    let Some(flows) = inputs.flows.filter(|flows| *flows > MAX_CONNECTIONS_WITH_TIMERS) else { return Vec::new() };
    let transfers = inputs.transfers();
    let senders = transfers.iter().map(|transfer| transfer.sender);
    let pacing =
        senders.filter(|end| planned_congestion_control(inputs, *end).is_some_and(|name| name.starts_with("bbr")));
    pacing
        .filter_map(|end| {
            let host = inputs.host(end)?;
            let now = host.settings.get(KEY)?;
            (now != "fq").then_some((end, host))
        })
        .flat_map(|(end, host)| {
            let setting = SettingProposal {
                rule: ID,
                end,
                key: KEY,
                to: "fq".to_owned(),
                group: ChangeGroup::Queueing,
                takes_effect: EffectTiming::LinkBounce,
                text:
                    "Many connections with BBR use one pacing timer each; the fair queue paces them with one in total."
                        .to_owned(),
                arithmetic: None,
                evidence: vec![format!("connections: {flows}")],
                risk: "it does not affect queueing disciplines that were set up by hand",
            };
            let mut answers = setting.answer(inputs);
            if let (Some(RuleAnswer::Change(proposed)), Some(interface)) = (answers.first_mut(), &host.interface) {
                let reason = proposed.change.reason.clone();
                proposed.alternatives.extend(interface_change(interface, reason));
            }
            answers
        })
        .collect()
}

/// Returns the same change for the interface that is up.
fn interface_change(interface: &EgressInterface, reason: ChangeReason) -> Option<HostChange> {
    Some(HostChange {
        target: ChangeTarget::Queueing { interface: interface.name.clone() },
        from: interface.queueing.clone(),
        to: fair_queue(interface, "")?,
        group: ChangeGroup::Queueing,
        takes_effect: EffectTiming::Now,
        reason: ChangeReason { risk: "shaping and priorities of this interface are lost".to_owned(), ..reason },
    })
}
