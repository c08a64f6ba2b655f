//! Several packets are lost at a time, without a preceding queue.

use linerate_model::diagnosis::{Cause, DiagnosisVerdict};
use linerate_units::display::counted;
use linerate_units::{Ratio, SegmentCount};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::losses::MIN_RANDOM_SHARE;
use super::super::text::{VerdictBuilder, percent, verdict};

/// Losses per episode from which they are bursts, where the window has few by chance.
const MIN_LOSSES_PER_EPISODE: f64 = 4.0;
/// Losses per episode from which they are bursts, as a multiple of those by chance: windows vary, and more data is in flight
/// while a loss is repaired.
const MIN_EXCESS: f64 = 2.0;
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
    if is_short && (per_episode < bursts_from(evidence) || is_single) {
        return None;
    }
    let text = format!(
        "Losses occur in bursts: {} in {}, without a preceding queue.",
        counted(retransmitted, "segment"),
        counted(episodes, "episode")
    );
    Some(
        verdict(Cause::BurstyLoss, evidence.confidence_in_losses(), text)
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .figure("longest run lost without load", of_path.map(|longest| format!("{longest} packets")))
            .advice(
                "lower layers of the path lose them (handovers, radio, a failing device); BBR suffers less than \
                CUBIC: `linerate diagnose HOST -- -C bbr` shows by how much",
            ),
    )
}

/// Returns the losses per episode from which they are bursts.
fn bursts_from(evidence: &TransferEvidence<'_>) -> f64 {
    let window = evidence.in_flight.zip(evidence.segment).and_then(|(flight, segment)| flight / segment.byte_count());
    let by_chance = evidence.retransmitted.zip(window).map_or(1.0, |(share, window)| losses_by_chance(share, window));
    MIN_LOSSES_PER_EPISODE.max(MIN_EXCESS * by_chance)
}

/// Losses per episode of a path that loses this share of its packets independently of each other, of which `window` are in
/// flight: an episode lasts until all that was in flight at its first loss is acknowledged (RFC 6675 section 5), so what this
/// share takes of one window falls into it.
fn losses_by_chance(share: Ratio, window: Ratio) -> f64 {
    1.0 + share.get() * window.get()
}

#[cfg(test)]
mod tests {
    use linerate_analysis::statistics::SeededRandom;

    use super::*;

    /// Losses per episode of this many packets, each lost with this probability, and each repair too.
    fn simulated(packets: u64, share: f64, window: u64) -> f64 {
        let mut random = SeededRandom::new(packets ^ window);
        let (mut lost, mut episodes, mut recovery_point) = (0_u64, 0_u64, 0);
        for packet in 0..packets {
            if random.unit() >= share {
                continue;
            }
            if packet >= recovery_point {
                episodes += 1;
                recovery_point = packet + window;
            }
            lost += 1;
            while random.unit() < share {
                lost += 1;
            }
        }
        SegmentCount::new(lost).as_f64() / SegmentCount::new(episodes.max(1)).as_f64()
    }

    #[test]
    fn independent_losses_are_bursts_at_no_share_and_window() {
        let ratio = |value: f64| Ratio::new(value).expect("finite");
        for share in [0.001, 0.01, 0.05, 0.1, 0.2] {
            for window in [4, 10, 40, 200, 1000] {
                let expected = losses_by_chance(ratio(share), ratio(SegmentCount::new(window).as_f64()));
                let found = simulated(30_000, share, window);
                assert!((0.7..=1.4).contains(&(found / expected)), "{share} of {window}: {found} for {expected}");
                assert!(found < MIN_LOSSES_PER_EPISODE.max(MIN_EXCESS * expected), "{share} of {window}: {found}");
            }
        }
    }
}
