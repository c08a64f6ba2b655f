//! The changelog has a section for the coming or the released version.

use super::{Invariant, InvariantViolation};
use crate::repository::Repository;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "changelog",
    statement: "CHANGELOG.md has an Unreleased section or one for the version in the manifests, and it has an entry",
    check,
};

const CHANGELOG: &str = "CHANGELOG.md";

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let Some(text) = repository.text(CHANGELOG) else {
        return vec![InvariantViolation::new(CHANGELOG, 1, "is missing")];
    };
    let version = repository.packages().first().map_or("", |package| package.version.as_str());
    let headings = ["## [Unreleased]".to_owned(), format!("## [{version}]")];
    let lines: Vec<&str> = text.lines().collect();
    let starts = headings.iter().filter_map(|heading| lines.iter().position(|line| line.starts_with(heading.as_str())));
    let starts: Vec<usize> = starts.collect();
    let Some(first) = starts.first() else {
        return vec![InvariantViolation::new(CHANGELOG, 1, format!("has neither {} nor {}", headings[0], headings[1]))];
    };
    // Right after a release, nothing is unreleased.
    let section = |start: &usize| lines[start + 1..].iter().take_while(|line| !line.starts_with("## "));
    let has_entry = starts.iter().any(|start| section(start).any(|line| line.starts_with("- ")));
    if has_entry { vec![] } else { vec![InvariantViolation::new(CHANGELOG, first + 1, "the section has no entry")] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NO_VIOLATIONS;

    fn check_text(text: &str) -> Vec<InvariantViolation> {
        check(&Repository::from_files(&[(CHANGELOG, text)]).with_package("crates/units", &[]))
    }

    #[test]
    fn a_section_with_entries_passes() {
        assert_eq!(check_text("# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n"), NO_VIOLATIONS);
        assert_eq!(check_text("# Changelog\n\n## [0.1.0] - 2026-01-01\n\n- A thing.\n"), NO_VIOLATIONS);
        let released = "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- A thing.\n";
        assert_eq!(check_text(released), NO_VIOLATIONS);
    }

    #[test]
    fn no_section_an_empty_one_and_no_file_are_reported() {
        assert_eq!(check_text("# Changelog\n\n## [0.0.9]\n\n- Old.\n").len(), 1);
        assert_eq!(check_text("# Changelog\n\n## [Unreleased]\n\n## [0.0.9]\n\n- Old.\n")[0].line, 3);
        assert_eq!(check(&Repository::from_files(&[])).len(), 1);
    }
}
