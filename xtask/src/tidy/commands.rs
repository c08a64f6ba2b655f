//! Other programs are started in one place.

use super::repository::Repository;
use super::{Invariant, Violation};

pub(super) const INVARIANT: Invariant =
    Invariant { name: "commands", statement: "only crates/sys starts other programs (tests and xtask apart)", check };

const EXEMPT: [&str; 2] = ["crates/sys/", "xtask/"];

fn check(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, source) in repository.rust_sources() {
        if EXEMPT.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        for word in ["Command::new", "process::Command"] {
            for line in source.lines_with_outside_tests(word) {
                violations.push(Violation::new(
                    path,
                    line,
                    format!("`{word}`: call the function of crates/sys instead"),
                ));
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
    fn a_program_started_outside_the_system_crate_is_named() {
        let violations =
            check(&Repository::of(&[("crates/cli/src/main.rs", "fn f() {\n    Command::new(\"tc\");\n}\n")]));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].line, 2);
        assert_eq!(check(&Repository::of(&[("crates/cli/src/main.rs", "use std::process::Command;")])).len(), 1);
    }

    #[test]
    fn the_system_crate_tests_and_chores_may() {
        let text = "Command::new(\"tc\");";
        for path in ["crates/sys/src/run.rs", "xtask/src/main.rs", "crates/cli/tests/interop.rs"] {
            assert_eq!(check(&Repository::of(&[(path, text)])), NONE, "{path}");
        }
        assert_eq!(check(&Repository::of(&[("crates/cli/src/a.rs", "clap::Command::name()")])), NONE);
    }
}
