//! Which crate may depend on which.

use super::repository::Repository;
use super::toml::dependency_line;
use super::{Invariant, Violation};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "crate-edges",
    statement: "crates of the workspace depend on each other only along the edges of ARCHITECTURE.md",
    check,
};

/// Each crate by the name of its folder, with those it may depend on, development dependencies included.
const EDGES: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("model", &["units"]),
    ("wire", &["model", "units"]),
    ("rules", &["model", "units"]),
    ("shape", &["model", "units"]),
    ("report", &["model", "units"]),
    ("sys", &["model", "units"]),
    ("engine", &["model", "sys", "units", "wire"]),
    ("lab", &["model", "sys", "units"]),
    ("history", &["model", "units"]),
    ("change", &["model", "sys", "units"]),
    ("cli", &["change", "engine", "history", "lab", "model", "report", "rules", "shape", "sys", "units", "wire"]),
    ("xtask", &["shape", "units"]),
];

fn check(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in repository.packages() {
        let manifest = package.manifest();
        let crate_name = package.short_name();
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == crate_name) else {
            let message =
                format!("crate `{crate_name}` has no place in the table of edges (xtask/src/tidy/crate_edges.rs)");
            violations.push(Violation::new(&manifest, 1, message));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|dependency| dependency.internal) {
            let target = dependency.name.trim_start_matches("linerate-");
            if !allowed.contains(&target) {
                let line = dependency_line(repository.text(&manifest).unwrap_or_default(), &dependency.name);
                let message = format!("`{crate_name}` may not depend on `{target}`; it may on {allowed:?}");
                violations.push(Violation::new(&manifest, line, message));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NONE;

    #[test]
    fn an_allowed_edge_passes() {
        let repository = Repository::of(&[])
            .with_package("crates/units", &["outside"])
            .with_package("crates/model", &["linerate-units"])
            .with_package("crates/engine", &["linerate-wire", "linerate-sys"]);
        assert_eq!(check(&repository), NONE);
    }

    #[test]
    fn an_edge_back_is_named_with_its_line() {
        let manifest = "[dependencies]\nlinerate-units.workspace = true\nlinerate-sys.workspace = true\n";
        let repository = Repository::of(&[("crates/wire/Cargo.toml", manifest)])
            .with_package("crates/wire", &["linerate-units", "linerate-sys"]);
        let violations = check(&repository);
        assert_eq!(violations.len(), 1);
        assert_eq!((violations[0].path.as_str(), violations[0].line), ("crates/wire/Cargo.toml", 3));
    }

    #[test]
    fn a_development_dependency_is_an_edge_too() {
        let repository = Repository::of(&[]).with_package("crates/model", &["linerate-wire?"]);
        assert_eq!(check(&repository).len(), 1);
    }

    #[test]
    fn a_crate_without_a_place_is_refused() {
        let repository = Repository::of(&[]).with_package("crates/utilities", &[]);
        assert!(check(&repository)[0].message.contains("utilities"));
    }
}
