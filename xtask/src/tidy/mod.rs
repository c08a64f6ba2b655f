//! `cargo xtask tidy`: the invariants of ARCHITECTURE.md that neither rustc nor clippy sees.
//!
//! One file per invariant, one line in [`INVARIANTS`]. A check is a pure function from the [`Repository`] (tracked
//! files and cargo's metadata, read once) to what breaks the invariant; so each file tests itself on a bad and on a
//! good repository of a few lines.

mod architecture;
mod changelog;
mod commands;
mod crate_edges;
mod crate_roots;
mod external_crates;
mod file_length;
mod lints;
mod lockfile;
mod machine_traces;
mod output;
mod packaging;
mod placeholders;
mod pure_ring;
mod repository;
mod sleep;
mod source;
mod toml;
mod unsafe_code;

use std::fmt;

use anyhow::Result;

use self::repository::Repository;

/// One rule that the repository keeps.
struct Invariant {
    /// Short name, shown with each violation.
    name: &'static str,
    /// What holds, in one sentence.
    statement: &'static str,
    /// Finds what breaks it.
    check: fn(&Repository) -> Vec<Violation>,
}

/// Every invariant, in the order of the report.
const INVARIANTS: &[Invariant] = &[
    crate_edges::INVARIANT,
    external_crates::INVARIANT,
    lockfile::INVARIANT,
    unsafe_code::INVARIANT,
    pure_ring::INVARIANT,
    sleep::INVARIANT,
    commands::INVARIANT,
    output::INVARIANT,
    placeholders::INVARIANT,
    file_length::INVARIANT,
    crate_roots::INVARIANT,
    lints::INVARIANT,
    machine_traces::INVARIANT,
    changelog::INVARIANT,
    architecture::INVARIANT,
    packaging::INVARIANT,
];

/// A place that breaks an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Violation {
    /// Path from the root of the repository.
    path: String,
    /// Line, the first is 1.
    line: usize,
    /// What is wrong and the way out.
    message: String,
}

impl Violation {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Checks every invariant and prints one line each; whether all hold.
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

/// What a check finds in a good repository.
#[cfg(test)]
const NONE: [Violation; 0] = [];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_invariant_has_its_own_name_and_a_statement() {
        let names: BTreeSet<_> = INVARIANTS.iter().map(|invariant| invariant.name).collect();
        assert_eq!(names.len(), INVARIANTS.len());
        for invariant in INVARIANTS {
            assert!(invariant.statement.len() > 20, "{} says too little", invariant.name);
            assert!(invariant.name.len() <= 16, "{} is too long for the report", invariant.name);
        }
    }

    #[test]
    fn a_violation_is_shown_so_that_an_editor_can_jump_to_it() {
        let violation = Violation::new("crates/units/src/lib.rs", 7, "is wrong");
        assert_eq!(violation.to_string(), "crates/units/src/lib.rs:7: is wrong");
    }
}
