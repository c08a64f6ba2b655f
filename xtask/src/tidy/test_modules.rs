//! Every file of tests is compiled.

use super::{Invariant, InvariantViolation};
use crate::repository::{Repository, WorkspacePackage};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "test-modules",
    statement: "every file in a crate's `tests` is a module of its `main.rs`, or a program of its own",
    check,
};

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    repository.packages().iter().flat_map(|package| left_out(repository, package)).collect()
}

/// Files that cargo would pass over without a word.
fn left_out(repository: &Repository, package: &WorkspacePackage) -> Vec<InvariantViolation> {
    let folder = format!("{}/tests/", package.folder);
    let main = repository.text(&format!("{folder}main.rs")).unwrap_or_default();
    let is_module = |name: &str| main.lines().any(|line| line == format!("mod {name};"));
    let is_left_out = |path: &str| {
        let name = path.strip_prefix(&folder).and_then(|file| file.strip_suffix(".rs"));
        let name = name.map(|name| name.strip_suffix("/mod").filter(|_| !main.is_empty()).unwrap_or(name));
        name.is_some_and(|name| name != "main" && !name.contains('/') && !is_module(name))
            && !package.roots.iter().any(|root| root == path)
    };
    let files = repository.rust_files().map(|(path, _)| path).filter(|path| is_left_out(path));
    files.map(|path| InvariantViolation::new(path, 1, format!("is not compiled: name it in {folder}main.rs"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NO_VIOLATIONS;

    fn violations(main: &str) -> Vec<InvariantViolation> {
        let files = [
            ("crates/units/src/lib.rs", ""),
            ("crates/units/tests/main.rs", main),
            ("crates/units/tests/algebra.rs", ""),
            ("crates/units/tests/human/mod.rs", ""),
            ("crates/units/tests/human/tables.rs", ""),
        ];
        check(&Repository::from_files(&files).with_package("crates/units", &[]))
    }

    #[test]
    fn modules_and_programs_pass() {
        assert_eq!(violations("//! Tests.\n\nmod algebra;\nmod human;\n"), NO_VIOLATIONS);
    }

    #[test]
    fn a_file_that_nothing_names_is_reported() {
        let found = violations("//! Tests.\n\nmod algebras;\n");
        assert_eq!(
            found.iter().map(|violation| &*violation.path).collect::<Vec<_>>(),
            ["crates/units/tests/algebra.rs", "crates/units/tests/human/mod.rs"]
        );
    }
}
