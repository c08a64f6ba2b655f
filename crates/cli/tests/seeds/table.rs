//! Rows of *seed reports / lab shows / verdict*, each with the interval of a formula.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Figure measured in the lab, and its bounds.
#[derive(Debug)]
pub(crate) struct Row {
    /// Experiment.
    pub(crate) case: String,
    /// Arguments of linerate, as they are typed.
    pub(crate) command: String,
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
    /// Circumstances that the commands do not show; may be empty.
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
        let mut text = format!("## {}\n\n", self.title);
        if !self.setting.is_empty() {
            let _ = writeln!(text, "{}\n", self.setting);
        }
        text.push_str(
            "| case | `linerate …` | seed reports | lab shows | bounds | reason | verdict |\n|---|---|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            let (unit, decimals) = row.unit;
            let (low, high) = (row.bounds.start(), row.bounds.end());
            let _ = writeln!(
                text,
                "| {} | `{}` | {} | **{:.decimals$} {unit}** | {low:.decimals$} to {high:.decimals$} | {} | {} |",
                row.case, row.command, row.seed_report, row.figure, row.because, row.verdict,
            );
        }
        text
    }
}

/// Experiments that have no row, each with the reason.
const NOT_REPRODUCED: &str = "\
## Not reproduced

| seed reports | reason |
|---|---|
| 14.4 Gbit/s through a card of 100 Gbit/s, one flow (the guide's sample) | The processor was the limit. In the lab's virtual time \
processing takes no time, and a sender that nothing slows down at 100 Gbit/s stops that clock. On two hosts: \
`linerate iperf3 -c HOST -t 60 -Z` |
| 3.9 and 6.3 Gbit/s of 10 (the slides) | The processor was the limit, as before; the lab shows what the link itself carries |
| 9.83 Gbit/s through a routed network (the slides) | Their switch's uplink was the limit; a router adds no bytes: the lab shows 9.93 |
| 3.2 Gbit/s from disk to memory (the slides) | Their disk: `linerate baseline --directory DIRECTORY` measures one |
| localhost: 2.83 GB/s, and 234 MB/s with `-w 5K` (the walkthrough) | Real time, and this host's processor: `linerate iperf3 -s` and \
`linerate iperf3 -c localhost -w 5K`. `cargo xtask checklist` runs it (row E13) |
";

/// Renders the whole document.
pub(crate) fn document(tables: &[Table]) -> String {
    let head = "# The seeds' experiments, reproduced\n\n\
        Written by `cargo xtask seeds`, which runs the commands of the second column as they stand; with `-J` appended for\n\
        `iperf3`. The same rows are tests (`crates/cli/tests/seeds`) that fail when a figure leaves its bounds. Everything\n\
        runs in the lab: a real Linux TCP stack (6.12 unless the kernel was built from another source) in virtual time.\n\
        The bounds come from formulas and from the path, not from earlier results; the same seed gives the same figures.\n";
    let tables = tables.iter().fold(head.to_owned(), |text, table| format!("{text}\n{}", table.text()));
    format!("{tables}\n{NOT_REPRODUCED}")
}
