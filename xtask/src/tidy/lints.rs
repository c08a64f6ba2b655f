//! Every crate uses the workspace's lints, and those that hold an invariant are on.

use super::manifest::value;
use super::{Invariant, InvariantViolation};
use crate::repository::Repository;
use crate::rust_file::RustFile;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "lints",
    statement: "every crate uses the workspace's lints, and those that hold an invariant stay on",
    check,
};

/// Tool and name of a lint in the root manifest, with the level that its value must contain.
const REQUIRED: [(&str, &str, &str); 14] = [
    ("rust", "missing_docs", "warn"),
    ("rust", "unsafe_code", "deny"),
    ("rust", "unreachable_pub", "warn"),
    ("clippy", "all", "warn"),
    ("clippy", "pedantic", "warn"),
    ("clippy", "print_stdout", "warn"),
    ("clippy", "print_stderr", "warn"),
    ("clippy", "dbg_macro", "warn"),
    ("clippy", "exit", "warn"),
    ("clippy", "todo", "warn"),
    ("clippy", "unimplemented", "warn"),
    ("clippy", "unwrap_used", "warn"),
    ("clippy", "self_named_module_files", "warn"),
    ("clippy", "undocumented_unsafe_blocks", "warn"),
];

/// Lints that code outside tests may lift in these folders only.
const LIFTED: [(&str, &[&str]); 9] = [
    ("unsafe_code", &["crates/sys/"]),
    ("undocumented_unsafe_blocks", &[]),
    ("print_stdout", &["crates/cli/", "xtask/"]),
    ("print_stderr", &["crates/cli/", "xtask/"]),
    ("exit", &["crates/cli/", "xtask/"]),
    ("dbg_macro", &[]),
    ("todo", &[]),
    ("unimplemented", &[]),
    ("self_named_module_files", &[]),
];

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let mut violations = weakened(repository.text("Cargo.toml").unwrap_or_default());
    for package in repository.packages() {
        let manifest = package.manifest();
        let text = repository.text(&manifest).unwrap_or_default();
        if value(text, &["lints", "workspace"]) != Some(true.into()) {
            violations.push(InvariantViolation::new(&manifest, 1, "lacks [lints] workspace = true"));
        }
    }
    for (path, file) in repository.rust_files() {
        for (lint, folders) in LIFTED {
            if !folders.iter().any(|folder| path.starts_with(folder)) {
                violations.extend(lifted(file, lint, false).map(|line| {
                    InvariantViolation::new(path, line, format!("lifts the lint `{lint}`, which holds an invariant"))
                }));
            }
        }
    }
    violations
}

/// Reports required lints that the root manifest lacks.
fn weakened(manifest: &str) -> Vec<InvariantViolation> {
    let is_on = |tool: &str, lint: &str, level: &str| match value(manifest, &["workspace", "lints", tool, lint]) {
        Some(toml::Value::String(found)) => found == level,
        Some(found) => found.get("level") == Some(&level.into()),
        None => false,
    };
    REQUIRED
        .iter()
        .filter(|(tool, lint, level)| !is_on(tool, lint, level))
        .map(|(tool, lint, level)| {
            InvariantViolation::new("Cargo.toml", 1, format!("[workspace.lints.{tool}] lacks {lint} = \"{level}\""))
        })
        .collect()
}

/// Returns the lines of attributes that lift `lint`, those of tests only when asked for.
pub(super) fn lifted<'a>(file: &'a RustFile, lint: &'a str, tests: bool) -> impl Iterator<Item = usize> + 'a {
    file.find(lint)
        .filter(move |index| tests || !file.tokens()[*index].in_tests)
        .filter(|index| {
            let level = file.tokens()[..*index].iter().rev().skip_while(|token| token.text != "(").nth(1);
            level.is_some_and(|level| ["allow", "expect", "warn"].contains(&level.text.as_str()))
        })
        .map(|index| file.tokens()[index].line())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NO_VIOLATIONS;

    fn root() -> String {
        let line = |(tool, lint, level): &(&str, &str, &str)| format!("{tool}.{lint} = \"{level}\" # reason\n");
        format!("[workspace.lints]\n{}", REQUIRED.iter().map(line).collect::<Vec<_>>().concat())
    }

    fn repository(root: &str, manifest: &str) -> Repository {
        Repository::from_files(&[("Cargo.toml", root), ("crates/units/Cargo.toml", manifest)])
            .with_package("crates/units", &[])
    }

    #[test]
    fn lints_that_are_on_pass() {
        assert_eq!(check(&repository(&root(), "[lints]\nworkspace = true\n")), NO_VIOLATIONS);
        let table = root().replace("clippy.all = \"warn\"", "clippy.all = { level = \"warn\", priority = -1 }");
        assert_eq!(check(&repository(&table, "lints.workspace = true\n")), NO_VIOLATIONS);
    }

    #[test]
    fn a_crate_without_them_is_reported() {
        let violations = check(&repository(&root(), "[dependencies]\nworkspace = true\n"));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].path, "crates/units/Cargo.toml");
    }

    #[test]
    fn a_weakened_lint_is_reported() {
        let weak = root().replace("missing_docs = \"warn\"", "missing_docs = \"allow\"");
        let violations = check(&repository(&weak, "[lints]\nworkspace = true\n"));
        assert_eq!(violations.len(), 1);
        assert!(violations[0].message.contains("missing_docs"));
    }

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let repository = Repository::from_files(&[("Cargo.toml", &root()), (path, text)]);
        check(&repository).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_lifted_lint_is_reported_outside_its_folders() {
        for (lint, folders) in LIFTED {
            let text = format!("mod a;\n#[expect(clippy::other, clippy::{lint}, reason = \"(no)\")]\nfn f() {{}}\n");
            assert_eq!(lines("crates/engine/src/lib.rs", &text), [2], "{lint}");
            for folder in folders {
                assert!(lines(&format!("{folder}src/lib.rs"), &text).is_empty(), "{lint}");
            }
            assert!(lines("crates/engine/tests/a.rs", &text).is_empty(), "{lint}");
        }
    }

    #[test]
    fn a_lint_that_is_forbidden_and_a_function_of_its_name_pass() {
        assert!(lines("crates/wire/src/lib.rs", "#![forbid(unsafe_code)]\nfn exit() { exit(todo) }\n").is_empty());
    }
}
