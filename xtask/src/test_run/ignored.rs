//! Tests that `cargo test` leaves out: the reason in `#[ignore = "…"]` begins with their class.

use anyhow::{Context, Result, ensure};

/// Beginnings of reasons, each with the class that it states.
const REASONS: [(&str, IgnoredClass); 4] = [
    ("needs root", IgnoredClass::Root),
    ("child", IgnoredClass::Child),
    ("long: cargo xtask test --long", IgnoredClass::Further),
    ("long", IgnoredClass::Long),
];

/// Treatment of a test that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IgnoredClass {
    /// Run where there is root.
    Root,
    /// Part of another test, which starts it as a process of its own.
    Child,
    /// Run with `--long`: further cases of tests that always run.
    Further,
    /// Run by another task, which the reason names.
    Long,
}

/// Test that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IgnoredTest {
    pub(super) name: String,
    pub(super) class: IgnoredClass,
}

/// Returns the tests that the output of a suite names as ignored, which are `count`.
pub(super) fn ignored_tests(output: &str, count: usize) -> Result<Vec<IgnoredTest>> {
    let tests: Vec<IgnoredTest> = output.lines().filter_map(ignored_test).collect::<Result<_>>()?;
    ensure!(tests.len() == count, "{count} tests are ignored, but {} have a reason", tests.len());
    Ok(tests)
}

/// Parses a line such as `test a::b ... ignored, needs root: c`.
fn ignored_test(line: &str) -> Option<Result<IgnoredTest>> {
    let (name, reason) = line.strip_prefix("test ")?.split_once(" ... ignored, ")?;
    let class = REASONS.iter().find(|(beginning, _)| reason.starts_with(beginning)).map(|(_, class)| *class);
    let class = class.with_context(|| {
        format!("the reason for ignoring {name} begins with none of: needs root, child, long ('{reason}')")
    });
    Some(class.map(|class| IgnoredTest { name: name.to_owned(), class }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_state_the_class() {
        let output = "running 3 tests\ntest a ... ok\ntest b::c ... ignored, needs root and ip: devices\n\
                      test d ... ignored, child of `b::c`\ntest e ... ignored, long: cargo xtask truth\n\
                      test f ... ignored, long: cargo xtask test --long\n";
        let tests = ignored_tests(output, 4).expect("all have a class");
        let found: Vec<_> = tests.iter().map(|test| (test.name.as_str(), test.class)).collect();
        assert_eq!(
            found,
            [
                ("b::c", IgnoredClass::Root),
                ("d", IgnoredClass::Child),
                ("e", IgnoredClass::Long),
                ("f", IgnoredClass::Further)
            ]
        );
    }

    #[test]
    fn other_reasons_and_none_are_errors() {
        let error = ignored_tests("test a ... ignored, it fails\n", 1).expect_err("no class").to_string();
        assert!(error.contains("needs root, child, long ('it fails')"), "{error}");
        assert!(ignored_tests("test a ... ignored\n", 1).is_err());
    }
}
