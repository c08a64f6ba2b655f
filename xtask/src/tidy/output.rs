//! Who prints and who ends the process.

use super::repository::Repository;
use super::{Invariant, Violation};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "output",
    statement: "only crates/cli prints or ends the process (tests and xtask apart)",
    check,
};

const EXEMPT: [&str; 2] = ["crates/cli/", "xtask/"];

const WORDS: [&str; 9] = [
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
    "dbg!",
    "io::stdout",
    "io::stderr",
    "process::exit",
    "process::abort",
];

fn check(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, source) in repository.rust_sources() {
        // A build script talks to cargo.
        if EXEMPT.iter().any(|folder| path.starts_with(folder)) || path.ends_with("/build.rs") {
            continue;
        }
        for word in WORDS {
            let lines = source.lines_with_outside_tests(word);
            for line in lines.into_iter().filter(|line| !asks_about_terminal(&source.code()[line - 1])) {
                let message = format!("`{word}` outside crates/cli: return the value or the error instead");
                violations.push(Violation::new(path, line, message));
            }
        }
    }
    violations
}

/// Whether a line asks what standard output is, which prints nothing.
fn asks_about_terminal(code: &str) -> bool {
    code.contains("stdout().as_fd()") || code.contains("stderr().as_fd()")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NONE;

    #[test]
    fn printing_below_the_command_line_is_named() {
        let text = "fn f() {\n    println!(\"x\");\n    std::process::exit(1);\n}\n";
        let lines: Vec<_> =
            check(&Repository::of(&[("crates/engine/src/lib.rs", text)])).iter().map(|found| found.line).collect();
        assert_eq!(lines, [2, 3]);
    }

    #[test]
    fn asking_how_wide_the_terminal_is_prints_nothing() {
        let text = "let a = width(io::stdout().as_fd());\nlet mut b = io::stdout();\n";
        let violations = check(&Repository::of(&[("crates/sys/src/terminal.rs", text)]));
        assert_eq!(violations.iter().map(|found| found.line).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn the_command_line_tests_and_documentation_may_print() {
        let text = "println!(\"x\");";
        assert_eq!(check(&Repository::of(&[("crates/cli/src/main.rs", text)])), NONE);
        assert_eq!(check(&Repository::of(&[("crates/engine/tests/a.rs", text)])), NONE);
        assert_eq!(check(&Repository::of(&[("crates/engine/build.rs", text)])), NONE);
        assert_eq!(check(&Repository::of(&[("crates/engine/src/lib.rs", "/// println!(\"x\");\nfn f() {}\n")])), NONE);
    }
}
