//! Rounds of one cell, and comparisons between its contenders.

use super::cell::{BenchCell, CellKind};
use super::figures::{BenchRun, Figure};
use super::program::Dialect;
use super::statistics::{MedianEstimate, bootstrap_median, median, ratios};

/// Factors in the deciding figure beyond which a contender needs no further rounds: after the rounds of `--narrow-after`,
/// and after [`SECOND_NARROWING`] times as many.
pub(super) const FAR_BEHIND: [f64; 2] = [1.3, 1.15];

/// Rounds before the second narrowing, in rounds before the first.
pub(super) const SECOND_NARROWING: usize = 3;

/// Rounds of one contender; `None` where a run failed.
pub(super) struct ContenderSeries {
    /// Program with its additional options.
    pub(super) label: String,
    pub(super) program: &'static str,
    pub(super) dialect: Dialect,
    pub(super) runs: Vec<Option<BenchRun>>,
}

/// Rounds of one cell.
pub(super) struct CellSeries {
    pub(super) cell: BenchCell,
    pub(super) contenders: Vec<ContenderSeries>,
    /// Failed runs, excluded from all medians.
    pub(super) failures: Vec<String>,
}

/// Outcome of a cell for linerate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellOutcome {
    Ahead,
    /// The interval of the ratio holds 1.
    Equal,
    Behind,
}

impl ContenderSeries {
    /// Returns true if the program runs with more than its defaults.
    fn has_options(&self) -> bool {
        self.label != self.program
    }

    /// Returns the values of a figure, one per round.
    pub(super) fn values(&self, figure: Figure) -> Vec<Option<f64>> {
        self.runs.iter().map(|run| run.as_ref().and_then(|run| run.get(figure))).collect()
    }

    /// Returns the median of a figure.
    pub(super) fn median(&self, figure: Figure) -> Option<f64> {
        median(&self.values(figure).into_iter().flatten().collect::<Vec<_>>())
    }

    /// Returns the ratio of this contender to `other`, round by round.
    pub(super) fn ratio(&self, other: &Self, figure: Figure) -> Option<MedianEstimate> {
        bootstrap_median(&ratios(&self.values(figure), &other.values(figure)))
    }
}

impl CellSeries {
    /// Figure that decides the cell, and true when more of it is better.
    pub(super) const fn deciding(&self) -> (Figure, bool) {
        match self.cell.kind {
            CellKind::Unlimited => (Figure::Goodput, true),
            CellKind::Paced => (Figure::Cpu, false),
            CellKind::StartUp | CellKind::FirstByte | CellKind::Overhead => (Figure::Wait, false),
        }
    }

    /// Returns linerate with the options that are best by the deciding figure, chosen as for the others.
    pub(super) fn own(&self) -> Option<&ContenderSeries> {
        self.best(|contender| contender.program == "linerate")
    }

    /// Returns the best contender among the others, by the deciding figure.
    pub(super) fn best_peer(&self) -> Option<&ContenderSeries> {
        self.best(|contender| contender.program != "linerate" && contender.dialect != Dialect::Bare)
    }

    /// Returns the best contender of those that `is_meant` selects, by the deciding figure.
    fn best(&self, is_meant: impl Fn(&ContenderSeries) -> bool) -> Option<&ContenderSeries> {
        let (figure, more_is_better) = self.deciding();
        let meant = self.contenders.iter().filter(|contender| is_meant(contender));
        let known = meant.filter_map(|contender| Some((contender.median(figure)?, contender)));
        let order = |one: &(f64, _), other: &(f64, _)| one.0.total_cmp(&other.0);
        if more_is_better { known.max_by(order) } else { known.min_by(order) }.map(|(_, contender)| contender)
    }

    /// Returns the labels of the contenders that cannot decide the cell any more: programs whose figure is `factor` times
    /// worse than the best of the others, linerate with options that are that far behind its best, and bare loops that
    /// receive as neither of those does.
    pub(super) fn far_behind(&self, factor: f64) -> Vec<&str> {
        let (figure, more_is_better) = self.deciding();
        let value = |contender: &ContenderSeries| contender.median(figure);
        let is_behind = |best: Option<&ContenderSeries>, contender: &ContenderSeries| {
            let values = best.and_then(value).zip(value(contender));
            values.is_some_and(|(best, value)| if more_is_better { best / value } else { value / best } > factor)
        };
        let is_far = |contender: &&ContenderSeries| match (contender.program, contender.dialect) {
            (_, Dialect::Bare) => self.receives_as_left_out(contender, |own| is_behind(self.own(), own)),
            ("linerate", _) => is_behind(self.own(), contender),
            _ => is_behind(self.best_peer(), contender),
        };
        self.contenders.iter().filter(is_far).map(|contender| contender.label.as_str()).collect()
    }

    /// Returns true if linerate with the options of the loop `bare` runs in this cell and is left out.
    fn receives_as_left_out(&self, bare: &ContenderSeries, is_left_out: impl Fn(&ContenderSeries) -> bool) -> bool {
        let mut own = self.contenders.iter().filter(|contender| contender.program == "linerate");
        own.any(|own| own.has_options() == bare.has_options() && is_left_out(own))
    }

    /// Returns the bare loop that receives as [`CellSeries::own`] does.
    pub(super) fn bare(&self) -> Option<&ContenderSeries> {
        let own = self.own().map(ContenderSeries::has_options)?;
        let mut loops = self.contenders.iter().filter(|contender| contender.dialect == Dialect::Bare);
        loops.rfind(|bare| !self.cell.is_transfer() || self.cell.is_udp() || bare.has_options() == own)
    }

    /// Returns the outcome of the deciding figure; `None` where one side is missing.
    pub(super) fn outcome(&self) -> Option<CellOutcome> {
        let (figure, more_is_better) = self.deciding();
        let ratio = self.own()?.ratio(self.best_peer()?, figure)?;
        Some(match (ratio.low > 1.0, ratio.high < 1.0) {
            (false, false) => CellOutcome::Equal,
            (above, _) if above == more_is_better => CellOutcome::Ahead,
            _ => CellOutcome::Behind,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::cell::cells;

    /// A cell in which each program has the same value of the deciding figure, plus a little each round.
    pub(in crate::bench) fn series(cell: &str, values: &[(&'static str, Dialect, f64)]) -> CellSeries {
        let cell = cells().into_iter().find(|known| known.name == cell).expect("a cell");
        let mut series = CellSeries { cell, contenders: Vec::new(), failures: Vec::new() };
        let (figure, _) = series.deciding();
        for (program, dialect, value) in values {
            let run = |round: f64| Some(BenchRun::default().with(figure, Some(value * (1.0 + round / 1000.0))));
            let runs = [0.0, 1.0, 2.0].map(run).to_vec();
            series.contenders.push(ContenderSeries { label: (*program).to_owned(), program, dialect: *dialect, runs });
        }
        series
    }

    #[test]
    fn linerate_is_compared_with_the_best_of_the_others_and_not_with_the_limit() {
        let values = [
            ("linerate", Dialect::Iperf3, 10.0),
            ("iperf3", Dialect::Iperf3, 7.0),
            ("xfr", Dialect::Xfr, 8.0),
            ("bare loop", Dialect::Bare, 11.0),
        ];
        let fast = series("tcp-p1-up", &values);
        assert_eq!(fast.best_peer().map(|peer| peer.program), Some("xfr"));
        assert_eq!(fast.outcome(), Some(CellOutcome::Ahead));
        assert_eq!(fast.bare().map(|bare| bare.program), Some("bare loop"));
        let dear = series("tcp-100M", &values);
        assert_eq!(dear.best_peer().map(|peer| peer.program), Some("iperf3"));
        assert_eq!(dear.outcome(), Some(CellOutcome::Behind));
        assert_eq!(series("tcp-100M", &values[..1]).outcome(), None);
    }

    #[test]
    fn linerate_is_compared_by_its_better_options_with_the_bare_loop_that_has_them() {
        let values = [
            ("linerate", Dialect::Iperf3, 10.0),
            ("linerate", Dialect::Iperf3, 9.0),
            ("bare loop", Dialect::Bare, 11.0),
            ("bare loop", Dialect::Bare, 12.0),
        ];
        for (cell, own, bare) in [("tcp-p1-up", "linerate", "bare loop"), ("tcp-100M", "linerate -x", "bare loop -x")] {
            let mut series = series(cell, &values);
            for contender in [1, 3] {
                series.contenders[contender].label += " -x";
            }
            let label = |found: Option<&ContenderSeries>| found.map(|contender| contender.label.clone());
            assert_eq!(label(series.own()).as_deref(), Some(own), "{cell}");
            assert_eq!(label(series.bare()).as_deref(), Some(bare), "{cell}");
        }
    }

    #[test]
    fn only_programs_far_behind_the_best_of_the_others_are_left_out() {
        let values = [
            ("linerate", Dialect::Iperf3, 1.0),
            ("iperf3", Dialect::Iperf3, 7.5),
            ("riperf3", Dialect::Iperf3, 8.0),
            ("xfr", Dialect::Xfr, 10.0),
            ("bare loop", Dialect::Bare, 2.0),
        ];
        assert_eq!(series("tcp-p1-up", &values).far_behind(1.3), ["iperf3"]);
        assert_eq!(series("tcp-p1-up", &values).far_behind(1.15), ["iperf3", "riperf3"]);
        assert_eq!(series("tcp-100M", &values).far_behind(1.3), ["xfr"]);
        assert!(series("tcp-100M", &values[..1]).far_behind(1.3).is_empty());
    }

    #[test]
    fn defaults_far_behind_better_options_are_left_out_with_their_bare_loop() {
        let values = [
            ("linerate", Dialect::Iperf3, 5.0),
            ("linerate", Dialect::Iperf3, 10.0),
            ("bare loop", Dialect::Bare, 9.0),
            ("bare loop", Dialect::Bare, 11.0),
        ];
        let mut series = series("tcp-p1-up", &values);
        for contender in [1, 3] {
            series.contenders[contender].label += " -x";
        }
        assert_eq!(series.far_behind(1.3), ["linerate", "bare loop"]);
        assert!(series.far_behind(2.5).is_empty());
        series.contenders[2].label += " -y";
        assert_eq!(series.far_behind(1.3), ["linerate"], "both loops receive with options");
    }
}
