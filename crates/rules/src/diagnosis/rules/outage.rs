//! A transfer that ran without losses stopped for seconds, and went on.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict, SenderState};
use linerate_model::report::Outcome;
use linerate_units::Ratio;

use super::super::DiagnosisRule;
use super::super::counterfactual::time_in;
use super::super::evidence::TransferEvidence;
use super::super::states;
use super::super::text::{VerdictBuilder, percent_of, time, verdict};

/// Shortest time without acknowledgements: above the retransmission timeouts of single losses.
const MIN_OUTAGE: Duration = Duration::from_secs(1);
/// The same in round trips.
const MIN_ROUND_TRIPS: u32 = 10;
/// Retransmitted share of the bytes up to which the path is otherwise sound.
const MAX_RETRANSMITTED_SHARE: f64 = 0.02;

/// A transfer that ran without losses stopped for seconds, and went on.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "outage",
    test: "A transfer that ran without losses stopped for seconds, and went on.",
    citation: "RFC 6298 section 5 (retransmission timer); RFC 5827 section 1",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let stall = evidence.longest_stall;
    let round_trip = evidence.loaded.map(|(median, _)| median)?;
    let is_sound = evidence.retransmitted.is_none_or(|share| share.get() <= MAX_RETRANSMITTED_SHARE)
        && evidence.sender()?.selective_acknowledgements != Some(false);
    let has_lost_probes = evidence.path().and_then(|path| path.mtu.as_ref()?.black_hole_bytes).is_some();
    let goes_on = evidence.sender()?.backoff.is_none_or(|backoff| backoff == 0);
    let is_complete = evidence.observation.outcome == Some(Outcome::Complete);
    let is_over = goes_on || is_complete || evidence.ended_stalls > 0;
    let is_dead = super::is_path_dead(evidence);
    if stall < MIN_OUTAGE || stall < round_trip * MIN_ROUND_TRIPS || !is_sound || has_lost_probes || !is_over || is_dead
    {
        return None;
    }
    let share = time_in(&states::shares(evidence), &[SenderState::Stalled]);
    // The mean over the connections may be less, and is unknown where the kernel keeps no chronographs.
    let elapsed = evidence.observation.elapsed.as_secs_f64();
    let share = Ratio::of(stall.as_secs_f64(), elapsed).map_or(share, |longest| share.max(longest.get()));
    let text = format!(
        "The path carried nothing for {} at a time ({} of the transfer), and the transfer {}.",
        time(stall),
        percent_of(share),
        match (goes_on, evidence.ended_stalls > 0) {
            (true, _) => "went on afterwards",
            (false, true) => "went on in between",
            (false, false) => "was completed afterwards",
        }
    );
    Some(
        verdict(Cause::Outage, Confidence::Medium, text)
            .figure("longest stall", Some(time(stall)))
            .figure("path utilisation", evidence.used().map(percent_of))
            .advice(
                "look for what happened on the path at that time: a link that went down, a handover of a radio link, a \
                route that changed",
            ),
    )
}
