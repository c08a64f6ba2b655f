//! Every crate root begins with documentation.

use super::{Invariant, InvariantViolation};
use crate::repository::Repository;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "crate-roots",
    statement: "the first file of every library, binary, test and bench begins with `//!` documentation",
    check,
};

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    repository
        .packages()
        .iter()
        .flat_map(|package| &package.roots)
        .filter(|root| !repository.text(root).is_some_and(|text| text.trim_start().starts_with("//!")))
        .map(|root| InvariantViolation::new(root, 1, "begins without `//!`: document its content and purpose"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NO_VIOLATIONS;

    fn repository(text: &str) -> Repository {
        Repository::from_files(&[("crates/units/src/lib.rs", text)]).with_package("crates/units", &[])
    }

    #[test]
    fn a_documented_root_passes() {
        assert_eq!(check(&repository("//! Quantities.\n")), NO_VIOLATIONS);
    }

    #[test]
    fn a_root_that_begins_with_code_is_reported() {
        let violations = check(&repository("mod count;\n"));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].path, "crates/units/src/lib.rs");
    }
}
