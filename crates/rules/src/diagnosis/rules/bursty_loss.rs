//! Several packets are lost at a time, without a preceding queue.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::SegmentCount;
use linerate_units::display::counted;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::losses::MIN_RANDOM_SHARE;
use super::super::text::{VerdictBuilder, percent, verdict};

/// Losses per episode from which they are bursts: lost one by one, some fall into the repair of others.
const MIN_LOSSES_PER_EPISODE: f64 = 4.0;
/// Packets of an idle path lost in a row from which its losses are bursts, and the episodes of fewer from which they are not.
const MIN_LONGEST: u64 = 3;
const MIN_SHORT_EPISODES: u64 = 2;

/// Several packets are lost at a time, without a preceding queue.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "bursty-loss",
    test: "Several packets are lost at a time, without a preceding queue.",
    citation: "RFC 3357; Gilbert 1960",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    if !evidence.loses_without_queue() || evidence.loses_only_in_slow_start() || evidence.tolerates_losses() {
        return None;
    }
    let losses = evidence.losses();
    if losses.share(losses.random).is_some_and(|share| share.get() < MIN_RANDOM_SHARE) {
        return None;
    }
    let episodes = evidence.episodes()?;
    let retransmitted = evidence.retransmits?.get();
    let probes = evidence.path().and_then(|path| path.packets.as_ref());
    let of_path = probes.and_then(|probes| probes.longest_loss_packets);
    let is_single = evidence.loses_singly()
        || probes.and_then(|probes| probes.loss_episodes).is_some_and(|episodes| episodes >= MIN_SHORT_EPISODES);
    let (overshot, overshoots) = evidence.overshoots();
    let lost = SegmentCount::new(retransmitted.saturating_sub(overshot.max(evidence.go_back_n_retransmits()))).as_f64();
    let per_episode = lost / SegmentCount::new(episodes.saturating_sub(overshoots).max(1)).as_f64();
    let is_short = of_path.is_none_or(|longest| longest < MIN_LONGEST);
    if is_short && (per_episode < MIN_LOSSES_PER_EPISODE || is_single) {
        return None;
    }
    let text = format!(
        "Losses occur in bursts: {} in {}, without a preceding queue.",
        counted(retransmitted, "segment"),
        counted(episodes, "episode")
    );
    Some(
        verdict(Cause::BurstyLoss, Confidence::Medium, text)
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .figure("longest run lost without load", of_path.map(|longest| format!("{longest} packets")))
            .advice(
                "lower layers of the path lose them (handovers, radio, a failing device); BBR suffers less than \
                CUBIC: `linerate diagnose HOST -- -C bbr` shows by how much",
            ),
    )
}
