//! docs/threat-model.md names tests that exist.

use std::collections::BTreeSet;

use super::{Invariant, InvariantViolation};
use crate::repository::Repository;

pub(super) const INVARIANT: Invariant =
    Invariant { name: "threat-model", statement: "each line of docs/threat-model.md names tests that exist", check };

const PAGE: &str = "docs/threat-model.md";

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let Some(page) = repository.text(PAGE) else {
        return vec![InvariantViolation::new(PAGE, 1, "is missing")];
    };
    let functions: BTreeSet<&str> = repository.rust_files().flat_map(|(path, _)| functions(repository, path)).collect();
    let mut violations = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let Some(tests) = tests_of(line) else { continue };
        if tests.is_empty() {
            violations.push(InvariantViolation::new(PAGE, index + 1, "names no test"));
        }
        let missing = tests.into_iter().filter(|test| !functions.contains(test));
        let reports = missing.map(|test| InvariantViolation::new(PAGE, index + 1, format!("`{test}` is no test")));
        violations.extend(reports);
    }
    violations
}

/// Names of the functions in a file.
fn functions<'a>(repository: &'a Repository, path: &str) -> impl Iterator<Item = &'a str> {
    let text = repository.text(path).unwrap_or_default();
    text.lines().filter_map(|line| line.trim_start().strip_prefix("fn ")?.split(['(', '<']).next())
}

/// Tests that the last cell of a table's row names; `None` for other lines.
fn tests_of(line: &str) -> Option<Vec<&str>> {
    let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').collect();
    let last = cells.last()?.trim();
    if last == "Test" || last.starts_with("---") {
        return None;
    }
    let quoted = last.split('`').skip(1).step_by(2);
    Some(quoted.filter(|text| text.contains('_')).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(page: &str) -> Vec<(usize, String)> {
        let code = "#[test]\nfn strangers_wait() {}\n";
        let repository = Repository::from_files(&[(PAGE, page), ("crates/engine/src/tests.rs", code)]);
        check(&repository).into_iter().map(|violation| (violation.line, violation.to_string())).collect()
    }

    #[test]
    fn rows_name_tests_that_exist() {
        let head = "# Title\n\n| Attempt | Result | Test |\n|---|---|---|\n";
        assert!(messages(&format!("{head}| a | b | `strangers_wait`, with `--option` |\n")).is_empty());
        let wrong = messages(&format!("{head}| a | b | `strangers_run` |\n| a | b | none |\n"));
        assert_eq!(wrong.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [5, 6]);
        assert!(wrong[0].1.contains("strangers_run"), "{wrong:?}");
    }
}
