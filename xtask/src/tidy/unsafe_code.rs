//! Where `unsafe` stands, and that each use says why it is sound.

use super::repository::Repository;
use super::source::Source;
use super::{Invariant, Violation};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "unsafe-code",
    statement: "`unsafe` stands only in crates/sys, each block under a SAFETY comment",
    check,
};

const SYSTEM_CRATE: &str = "crates/sys/";

fn check(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, source) in repository.rust_sources() {
        for line in source.lines_with("unsafe") {
            if !path.starts_with(SYSTEM_CRATE) {
                violations.push(Violation::new(path, line, "`unsafe` may stand only in crates/sys: wrap it there"));
            } else if needs_reason(&source.code()[line - 1]) && !has_reason(&source, line) {
                let message = "`unsafe` without a `// SAFETY:` comment above: say why this call is sound";
                violations.push(Violation::new(path, line, message));
            }
        }
    }
    violations
}

/// Whether this is a block or an `impl`, which claim soundness; an `unsafe fn` passes the claim on.
fn needs_reason(code: &str) -> bool {
    code.split("unsafe").skip(1).map(str::trim_start).any(|rest| rest.starts_with('{') || rest.starts_with("impl"))
}

/// Looks for the comment on the line itself and above it, up to where the statement begins.
fn has_reason(source: &Source, line: usize) -> bool {
    let says_why = |index: usize| source.comments()[index].contains("SAFETY:");
    if says_why(line - 1) {
        return true;
    }
    for index in (0..line - 1).rev() {
        if says_why(index) {
            return true;
        }
        let code = source.code()[index].trim();
        let comment = source.comments()[index].trim();
        if code.ends_with([';', '{', '}']) || (code.is_empty() && comment.is_empty()) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(path: &str, text: &str) -> Vec<usize> {
        check(&Repository::of(&[(path, text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn reasons_above_the_statement_and_on_the_line_pass() {
        let text = "// SAFETY: the pointer\n// lives longer.\nlet a =\n    unsafe { f() };\n\
                    let b = unsafe { g() }; // SAFETY: no memory is touched.\n\
                    /// # Safety\nunsafe fn h() {}\n// SAFETY: holds no pointer.\n#[cfg(unix)]\nunsafe impl Send for A {}\n";
        assert!(violations("crates/sys/src/lib.rs", text).is_empty());
    }

    #[test]
    fn a_block_without_a_reason_is_named() {
        let text = "// SAFETY: for the first only.\nlet a = unsafe { f() };\nlet b = unsafe { f() };\n";
        assert_eq!(violations("crates/sys/src/lib.rs", text), [3]);
    }

    #[test]
    fn any_use_outside_the_system_crate_is_named() {
        assert_eq!(violations("crates/engine/src/lib.rs", "// SAFETY: no.\nunsafe { f() }\n"), [2]);
        assert!(violations("crates/engine/src/lib.rs", "#![forbid(unsafe_code)]\n// unsafe\n").is_empty());
    }
}
