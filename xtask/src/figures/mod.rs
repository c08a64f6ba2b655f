//! `cargo xtask figures`: the code in figures, beside those of four well-kept projects and of the same code before.
//!
//! One file per group of figures. All columns are counted by the same rules: `--tree DIRECTORY` counts another project.

mod language;
mod safety;
mod size;
mod test_code;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::repository::Repository;
use crate::rust_file::RustFile;

/// Heads of the columns with constants, all counted by this command: this project on 2026-11-22, quinn on 2026-07-24,
/// smoltcp on 2026-08-07, ripgrep on 2026-08-04, trippy on 2026-06-21.
const REFERENCES: [&str; 5] = ["556db7d", "quinn a1931ab8", "smoltcp 5393f885", "ripgrep 3fce3b5b", "trippy cc0d8925"];

/// Values of [`REFERENCES`] where there are none.
const NO_REFERENCES: [&str; 5] = [""; 5];

/// Options of the command line.
struct FiguresOptions {
    check: bool,
    list: bool,
    tree: PathBuf,
}

/// One row of the table.
struct FigureRow {
    name: String,
    /// Values of [`REFERENCES`]; empty where there is none.
    references: [&'static str; 5],
    now: String,
    /// Bound, and true when it holds.
    bound: Option<(String, bool)>,
}

impl FigureRow {
    #[expect(clippy::needless_pass_by_value, reason = "numbers and texts alike")]
    fn new(name: impl Into<String>, references: [&'static str; 5], now: impl ToString) -> Self {
        Self { name: name.into(), references, now: now.to_string(), bound: None }
    }

    fn bounded(self, bound: &str, holds: bool) -> Self {
        Self { bound: Some((bound.to_owned(), holds)), ..self }
    }

    fn cells(&self) -> Vec<String> {
        let bound = match &self.bound {
            None => String::new(),
            Some((bound, true)) => bound.clone(),
            Some((bound, false)) => format!("{bound} MISSED"),
        };
        let references = self.references.iter().map(|value| (*value).to_owned());
        std::iter::once(self.name.clone()).chain(references).chain([self.now.clone(), bound]).collect()
    }
}

/// Prints the table; returns false when a bound is missed and the check was asked for.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let options = options(arguments)?;
    let repository = Repository::read_files(&options.tree)?;
    if options.list {
        for found in language::single_word_types(&repository) {
            println!("{found}");
        }
        return Ok(true);
    }
    let groups = [language::rows, size::rows, safety::rows, test_code::rows];
    let rows: Vec<FigureRow> = groups.iter().flat_map(|group| group(&repository)).collect();
    print_table(&rows);
    let missed = rows.iter().filter(|row| row.bound.as_ref().is_some_and(|(_, holds)| !holds)).count();
    println!("figures: {missed} bounds missed");
    Ok(missed == 0 || !options.check)
}

fn options(arguments: &[String]) -> Result<FiguresOptions> {
    let mut options = FiguresOptions { check: false, list: false, tree: crate::workspace::root() };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.as_slice()) {
            ("--check", _) => options.check = true,
            ("--list", _) => options.list = true,
            ("--tree", [tree, ..]) => {
                options.tree = Path::new(tree).to_path_buf();
                arguments.next();
            }
            _ => bail!("unknown argument '{argument}' (expected --check, --list or --tree DIRECTORY)"),
        }
    }
    Ok(options)
}

fn print_table(rows: &[FigureRow]) {
    let heads = ["figure"].into_iter().chain(REFERENCES).chain(["now", "bound"]).map(str::to_owned).collect();
    let table: Vec<Vec<String>> = std::iter::once(heads).chain(rows.iter().map(FigureRow::cells)).collect();
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table[0].len()).map(width).collect();
    for row in &table {
        let cells = row.iter().zip(&widths).skip(1).map(|(cell, width)| format!("  {cell:>width$}"));
        println!("{:width$}{}", row[0], cells.collect::<Vec<_>>().concat().trim_end(), width = widths[0]);
    }
}

/// Returns the counted files: those of the workspace, or all of another project.
fn counted(repository: &Repository) -> impl Iterator<Item = (&str, &RustFile)> {
    repository.rust_files().filter(|(path, _)| !path.starts_with("fuzz/"))
}

/// Formats a share in percent.
fn percent(count: usize, total: usize) -> String {
    let tenths = (count * 2000 / total.max(1)).div_ceil(2);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Returns the value below which `share` percent of the sorted `values` are.
fn percentile(values: &[usize], share: usize) -> usize {
    let index = (values.len().saturating_sub(1) * share).div_ceil(100);
    values.get(index).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_to_tenths() {
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(2, 3), "66.7 %");
        assert_eq!(percent(0, 0), "0.0 %");
    }

    #[test]
    fn percentiles_are_values_of_the_list() {
        let values: Vec<usize> = (1..=100).collect();
        assert_eq!([50, 90, 100].map(|share| percentile(&values, share)), [51, 91, 100]);
        assert_eq!(percentile(&[], 50), 0);
    }

    #[test]
    fn a_missed_bound_is_marked() {
        let row = FigureRow::new("unsafe blocks", [""; 5], 3);
        assert_eq!(row.bounded("≤ 2", false).cells().last().map(String::as_str), Some("≤ 2 MISSED"));
    }

    #[test]
    fn unknown_options_are_refused() {
        assert!(options(&["--tree".to_owned()]).is_err());
        assert!(options(&["--check".to_owned()]).is_ok_and(|options| options.check && !options.list));
    }
}
