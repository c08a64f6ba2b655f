//! Every external crate is listed and justified in CONTRIBUTING.md, and no other.

use std::collections::{BTreeMap, BTreeSet};

use super::manifest::{dependency_line, value};
use super::{Invariant, InvariantViolation};
use crate::repository::Repository;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "external-crates",
    statement: "every external crate is in CONTRIBUTING.md's table with its reason, and the stated counts are correct",
    check,
};

const PAGE: &str = "CONTRIBUTING.md";
const HEADING: &str = "## Dependencies";

/// Row of the page's table.
struct DependencyRow<'a> {
    cells: Vec<&'a str>,
    line: usize,
}

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let Some(page) = repository.text(PAGE) else {
        return vec![InvariantViolation::new(PAGE, 1, "is missing")];
    };
    let rows = rows(page);
    let used = used_crates(repository);
    let mut violations = Vec::new();
    for (name, manifest) in &used {
        if !rows.contains_key(name) {
            let line = dependency_line(repository.text(manifest).unwrap_or_default(), name);
            let message = format!(
                "`{name}` has no row under \"{HEADING}\" in {PAGE}: add one with its purpose and the reason for it"
            );
            violations.push(InvariantViolation::new(manifest, line, message));
        }
    }
    for (name, row) in &rows {
        if !used.contains_key(name) {
            violations.push(InvariantViolation::new(
                PAGE,
                row.line,
                format!("`{name}` is not a direct dependency of any crate"),
            ));
        } else if row.cells.len() < 3 || row.cells.iter().any(|cell| cell.is_empty()) {
            violations.push(InvariantViolation::new(PAGE, row.line, format!("`{name}` needs a purpose and a reason")));
        }
    }
    violations.extend(unused_workspace_entries(repository, &used));
    violations.extend(counts(repository, page));
    violations
}

/// Returns the direct dependencies on external crates, each with a manifest that has it.
fn used_crates(repository: &Repository) -> BTreeMap<String, String> {
    let mut used = BTreeMap::new();
    for package in repository.packages() {
        for dependency in package.dependencies.iter().filter(|dependency| !dependency.internal) {
            used.entry(dependency.name.clone()).or_insert_with(|| package.manifest());
        }
    }
    used
}

/// Returns the rows below the heading by crate, without the table's head.
fn rows(page: &str) -> BTreeMap<String, DependencyRow<'_>> {
    let mut rows = BTreeMap::new();
    let mut inside = false;
    for (index, line) in page.lines().enumerate() {
        if line.starts_with("## ") {
            inside = line == HEADING;
        }
        let Some(row) = line.strip_prefix('|').filter(|_| inside) else { continue };
        let cells: Vec<&str> = row.trim_end().trim_end_matches('|').split('|').map(str::trim).collect();
        if let Some(name) = cells[0].strip_prefix('`').and_then(|cell| cell.strip_suffix('`')) {
            rows.insert(name.to_owned(), DependencyRow { cells, line: index + 1 });
        }
    }
    rows
}

/// Reports entries of `[workspace.dependencies]` that no crate uses.
fn unused_workspace_entries(repository: &Repository, used: &BTreeMap<String, String>) -> Vec<InvariantViolation> {
    let manifest = repository.text("Cargo.toml").unwrap_or_default();
    let dependencies = value(manifest, &["workspace", "dependencies"]).and_then(|found| found.as_table().cloned());
    dependencies
        .unwrap_or_default()
        .keys()
        .filter(|name| !name.starts_with("linerate-") && !used.contains_key(*name))
        .map(|name| {
            let message = format!("no crate uses `{name}`: remove it");
            InvariantViolation::new("Cargo.toml", dependency_line(manifest, name), message)
        })
        .collect()
}

/// Checks the number of crates that the page states for the binary.
fn counts(repository: &Repository, page: &str) -> Option<InvariantViolation> {
    let direct: BTreeSet<&str> = repository
        .packages()
        .iter()
        .filter(|package| package.short_name() != "xtask")
        .flat_map(|package| &package.dependencies)
        .filter(|dependency| !dependency.internal && !dependency.development)
        .map(|dependency| dependency.name.as_str())
        .collect();
    let sentence = format!("{} direct dependencies, {} crates in all", direct.len(), repository.external_crates());
    let line = page.lines().position(|line| line == HEADING).map_or(1, |index| index + 1);
    (!page.contains(&sentence)).then(|| InvariantViolation::new(PAGE, line, format!("must contain \"{sentence}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NO_VIOLATIONS;

    const PAGE_TEXT: &str = "# x\n\n| `no` | row | here |\n\n## Dependencies\n\n1 direct dependencies, 4 crates in \
                               all\n\n\
                               | crate | for | why |\n|---|---|---|\n| `serde` | data | a standard |\n| `proptest` | \
                               tests | shrinks |\n\n## Next\n";

    fn repository(page: &str, dependencies: &[&str]) -> Repository {
        let root = "[workspace.dependencies]\nserde = \"1\"\nlinerate-units = { path = \"x\" }\n";
        let manifest = "[dependencies]\nserde.workspace = true\nlibc.workspace = true\n";
        Repository::from_files(&[(PAGE, page), ("Cargo.toml", root), ("crates/model/Cargo.toml", manifest)])
            .with_package("crates/model", dependencies)
            .with_external_crates(4)
    }

    #[test]
    fn a_table_of_exactly_the_used_crates_passes() {
        assert_eq!(check(&repository(PAGE_TEXT, &["serde", "linerate-units", "proptest?"])), NO_VIOLATIONS);
    }

    #[test]
    fn a_crate_without_a_row_is_reported_in_its_manifest() {
        let page = PAGE_TEXT.replace("1 direct", "2 direct");
        let violations = check(&repository(&page, &["serde", "libc", "proptest?"]));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].line, 3);
        assert!(violations[0].message.contains("`libc` has no row"));
    }

    #[test]
    fn a_row_without_a_crate_is_reported_in_the_table() {
        let violations = check(&repository(PAGE_TEXT, &["serde"]));
        assert_eq!(violations.len(), 1);
        assert_eq!((violations[0].path.as_str(), violations[0].line), (PAGE, 12));
    }

    #[test]
    fn a_row_without_a_reason_is_refused() {
        let page = PAGE_TEXT.replace("| a standard |", "| |");
        let violations = check(&repository(&page, &["serde", "proptest?"]));
        assert_eq!(violations.len(), 1);
        assert!(violations[0].message.contains("reason"));
    }

    #[test]
    fn an_unused_entry_of_the_workspace_is_reported() {
        let page = PAGE_TEXT.replace("| `serde` | data | a standard |\n", "").replace("1 direct", "0 direct");
        let violations = check(&repository(&page, &["proptest?"]));
        assert_eq!(violations.len(), 1);
        assert_eq!((violations[0].path.as_str(), violations[0].line), ("Cargo.toml", 2));
    }

    #[test]
    fn a_wrong_count_is_reported_with_the_right_one() {
        let page = PAGE_TEXT.replace("4 crates", "3 crates");
        let violations = check(&repository(&page, &["serde", "proptest?"]));
        assert_eq!(violations.len(), 1);
        assert!(violations[0].message.contains("1 direct dependencies, 4 crates in all"));
    }
}
