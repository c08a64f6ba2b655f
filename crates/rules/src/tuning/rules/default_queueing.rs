//! Many connections with BBR are paced by a timer each.

use linerate_model::change::{Change, Group, Reason, TakesEffect, Target};
use linerate_model::diagnosis::Cause;
use linerate_units::StreamCount;

use super::super::cases::{host, rhel};
use super::super::inputs::Interface;
use super::super::support::Setting;
use super::super::{Answer, Inputs, TuningRule};
use super::planned;

const ID: &str = "default-queueing";
const KEY: &str = "net.core.default_qdisc";
/// Up to so many connections the timers cost little.
const FEW: StreamCount = StreamCount::new(100);

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Queueing,
    explanation: "BBR paces. Without the fair queue (fq) each connection has a timer of its own, and hundreds of them cost \
                  processor time; fq paces all of them with one. The setting is for interfaces that come up later; the one \
                  towards the other end is changed itself.",
    citation: "Linux, net/ipv4/tcp_bbr.c (comment at its head); tc-fq(8)",
    causes: &[Cause::SenderProcessor],
    unmeasured: true,
    propose,
    fires: || many(500),
    silent: || many(10),
};

/// A host with so many connections that use BBR.
fn many(flows: u64) -> Inputs {
    let mut inputs = rhel(host(&[(KEY, "fq_codel"), ("net.ipv4.tcp_congestion_control", "bbr")]));
    inputs.flows = Some(StreamCount::new(flows));
    inputs.near.interface =
        Some(Interface { name: "eth0".to_owned(), queueing: Some("# made by the kernel: fq_codel".to_owned()) });
    inputs
}

fn propose(inputs: &Inputs) -> Vec<Answer> {
    let Some(flows) = inputs.flows.filter(|flows| *flows > FEW) else { return Vec::new() };
    let transfers = inputs.transfers();
    let senders = transfers.iter().map(|transfer| transfer.sender);
    let pacing = senders.filter(|end| planned(inputs, *end).is_some_and(|name| name.starts_with("bbr")));
    pacing
        .filter_map(|end| {
            let host = inputs.host(end)?;
            let now = host.settings.get(KEY)?;
            (now != "fq").then_some((end, host))
        })
        .flat_map(|(end, host)| {
            let setting = Setting {
                rule: ID,
                end,
                key: KEY,
                to: "fq".to_owned(),
                group: Group::Queueing,
                takes_effect: TakesEffect::LinkBounce,
                text: "Many connections with BBR are paced by a timer each; the fair queue paces them with one."
                    .to_owned(),
                arithmetic: None,
                evidence: vec![format!("connections: {flows}")],
                risk: "queueing disciplines that were set up by hand are not touched by it",
            };
            let mut answers = setting.answer(inputs);
            if let (Some(Answer::Change(proposed)), Some(interface)) = (answers.first_mut(), &host.interface) {
                let reason = proposed.change.reason.clone();
                proposed.alternatives.push(of_interface(&interface.name, interface.queueing.clone(), reason));
            }
            answers
        })
        .collect()
}

/// The same for the interface that is up.
fn of_interface(name: &str, from: Option<String>, reason: Reason) -> Change {
    Change {
        target: Target::Queueing { interface: name.to_owned() },
        from,
        to: format!("qdisc replace dev {name} root fq"),
        group: Group::Queueing,
        takes_effect: TakesEffect::Now,
        reason: Reason { risk: "shaping and priorities of this interface are lost".to_owned(), ..reason },
    }
}
