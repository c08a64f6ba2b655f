//! Meaning of the probes that hops leave unanswered.
//!
//! Routers limit the ICMP errors that they send, so that a hop may answer seldom although it forwards everything. Loss of
//! the path is what the destination misses; it begins at the hop from which on every answering hop misses answers, too.

use linerate_units::{PacketCount, Ratio};

use crate::statistics::{ConfidenceInterval, clopper_pearson};

/// Probes to one hop, or to the destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeCount {
    /// Sent, without those whose answers may still come.
    pub sent: PacketCount,
    /// Answered.
    pub answered: PacketCount,
}

impl ProbeCount {
    /// Share without an answer; `None` without probes.
    #[must_use]
    pub fn unanswered(self) -> Option<Ratio> {
        let lost = self.sent - self.answered.min(self.sent);
        (!self.sent.is_zero()).then(|| Ratio::new(lost.as_f64() / self.sent.as_f64())).flatten()
    }

    /// Exact 95 % interval of that share.
    #[must_use]
    pub fn interval(self) -> Option<ConfidenceInterval<Ratio>> {
        clopper_pearson(self.sent - self.answered.min(self.sent), self.sent, Ratio::new(0.95)?)
    }
}

/// Meaning of a hop's unanswered probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopLossKind {
    /// There are none.
    None,
    /// The hop limits its answers: a later hop or the destination misses clearly less.
    OwnLimit,
    /// Loss that persists to the destination.
    Persistent,
    /// No later answer confirms or refutes it.
    Undecided,
    /// Nothing was answered.
    Silent,
}

/// Loss along a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteLoss {
    /// Meaning for each hop, in their order.
    pub hops: Vec<HopLossKind>,
    /// Index of the first hop from which on the loss persists to the destination.
    pub begins_at: Option<usize>,
}

/// Share of the destination's loss that a hop must miss to be part of it: less is chance, or another flow.
const MIN_PART: f64 = 0.5;

/// Judges the hops before the destination, nearest first. `destination` is `None` where it answers nothing.
#[must_use]
pub fn locate_loss(hops: &[ProbeCount], destination: Option<ProbeCount>) -> RouteLoss {
    let share = |count: ProbeCount| count.unanswered().map_or(0.0, Ratio::get);
    let Some(destination) = destination.filter(|count| !count.answered.is_zero()) else {
        return RouteLoss { hops: without_destination(hops), begins_at: None };
    };
    let lost = share(destination);
    let takes_part = |hop: &ProbeCount| hop.answered.is_zero() || share(*hop) >= lost * MIN_PART;
    let clean = hops.iter().rposition(|hop| !takes_part(hop)).map_or(0, |last| last + 1);
    let answering = |index: &usize| hops.get(*index).is_none_or(|hop| !hop.answered.is_zero());
    // Behind the last hop there is the destination itself.
    let begins_at = if lost > 0.0 { (clean..=hops.len()).find(answering) } else { None };
    let kind = |(index, hop): (usize, &ProbeCount)| match () {
        () if hop.answered.is_zero() => HopLossKind::Silent,
        () if hop.answered >= hop.sent => HopLossKind::None,
        () if begins_at.is_some_and(|begin| index >= begin) && !exceeds(*hop, destination) => HopLossKind::Persistent,
        () => HopLossKind::OwnLimit,
    };
    RouteLoss { hops: hops.iter().enumerate().map(kind).collect(), begins_at }
}

/// True when the hop misses more than the destination does, beyond the error of both.
fn exceeds(hop: ProbeCount, destination: ProbeCount) -> bool {
    hop.interval().zip(destination.interval()).is_some_and(|(hop, destination)| hop.low > destination.high)
}

/// Hops of a route whose end does not answer: only a later hop that misses less explains the losses of an earlier one.
fn without_destination(hops: &[ProbeCount]) -> Vec<HopLossKind> {
    let mut least = f64::INFINITY;
    let mut kinds: Vec<HopLossKind> = hops
        .iter()
        .rev()
        .map(|hop| {
            let share = hop.unanswered().map_or(0.0, Ratio::get);
            let kind = match () {
                () if hop.answered.is_zero() => return HopLossKind::Silent,
                () if hop.answered >= hop.sent => HopLossKind::None,
                () if least < share => HopLossKind::OwnLimit,
                () => HopLossKind::Undecided,
            };
            least = least.min(share);
            kind
        })
        .collect();
    kinds.reverse();
    kinds
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use HopLossKind::{None as Complete, OwnLimit, Persistent, Silent, Undecided};

    fn count(sent: u64, answered: u64) -> ProbeCount {
        ProbeCount { sent: PacketCount::new(sent), answered: PacketCount::new(answered) }
    }

    fn judged(answered: &[u64], destination: Option<u64>) -> (Vec<HopLossKind>, Option<usize>) {
        let hops: Vec<ProbeCount> = answered.iter().map(|answered| count(100, *answered)).collect();
        let found = locate_loss(&hops, destination.map(|answered| count(100, answered)));
        (found.hops, found.begins_at)
    }

    #[test]
    fn a_hop_that_limits_its_answers_is_not_lossy() {
        assert_eq!(judged(&[100, 40, 100, 0], Some(100)), (vec![Complete, OwnLimit, Complete, Silent], None));
        assert_eq!(judged(&[100, 40], Some(100)), (vec![Complete, OwnLimit], None));
    }

    #[test]
    fn loss_that_persists_begins_at_its_first_hop() {
        assert_eq!(judged(&[100, 90, 88], Some(91)), (vec![Complete, Persistent, Persistent], Some(1)));
        assert_eq!(judged(&[100, 0, 88], Some(91)), (vec![Complete, Silent, Persistent], Some(2)));
        assert_eq!(judged(&[90, 91], Some(89)), (vec![Persistent, Persistent], Some(0)));
        assert_eq!(judged(&[100, 100], Some(89)), (vec![Complete, Complete], Some(2)), "at the last link");
    }

    #[test]
    fn both_kinds_on_one_route() {
        // The first hop limits its answers, the second is clean, then 10 % are lost, and the fourth limits its own, too.
        let expected = (vec![OwnLimit, Complete, Persistent, OwnLimit, Persistent], Some(2));
        assert_eq!(judged(&[50, 100, 90, 30, 88], Some(90)), expected);
    }

    #[test]
    fn a_silent_destination_leaves_the_last_loss_open() {
        assert_eq!(judged(&[70, 100, 90], None), (vec![OwnLimit, Complete, Undecided], None));
        assert_eq!(judged(&[100, 0], Some(0)), (vec![Complete, Silent], None));
    }

    #[test]
    fn shares_and_intervals() {
        assert_eq!(count(0, 0).unanswered(), None);
        assert_eq!(count(10, 9).unanswered(), Ratio::new(0.1));
        assert_eq!(count(10, 11).unanswered(), Ratio::new(0.0), "an answer came twice");
        assert_eq!(count(0, 0).interval(), None);
    }

    proptest! {
        #[test]
        fn a_clean_destination_is_a_clean_path(answered in prop::collection::vec(0_u64..=100, 0..20)) {
            let (hops, begins_at) = judged(&answered, Some(100));
            prop_assert_eq!(begins_at, None);
            prop_assert!(hops.iter().all(|kind| matches!(kind, Complete | OwnLimit | Silent)));
        }

        #[test]
        fn loss_begins_at_a_hop_that_answers_or_the_destination(
            answered in prop::collection::vec(0_u64..=100, 0..20), destination in 1_u64..100
        ) {
            let (hops, begins_at) = judged(&answered, Some(destination));
            let begin = begins_at.expect("there is loss");
            prop_assert!(begin == hops.len() || hops[begin] != Silent);
            prop_assert!(hops[..begin].iter().all(|kind| *kind != Persistent));
        }
    }
}
