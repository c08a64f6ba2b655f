//! The changelog knows what is coming and what was released.

use super::repository::Repository;
use super::{Invariant, Violation};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "changelog",
    statement: "CHANGELOG.md has an Unreleased section or one for the version in the manifests, and it says something",
    check,
};

const CHANGELOG: &str = "CHANGELOG.md";

fn check(repository: &Repository) -> Vec<Violation> {
    let Some(text) = repository.text(CHANGELOG) else {
        return vec![Violation::new(CHANGELOG, 1, "is missing")];
    };
    let version = repository.packages().first().map_or("", |package| package.version.as_str());
    let headings = ["## [Unreleased]".to_owned(), format!("## [{version}]")];
    let section = text.lines().position(|line| headings.iter().any(|heading| line.starts_with(heading)));
    let Some(start) = section else {
        return vec![Violation::new(CHANGELOG, 1, format!("has neither {} nor {}", headings[0], headings[1]))];
    };
    let says_something =
        text.lines().skip(start + 1).take_while(|line| !line.starts_with("## ")).any(|line| line.starts_with("- "));
    if says_something { vec![] } else { vec![Violation::new(CHANGELOG, start + 1, "the section has no entry")] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NONE;

    fn check_text(text: &str) -> Vec<Violation> {
        check(&Repository::of(&[(CHANGELOG, text)]).with_package("crates/units", &[]))
    }

    #[test]
    fn a_section_with_entries_passes() {
        assert_eq!(check_text("# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n"), NONE);
        assert_eq!(check_text("# Changelog\n\n## [0.1.0] - 2026-01-01\n\n- A thing.\n"), NONE);
    }

    #[test]
    fn no_section_an_empty_one_and_no_file_are_named() {
        assert_eq!(check_text("# Changelog\n\n## [0.0.9]\n\n- Old.\n").len(), 1);
        assert_eq!(check_text("# Changelog\n\n## [Unreleased]\n\n## [0.0.9]\n\n- Old.\n")[0].line, 3);
        assert_eq!(check(&Repository::of(&[])).len(), 1);
    }
}
