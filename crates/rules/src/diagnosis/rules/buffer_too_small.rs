//! The window reached the bandwidth-delay product, and was halved before a queue could form.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, percent_of, size, time, verdict};

/// Share of the loss events at a full window from which the buffer is a cause.
const MIN_WINDOW_SHARE: f64 = 0.2;
/// Share of the bandwidth-delay product from which the window itself causes the losses.
const MIN_REACHED_SHARE: f64 = 0.9;

/// The window reached the bandwidth-delay product, and was halved before a queue could form.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "buffer-too-small",
    test: "The window reached the bandwidth-delay product, and was halved before a queue could form.",
    citation: "Appenzeller et al., SIGCOMM 2004: one flow needs a buffer of a bandwidth-delay product",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    if !evidence.loses_without_queue() {
        return None;
    }
    let flight = evidence.largest_in_flight?;
    let at_the_start = evidence.loses_only_in_slow_start();
    // Where the capacity is unknown, slow start alone decides.
    let reached = evidence
        .bandwidth_delay_product()
        .is_some_and(|product| flight.as_f64() >= product.as_f64() * MIN_REACHED_SHARE);
    let losses = evidence.losses();
    let recurs = losses.share(losses.window).is_some_and(|share| share.get() >= MIN_WINDOW_SHARE);
    let overflows = reached && recurs;
    if !(at_the_start || overflows) {
        return None;
    }
    let queue = evidence.queueing().map_or("not measured".to_owned(), |(_, high)| time(high));
    let when = if at_the_start {
        "slow start overflowed it, and nothing was lost since".to_owned()
    } else {
        format!("at {} in flight packets are dropped", size(flight))
    };
    let text = format!("The bottleneck's buffer is too small for one flow: {when}, with hardly any queue ({queue}).");
    Some(
        verdict(Cause::BufferTooSmall, Confidence::Medium, text)
            .figure("bandwidth-delay product", evidence.bandwidth_delay_product().map(size))
            .figure("path utilisation", evidence.used().map(percent_of))
            .figure("losses at that window", losses.share(losses.window).map(percent))
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .advice(
                "pacing spreads the bursts that the buffer cannot hold (`fq`, BBR); several connections fill each \
                other's gaps",
            ),
    )
}
