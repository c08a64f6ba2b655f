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

/// Result of a row.
struct RowResult<'r> {
    row: &'r CheckedRow,
    passed: bool,
    seen: Vec<String>,
}

/// Runs all rows, or those given with `--only ROW`; returns true if all are right.
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
    let rows = parse(&fs::read_to_string(workspace::root().join(ROWS)).context(ROWS)?)?;
    let wanted = rows.iter().filter(|row| only.is_empty() || only.contains(&row.id));
    let results: Vec<RowResult<'_>> = wanted.map(|row| check(&linerate, row)).collect();
    let passed = results.iter().all(|result| result.passed);
    if only.is_empty() {
        let checklist = fs::read_to_string(workspace::root().join(CHECKLIST)).context(CHECKLIST)?;
        fs::write(workspace::root().join(PAGE), page(&results, &row_ids(&checklist))).context(PAGE)?;
        println!("written: {PAGE}");
    }
    Ok(passed)
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

fn check<'r>(linerate: &Path, row: &'r CheckedRow) -> RowResult<'r> {
    let checked: Vec<Result<String, String>> = match row.command.output(linerate, &row.expected) {
        Ok(_) if row.command == RowCommand::Reason => vec![Ok(row.expected.clone())],
        Ok(output) => row.expectations.iter().map(|expectation| expectation.check(&output)).collect(),
        Err(error) => vec![Err(format!("{error:#}"))],
    };
    let passed = checked.iter().all(Result::is_ok);
    println!("{} {}: {}", if passed { "right" } else { "WRONG" }, row.id, row.command.text());
    for why in checked.iter().filter_map(|one| one.as_ref().err()) {
        println!("      {why}");
    }
    let seen = checked.into_iter().map(|one| one.unwrap_or_else(|why| format!("**{why}**"))).collect();
    RowResult { row, passed, seen }
}

/// Identifiers of the rows of the checklist.
fn row_ids(checklist: &str) -> Vec<String> {
    let cells = checklist.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let is_id = |cell: &&str| cell.len() > 1 && cell[1..].bytes().all(|byte| byte.is_ascii_digit());
    cells.filter(is_id).map(str::to_owned).collect()
}

fn page(results: &[RowResult<'_>], ids: &[String]) -> String {
    let mut verdicts: BTreeMap<&str, bool> = BTreeMap::new();
    for result in results {
        *verdicts.entry(&result.row.id).or_insert(true) &= result.passed;
    }
    let right = verdicts.values().filter(|passed| **passed).count();
    let missing: Vec<&str> = ids.iter().map(String::as_str).filter(|id| !verdicts.contains_key(id)).collect();
    let count = |is: fn(&RowCommand) -> bool| results.iter().filter(|result| is(&result.row.command)).count();
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
    for result in results {
        let verdict = if result.passed { "right" } else { "**wrong**" };
        let seen = result.seen.join("; ").replace('|', "\\|");
        let command = result.row.command.text().replace('|', "\\|");
        let _ = writeln!(text, "| {} | {command} | {seen} | {verdict} |", result.row.id);
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
