//! Other traffic uses the path: the receiver's interface received more, or the capacity itself is shared.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::ByteCount;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent_of, rate, verdict};

/// Share of the transfer up to which other traffic is background noise.
const MIN_OTHER_SHARE: f64 = 0.05;
/// Bytes up to which other traffic is that of the hosts themselves: name resolution, time, sessions of administrators.
const MIN_OTHER_BYTES: f64 = 100e3;
/// Headers of Ethernet, IPv4 and TCP with its timestamps.
const HEADER_BYTES: f64 = 66.0;
/// Other traffic uses the path: the receiver's interface received more, or the capacity itself is shared.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "cross-traffic",
    test: "Other traffic uses the path: the receiver's interface received more, or the capacity itself is shared.",
    citation: "RFC 5136 section 2.3 (available capacity)",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    // Counted since the connections were opened, like the interface, so it includes time that the test omits.
    let ours = evidence.sent.unwrap_or(evidence.observation.received).as_f64();
    let with_headers =
        evidence.segment.map_or(1.05, |segment| 1.0 + HEADER_BYTES / f64::from(segment.get()).max(HEADER_BYTES));
    let host = evidence.observation.receiver.as_ref();
    let arrived = host.and_then(|host| host.interface_bytes).map(|(received, _)| ByteCount::new(received).as_f64());
    let others = arrived.map_or(0.0, |arrived| arrived - ours * with_headers);
    let met = evidence.path().and_then(|path| path.capacity.as_ref()?.shared).unwrap_or(false);
    let seen = others > MIN_OTHER_BYTES && others > ours * MIN_OTHER_SHARE;
    if !(seen || met && evidence.queues_at_rest()) {
        return None;
    }
    let share = ByteCount::from_f64(others) / ByteCount::from_f64(ours);
    let text = if seen {
        let more = share.map_or("an unknown share".to_owned(), |share| percent_of(share.get()));
        format!(
            "Other traffic uses the path: the receiver's interface also received other traffic, {more} of this \
                transfer's bytes."
        )
    } else {
        "Other traffic uses the path: it had a queue before this transfer, and the capacity search displaced the other \
            traffic only in part."
            .to_owned()
    };
    Some(
        verdict(Cause::CrossTraffic, if seen { Confidence::High } else { Confidence::Medium }, text)
            .figure("this transfer", Some(rate(evidence.goodput)))
            .figure("path utilisation", evidence.used().map(percent_of))
            .advice(
                "measure again at another time of day, or give this traffic its share with a fair queue at the \
                bottleneck (cake, fq_codel)",
            ),
    )
}
