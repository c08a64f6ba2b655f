//! Received data stays unread in the receiver's buffer, and the path is not full.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, percent_of, rate, size, time, verdict};
use linerate_units::Ratio;

const ADVICE: &str =
    "check the receiving program: its disk, its cipher, its processor; larger buffers only hide it briefly";

/// Received data stays unread in the receiver's buffer, or is acknowledged late, and the path is not full.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "slow-reader",
    test: "Received data stays unread in the receiver's buffer, or is acknowledged late, and the path is not full.",
    citation: "SK_MEMINFO_RMEM_ALLOC against SK_MEMINFO_RCVBUF (sock_diag(7)); RFC 9293 section 3.8.6; RFC 5681 section 4.2",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let unread = evidence.unread?;
    if evidence.is_full() {
        return None;
    }
    if !evidence.is_buffer_unread() {
        let late = evidence.late_acknowledgements().filter(|_| !evidence.reads_late_beside_a_queue());
        let late = late.map(|share| with_late_acknowledgements(evidence, share));
        return evidence.waits_at_the_receiver().then(|| with_a_small_window(evidence)).or(late);
    }
    // The receiving host alone does not know the sender's chronographs.
    let waiting = evidence.shares.map(|shares| shares.receive_window);
    let waits = waiting.is_some_and(|share| share.get() >= 0.05);
    let hidden = evidence.uses("bbr") && waiting.is_some_and(|share| share.get() < 0.5);
    let note = if hidden { ", which BBR interprets as a slow path" } else { "" };
    let text = format!(
        "The receiving program reads too slowly{note}: {} of its buffer is full of unread data.",
        percent(unread)
    );
    Some(
        verdict(Cause::SlowReader, if waits { Confidence::High } else { Confidence::Medium }, text)
            .figure("receive buffer", evidence.receive_buffer.map(|(buffer, _)| size(buffer)))
            .figure("time limited by the receiver's window", waiting.map(percent))
            .figure("read rate", Some(rate(evidence.steady)))
            .advice(ADVICE),
    )
}

/// Verdict where the buffer is nearly empty whenever it is looked at: what arrives waits until the next read.
fn with_late_acknowledgements(evidence: &TransferEvidence<'_>, share: Ratio) -> DiagnosisVerdict {
    let text = format!(
        "The receiving program reads too slowly: its kernel sent an acknowledgement for {:.1} segments, where a program that \
            reads lets it send one for two at least.",
        1.0 / share.get().max(f64::MIN_POSITIVE),
    );
    verdict(Cause::SlowReader, Confidence::Medium, text)
        .figure("read rate", Some(rate(evidence.steady)))
        .figure("path utilisation", evidence.used().map(percent_of))
        .advice(ADVICE)
}

/// Verdict where the window is small, so that the buffer never fills: what is in flight waits in it.
fn with_a_small_window(evidence: &TransferEvidence<'_>) -> DiagnosisVerdict {
    let which = if evidence.wait_of_few().is_some() {
        "a window of a few segments"
    } else {
        "at least half of the data in flight"
    };
    let text = format!(
        "The receiving program reads too slowly: {which} waits unread, and round trips take {}, longer than the path's own \
            queue explains.",
        evidence.loaded.map_or("longer".to_owned(), |(median, _)| time(median)),
    );
    verdict(Cause::SlowReader, Confidence::Medium, text)
        .figure("in flight", evidence.in_flight.map(size))
        .figure("queueing, median", evidence.queueing().map(|(median, _)| time(median)))
        .figure("read rate", Some(rate(evidence.steady)))
        .advice(ADVICE)
}
