//! Packets are lost without a preceding queue, and the rate matches the loss-limited rate of the congestion control.

use linerate_analysis::formulas::{loss_for_rate, loss_limited_rate};
use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict, SenderState};
use linerate_units::BitRate;

use super::super::DiagnosisRule;
use super::super::counterfactual::time_in;
use super::super::evidence::TransferEvidence;
use super::super::losses::MIN_RANDOM_SHARE;
use super::super::path_loss::{OwnLoss, SEPARATING_MEASUREMENT};
use super::super::states::shares;
use super::super::text::{VerdictBuilder, rate, time, verdict};

/// Packets are lost without a preceding queue, and the rate matches the loss-limited rate of the congestion control.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "loss",
    test: "Packets are lost without a preceding queue, and the rate matches the loss-limited rate of the congestion \
        control.",
    citation: "Mathis et al. 1997; RFC 9438 section 5.2",
    check,
};

/// Factor below the rate that losses allow, from which they do not limit.
const MIN_DISTANCE: f64 = 20.0;
/// Share of the time in repairs and stalls, which the formula does not count, up to which it holds.
const MAX_REPAIRING_SHARE: f64 = 0.2;

/// True when something else holds the transfer far below the rate that its losses allow.
fn is_far_below(evidence: &TransferEvidence<'_>, expected: BitRate) -> bool {
    let repairing = time_in(&shares(evidence), &[SenderState::Recovery, SenderState::Stalled]);
    expected >= evidence.steady * MIN_DISTANCE && repairing <= MAX_REPAIRING_SHARE
}

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    if !evidence.loses_without_queue() || evidence.loses_only_in_slow_start() || evidence.tolerates_losses() {
        return None;
    }
    let losses = evidence.losses();
    if losses.share(losses.random).is_some_and(|share| share.get() < MIN_RANDOM_SHARE) {
        return None;
    }
    let loss = evidence.retransmitted?;
    let (segment, base) = (evidence.segment?, evidence.base?);
    let control = evidence.observation.congestion_control.as_deref().unwrap_or("cubic");
    let expected = loss_limited_rate(control, segment, base, loss);
    if expected.is_some_and(|expected| is_far_below(evidence, expected)) {
        return None;
    }
    let fits = expected.is_some_and(|expected| {
        let factor = evidence.steady.bits_per_second() / expected.bits_per_second();
        (0.4..2.5).contains(&factor)
    });
    // Without the path's own loss, bursts that overflow a small buffer look the same.
    let is_confirmed = evidence.own_loss() == OwnLoss::Confirmed;
    let sure = if fits && is_confirmed { Confidence::High } else { evidence.confidence_in_losses() };
    let below =
        evidence.path().and_then(|path| path.capacity.as_ref()?.loss_below).and_then(linerate_units::Ratio::new);
    let own_loss = below.map(|share| format!("{:.4} %", share.percent()));
    let needed = evidence.capacity.and_then(|capacity| loss_for_rate(control, segment, base, capacity));
    // Losses in bursts slow the sender more than the formula reckons with.
    let needed = needed.filter(|needed| *needed < loss);
    let held = if fits { "which limits" } else { "and losses limit" };
    let text = format!(
        "Random loss: {:.4} % of the data was retransmitted without a preceding queue, {held} {control} to {}.",
        loss.percent(),
        rate(evidence.steady)
    );
    let found = verdict(Cause::Loss, sure, text);
    let is_open = evidence.own_loss() == OwnLoss::Unknown;
    let found = if is_open { found.advice(SEPARATING_MEASUREMENT) } else { found };
    Some(
        found
            .figure("lost of a stream below the capacity", own_loss)
            .figure("rate expected by the formula", expected.map(rate))
            .figure("loss that the full path rate allows", needed.map(|needed| format!("{:.6} %", needed.percent())))
            .figure("queueing, 95 %", evidence.queueing().map(|(_, high)| time(high)))
            .advice("find where packets are lost: error counters of interfaces, optics, Wi-Fi; this is not congestion")
            .advice(
                "BBR does not take single losses for congestion: `linerate diagnose HOST -- -C bbr` shows what it \
                reaches",
            ),
    )
}
