//! Table of the suites with their times.

use std::time::Duration;

use anyhow::{Context, Result};

use super::outcome::SuiteOutcome;
use crate::workspace;

const OUTPUT_FILE: &str = "docs/test-times.md";

/// Returns the table in Markdown, which is also readable on a terminal.
pub(super) fn table(outcomes: &[SuiteOutcome]) -> String {
    let width = outcomes.iter().map(|outcome| outcome.name.len()).max().unwrap_or(0).max(5);
    let head = format!("| {:width$} | seconds | processor seconds | passed | failed | not run |\n", "suite");
    let rule = format!("|{:-<1$}|--------:|------------------:|-------:|-------:|--------:|\n", "", width + 2);
    let row = |SuiteOutcome { name, passed, failed, not_run, time, processor_time, .. }: &SuiteOutcome| {
        let (seconds, processor, not_run) = (time.as_secs_f64(), processor_time.as_secs_f64(), not_run.len());
        format!("| {name:width$} | {seconds:7.1} | {processor:17.1} | {passed:6} | {failed:6} | {not_run:7} |\n")
    };
    [head, rule].into_iter().chain(outcomes.iter().map(row)).collect()
}

/// Stores the table in the documentation.
pub(super) fn write(table: &str, total: Duration, processor_time: Duration) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let text = format!(
        "# Times of the test suites\n\nWritten by `cargo xtask test --write`: wall time and processor time of each suite on \
         {cores} cores, several at a time,\nwithout the build; {:.0} s in all, with {:.0} s of processor time. A suite is the \
         unit tests of a crate (`sys`) or one\nfile of its end-to-end tests (`cli/shape`). Tests that are not run here are \
         run by the task that their reason names.\n\n{table}",
        total.as_secs_f64(),
        processor_time.as_secs_f64()
    );
    std::fs::write(workspace::root().join(OUTPUT_FILE), text).with_context(|| format!("cannot write {OUTPUT_FILE}"))
}

/// Times of a suite in seconds, from the stored table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredTimes {
    pub(super) name: String,
    pub(super) wall: f64,
    pub(super) processor: f64,
}

/// Returns the suites of the stored table; empty without a table.
pub(super) fn stored_times() -> Vec<StoredTimes> {
    parse(&std::fs::read_to_string(workspace::root().join(OUTPUT_FILE)).unwrap_or_default())
}

fn parse(table: &str) -> Vec<StoredTimes> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let (name, wall, processor) = (cells.next()?.to_owned(), cells.next()?, cells.next()?);
        Some(StoredTimes { name, wall: wall.parse().ok()?, processor: processor.parse().ok()? })
    };
    table.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_counts_and_seconds() {
        let outcome = SuiteOutcome {
            name: "cli/shape".to_owned(),
            passed: 12,
            not_run: vec!["a".to_owned()],
            time: Duration::from_millis(1250),
            processor_time: Duration::from_millis(800),
            ..SuiteOutcome::default()
        };
        let text = table(&[outcome]);
        assert_eq!(
            text.lines().nth(2),
            Some("| cli/shape |     1.2 |               0.8 |     12 |      0 |       1 |")
        );
        assert_eq!(parse(&text), [StoredTimes { name: "cli/shape".to_owned(), wall: 1.2, processor: 0.8 }]);
        assert!(text.lines().all(|line| line.len() == text.find('\n').unwrap_or(0)), "{text}");
    }
}
