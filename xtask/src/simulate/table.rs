//! Tables of rates, and the page.

use std::fmt::{self, Write as _};

/// Rate of a cell, with its bound where it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RateCell {
    /// Rate without a bound.
    Free(f64),
    /// Rate that may not be larger than the bound.
    AtMost(f64, f64),
    /// Rate that may not be smaller than the bound.
    AtLeast(f64, f64),
    /// Nothing was computed.
    Empty,
}

impl RateCell {
    const fn is_missed(self) -> bool {
        match self {
            Self::AtMost(rate, bound) => rate > bound,
            Self::AtLeast(rate, bound) => rate < bound,
            Self::Free(_) | Self::Empty => false,
        }
    }
}

impl fmt::Display for RateCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("–"),
            Self::Free(rate) | Self::AtMost(rate, _) | Self::AtLeast(rate, _) => {
                write!(f, "{:.1}{}", rate * 100.0, if self.is_missed() { " ✗" } else { "" })
            }
        }
    }
}

/// Table of rates in percent.
#[derive(Clone, Debug)]
pub(super) struct RateTable {
    pub(super) title: &'static str,
    /// Meaning of the rates, and their bounds.
    pub(super) text: &'static str,
    /// Meaning of the rows.
    pub(super) row_title: &'static str,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<(String, Vec<RateCell>)>,
}

impl RateTable {
    /// Cells whose bound is missed, as text.
    pub(super) fn missed(&self) -> Vec<String> {
        let cells = self
            .rows
            .iter()
            .flat_map(|(row, cells)| cells.iter().zip(&self.columns).map(move |(cell, column)| (row, column, cell)));
        cells
            .filter(|(_, _, cell)| cell.is_missed())
            .map(|(row, column, cell)| format!("{}: {row}, {column}: {cell}", self.title))
            .collect()
    }
}

impl fmt::Display for RateTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "### {}\n\n{}\n", self.title, self.text)?;
        writeln!(f, "| {} | {} |", self.row_title, self.columns.join(" | "))?;
        writeln!(f, "|---|{}", "---:|".repeat(self.columns.len()))?;
        for (row, cells) in &self.rows {
            let cells: Vec<String> = cells.iter().map(RateCell::to_string).collect();
            writeln!(f, "| {row} | {} |", cells.join(" | "))?;
        }
        Ok(())
    }
}

const METHOD: &str = "\
Rates in percent. ✗ marks a missed bound. The simulated paths and the decisions are the code that `linerate` runs; the
tests `judge_rates` and `compare_rates` hold the bounds on a sample of these cells.

* **Order.** Each pair measures with and without the change in random order, balanced in blocks of four (permuted blocks;
  Matts and Lachin 1988), from a seed that the document records: trends and effects of the order cancel.
* **Looks.** A series of pairs is looked at after 5, 6, 8, 10, 13, 16 and 20 pairs; each look has a share of the error
  probability (error spending; Lan and DeMets 1983, <https://doi.org/10.1093/biomet/70.3.659>).
* **Candidates.** The k-th candidate of a run has 1 / (k (k + 1)) of it: any number of them has at most the whole.
* **Harm.** Each figure that may get worse is tested against the limit of the goal, with intervals.
* **Winner's curse.** Printed gains are midway between the plain estimate and the conditional maximum likelihood.
* **Comparison of runs.** Three runs or more on each side measure the variation between runs (Welch); with fewer it is
  assumed, which is shown. Differences of several figures are tested together (Holm 1979); \"equal\" is an
  equivalence test (two one-sided tests; Schuirmann 1987, <https://doi.org/10.1007/BF01068419>).
";

/// Formats the page.
pub(super) fn page(tables: &[RateTable], runs: u32, seed: u64) -> String {
    let missed: usize = tables.iter().map(|table| table.missed().len()).sum();
    let mut page = format!(
        "# Statistics: error rates and power of decisions\n\nWritten by `cargo xtask simulate`: {runs} simulated runs a \
         cell ({} comparisons), seed {seed}; {} bounds missed.\n\n{METHOD}",
        runs.div_ceil(10),
        if missed == 0 { "no".to_owned() } else { missed.to_string() }
    );
    for table in tables {
        let _ = write!(page, "\n{}", table.to_string().replacen("###", "##", 1));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_bound_is_marked_and_named() {
        let cells = vec![RateCell::AtMost(0.019, 0.02), RateCell::AtMost(0.021, 0.02), RateCell::AtLeast(0.8, 0.85)];
        let table = RateTable {
            title: "False keeps",
            text: "Text.",
            row_title: "noise",
            columns: ["1 %", "2 %", "5 %"].map(str::to_owned).to_vec(),
            rows: vec![("normal".to_owned(), cells), ("none".to_owned(), vec![RateCell::Empty, RateCell::Free(0.5)])],
        };
        assert_eq!(table.missed(), ["False keeps: normal, 2 %: 2.1 ✗", "False keeps: normal, 5 %: 80.0 ✗"]);
        let page = page(&[table], 100, 1);
        assert!(page.contains("| normal | 1.9 | 2.1 ✗ | 80.0 ✗ |\n| none | – | 50.0 |"), "{page}");
        assert!(page.contains("2 bounds missed") && page.contains("\n## False keeps\n"), "{page}");
    }
}
