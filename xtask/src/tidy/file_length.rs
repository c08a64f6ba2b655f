//! How long a file may be.

use super::repository::{Repository, has_extension};
use super::{Invariant, Violation};

pub(super) const INVARIANT: Invariant =
    Invariant { name: "file-length", statement: "no source file is longer than 900 lines", check };

const LIMIT: usize = 900;

/// Files that may be longer, each with the reason. Empty is the aim: two rooms rather than one huge one.
const EXCEPTIONS: &[(&str, &str)] = &[];

fn check(repository: &Repository) -> Vec<Violation> {
    repository
        .files()
        .filter(|(path, _)| has_extension(path, "rs") || has_extension(path, "sh"))
        .filter(|(path, _)| !EXCEPTIONS.iter().any(|(exception, _)| exception == path))
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, length)| *length > LIMIT)
        .map(|(path, length)| Violation::new(path, LIMIT + 1, format!("has {length} lines, {LIMIT} at most: split it")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NONE;

    #[test]
    fn the_limit_itself_passes_and_one_more_does_not() {
        let limit = "\n".repeat(LIMIT);
        assert_eq!(check(&Repository::of(&[("a.rs", &limit)])), NONE);
        let longer = "\n".repeat(LIMIT + 1);
        assert_eq!(check(&Repository::of(&[("a.rs", &longer)])).len(), 1);
        assert_eq!(check(&Repository::of(&[("fixture.json", &longer)])), NONE);
    }
}
