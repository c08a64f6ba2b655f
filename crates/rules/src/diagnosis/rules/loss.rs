//! Packets are lost without a queue before, and the rate is what the congestion control makes of that loss rate.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};
use linerate_model::formulas::{loss_for_rate, loss_limited_rate};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, rate, time, verdict};

/// Packets are lost without a queue before, and the rate is what the congestion control makes of that loss rate.
pub(super) const RULE: Rule = Rule {
    id: "loss",
    test: "Packets are lost without a queue before, and the rate is what the congestion control makes of that loss rate.",
    citation: "Mathis et al. 1997; RFC 9438 section 5.2",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    if !evidence.loses_without_queue() {
        return None;
    }
    let loss = evidence.retransmitted?;
    let (segment, base) = (evidence.segment?, evidence.base?);
    let control = evidence.observation.congestion_control.as_deref().unwrap_or("cubic");
    let expected = loss_limited_rate(control, segment, base, loss);
    let fits = expected.is_some_and(|expected| {
        let factor = evidence.steady.bits_per_second() / expected.bits_per_second();
        (0.4..2.5).contains(&factor)
    });
    let needed = evidence.capacity.and_then(|capacity| loss_for_rate(control, segment, base, capacity));
    let text = format!(
        "Random loss: {:.4} % of what is sent is lost without a queue before, and {control} makes {} of that.",
        loss.percent(),
        rate(evidence.steady)
    );
    Some(
        verdict(Cause::Loss, if fits { Confidence::High } else { Confidence::Medium }, text)
            .figure("what the formula expects", expected.map(rate))
            .figure("loss that the whole path would need", needed.map(|needed| format!("{:.6} %", needed.percent())))
            .figure("queueing", evidence.queueing().map(|(_, high)| time(high)))
            .advice("find where packets are lost: error counters of interfaces, optics, Wi-Fi; this is no congestion")
            .advice("BBR does not take single losses for congestion: `linerate diagnose HOST -- -C bbr` shows what it reaches"),
    )
}
