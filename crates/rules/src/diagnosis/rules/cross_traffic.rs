//! Other traffic uses the path: an interface of either host carries more, or the capacity itself is shared.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::ByteCount;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::full_path::FULL;
use super::super::host_load::TransferEnd;
use super::super::text::{VerdictBuilder, percent_of, rate, verdict};

/// Share of the transfer up to which other traffic is background noise.
const MIN_OTHER_SHARE: f64 = 0.05;
/// Bytes up to which other traffic is that of the hosts themselves: name resolution, time, sessions of administrators.
const MIN_OTHER_BYTES: f64 = 100e3;
/// Headers of Ethernet, IPv4 and TCP with its timestamps.
const HEADER_BYTES: f64 = 66.0;
/// Share of the speed of the sender's link from which its traffic to others can be what packets wait for.
const MIN_BUSY_SHARE: f64 = 0.5;

/// Other traffic uses the path: an interface of either host carries more, or the capacity itself is shared.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "cross-traffic",
    test: "Other traffic uses the path: the receiver's interface received more, the sender's sent more and delays vary at \
        rest, or the capacity itself is shared.",
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

/// Bytes that the receiver's interface received from others, where they are more than background noise.
fn seen_at_the_receiver(evidence: &TransferEvidence<'_>) -> Option<f64> {
    let least = MIN_OTHER_BYTES.max(own_bytes(evidence) * MIN_OTHER_SHARE);
    received_from_others(evidence).filter(|others| *others > least)
}

/// Traffic that the sender's host sends to others than the receiver, as a multiple of this transfer's, where it is more, delays
/// vary before the transfer begins, and the link is busy or of unknown speed.
pub(in super::super) fn shared_at_the_sender(evidence: &TransferEvidence<'_>) -> Option<f64> {
    let is_apart = seen_at_the_receiver(evidence).is_none();
    let others = sent_to_others(evidence).filter(|others| is_apart && *others > MIN_OTHER_BYTES)?;
    let multiple = others / own_bytes(evidence).max(1.0);
    let speed = evidence.link(TransferEnd::Sender).and_then(super::link_negotiation::wire_speed);
    let is_busy = speed.is_none_or(|speed| evidence.goodput * multiple >= speed * MIN_BUSY_SHARE);
    // Not `is_full()`, which asks this rule.
    let is_full = evidence.used().is_some_and(|used| used >= FULL);
    (multiple > 1.0 && is_busy && !is_full && super::delay_variation::varies(evidence)).then_some(multiple)
}

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let seen = seen_at_the_receiver(evidence);
    let met = evidence.path().and_then(|path| path.capacity.as_ref()?.shared).unwrap_or(false);
    let sent = shared_at_the_sender(evidence);
    if !(seen.is_some() || sent.is_some() || met && evidence.queues_at_rest()) {
        return None;
    }
    let text = if let Some(others) = seen {
        let share = ByteCount::from_f64(others) / ByteCount::from_f64(own_bytes(evidence));
        let more = share.map_or("an unknown share".to_owned(), |share| percent_of(share.get()));
        format!(
            "Other traffic uses the path: the receiver's interface also received other traffic, {more} of this \
                transfer's bytes."
        )
    } else if let Some(multiple) = sent {
        format!(
            "Other traffic uses the path: the sender's interface also sent other traffic, {multiple:.1} times this \
                transfer's bytes, and delays vary before this transfer begins."
        )
    } else {
        "Other traffic uses the path: it had a queue before this transfer, and the capacity search displaced the other \
            traffic only in part."
            .to_owned()
    };
    Some(
        verdict(Cause::CrossTraffic, if seen.is_some() { Confidence::High } else { Confidence::Medium }, text)
            .figure("this transfer", Some(rate(evidence.goodput)))
            .figure("path utilisation", evidence.used().map(percent_of))
            .advice(
                "measure again at another time of day, or give this traffic its share with a fair queue at the \
                bottleneck (cake, fq_codel)",
            ),
    )
}
