//! ARCHITECTURE.md and the other guides match the repository.

use std::collections::BTreeSet;

use super::{INVARIANTS, Invariant, InvariantViolation};
use crate::repository::{Repository, has_extension};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "architecture",
    statement: "ARCHITECTURE.md lists exactly the workspace's crates and every invariant; paths in the guides exist",
    check,
};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const GUIDES: [&str; 4] = [ARCHITECTURE, "CONTRIBUTING.md", "README.md", "packaging/README.md"];

/// Top folders; a quoted text that begins with one of them is a path.
const FOLDERS: [&str; 7] = ["crates/", "xtask/", "packaging/", "docs/", "fuzz/", ".ci/", ".cargo/"];

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let Some(text) = repository.text(ARCHITECTURE) else {
        return vec![InvariantViolation::new(ARCHITECTURE, 1, "is missing")];
    };
    let mut violations = crate_list(repository, text);
    for invariant in INVARIANTS {
        if !text.contains(&format!("`{}`", invariant.name)) {
            let message = format!("does not name the invariant `{}` of tidy", invariant.name);
            violations.push(InvariantViolation::new(ARCHITECTURE, 1, message));
        }
    }
    for guide in GUIDES {
        violations.extend(dead_paths(repository, guide));
    }
    violations
}

/// Compares the headings ``### `crates/NAME` `` with the members of the workspace.
fn crate_list(repository: &Repository, text: &str) -> Vec<InvariantViolation> {
    let mut listed = BTreeSet::new();
    let mut violations = Vec::new();
    let members: BTreeSet<&str> = repository.packages().iter().map(|package| package.folder.as_str()).collect();
    for (index, line) in text.lines().enumerate() {
        let Some(folder) = line.strip_prefix("### `").and_then(|heading| heading.split('`').next()) else { continue };
        listed.insert(folder);
        if !members.contains(folder) {
            violations.push(InvariantViolation::new(
                ARCHITECTURE,
                index + 1,
                format!("`{folder}` is not a crate of the workspace"),
            ));
        }
    }
    for folder in members.difference(&listed) {
        violations.push(InvariantViolation::new(ARCHITECTURE, 1, format!("has no section ### `{folder}`")));
    }
    violations
}

/// Reports quoted paths that do not exist. A path with a place-holder in capitals or `…` is a pattern.
fn dead_paths(repository: &Repository, guide: &str) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    for (index, line) in repository.text(guide).unwrap_or_default().lines().enumerate() {
        for quoted in line.split('`').skip(1).step_by(2) {
            let is_path = FOLDERS.iter().any(|folder| quoted.starts_with(folder));
            let is_pattern = quoted.contains(|found: char| found.is_uppercase() || "*…<{ ".contains(found));
            let is_file_with_capitals = has_extension(quoted, "md") || has_extension(quoted, "toml");
            if is_path && (!is_pattern || is_file_with_capitals) && !exists(repository, quoted) {
                violations.push(InvariantViolation::new(guide, index + 1, format!("`{quoted}` does not exist")));
            }
        }
    }
    violations
}

fn exists(repository: &Repository, path: &str) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    repository.files().any(|(found, _)| found == path || found.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> String {
        INVARIANTS.iter().map(|invariant| format!("`{}`\n", invariant.name)).collect::<Vec<_>>().concat()
    }

    fn check_text(text: &str) -> Vec<InvariantViolation> {
        let text = format!("{text}\n{}", names());
        check(
            &Repository::from_files(&[(ARCHITECTURE, &text), ("crates/units/src/lib.rs", "")])
                .with_package("crates/units", &[]),
        )
    }

    #[test]
    fn a_complete_map_passes() {
        assert_eq!(
            check_text("### `crates/units`\nsee `crates/units/src/lib.rs`, `crates/units`, `crates/NAME/src`"),
            []
        );
    }

    #[test]
    fn an_extra_or_missing_crate_is_reported() {
        let violations = check_text("x\n### `crates/other`\n");
        assert_eq!(violations.len(), 3, "the heading, the missing crate and the dead path: {violations:?}");
        assert_eq!(violations[0].line, 2);
        assert!(violations[1].message.contains("### `crates/units`"));
    }

    #[test]
    fn a_dead_path_is_reported() {
        let violations = check_text("### `crates/units`\n`crates/units/src/gone.rs`\n");
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].line, 2);
    }

    #[test]
    fn a_missing_invariant_is_reported() {
        let repository = Repository::from_files(&[(ARCHITECTURE, &names().replace("`effects`", ""))]);
        let violations = check(&repository);
        assert_eq!(violations.len(), 1);
        assert!(violations[0].message.contains("effects"));
    }
}
