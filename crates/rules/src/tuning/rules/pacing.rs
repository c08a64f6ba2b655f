//! A policer drops traffic above its rate.

use linerate_model::change::{ChangeGroup, ChangeReason, ChangeTarget, EffectTiming, HostChange};
use linerate_model::diagnosis::Cause;
use linerate_units::{BitRate, StreamCount};

use super::super::inputs::{DataFlow, EgressInterface};
use super::super::proposal::ProposedHostChange;
use super::super::support::{fair_queue, rate, refuse};
use super::super::test_cases::{diagnosed, host, rhel};
use super::super::{RuleAnswer, TuningInputs, TuningRule};

const ID: &str = "pacing";
/// Share of a policer's rate for a paced transfer: its bucket then never runs empty.
const PACED_SHARE: f64 = 0.95;

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: ChangeGroup::Pacing,
    explanation: "A policer drops without a queue that would signal congestion first. Pacing at 95 % of its rate \
    carried 94.1 of 100 Mbit/s with 63 retransmissions, where CUBIC had 80 Mbit/s and BBR 7610 retransmissions.\n\nThe \
    fair queue of the interface paces each connection; setting the rate in the program (SO_MAX_PACING_RATE, iperf3 \
    --fq-rate) does not affect other traffic.",
    citation: "RFC 2697 section 3; Flach et al. 2016; lab:300m-20ms-policer-paced-95m; tc-fq(8), maxrate",
    causes: &[Cause::Policer],
    unmeasured: false,
    propose,
    fires: || policed(Some("# made by the kernel: noqueue")),
    silent: || policed(Some("qdisc replace dev eth0 root fq maxrate 94Mbit")),
};

/// Returns a host that sends through a policer of 100 Mbit/s.
fn policed(queueing: Option<&str>) -> TuningInputs {
    let mut inputs = diagnosed(rhel(host(&[])), Cause::Policer);
    inputs.path.out.policer = Some(BitRate::from_bits_per_second(100e6));
    inputs.near.interface = Some(EgressInterface { name: "eth0".to_owned(), queueing: queueing.map(str::to_owned) });
    inputs
}

fn propose(inputs: &TuningInputs) -> Vec<RuleAnswer> {
    inputs.transfers().iter().filter_map(|transfer| sender_answer(inputs, transfer)).collect()
}

fn sender_answer(inputs: &TuningInputs, transfer: &DataFlow<'_>) -> Option<RuleAnswer> {
    let (end, policed) = (transfer.sender, transfer.way.policer?);
    let host = inputs.host(end)?;
    let flows = inputs.flows.map_or(1, StreamCount::get).max(1);
    let each = policed * (PACED_SHARE / StreamCount::new(flows).as_f64());
    let kilobits = each.whole_bits_per_second() / 1000;
    if kilobits == 0 {
        return None;
    }
    let Some(interface) = &host.interface else {
        let text = format!(
            "Pace each connection of the {} host at {} (0.95 of the policer's {}): SO_MAX_PACING_RATE in the program, \
             or `tc qdisc replace dev INTERFACE root fq maxrate {kilobits}kbit`.",
            end.name(),
            rate(each),
            rate(policed)
        );
        return Some(refuse(ID, Some(end), inputs, text));
    };
    if interface.queueing.as_deref().and_then(fq_max_rate).is_some_and(|now| now <= each * 1.001) {
        return None;
    }
    let shared = if flows == 1 { String::new() } else { format!(" / {flows} connections") };
    let change = HostChange {
        target: ChangeTarget::Queueing { interface: interface.name.clone() },
        from: interface.queueing.clone(),
        to: fair_queue(interface, &format!("maxrate {kilobits}kbit"))?,
        group: ChangeGroup::Pacing,
        takes_effect: EffectTiming::Now,
        reason: ChangeReason {
            rule: ID.to_owned(),
            text: "A policer drops traffic above its rate: below it nothing is lost.".to_owned(),
            arithmetic: Some(format!("{PACED_SHARE} x {}{shared} = {}", rate(policed), rate(each))),
            evidence: vec![format!("policer: {}", rate(policed))],
            risk: "every connection through this interface is paced at this rate, whatever its destination".to_owned(),
        },
    };
    Some(RuleAnswer::Change(Box::new(ProposedHostChange { end, change, alternatives: Vec::new() })))
}

/// Returns the rate at which a fair queue paces each connection; `None` without one.
fn fq_max_rate(queueing: &str) -> Option<BitRate> {
    let mut tokens =
        queueing.split_whitespace().skip_while(|token| *token != "fq").skip_while(|token| *token != "maxrate");
    let rate = tokens.nth(1)?.to_ascii_lowercase();
    let digits = rate.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let unit = match &rate[digits.len()..] {
        "bit" | "" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|number| BitRate::from_bits_per_second(number * unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mq_stays_with_a_fair_queue_for_each_hardware_queue() {
        let proposed = |queueing: &str| {
            let answer = propose(&policed(Some(queueing))).pop();
            answer.map(|answer| match answer {
                RuleAnswer::Change(proposed) => proposed.change.to,
                RuleAnswer::Refusal(_) => panic!("a change"),
            })
        };
        let tree = "qdisc replace dev eth0 root handle 1: mq\n\
            qdisc replace dev eth0 parent 1:1 fq maxrate 95000kbit\n\
            qdisc replace dev eth0 parent 1:2 fq maxrate 95000kbit";
        assert_eq!(proposed("# made by the kernel: mq of 2 fq_codel").as_deref(), Some(tree));
        let by_hand = "qdisc replace dev eth0 root handle 1: mq\nqdisc replace dev eth0 parent 1:1 fq_codel\n\
            qdisc replace dev eth0 parent 1:2 fq_codel";
        assert_eq!(proposed(by_hand).as_deref(), Some(tree));
        assert_eq!(proposed("qdisc replace dev eth0 root handle 1: mq"), None, "an unknown number of queues");
        assert_eq!(proposed(tree), None, "it is paced already");
        let many = proposed("# made by the kernel: mq of 16 fq_codel").expect("proposed");
        assert!(many.ends_with("parent 1:10 fq maxrate 95000kbit") && many.lines().count() == 17, "{many}");
        let single = proposed("# made by the kernel: fq_codel").expect("proposed");
        assert_eq!(single, "qdisc replace dev eth0 root fq maxrate 95000kbit");
    }

    #[test]
    fn rates_of_tc() {
        for (text, bits) in [
            ("qdisc replace dev eth0 root fq maxrate 95000kbit", Some(95e6)),
            (
                "qdisc replace dev eth0 root handle 1: fq limit 10000p maxrate 95Mbit low_rate_threshold 550Kbit",
                Some(95e6),
            ),
            ("qdisc replace dev eth0 root fq limit 10000p", None),
            ("qdisc replace dev eth0 root tbf rate 95mbit burst 10k", None),
            ("# made by the kernel: fq_codel", None),
        ] {
            assert_eq!(fq_max_rate(text).map(BitRate::bits_per_second), bits, "{text}");
        }
    }
}
