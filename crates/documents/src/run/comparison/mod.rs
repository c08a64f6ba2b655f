//! Comparison of runs: one a side, or several.

mod environment_difference;
mod figure;
mod subject;
#[cfg(test)]
mod tests;

use linerate_analysis::statistics::holm;
use serde::Serialize;

use super::{RunDocument, RunFigure};

pub use environment_difference::EnvironmentDifference;
pub use figure::{ComparisonBasis, FigureComparison, FigureJudgement};
pub use subject::ComparisonRefusal;

/// Probability that a comparison calls any figure different where nothing differs.
const FALSE_DIFFERENCE: f64 = 0.05;

/// Runs before and after, figure by figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunComparison {
    /// Evidence of the judgements.
    pub basis: ComparisonBasis,
    /// Figures of both sides, in the order of the later run.
    pub figures: Vec<FigureComparison>,
    /// Names of the figures that only the first side has.
    pub only_before: Vec<String>,
    /// Names of the figures that only the second side has.
    pub only_after: Vec<String>,
    /// Differences of the environment, between the last run of each side.
    pub environment: Vec<EnvironmentDifference>,
}

impl RunComparison {
    /// Compares the figures of the same name and unit. With three runs or more on each side, the variation between runs
    /// is measured; with fewer it is assumed ([`ComparisonBasis`]).
    ///
    /// Differences are tested together: the probability that any of them is called better, worse or different by chance
    /// is 5 % for the whole comparison (Holm 1979).
    ///
    /// # Errors
    ///
    /// Runs of different kinds, targets, paths, directions or protocols are not compared.
    pub fn of(before: &[&RunDocument], after: &[&RunDocument]) -> Result<Self, ComparisonRefusal> {
        let (Some(first), Some(last)) = (before.last(), after.last()) else { return Err(ComparisonRefusal::empty()) };
        subject::check(before.iter().chain(after).copied())?;
        let basis = ComparisonBasis::of(before.len(), after.len());
        let mut figures: Vec<FigureComparison> = last
            .figures
            .iter()
            .filter_map(|figure| {
                let [earlier, later] = [before, after].map(|runs| figures_like(runs, figure));
                (!earlier.is_empty()).then(|| FigureComparison::of(basis, &earlier, &later))?
            })
            .collect();
        if figures.is_empty() {
            return Err(ComparisonRefusal::nothing_in_common(first, last));
        }
        let probabilities: Vec<_> = figures.iter().map(FigureComparison::p_value).collect();
        let error = linerate_units::Ratio::new(FALSE_DIFFERENCE).unwrap_or_default();
        for (figure, is_different) in figures.iter_mut().zip(holm(&probabilities, error)) {
            figure.judge(is_different);
        }
        let lacking = |runs: &RunDocument, others: &[&RunDocument]| {
            let figures = runs.figures.iter().filter(|figure| figures_like(others, figure).is_empty());
            figures.map(|figure| figure.name.clone()).collect()
        };
        Ok(Self {
            basis,
            figures,
            only_before: lacking(first, after),
            only_after: lacking(last, before),
            environment: environment_difference::differences(first, last),
        })
    }

    /// True when any figure is worse.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.figures.iter().any(|figure| figure.judgement == FigureJudgement::Worse)
    }
}

/// The figure of this name and unit in each run that has it.
fn figures_like<'a>(runs: &[&'a RunDocument], wanted: &RunFigure) -> Vec<&'a RunFigure> {
    let like = |figure: &&RunFigure| figure.name == wanted.name && figure.unit == wanted.unit;
    runs.iter().filter_map(|run| run.figures.iter().find(like)).collect()
}
