//! The true first cause of a path, from its goodput with each cause removed; and the verdict's agreement with it.

use serde_json::{Value, json};

use super::cause::RemovableCause;

/// Gain below which a cause costs nothing, and difference below which two causes cost the same.
pub(super) const TIE: f64 = 0.05;

/// Share of the path's payload rate from which it is full, where no removal gains anything.
const FULL: f64 = 0.9;

/// Share from which it is full, whatever removals gain at the start: none can gain more later.
const FULL_AFTER_START: f64 = 1.0 - TIE;

/// Share of what a transfer's start costs that a removal saves, from which the start is that cause's.
const MIN_SAVED_SHARE: f64 = 0.5;

/// Goodput of a transfer, in bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MeasuredGoodput {
    /// Mean of the whole transfer.
    pub(super) whole: f64,
    /// Mean of its second half.
    pub(super) steady: f64,
}

impl MeasuredGoodput {
    /// Gain by a removal as a share of the goodput: 0.5 for half as much more.
    pub(super) fn gain(self, without: f64) -> f64 {
        if without <= self.whole { 0.0 } else { without / self.whole.max(1.0) - 1.0 }
    }

    /// Mean of several transfers.
    pub(super) fn mean(transfers: &[Self]) -> Self {
        let count = u32::try_from(transfers.len()).map_or(1.0, f64::from).max(1.0);
        let sum = |part: fn(&Self) -> f64| transfers.iter().map(part).sum::<f64>();
        Self { whole: sum(|one| one.whole) / count, steady: sum(|one| one.steady) / count }
    }
}

/// Two causes that are removed together, and the goodput then, in bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CausePair {
    pub(super) causes: (RemovableCause, RemovableCause),
    pub(super) goodput: f64,
}

/// Goodputs of a path as it is, and with its causes removed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counterfactuals {
    pub(super) as_is: MeasuredGoodput,
    /// Goodput without each cause.
    pub(super) without: Vec<(RemovableCause, f64)>,
    /// Goodput without the pair of causes whose removal gains most; measured where no single one gains anything.
    pub(super) without_pair: Option<CausePair>,
    /// Payload rate of the slowest link; `None` where none has a rate.
    pub(super) ceiling: Option<f64>,
    /// Goodput of the diagnosed transfer.
    pub(super) diagnosed: Option<MeasuredGoodput>,
}

/// Cause that a diagnosis of the path should come to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TrueCause {
    /// Name of the cause whose removal gains most; `link-rate` for the path itself, `unexplained` where the path is not
    /// full and no removal gains anything.
    pub(super) first: &'static str,
    /// Verdicts that are right.
    pub(super) accepted: Vec<&'static str>,
}

impl Counterfactuals {
    /// True when a removal gains something.
    pub(super) fn has_gain(&self) -> bool {
        let pair = self.without_pair.is_some_and(|pair| self.as_is.gain(pair.goodput) > TIE);
        pair || self.without.iter().any(|(_, rate)| self.as_is.gain(*rate) > TIE)
    }

    /// True where no removal gains anything, and more of the path is left than causes may cost.
    pub(super) fn leaves_a_part(&self) -> bool {
        !self.has_gain() && self.ceiling.is_some_and(|ceiling| self.as_is.steady < FULL_AFTER_START * ceiling)
    }

    /// The cause whose removal gains most, and all that gain as much within the tie. The transfer that was diagnosed is
    /// another one, which chance may have treated in another way: what gains most there is right as well.
    pub(super) fn true_cause(&self) -> TrueCause {
        let mut found = self.cause_of(self.as_is);
        let other = self.diagnosed.filter(|_| found.first != UNEXPLAINED).map(|transfer| self.cause_of(transfer));
        found.accepted.extend(other.into_iter().flat_map(|other| other.accepted));
        found.accepted.sort_unstable();
        found.accepted.dedup();
        found
    }

    /// The cause of this transfer's goodput.
    fn cause_of(&self, transfer: MeasuredGoodput) -> TrueCause {
        let gains = |rate: f64| transfer.gain(rate) > TIE;
        let mut gaining: Vec<(RemovableCause, f64)> =
            self.without.iter().copied().filter(|(_, rate)| gains(*rate)).collect();
        // Where no single removal gains, each of two causes may be enough to hold the path back alone.
        let pair = self.without_pair.filter(|pair| gaining.is_empty() && gains(pair.goodput));
        // The start of a transfer is removed by not counting it. What the sender writes also fills its own buffer.
        let steady = self.ceiling.map_or(transfer.steady, |ceiling| transfer.steady.min(ceiling));
        if gains(steady) {
            gaining.push((RemovableCause::ShortTransfer, steady));
        }
        keep_the_largest(&mut gaining, transfer.whole);
        if let Some(pair) = pair.filter(|pair| !gains(steady) || pair.goodput > steady * (1.0 + TIE)) {
            let (one, other) = pair.causes;
            let rate_without =
                |cause| self.without.iter().find(|(known, _)| *known == cause).map_or(0.0, |(_, rate)| *rate);
            gaining = vec![(one, rate_without(one)), (other, rate_without(other))];
        }
        let gaining: Vec<RemovableCause> = gaining.iter().map(|(cause, _)| *cause).collect();
        let is_start = gaining.iter().all(|cause| *cause == RemovableCause::ShortTransfer);
        let share = if is_start { FULL } else { FULL_AFTER_START };
        if self.ceiling.is_none_or(|ceiling| transfer.steady >= share * ceiling) {
            let harmless = self.without.iter().map(|(cause, _)| *cause).filter(|cause| HARMLESS.contains(cause));
            let path = [RemovableCause::LinkRate].into_iter().chain(gaining).chain(harmless);
            return TrueCause { first: "link-rate", accepted: verdicts(path) };
        }
        let first = gaining.first().map_or(UNEXPLAINED, |cause| cause.name());
        TrueCause { first, accepted: verdicts(gaining.into_iter()) }
    }

    /// Keeps the pair if its removal gains more than that of the one before.
    pub(super) fn consider(&mut self, pair: CausePair) {
        if self.without_pair.is_none_or(|best| best.goodput < pair.goodput) {
            self.without_pair = Some(pair);
        }
    }

    /// As a document, without what follows from the description.
    pub(super) fn json(&self) -> Value {
        let without: Vec<Value> = self.without.iter().map(|(cause, rate)| json!([cause.name(), rate])).collect();
        json!({
            "whole": self.as_is.whole, "steady": self.as_is.steady, "without": without,
            "without_pair": self.without_pair.map(|pair| json!([pair.causes.0.name(), pair.causes.1.name(), pair.goodput])),
        })
    }

    /// Reads such a document; `None` where it is another.
    pub(super) fn read(document: &Value) -> Option<Self> {
        let without = document["without"]
            .as_array()?
            .iter()
            .map(|pair| Some((RemovableCause::from_name(pair[0].as_str()?)?, pair[1].as_f64()?)));
        Some(Self {
            as_is: MeasuredGoodput { whole: document["whole"].as_f64()?, steady: document["steady"].as_f64()? },
            without: without.collect::<Option<_>>()?,
            without_pair: CausePair::read(&document["without_pair"]),
            ceiling: None,
            diagnosed: None,
        })
    }
}

impl CausePair {
    /// Names of both, and the rate in Mbit/s.
    pub(super) fn text(&self) -> String {
        format!("without {} and {} {:.2}", self.causes.0.name(), self.causes.1.name(), self.goodput / 1e6)
    }

    fn read(pair: &Value) -> Option<Self> {
        let cause = |place: usize| RemovableCause::from_name(pair[place].as_str()?);
        Some(Self { causes: (cause(0)?, cause(1)?), goodput: pair[2].as_f64()? })
    }
}

/// Keeps the causes that gain most, in the order of their gains. Nothing removes a start in the lab: the cause whose removal
/// saves half of what it costs is right as well.
fn keep_the_largest(gaining: &mut Vec<(RemovableCause, f64)>, whole: f64) {
    let largest = |removable: bool| {
        let counted = gaining.iter().filter(|(cause, _)| !removable || *cause != RemovableCause::ShortTransfer);
        counted.map(|(_, rate)| *rate).fold(0.0, f64::max)
    };
    let (most, most_removed) = (largest(false), largest(true));
    let is_shorter = most_removed - whole >= (most - whole) * MIN_SAVED_SHARE;
    gaining.retain(|(cause, rate)| {
        let is_start = *cause == RemovableCause::ShortTransfer;
        *rate >= if is_start || !is_shorter { most } else { most_removed } * (1.0 - TIE)
    });
    gaining.sort_by(|one, other| other.1.total_cmp(&one.1));
}

/// Name of the row for paths whose limit is none of the injected causes.
pub(super) const UNEXPLAINED: &str = "unexplained";

/// Faults of a path that a full transfer may be told of first.
const HARMLESS: &[RemovableCause] = &[
    RemovableCause::Reordering,
    RemovableCause::DelayVariation,
    RemovableCause::Duplication,
    RemovableCause::TimestampsOff,
];

fn verdicts(causes: impl Iterator<Item = RemovableCause>) -> Vec<&'static str> {
    let mut names: Vec<&str> = causes.flat_map(|cause| cause.verdicts().iter().copied()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use RemovableCause as Cause;

    fn measured(without: &[(Cause, f64)], both: Option<f64>, ceiling: f64) -> Counterfactuals {
        Counterfactuals {
            as_is: MeasuredGoodput { whole: 50.0, steady: 51.0 },
            without: without.to_vec(),
            without_pair: both.map(|goodput| CausePair { causes: (without[0].0, without[1].0), goodput }),
            ceiling: Some(ceiling),
            diagnosed: None,
        }
    }

    fn first(without: &[(Cause, f64)], both: Option<f64>, ceiling: f64) -> (&'static str, Vec<&'static str>) {
        let truth = measured(without, both, ceiling).true_cause();
        (truth.first, truth.accepted)
    }

    #[test]
    fn the_largest_gain_is_the_first_cause() {
        let causes = [(Cause::Loss, 55.0), (Cause::SendBuffer, 90.0)];
        assert_eq!(first(&causes, Some(99.0), 100.0), ("send-buffer", vec!["send-buffer"]));
    }

    #[test]
    fn equal_gains_are_both_right() {
        let causes = [(Cause::Loss, 87.0), (Cause::SendBuffer, 90.0)];
        assert_eq!(first(&causes, None, 100.0), ("send-buffer", vec!["loss", "send-buffer"]));
    }

    #[test]
    fn causes_that_are_each_enough_are_both_right() {
        let causes = [(Cause::SlowReader, 51.0), (Cause::ReceiveWindow, 50.0)];
        assert_eq!(first(&causes, Some(90.0), 100.0), ("slow-reader", vec!["receive-window", "slow-reader"]));
    }

    #[test]
    fn two_causes_that_hide_each_other_gain_more_than_the_start() {
        let path = |both: f64| {
            let mut path = measured(&[(Cause::SlowReader, 51.0), (Cause::ReceiveWindow, 50.0)], Some(both), 100.0);
            path.as_is.steady = 60.0;
            path.true_cause()
        };
        assert_eq!(path(90.0).accepted, ["receive-window", "slow-reader"]);
        assert_eq!(path(61.0).first, "short-transfer", "little more than without its start");
    }

    #[test]
    fn without_a_gain_the_path_is_full_or_the_limit_is_another() {
        let causes = [(Cause::Loss, 52.0), (Cause::Reordering, 49.0)];
        let (name, accepted) = first(&causes, None, 52.0);
        assert_eq!(name, "link-rate");
        assert!(accepted.contains(&"link-rate") && accepted.contains(&"reordering") && !accepted.contains(&"loss"));
        assert_eq!(first(&causes, None, 100.0), (UNEXPLAINED, vec![]));
    }

    #[test]
    fn a_slow_start_counts_as_a_cause() {
        let mut path = measured(&[(Cause::Loss, 54.0)], None, 100.0);
        path.as_is.steady = 80.0;
        assert_eq!(path.true_cause().first, "short-transfer");
        path.as_is.steady = 95.0;
        let full = path.true_cause();
        assert_eq!((full.first, full.accepted.contains(&"short-transfer")), ("link-rate", true));
    }

    #[test]
    fn the_cause_that_shortens_a_start_most_is_right_as_well() {
        let mut path = measured(&[(Cause::BufferTooSmall, 65.0), (Cause::Loss, 54.0)], None, 100.0);
        path.as_is.steady = 80.0;
        let truth = path.true_cause();
        assert_eq!(
            (truth.first, truth.accepted),
            ("short-transfer", vec!["buffer-too-small", "short-transfer", "slow-start-exit"])
        );
    }

    #[test]
    fn a_cause_that_costs_only_at_the_start_of_a_full_path_is_as_right_as_the_path() {
        let mut path = measured(&[(Cause::BufferTooSmall, 93.0)], None, 100.0);
        path.as_is = MeasuredGoodput { whole: 80.0, steady: 94.0 };
        assert_eq!(path.true_cause().first, "short-transfer");
        assert!(!path.true_cause().accepted.contains(&"link-rate"));
        path.as_is.steady = 96.0;
        let truth = path.true_cause();
        assert_eq!(truth.first, "link-rate");
        assert!(truth.accepted.contains(&"buffer-too-small") && truth.accepted.contains(&"link-rate"));
    }

    #[test]
    fn a_diagnosed_transfer_that_fills_the_path_may_be_told_so() {
        let mut path = measured(&[(Cause::BufferTooSmall, 60.0)], None, 60.0);
        assert_eq!(path.true_cause().accepted, ["buffer-too-small"]);
        path.diagnosed = Some(MeasuredGoodput { whole: 50.0, steady: 57.5 });
        let truth = path.true_cause();
        assert_eq!(truth.first, "buffer-too-small");
        assert!(truth.accepted.contains(&"link-rate") && truth.accepted.contains(&"buffer-too-small"));
    }

    #[test]
    fn what_gains_most_from_the_diagnosed_transfer_is_right_as_well() {
        let mut path = measured(&[(Cause::Loss, 51.0), (Cause::Reordering, 40.0)], None, 52.0);
        assert!(!path.true_cause().accepted.contains(&"loss"), "the path is full, and no removal gains anything");
        path.diagnosed = Some(MeasuredGoodput { whole: 30.0, steady: 30.0 });
        let truth = path.true_cause();
        assert_eq!(truth.first, "link-rate");
        assert!(truth.accepted.contains(&"loss") && truth.accepted.contains(&"link-rate"));
    }

    #[test]
    fn further_causes_are_tried_where_a_part_of_the_path_is_left() {
        let path = |ceiling| measured(&[(Cause::Reordering, 51.0)], None, ceiling);
        assert!(path(56.0).leaves_a_part(), "nine tenths are used, and nothing that was built in costs the rest");
        assert!(!path(53.0).leaves_a_part());
        assert!(!measured(&[(Cause::Loss, 56.0)], None, 56.0).leaves_a_part());
    }

    #[test]
    fn several_transfers_have_a_mean() {
        let transfers = [10.0, 20.0, 60.0].map(|whole| MeasuredGoodput { whole, steady: whole * 2.0 });
        assert_eq!(MeasuredGoodput::mean(&transfers), MeasuredGoodput { whole: 30.0, steady: 60.0 });
    }

    #[test]
    fn nothing_arriving_is_a_gain_without_limit() {
        let mut path = measured(&[(Cause::BlackHole, 80.0)], None, 100.0);
        path.as_is = MeasuredGoodput { whole: 0.0, steady: 0.0 };
        assert_eq!(path.true_cause().first, "black-hole");
    }

    #[test]
    fn measurements_are_kept_and_read() {
        let mut path = measured(&[(Cause::Loss, 54.0), (Cause::SackOff, 50.0)], Some(60.0), 100.0);
        path.ceiling = None;
        assert_eq!(Counterfactuals::read(&path.json()), Some(path));
        assert_eq!(Counterfactuals::read(&json!({})), None);
    }
}
