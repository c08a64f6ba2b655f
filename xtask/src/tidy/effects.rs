//! Effects that only one crate may cause.

use super::{Invariant, InvariantViolation};
use crate::repository::Repository;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "effects",
    statement: "only crates/sys is `unsafe` or starts programs, only crates/cli uses streams or ends the process",
    check,
};

/// Code that causes an effect.
struct EffectRule {
    /// Tokens, separated by spaces.
    code: &'static str,
    /// Folders that may contain it.
    folders: &'static [&'static str],
    /// True when tests may contain it anywhere.
    tests: bool,
    remedy: &'static str,
}

const EFFECTS: [EffectRule; 7] = [
    EffectRule { code: "unsafe", folders: &["crates/sys/"], tests: false, remedy: "wrap it in crates/sys" },
    started("Command : : new"),
    started("process : : Command"),
    ended("io : : stdout"),
    ended("io : : stderr"),
    ended("process : : exit"),
    ended("process : : abort"),
];

const fn started(code: &'static str) -> EffectRule {
    EffectRule {
        code,
        folders: &["crates/sys/", "xtask/"],
        tests: true,
        remedy: "call the function of crates/sys instead",
    }
}

const fn ended(code: &'static str) -> EffectRule {
    let remedy = "return the value or the error instead";
    EffectRule { code, folders: &["crates/cli/", "xtask/"], tests: true, remedy }
}

/// Code behind a stream that writes nothing to it.
const DESCRIPTOR: &str = "( ) . as_fd";

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    for (path, file) in repository.rust_files() {
        for rule in EFFECTS.iter().filter(|rule| !rule.folders.iter().any(|folder| path.starts_with(folder))) {
            let is_effect = |index: &usize| !file.has_code(*index, &format!("{} {DESCRIPTOR}", rule.code));
            let found = file.find(rule.code).filter(is_effect).map(|index| &file.tokens()[index]);
            violations.extend(found.filter(|token| !(rule.tests && token.in_tests)).map(|token| {
                let message = format!("`{}`: {}", rule.code.replace(' ', ""), rule.remedy);
                InvariantViolation::new(path, token.line(), message)
            }));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NO_VIOLATIONS;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repository::from_files(&[(path, text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn each_effect_is_reported_outside_its_crate() {
        for rule in &EFFECTS {
            let text = format!("fn f() {{\n    {}\n}}\n", rule.code.replace(": :", "::"));
            assert_eq!(lines("crates/engine/src/lib.rs", &text), [2], "{}", rule.code);
            for folder in rule.folders {
                assert!(lines(&format!("{folder}src/lib.rs"), &text).is_empty(), "{}", rule.code);
            }
        }
    }

    #[test]
    fn tests_may_start_programs_but_not_be_unsafe() {
        let text = "#[cfg(test)]\nmod tests {\n    fn f() { std::process::exit(1) }\n    unsafe fn g() {}\n}\n";
        assert_eq!(lines("crates/wire/src/lib.rs", text), [4]);
        assert!(lines("crates/wire/tests/a.rs", "use std::process::Command;").is_empty());
    }

    #[test]
    fn similar_names_and_other_texts_pass() {
        let text = "#![forbid(unsafe_code)]\n// unsafe\nfn f() { clap::Command::name(); g(\"io::stdout\", io::stderr().as_fd()) }\n";
        assert_eq!(check(&Repository::from_files(&[("crates/engine/src/a.rs", text)])), NO_VIOLATIONS);
    }
}
