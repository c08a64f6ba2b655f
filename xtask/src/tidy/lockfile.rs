//! Sources of the crates in the lock files.

use super::{Invariant, InvariantViolation};
use crate::repository::Repository;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "lockfile",
    statement: "lock files name crates.io as the only source: no git, no other registry",
    check,
};

const CRATES_IO: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    if repository.text("Cargo.lock").is_none() {
        violations.push(InvariantViolation::new("Cargo.lock", 1, "is missing: a binary is built from locked versions"));
    }
    for (path, text) in repository.files().filter(|(path, _)| path.rsplit('/').next() == Some("Cargo.lock")) {
        for (index, line) in text.lines().enumerate() {
            if line.starts_with("source = ") && line != CRATES_IO {
                violations.push(InvariantViolation::new(path, index + 1, format!("{line} is not crates.io")));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NO_VIOLATIONS;

    #[test]
    fn crates_io_passes() {
        let lock = format!("[[package]]\nname = \"libc\"\n{CRATES_IO}\n");
        assert_eq!(check(&Repository::from_files(&[("Cargo.lock", &lock)])), NO_VIOLATIONS);
    }

    #[test]
    fn git_and_other_registries_are_reported_in_every_lock_file() {
        let git = "[[package]]\nsource = \"git+https://example.org/x#abc\"\n";
        let violations = check(&Repository::from_files(&[("Cargo.lock", ""), ("fuzz/Cargo.lock", git)]));
        assert_eq!(violations.len(), 1);
        assert_eq!((violations[0].path.as_str(), violations[0].line), ("fuzz/Cargo.lock", 2));
        let other = "source = \"registry+https://example.org/index\"\n";
        assert_eq!(check(&Repository::from_files(&[("Cargo.lock", other)])).len(), 1);
    }

    #[test]
    fn a_missing_lock_file_is_refused() {
        assert_eq!(check(&Repository::from_files(&[])).len(), 1);
    }
}
