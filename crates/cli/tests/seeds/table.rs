//! Rows of *seed says / lab shows / verdict*, each with the interval that a formula gives.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// A figure that the lab showed, and what it must lie in.
#[derive(Debug)]
pub(crate) struct Row {
    /// What was done.
    pub(crate) case: String,
    /// What the document says of it.
    pub(crate) seed_says: String,
    /// What came out.
    pub(crate) figure: f64,
    /// Its unit, and how many decimals are worth showing.
    pub(crate) unit: (&'static str, usize),
    /// What it must lie in,
    pub(crate) bounds: RangeInclusive<f64>,
    /// and why: the formula.
    pub(crate) because: String,
    /// What to make of it.
    pub(crate) verdict: String,
}

/// Rows that belong together.
#[derive(Debug)]
pub(crate) struct Table {
    /// Of what.
    pub(crate) title: &'static str,
    /// On which path, with which command.
    pub(crate) setting: String,
    /// What was found.
    pub(crate) rows: Vec<Row>,
}

impl Table {
    /// Each figure lies within its bounds.
    ///
    /// # Panics
    ///
    /// When one does not; all that do not are listed.
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
        text.push_str(
            "| case | seed says | lab shows | must lie in | because | verdict |\n|---|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            let (unit, decimals) = row.unit;
            let (low, high) = (row.bounds.start(), row.bounds.end());
            let _ = writeln!(
                text,
                "| {} | {} | **{:.decimals$} {unit}** | {low:.decimals$} to {high:.decimals$} | {} | {} |",
                row.case, row.seed_says, row.figure, row.because, row.verdict,
            );
        }
        text
    }
}

/// The whole document.
pub(crate) fn document(tables: &[Table]) -> String {
    let head = "# The seeds' experiments, reproduced\n\n\
        Written by `cargo xtask seeds`; the same rows are tests (`crates/cli/tests/seeds.rs`) that fail when a figure\n\
        leaves its bounds. Everything runs in the lab: a real Linux TCP stack (6.12 unless the kernel was built from\n\
        another source) in virtual time, CUBIC unless a row says otherwise. The bounds come from formulas and from the\n\
        path, not from earlier results; the same seed gives the same figures again.\n";
    tables.iter().fold(head.to_owned(), |text, table| format!("{text}\n{}", table.text()))
}
