//! Tests that take too long for each run, as tasks of their own; some write a document.

use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

/// Ignored test of `linerate-cli`.
struct LongTest {
    /// Task that runs it.
    task: &'static str,
    /// Name of the test, from its module on.
    test: &'static str,
    /// Variable that names the document, and the document.
    document: Option<(&'static str, &'static str)>,
    /// Further arguments for cargo.
    options: &'static [&'static str],
}

const LONG_TESTS: &[LongTest] = &[
    publishing("seeds", "seeds::publish", "LINERATE_SEEDS", "docs/seeds.md"),
    publishing("truth", "truth_table::publish", "LINERATE_TRUTH", "docs/truth-table.md"),
    publishing("diagnosis", "diagnosis_lab::every_limit_is_named", "LINERATE_DIAGNOSIS_TABLE", "docs/diagnosis.md"),
    plain("library", "path_lab::every_path_is_measured_as_emulated"),
    plain("library", "lab::every_second_scenario_gives_the_same_figures"),
    plain("verification", "shape_lab::verification::it_comes_to_a_verdict_on_this_host"),
    LongTest {
        options: &["--release"],
        ..plain("sockets", "watch::ten_thousand_sockets_take_a_twentieth_of_a_processor")
    },
];

const fn plain(task: &'static str, test: &'static str) -> LongTest {
    LongTest { task, test, document: None, options: &[] }
}

const fn publishing(task: &'static str, test: &'static str, variable: &'static str, file: &'static str) -> LongTest {
    LongTest { document: Some((variable, file)), ..plain(task, test) }
}

/// True when `task` runs long tests.
pub(crate) fn is_task(task: &str) -> bool {
    LONG_TESTS.iter().any(|long| long.task == task)
}

/// Runs the tests of `task`; returns true if all pass.
pub(crate) fn run(task: &str) -> Result<bool> {
    let mut passed = true;
    for long in LONG_TESTS.iter().filter(|long| long.task == task) {
        passed &= run_test(long)?;
    }
    Ok(passed)
}

fn run_test(long: &LongTest) -> Result<bool> {
    let mut command = Command::new(workspace::cargo());
    command.args(["test", "--locked", "--package", "linerate-cli", "--test", "cli"]).args(long.options);
    command.args(["--", "--ignored", "--nocapture", "--exact", long.test]).current_dir(workspace::root());
    if let Some((variable, document)) = long.document {
        command.env(variable, workspace::root().join(document));
    }
    let status = command.status().context("cannot start cargo test")?;
    long.document.iter().for_each(|(_, document)| println!("written: {document}"));
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Repository;

    #[test]
    fn each_long_test_of_the_table_exists_and_names_its_task() {
        let repository = Repository::read_files(&workspace::root()).expect("the repository is readable");
        for long in LONG_TESTS {
            let name = long.test.rsplit("::").next().unwrap_or_default();
            let reason = format!("#[ignore = \"long: cargo xtask {}", long.task);
            let is_listed = |text: &str| {
                text.split(&reason).skip(1).any(|after| {
                    after.split("fn ").nth(1).is_some_and(|function| function.starts_with(&format!("{name}()")))
                })
            };
            let mut tests = repository.files().filter(|(path, _)| path.starts_with("crates/cli/tests/"));
            assert!(tests.any(|(_, text)| is_listed(text)), "no test {name} is ignored for the task {}", long.task);
        }
    }

    #[test]
    fn tasks_are_those_of_the_table() {
        assert!(is_task("seeds") && is_task("library") && !is_task("tidy"));
    }
}
