//! Allowed dependencies between the crates of the workspace.

use super::manifest::dependency_line;
use super::{Invariant, InvariantViolation};
use crate::repository::Repository;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "crate-edges",
    statement: "crates of the workspace depend on each other only along the edges of ARCHITECTURE.md",
    check,
};

/// Allowed dependencies of each crate, by folder name, development dependencies included.
const EDGES: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("analysis", &["units"]),
    ("model", &["analysis", "units"]),
    ("documents", &["analysis", "model", "rules", "shape", "units"]),
    ("wire", &["model", "units"]),
    ("rules", &["analysis", "model", "units"]),
    ("shape", &["analysis", "model", "units"]),
    ("fleet", &["documents", "model", "units"]),
    ("export", &["documents", "model", "units"]),
    ("nats", &["units"]),
    ("report", &["analysis", "documents", "model", "units"]),
    ("sys", &["model", "units"]),
    ("engine", &["analysis", "documents", "model", "sys", "units", "wire"]),
    ("lab", &["analysis", "model", "sys", "units"]),
    ("history", &["documents", "model", "units"]),
    ("change", &["model", "sys", "units"]),
    (
        "operate",
        &["analysis", "change", "documents", "engine", "lab", "model", "report", "rules", "shape", "sys", "units"],
    ),
    (
        "cli",
        &[
            "analysis",
            "change",
            "documents",
            "engine",
            "export",
            "fleet",
            "history",
            "lab",
            "model",
            "nats",
            "operate",
            "quic",
            "report",
            "rules",
            "shape",
            "sys",
            "units",
            "web",
            "wire",
        ],
    ),
    ("quic", &["engine", "model", "sys", "units", "wire"]),
    ("web", &["analysis", "documents", "engine", "fleet", "history", "model", "report", "rules", "sys", "units"]),
    ("xtask", &["analysis", "documents", "lab", "model", "rules", "shape", "sys", "units"]),
];

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    for package in repository.packages() {
        let manifest = package.manifest();
        let crate_name = package.short_name();
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == crate_name) else {
            let message = format!("crate `{crate_name}` is not in the table of edges (xtask/src/tidy/crate_edges.rs)");
            violations.push(InvariantViolation::new(&manifest, 1, message));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|dependency| dependency.internal) {
            let target = dependency.name.trim_start_matches("linerate-");
            if !allowed.contains(&target) {
                let line = dependency_line(repository.text(&manifest).unwrap_or_default(), &dependency.name);
                let message = format!("`{crate_name}` may not depend on `{target}` (allowed: {allowed:?})");
                violations.push(InvariantViolation::new(&manifest, line, message));
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
    fn an_allowed_edge_passes() {
        let repository = Repository::from_files(&[])
            .with_package("crates/units", &["outside"])
            .with_package("crates/model", &["linerate-units"])
            .with_package("crates/engine", &["linerate-wire", "linerate-sys"]);
        assert_eq!(check(&repository), NO_VIOLATIONS);
    }

    #[test]
    fn a_forbidden_edge_is_reported_with_its_line() {
        let manifest = "[dependencies]\nlinerate-units.workspace = true\nlinerate-sys.workspace = true\n";
        let repository = Repository::from_files(&[("crates/wire/Cargo.toml", manifest)])
            .with_package("crates/wire", &["linerate-units", "linerate-sys"]);
        let violations = check(&repository);
        assert_eq!(violations.len(), 1);
        assert_eq!((violations[0].path.as_str(), violations[0].line), ("crates/wire/Cargo.toml", 3));
    }

    #[test]
    fn a_development_dependency_is_an_edge_too() {
        let repository = Repository::from_files(&[]).with_package("crates/model", &["linerate-wire?"]);
        assert_eq!(check(&repository).len(), 1);
    }

    #[test]
    fn a_crate_outside_the_table_is_refused() {
        let repository = Repository::from_files(&[]).with_package("crates/utilities", &[]);
        assert!(check(&repository)[0].message.contains("utilities"));
    }
}
