//! Several packets are lost at a time, without a queue before.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};
use linerate_units::SegmentCount;

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, percent, verdict};

/// Losses per episode from which on they are not single ones.
const BURST: f64 = 3.0;

/// Several packets are lost at a time, without a queue before.
pub(super) const RULE: Rule = Rule {
    id: "bursty-loss",
    test: "Several packets are lost at a time, without a queue before.",
    citation: "RFC 3357; Gilbert 1960",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    if !evidence.loses_without_queue() {
        return None;
    }
    let episodes = evidence.episodes()?;
    let again = evidence.retransmits?.get();
    let of_path = evidence.path().and_then(|path| path.packets.as_ref()?.longest_loss_packets);
    let per_episode = SegmentCount::new(again).as_f64() / SegmentCount::new(episodes.max(1)).as_f64();
    if per_episode < BURST && of_path.is_none_or(|longest| longest < 3) {
        return None;
    }
    let text = format!("Losses come in bursts: {again} segments in {episodes} episodes, without a queue before.");
    Some(
        verdict(Cause::BurstyLoss, Confidence::Medium, text)
            .figure("sent again", evidence.retransmitted.map(percent))
            .figure("longest run lost without load", of_path.map(|longest| format!("{longest} packets")))
            .advice("the path's own layers lose them (handovers, radio, a failing device); BBR suffers less from it than CUBIC: `linerate diagnose HOST -- -C bbr` shows by how much"),
    )
}
