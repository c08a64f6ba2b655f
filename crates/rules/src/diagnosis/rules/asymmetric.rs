//! The acknowledgements of a full transfer fill a fifth of the way back, or more.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, of_whole, rate, time, verdict};

/// Ethernet's 14 bytes, IPv4's 20 and TCP's 32.
const ACKNOWLEDGEMENT_BITS: f64 = 66.0 * 8.0;
/// From a fifth of the way back on.
const FILLS: f64 = 0.2;

/// The acknowledgements of a full transfer fill a fifth of the way back, or more.
pub(super) const RULE: Rule = Rule {
    id: "asymmetric",
    test: "The acknowledgements of a full transfer fill a fifth of the way back, or more.",
    citation: "RFC 3449 section 1.1 (normalised bandwidth ratio)",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let (there, back, segment) = (evidence.capacity?, evidence.capacity_back?, evidence.segment?);
    // One acknowledgement for two segments (RFC 9293 section 3.8.6.3), with Ethernet's header and TCP's timestamps.
    let acknowledgements = there.bits_per_second() / (2.0 * 8.0 * f64::from(segment.get()));
    let share = acknowledgements * ACKNOWLEDGEMENT_BITS / back.bits_per_second();
    if share < FILLS {
        return None;
    }
    let text = format!(
        "The way back is {} times narrower: acknowledgements of a full transfer take {} of it, and anything else there delays them.",
        (there.bits_per_second() / back.bits_per_second()).round(),
        of_whole(share)
    );
    Some(
        verdict(Cause::Asymmetric, if evidence.is_full() { Confidence::Medium } else { Confidence::High }, text)
            .figure("with the data", Some(rate(there)))
            .figure("with the acknowledgements", Some(rate(back)))
            .figure("queueing", evidence.queueing().map(|(_, high)| time(high)))
            .advice(
                "shape the narrow direction so that acknowledgements do not wait behind uploads (`linerate shape DEV --up RATE`, a little below its rate)",
            ),
    )
}
