//! A policer drops what comes faster than its rate.

use linerate_model::change::{Change, Group, Reason, TakesEffect, Target};
use linerate_model::diagnosis::Cause;
use linerate_units::{BitRate, StreamCount};

use super::super::cases::{diagnosed, host, rhel};
use super::super::inputs::{Interface, Transfer};
use super::super::proposal::Proposed;
use super::super::support::{rate, refuse};
use super::super::{Answer, Inputs, TuningRule};

const ID: &str = "pacing";
/// What a paced transfer may take of a policer's rate: its bucket then never runs empty.
const SHARE: f64 = 0.95;

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Pacing,
    explanation: "A policer drops without a queue that would tell first. Pacing at 95 % of its rate carried 94.1 of 100 \
                  Mbit/s with 63 retransmissions, where CUBIC had 80 Mbit/s and BBR 7610 retransmissions.\n\nThe fair queue \
                  of the interface paces each connection; whoever can set the rate in the program (SO_MAX_PACING_RATE, \
                  iperf3 --fq-rate) leaves other traffic alone.",
    citation: "RFC 2697 section 3; Flach et al. 2016; lab:300m-20ms-policer-paced-95m; tc-fq(8), maxrate",
    causes: &[Cause::Policer],
    unmeasured: false,
    propose,
    fires: || policed(Some("# made by the kernel: noqueue")),
    silent: || policed(Some("qdisc replace dev eth0 root fq maxrate 94Mbit")),
};

/// A host that sends through a policer of 100 Mbit/s.
fn policed(queueing: Option<&str>) -> Inputs {
    let mut inputs = diagnosed(rhel(host(&[])), Cause::Policer);
    inputs.path.out.policer = Some(BitRate::from_bits_per_second(100e6));
    inputs.near.interface = Some(Interface { name: "eth0".to_owned(), queueing: queueing.map(str::to_owned) });
    inputs
}

fn propose(inputs: &Inputs) -> Vec<Answer> {
    inputs.transfers().iter().filter_map(|transfer| of_sender(inputs, transfer)).collect()
}

fn of_sender(inputs: &Inputs, transfer: &Transfer<'_>) -> Option<Answer> {
    let (end, policed) = (transfer.sender, transfer.way.policer?);
    let host = inputs.host(end)?;
    let flows = inputs.flows.map_or(1, StreamCount::get).max(1);
    let each = policed * (SHARE / StreamCount::new(flows).as_f64());
    let kilobits = each.whole_bits_per_second() / 1000;
    if kilobits == 0 {
        return None;
    }
    let Some(interface) = &host.interface else {
        let text = format!(
            "Pace each connection of the {} host at {} (0.95 of the policer's {}): SO_MAX_PACING_RATE in the program, or \
             `tc qdisc replace dev INTERFACE root fq maxrate {kilobits}kbit`.",
            end.name(),
            rate(each),
            rate(policed)
        );
        return Some(refuse(ID, Some(end), inputs, text));
    };
    if interface.queueing.as_deref().and_then(largest_rate).is_some_and(|now| now <= each * 1.001) {
        return None;
    }
    let shared = if flows == 1 { String::new() } else { format!(" / {flows} connections") };
    let change = Change {
        target: Target::Queueing { interface: interface.name.clone() },
        from: interface.queueing.clone(),
        to: format!("qdisc replace dev {} root fq maxrate {kilobits}kbit", interface.name),
        group: Group::Pacing,
        takes_effect: TakesEffect::Now,
        reason: Reason {
            rule: ID.to_owned(),
            text: "A policer drops what comes faster than its rate: below it nothing is lost.".to_owned(),
            arithmetic: Some(format!("{SHARE} x {}{shared} = {}", rate(policed), rate(each))),
            evidence: vec![format!("policer: {}", rate(policed))],
            risk: "every connection that leaves by this interface is paced at this rate, to whatever destination"
                .to_owned(),
        },
    };
    Some(Answer::Change(Box::new(Proposed { end, change, alternatives: Vec::new() })))
}

/// The rate at which a fair queue paces each connection; `None` where there is none.
fn largest_rate(queueing: &str) -> Option<BitRate> {
    let mut words = queueing.split_whitespace().skip_while(|word| *word != "fq").skip_while(|word| *word != "maxrate");
    let word = words.nth(1)?.to_ascii_lowercase();
    let digits = word.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let unit = match &word[digits.len()..] {
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
            assert_eq!(largest_rate(text).map(BitRate::bits_per_second), bits, "{text}");
        }
    }
}
