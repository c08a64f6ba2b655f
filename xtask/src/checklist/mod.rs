//! `cargo xtask checklist`: runs the commands of docs/seeds-checks.tsv, and writes verdicts and figures to
//! docs/seeds-checked.md.

mod command;
mod expectation;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use self::command::RowCommand;
use self::expectation::Expectation;
use crate::workspace;

const ROWS: &str = "docs/seeds-checks.tsv";
const CHECKLIST: &str = "docs/seeds-checklist.md";
const PAGE: &str = "docs/seeds-checked.md";

/// Command of a row, with what it has to show.
#[derive(Debug)]
struct CheckedRow {
    /// Identifier in the checklist.
    id: String,
    command: RowCommand,
    expectations: Vec<Expectation>,
    /// Third column.
    expected: String,
}

impl CheckedRow {
    /// Line of the page up to what was seen.
    fn line_start(&self) -> String {
        format!("| {} | {} | ", self.id, self.command.text().replace('|', "\\|"))
    }
}

/// Result of a row.
struct RowResult<'r> {
    row: &'r CheckedRow,
    passed: bool,
    seen: Vec<String>,
}

/// Row of the page.
struct PageRow<'r> {
    row: &'r CheckedRow,
    passed: bool,
    line: String,
}

impl<'r> PageRow<'r> {
    fn of(result: &RowResult<'r>) -> Self {
        let verdict = if result.passed { "right" } else { "**wrong**" };
        let seen = result.seen.join("; ").replace('|', "\\|");
        let line = format!("{}{seen} | {verdict} |", result.row.line_start());
        Self { row: result.row, passed: result.passed, line }
    }

    /// The row as an earlier page has it.
    fn kept(row: &'r CheckedRow, page: &str) -> Option<Self> {
        let start = row.line_start();
        let line = page.lines().find(|line| line.starts_with(&start))?.to_owned();
        Some(Self { row, passed: line.ends_with("| right |"), line })
    }
}

/// Runs all rows, or those given with `--only ROW`, whose lines of the page are replaced; returns true if all are right.
pub(crate) fn run(options: &[String]) -> Result<bool> {
    let mut linerate = workspace::root().join("target/debug/linerate");
    let mut only = BTreeSet::new();
    let mut remaining = options.iter();
    while let Some(option) = remaining.next() {
        let value = remaining.next().with_context(|| format!("unknown option '{option}', or its value is missing"))?;
        match option.as_str() {
            "--linerate" => linerate = PathBuf::from(value),
            "--only" => drop(only.insert(value.clone())),
            _ => bail!("unknown option '{option}'"),
        }
    }
    ensure!(
        linerate.is_file(),
        "{} does not exist: cargo build -p linerate-cli, or --linerate PATH",
        linerate.display()
    );
    let rows = parse(&read(ROWS)?)?;
    let wanted = rows.iter().filter(|row| only.is_empty() || only.contains(&row.id));
    let results: Vec<RowResult<'_>> = wanted.map(|row| check(&linerate, row)).collect();
    let earlier = if only.is_empty() { String::new() } else { read(PAGE).unwrap_or_default() };
    let mut lines: Vec<PageRow<'_>> = Vec::new();
    for row in &rows {
        let new = results.iter().find(|result| std::ptr::eq(result.row, row)).map(PageRow::of);
        lines.extend(new.or_else(|| PageRow::kept(row, &earlier)));
    }
    fs::write(workspace::root().join(PAGE), page(&lines, &row_ids(&read(CHECKLIST)?))).context(PAGE)?;
    println!("written: {PAGE}");
    let passed = results.iter().all(|result| result.passed);
    Ok(passed)
}

fn read(file: &str) -> Result<String> {
    fs::read_to_string(workspace::root().join(file)).with_context(|| file.to_owned())
}

fn parse(text: &str) -> Result<Vec<CheckedRow>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let [id, command, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
                bail!("not three columns: {line}");
            };
            let expectations = expected.split(" & ").map(Expectation::parse).collect::<Result<_>>();
            let expectations = expectations.with_context(|| line.to_owned())?;
            let command = RowCommand::parse(command).with_context(|| line.to_owned())?;
            Ok(CheckedRow { id: id.to_owned(), command, expectations, expected: expected.to_owned() })
        })
        .collect()
}

/// Number of attempts: a guest of the lab may stall on a busy host.
const ATTEMPTS: usize = 2;

fn check<'r>(linerate: &Path, row: &'r CheckedRow) -> RowResult<'r> {
    let mut checked = Vec::new();
    for _ in 0..ATTEMPTS {
        checked = attempt(linerate, row);
        if checked.iter().all(Result::is_ok) {
            break;
        }
    }
    let passed = checked.iter().all(Result::is_ok);
    println!("{} {}: {}", if passed { "right" } else { "WRONG" }, row.id, row.command.text());
    for why in checked.iter().filter_map(|one| one.as_ref().err()) {
        println!("      {why}");
    }
    let seen = checked.into_iter().map(|one| one.unwrap_or_else(|why| format!("**{why}**"))).collect();
    RowResult { row, passed, seen }
}

/// Runs a row once; returns what each expectation saw.
fn attempt(linerate: &Path, row: &CheckedRow) -> Vec<Result<String, String>> {
    match row.command.output(linerate, &row.expected) {
        Ok(_) if row.command == RowCommand::Reason => vec![Ok(row.expected.clone())],
        Ok(output) => row.expectations.iter().map(|expectation| expectation.check(&output)).collect(),
        Err(error) => vec![Err(format!("{error:#}"))],
    }
}

/// Identifiers of the rows of the checklist.
fn row_ids(checklist: &str) -> Vec<String> {
    let cells = checklist.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let is_id = |cell: &&str| cell.len() > 1 && cell[1..].bytes().all(|byte| byte.is_ascii_digit());
    cells.filter(is_id).map(str::to_owned).collect()
}

fn page(rows: &[PageRow<'_>], ids: &[String]) -> String {
    let mut verdicts: BTreeMap<&str, bool> = BTreeMap::new();
    for row in rows {
        *verdicts.entry(&row.row.id).or_insert(true) &= row.passed;
    }
    let right = verdicts.values().filter(|passed| **passed).count();
    let missing: Vec<&str> = ids.iter().map(String::as_str).filter(|id| !verdicts.contains_key(id)).collect();
    let count = |is: fn(&RowCommand) -> bool| rows.iter().filter(|row| is(&row.row.command)).count();
    let mut text = format!(
        "# The seeds' checklist, run\n\nWritten by `cargo xtask checklist` from `{ROWS}`: {} rows of `{CHECKLIST}`, {right} \
         right, {} wrong, {} not checked. {} rows have a reason instead of a command, and {} a test.\n\n| row | \
         command | seen | verdict |\n|---|---|---|---|\n",
        ids.len(),
        verdicts.len() - right,
        missing.len(),
        count(|command| *command == RowCommand::Reason),
        count(|command| matches!(command, RowCommand::Test(_))),
    );
    for row in rows {
        let _ = writeln!(text, "{}", row.line);
    }
    if !missing.is_empty() {
        let _ = writeln!(text, "\nNot checked: {}.", missing.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_not_run_keeps_its_line() {
        let rows = parse("R1\tcalc a\tx\nR2\tcalc b\ty\n").expect("valid");
        let ids = ["R1", "R2", "R3"].map(str::to_owned);
        let result = |row, passed| PageRow::of(&RowResult { row, passed, seen: vec!["seen".to_owned()] });
        let first = page(&[result(&rows[0], true), result(&rows[1], false)], &ids);
        assert!(first.contains("1 right, 1 wrong, 1 not checked") && first.contains("Not checked: R3."), "{first}");
        let kept = PageRow::kept(&rows[0], &first).expect("in the page");
        let second = page(&[kept, result(&rows[1], true)], &ids);
        assert!(
            second.contains("2 right, 0 wrong") && second.contains("| R1 | `linerate calc a` | seen | right |"),
            "{second}"
        );
    }

    #[test]
    fn every_row_of_the_table_is_valid_and_of_the_checklist() {
        let text = |file: &str| fs::read_to_string(workspace::root().join(file)).expect("readable");
        let ids = row_ids(&text(CHECKLIST));
        assert!(ids.len() >= 122, "{}", ids.len());
        let rows = parse(&text(ROWS)).expect("valid");
        for row in &rows {
            assert!(ids.contains(&row.id), "{} is not in the checklist", row.id);
        }
        for id in &ids {
            assert!(rows.iter().any(|row| row.id == *id), "{id} has neither a command nor a reason");
        }
    }
}
