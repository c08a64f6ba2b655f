//! docs/threat-model.md, docs/compatibility.md and docs/rollback.md name tests that exist.

use std::collections::BTreeSet;

use super::{Invariant, InvariantViolation};
use crate::repository::{Repository, has_extension};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "threat-model",
    statement: "each row of a table with a column `Test` names tests that exist; no row of a page is outside of its table",
    check,
};

const PAGES: [&str; 3] = ["docs/threat-model.md", "docs/compatibility.md", "docs/rollback.md"];

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let functions: BTreeSet<&str> = repository.rust_files().flat_map(|(path, _)| functions(repository, path)).collect();
    let rows = PAGES.into_iter().flat_map(|page| check_page(repository, page, &functions));
    let pages = repository.files().filter(|(path, _)| has_extension(path, "md"));
    rows.chain(pages.flat_map(|(path, text)| rows_outside(path, text))).collect()
}

/// Reports rows that no head of a table precedes: Markdown shows them as text, and no check reads them.
fn rows_outside(path: &str, text: &str) -> Vec<InvariantViolation> {
    let lines: Vec<&str> = text.lines().collect();
    let is_row = |index: usize| lines.get(index).is_some_and(|line| line.starts_with('|'));
    let is_rule = |index: usize| {
        lines
            .get(index)
            .is_some_and(|line| is_row(index) && line.contains("--") && !line.contains(char::is_alphanumeric))
    };
    let mut is_code = false;
    let mut violations = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        let is_first = is_row(index) && (index == 0 || !is_row(index - 1));
        if is_first && !is_code && !is_rule(index + 1) {
            violations.push(InvariantViolation::new(path, index + 1, "this row is outside of its table"));
        }
    }
    violations
}

fn check_page(repository: &Repository, page: &'static str, functions: &BTreeSet<&str>) -> Vec<InvariantViolation> {
    let Some(text) = repository.text(page) else {
        return vec![InvariantViolation::new(page, 1, "is missing")];
    };
    let mut violations = Vec::new();
    let mut names_tests = false;
    for (index, line) in text.lines().enumerate() {
        let last = last_cell(line);
        names_tests = last == Some("Test") || (names_tests && last.is_some());
        let Some(tests) = last.filter(|_| names_tests).and_then(tests_of) else { continue };
        if tests.is_empty() {
            violations.push(InvariantViolation::new(page, index + 1, "names no test"));
        }
        let missing = tests.into_iter().filter(|test| !functions.contains(test));
        let reports = missing.map(|test| InvariantViolation::new(page, index + 1, format!("`{test}` is no test")));
        violations.extend(reports);
    }
    violations
}

/// Names of the functions in a file.
fn functions<'a>(repository: &'a Repository, path: &str) -> impl Iterator<Item = &'a str> {
    let text = repository.text(path).unwrap_or_default();
    text.lines().filter_map(|line| line.trim_start().strip_prefix("fn ")?.split(['(', '<']).next())
}

/// Last cell of a table's row; `None` for other lines.
fn last_cell(line: &str) -> Option<&str> {
    line.strip_prefix('|')?.strip_suffix('|')?.split('|').next_back().map(str::trim)
}

/// Tests that a cell names; `None` for those of the head.
fn tests_of(last: &str) -> Option<Vec<&str>> {
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
        let other = "| a | b |\n|---|---|\n| no | tests |\n";
        let code = ("crates/engine/src/tests.rs", code);
        let repository = Repository::from_files(&[(PAGES[0], page), (PAGES[1], other), (PAGES[2], other), code]);
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

    #[test]
    fn a_row_behind_a_blank_line_is_reported() {
        let table = "| a | b | Test |\n|---|---:|---|\n| a | b | `strangers_wait` |\n";
        let wrong = messages(&format!("{table}\n| a | b | `strangers_run` |\n\n```text\n| no | table\n```\n"));
        assert_eq!(wrong, [(5, format!("{}:5: this row is outside of its table", PAGES[0]))]);
    }
}
