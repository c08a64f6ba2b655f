//! `cargo xtask checklist`: runs the commands of docs/seeds-checks.tsv, and writes verdicts and figures to
//! docs/seeds-checked.md. Rows of docs/seeds-checklist.md without a command there are listed as not checked.

mod expectation;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

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
    /// Command of linerate.
    command: String,
    expectations: Vec<Expectation>,
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
    let results: Vec<RowResult<'_>> = wanted.map(|row| check(&linerate, row)).collect::<Result<_>>()?;
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
            Ok(CheckedRow { id: id.to_owned(), command: command.to_owned(), expectations })
        })
        .collect()
}

fn check<'r>(linerate: &Path, row: &'r CheckedRow) -> Result<RowResult<'r>> {
    let output = output(linerate, &row.command)?;
    let checked: Vec<Result<String, String>> =
        row.expectations.iter().map(|expectation| expectation.check(&output)).collect();
    let passed = checked.iter().all(Result::is_ok);
    println!("{} {}: {}", if passed { "right" } else { "WRONG" }, row.id, row.command);
    let seen = checked.into_iter().map(|one| one.unwrap_or_else(|why| format!("**{why}**"))).collect();
    Ok(RowResult { row, passed, seen })
}

/// Runs a command of linerate, or an audit of a made host; returns both of its outputs.
fn output(linerate: &Path, command: &str) -> Result<String> {
    let arguments: Vec<&str> = command.split(' ').collect();
    let mut program = Command::new(linerate);
    let host = match arguments[..] {
        ["running", ref settings @ ..] => Some(made_host(settings, false)?),
        ["file", ref settings @ ..] => Some(made_host(settings, true)?),
        _ => None,
    };
    match &host {
        Some(root) => program.arg("audit").arg("--root").arg(root),
        None => program.args(&arguments),
    };
    let done = program.env("LINERATE_HISTORY", "off").env("COLUMNS", "100").output().context("starting linerate")?;
    if let Some(root) = host {
        fs::remove_dir_all(root).context("removing the made host")?;
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr))
}

/// Creates the files of a host with these settings as running values, or in a drop-in file.
fn made_host(settings: &[&str], in_file: bool) -> Result<PathBuf> {
    let root = std::env::temp_dir().join(format!("linerate-checklist-{}", std::process::id()));
    let write = |path: &str, text: &str| -> Result<()> {
        let file = root.join(path);
        fs::create_dir_all(file.parent().context("a file in a directory")?)?;
        fs::write(&file, text).with_context(|| file.display().to_string())
    };
    write("proc/sys/kernel/osrelease", "6.12.38\n")?;
    write("proc/meminfo", "MemTotal: 16777216 kB\n")?;
    write("proc/sys/net/core/netdev_max_backlog", "1000\n")?;
    write("proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic\n")?;
    let defaults = [
        ("ipv4/tcp_sack", "1"),
        ("ipv4/tcp_timestamps", "1"),
        ("ipv4/tcp_mem", "196608 262144 393216"),
        ("ipv4/tcp_rmem", "4096 131072 6291456"),
        ("ipv4/tcp_congestion_control", "cubic"),
        ("core/rmem_max", "212992"),
    ];
    for (path, value) in defaults {
        write(&format!("proc/sys/net/{path}"), value)?;
    }
    let mut lines = String::new();
    for setting in settings {
        let (key, value) = setting.split_once('=').with_context(|| format!("'{setting}' is no KEY=VALUE"))?;
        let value = value.replace('+', " ");
        if in_file {
            writeln!(lines, "{key} = {value}")?;
        } else {
            write(&format!("proc/sys/{}", key.replace('.', "/")), &value)?;
        }
    }
    write("etc/sysctl.d/10-recipe.conf", &lines)?;
    Ok(root)
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
    let mut text = format!(
        "# The seeds' checklist, run\n\nWritten by `cargo xtask checklist` from `{ROWS}`. Of {} rows, {} have a \
         command there: {right} right, {} wrong.\n\n| row | command | seen | verdict |\n|---|---|---|---|\n",
        ids.len(),
        verdicts.len(),
        verdicts.len() - right
    );
    for result in results {
        let verdict = if result.passed { "right" } else { "**wrong**" };
        let seen = result.seen.join("; ").replace('|', "\\|");
        let _ = writeln!(text, "| {} | `linerate {}` | {seen} | {verdict} |", result.row.id, result.row.command);
    }
    let _ = writeln!(text, "\nWithout a command: {}.", missing.join(", "));
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
        for row in parse(&text(ROWS)).expect("valid") {
            assert!(ids.contains(&row.id), "{} is not in the checklist", row.id);
        }
    }
}
