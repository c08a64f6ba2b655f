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

/// Difference between what others sent and what they received, as a share, up to which it is the same traffic.
const MAX_DIFFERENCE: f64 = 0.15;

/// Bytes of this transfer, counted since its connections were opened, like those of the interfaces: it includes time that the
/// test omits.
fn own_bytes(evidence: &TransferEvidence<'_>) -> f64 {
    evidence.sent.unwrap_or(evidence.observation.received).as_f64()
}

/// Bytes that the receiver's interface received from others.
fn received_from_others(evidence: &TransferEvidence<'_>) -> Option<f64> {
    let (received, _) = evidence.observation.receiver.as_ref()?.interface_bytes?;
    Some(beyond_own(evidence, received))
}

/// Traffic that the receiver's interface received from others, as a multiple of this transfer's.
pub(in super::super) fn others_share(evidence: &TransferEvidence<'_>) -> Option<f64> {
    received_from_others(evidence).map(|others| (others / own_bytes(evidence).max(1.0)).max(0.0))
}

/// Bytes that the sender's interface sent to others.
fn sent_to_others(evidence: &TransferEvidence<'_>) -> Option<f64> {
    let (_, sent) = evidence.observation.sender.as_ref()?.interface_bytes?;
    Some(beyond_own(evidence, sent))
}

fn beyond_own(evidence: &TransferEvidence<'_>, counted: u64) -> f64 {
    let with_headers =
        evidence.segment.map_or(1.05, |segment| 1.0 + HEADER_BYTES / f64::from(segment.get()).max(HEADER_BYTES));
    ByteCount::new(counted).as_f64() - own_bytes(evidence) * with_headers
}

/// True when the sender's host sends others as much as the receiver's receives from others: that traffic passes the same
/// path, and so its bottleneck.
pub(in super::super) fn passes_both_hosts(evidence: &TransferEvidence<'_>) -> bool {
    let both = sent_to_others(evidence).zip(received_from_others(evidence));
    both.is_some_and(|(sent, received)| {
        sent.min(received) > MIN_OTHER_BYTES.max(own_bytes(evidence) * MIN_OTHER_SHARE)
            && (sent - received).abs() <= MAX_DIFFERENCE * sent.max(received)
    })
}

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let ours = own_bytes(evidence);
    let others = received_from_others(evidence).unwrap_or_default();
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
