//! `cargo xtask tidy`: the invariants of ARCHITECTURE.md that neither rustc nor clippy checks.
//!
//! One file per invariant, one line in [`INVARIANTS`]. A check is a pure function from the [`Repository`] (tracked
//! files and cargo's metadata, read once) to the violations; each file tests itself on a bad and on a good repository
//! of a few lines.

mod architecture;
mod changelog;
mod crate_edges;
mod crate_roots;
pub(crate) mod doc_openings;
mod effects;
mod external_crates;
mod file_length;
pub(crate) mod glossary;
mod lab_paths;
mod links;
mod lints;
mod lockfile;
mod machine_traces;
mod manifest;
mod packaging;
mod placeholders;
mod pure_ring;
mod test_modules;
mod threat_model;

use std::fmt;

use anyhow::Result;

use crate::repository::Repository;

/// Rule for the whole repository.
struct Invariant {
    /// Short name, shown with each violation.
    name: &'static str,
    /// Rule in one sentence.
    statement: &'static str,
    /// Returns the violations.
    check: fn(&Repository) -> Vec<InvariantViolation>,
}

/// Every invariant, in the order of the report.
const INVARIANTS: &[Invariant] = &[
    crate_edges::INVARIANT,
    external_crates::INVARIANT,
    lockfile::INVARIANT,
    pure_ring::INVARIANT,
    effects::INVARIANT,
    doc_openings::INVARIANT,
    glossary::INVARIANT,
    placeholders::INVARIANT,
    file_length::INVARIANT,
    crate_roots::INVARIANT,
    test_modules::INVARIANT,
    lints::INVARIANT,
    machine_traces::INVARIANT,
    changelog::INVARIANT,
    architecture::INVARIANT,
    packaging::INVARIANT,
    threat_model::INVARIANT,
    links::INVARIANT,
    lab_paths::INVARIANT,
];

/// Location that violates an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvariantViolation {
    /// Path from the root of the repository.
    path: String,
    /// Line number, from 1.
    line: usize,
    /// Problem and remedy.
    message: String,
}

impl InvariantViolation {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for InvariantViolation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Checks every invariant and prints one line each; returns true if all hold.
pub(crate) fn run() -> Result<bool> {
    let repository = Repository::read(&crate::workspace::root())?;
    let mut broken = 0;
    for invariant in INVARIANTS {
        let violations = (invariant.check)(&repository);
        let verdict = if violations.is_empty() { "ok    " } else { "BROKEN" };
        println!("tidy {verdict} {:16} {}", invariant.name, invariant.statement);
        for violation in &violations {
            println!("  {violation}");
        }
        broken += usize::from(!violations.is_empty());
    }
    println!("tidy: {} invariants, {broken} broken, {} files read", INVARIANTS.len(), repository.file_count());
    Ok(broken == 0)
}

/// Result of a check in a good repository.
#[cfg(test)]
const NO_VIOLATIONS: [InvariantViolation; 0] = [];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_invariant_has_its_own_name_and_a_statement() {
        let names: BTreeSet<_> = INVARIANTS.iter().map(|invariant| invariant.name).collect();
        assert_eq!(names.len(), INVARIANTS.len());
        for invariant in INVARIANTS {
            assert!(invariant.statement.len() > 20, "the statement of {} is too short", invariant.name);
            assert!(invariant.name.len() <= 16, "{} is too long for the report", invariant.name);
        }
    }

    #[test]
    fn a_violation_has_the_form_that_editors_jump_to() {
        let violation = InvariantViolation::new("crates/units/src/lib.rs", 7, "is wrong");
        assert_eq!(violation.to_string(), "crates/units/src/lib.rs:7: is wrong");
    }
}
