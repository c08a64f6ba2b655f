//! Every crate says what it is before its first line of code.

use super::repository::Repository;
use super::{Invariant, Violation};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "crate-roots",
    statement: "the first file of every library, binary, test and bench begins with `//!` documentation",
    check,
};

fn check(repository: &Repository) -> Vec<Violation> {
    repository
        .packages()
        .iter()
        .flat_map(|package| &package.roots)
        .filter(|root| !repository.text(root).is_some_and(|text| text.trim_start().starts_with("//!")))
        .map(|root| Violation::new(root, 1, "begins without `//!`: say what it holds and why"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NONE;

    fn repository(text: &str) -> Repository {
        Repository::of(&[("crates/units/src/lib.rs", text)]).with_package("crates/units", &[])
    }

    #[test]
    fn a_documented_root_passes() {
        assert_eq!(check(&repository("//! Quantities.\n")), NONE);
    }

    #[test]
    fn a_root_that_begins_with_code_is_named() {
        let violations = check(&repository("mod count;\n"));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].path, "crates/units/src/lib.rs");
    }
}
