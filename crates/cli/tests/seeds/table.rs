//! Rows of *seed reports / lab shows / verdict*, each with the interval of a formula.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Figure measured in the lab, and its bounds.
#[derive(Debug)]
pub(crate) struct Row {
    /// Experiment.
    pub(crate) case: String,
    /// Statement of the document.
    pub(crate) seed_report: String,
    /// Measured figure.
    pub(crate) figure: f64,
    /// Unit, and number of decimals.
    pub(crate) unit: (&'static str, usize),
    /// Bounds of the figure.
    pub(crate) bounds: RangeInclusive<f64>,
    /// Reason for the bounds: the formula.
    pub(crate) because: String,
    /// Conclusion.
    pub(crate) verdict: String,
}

/// Related rows.
#[derive(Debug)]
pub(crate) struct Table {
    /// Title of the table.
    pub(crate) title: &'static str,
    /// Path and command.
    pub(crate) setting: String,
    /// Rows of the table.
    pub(crate) rows: Vec<Row>,
}

impl Table {
    /// Asserts that each figure is within its bounds.
    ///
    /// # Panics
    ///
    /// Panics with a list of all figures outside of their bounds.
    pub(crate) fn verify(&self) {
        let outside: Vec<String> = self
            .rows
            .iter()
            .filter(|row| !row.bounds.contains(&row.figure))
            .map(|row| {
                format!("{}: {} is not in {:?} {} ({})", row.case, row.figure, row.bounds, row.unit.0, row.because)
            })
            .collect();
        assert!(outside.is_empty(), "{}:\n{}", self.title, outside.join("\n"));
    }

    fn text(&self) -> String {
        let mut text = format!("## {}\n\n{}\n\n", self.title, self.setting);
        text.push_str("| case | seed reports | lab shows | bounds | reason | verdict |\n|---|---|---|---|---|---|\n");
        for row in &self.rows {
            let (unit, decimals) = row.unit;
            let (low, high) = (row.bounds.start(), row.bounds.end());
            let _ = writeln!(
                text,
                "| {} | {} | **{:.decimals$} {unit}** | {low:.decimals$} to {high:.decimals$} | {} | {} |",
                row.case, row.seed_report, row.figure, row.because, row.verdict,
            );
        }
        text
    }
}

/// Renders the whole document.
pub(crate) fn document(tables: &[Table]) -> String {
    let head = "# The seeds' experiments, reproduced\n\n\
        Written by `cargo xtask seeds`; the same rows are tests (`crates/cli/tests/seeds.rs`) that fail when a figure\n\
        leaves its bounds. Everything runs in the lab: a real Linux TCP stack (6.12 unless the kernel was built from\n\
        another source) in virtual time, CUBIC unless a row names another one. The bounds come from formulas and from the\n\
        path, not from earlier results; the same seed gives the same figures.\n";
    tables.iter().fold(head.to_owned(), |text, table| format!("{text}\n{}", table.text()))
}
