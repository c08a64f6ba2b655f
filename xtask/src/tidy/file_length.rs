//! Limit of the length of source files.

use super::{Invariant, InvariantViolation};
use crate::repository::{Repository, has_extension};

pub(super) const INVARIANT: Invariant =
    Invariant { name: "file-length", statement: "no source file is longer than 900 lines", check };

const LIMIT: usize = 900;

/// Files that may be longer, each with the reason. The aim is an empty list: two files rather than one huge one.
const EXCEPTIONS: &[(&str, &str)] = &[];

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    repository
        .files()
        .filter(|(path, _)| has_extension(path, "rs") || has_extension(path, "sh"))
        .filter(|(path, _)| !EXCEPTIONS.iter().any(|(exception, _)| exception == path))
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, length)| *length > LIMIT)
        .map(|(path, length)| {
            InvariantViolation::new(path, LIMIT + 1, format!("has {length} lines, {LIMIT} at most: split it"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NO_VIOLATIONS;

    #[test]
    fn the_limit_itself_passes_and_one_more_does_not() {
        let limit = "\n".repeat(LIMIT);
        assert_eq!(check(&Repository::from_files(&[("a.rs", &limit)])), NO_VIOLATIONS);
        let longer = "\n".repeat(LIMIT + 1);
        assert_eq!(check(&Repository::from_files(&[("a.rs", &longer)])).len(), 1);
        assert_eq!(check(&Repository::from_files(&[("fixture.json", &longer)])), NO_VIOLATIONS);
    }
}
