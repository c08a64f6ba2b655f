//! The workspace's lints are on, in every crate.

use super::repository::Repository;
use super::toml::value;
use super::{Invariant, Violation};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "lints",
    statement: "every crate takes the workspace's lints, and these ask for documentation and refuse `unsafe`",
    check,
};

/// Section and key of a lint in the root manifest, with what its value must hold.
const REQUIRED: [(&str, &str, &str); 9] = [
    ("workspace.lints.rust", "missing_docs", "warn"),
    ("workspace.lints.rust", "unsafe_code", "deny"),
    ("workspace.lints.rust", "unreachable_pub", "warn"),
    ("workspace.lints.clippy", "all", "warn"),
    ("workspace.lints.clippy", "pedantic", "warn"),
    ("workspace.lints.clippy", "print_stdout", "warn"),
    ("workspace.lints.clippy", "exit", "warn"),
    ("workspace.lints.clippy", "unwrap_used", "warn"),
    ("workspace.lints.clippy", "undocumented_unsafe_blocks", "warn"),
];

fn check(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    let root = repository.text("Cargo.toml").unwrap_or_default();
    for (section, key, level) in REQUIRED {
        if !value(root, section, key).is_some_and(|found| found.contains(&format!("\"{level}\""))) {
            violations.push(Violation::new("Cargo.toml", 1, format!("[{section}] lacks {key} = \"{level}\"")));
        }
    }
    for package in repository.packages() {
        let manifest = package.manifest();
        if value(repository.text(&manifest).unwrap_or_default(), "lints", "workspace") != Some("true") {
            violations.push(Violation::new(&manifest, 1, "lacks [lints] workspace = true"));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NONE;

    fn root() -> String {
        REQUIRED
            .iter()
            .map(|(section, key, level)| format!("[{section}]\n{key} = \"{level}\" # why\n"))
            .collect::<Vec<_>>()
            .concat()
    }

    fn repository(root: &str, manifest: &str) -> Repository {
        Repository::of(&[("Cargo.toml", root), ("crates/units/Cargo.toml", manifest)]).with_package("crates/units", &[])
    }

    #[test]
    fn lints_that_are_on_pass() {
        assert_eq!(check(&repository(&root(), "[lints]\nworkspace = true\n")), NONE);
    }

    #[test]
    fn a_crate_without_them_is_named() {
        let violations = check(&repository(&root(), "[dependencies]\nworkspace = true\n"));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].path, "crates/units/Cargo.toml");
    }

    #[test]
    fn a_lint_taken_down_is_named() {
        let weak = root().replace("missing_docs = \"warn\"", "missing_docs = \"allow\"");
        let violations = check(&repository(&weak, "[lints]\nworkspace = true\n"));
        assert_eq!(violations.len(), 1);
        assert!(violations[0].message.contains("missing_docs"));
    }
}
