//! Nothing was acknowledged until the end, and the retransmission timeout doubled repeatedly.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_model::report::Outcome;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, time, verdict};

/// Number of times that the retransmission timeout doubled from which single losses are no reason.
const MIN_DOUBLED: u8 = 3;

/// Time in round trips from which a test that failed did so for want of the path.
const MIN_ROUND_TRIPS: u32 = 4;

/// Nothing was acknowledged until the end, and the retransmission timeout doubled repeatedly.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "path-dead",
    test: "Nothing was acknowledged until the end, and the retransmission timeout doubled repeatedly, or the test failed.",
    citation: "RFC 6298 section 5.5",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let doubled = evidence.sender().and_then(|info| info.backoff).filter(|doubled| *doubled >= MIN_DOUBLED);
    if let Some(doubled) = doubled.filter(|_| evidence.observation.received.is_zero()) {
        let text = format!("Nothing arrives: the retransmission timeout was doubled {doubled} times.");
        return Some(
            verdict(Cause::PathDead, Confidence::Medium, text)
                .advice("look for a firewall that drops established connections"),
        );
    }
    let round_trips = evidence.loaded.map_or(Duration::ZERO, |(median, _)| median * MIN_ROUND_TRIPS);
    let explains_failure = |silence: &Duration| evidence.has_failed() && *silence >= round_trips;
    let silence = silence(evidence).filter(|silence| doubled.is_some() || explains_failure(silence))?;
    let text = format!("Nothing arrived for the last {}: the path or the far host is gone.", time(silence));
    Some(
        verdict(Cause::PathDead, Confidence::Medium, text)
            .figure("retransmission timeout doubled", doubled.map(|doubled| format!("{doubled} times")))
            .advice(
                "look for what happened at that time: a link that went down, an address or a route that was removed, a \
                firewall that dropped the connection, a host that stopped; measure again once the far host answers",
            ),
    )
}

/// Time up to the end in which nothing arrived. A transfer that was completed was interrupted instead, as one that went
/// on after an earlier stall may be, and a path may drop packets of one size only.
fn silence(evidence: &TransferEvidence<'_>) -> Option<Duration> {
    let is_complete = evidence.observation.outcome == Some(Outcome::Complete);
    let may_go_on = evidence.ended_stalls > 0 && !evidence.has_failed();
    let has_lost_probes = evidence.path().and_then(|path| path.mtu.as_ref()?.black_hole_bytes).is_some();
    evidence.silence().filter(|_| !is_complete && !may_go_on && !has_lost_probes)
}
