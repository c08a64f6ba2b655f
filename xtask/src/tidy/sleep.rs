//! Nothing waits in the pure crates, tests included.

use super::pure_ring::PURE_CRATES;
use super::repository::Repository;
use super::{Invariant, Violation};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "no-sleep",
    statement: "pure crates never sleep, their tests neither: time is an argument",
    check,
};

fn check(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, source) in repository.rust_sources() {
        if !PURE_CRATES.iter().any(|name| path.starts_with(&format!("crates/{name}/"))) {
            continue;
        }
        for word in ["sleep", "sleep_until", "park_timeout"] {
            for line in source.lines_with(word) {
                violations.push(Violation::new(
                    path,
                    line,
                    format!("`{word}` in a pure crate: pass the time in instead"),
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
    fn a_test_of_a_pure_crate_that_sleeps_is_named() {
        let text = "// sleep\n#[cfg(test)]\nmod tests {\n    fn f() { std::thread::sleep(ONE); }\n}\n";
        let violations = check(&Repository::of(&[("crates/wire/src/lib.rs", text)]));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].line, 4);
    }

    #[test]
    fn other_crates_may_wait() {
        assert_eq!(check(&Repository::of(&[("crates/sys/src/lib.rs", "sleep(ONE);")])), NONE);
        assert_eq!(check(&Repository::of(&[("crates/wire/src/lib.rs", "let asleep = 1;")])), NONE);
    }
}
