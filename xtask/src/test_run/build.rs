//! The one build: every test program, and the program under test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::workspace;

/// Result of the build.
pub(super) struct BuiltTests {
    pub(super) suites: Vec<TestSuite>,
    /// Program under test, when its package was built.
    pub(super) linerate: Option<PathBuf>,
}

/// Test program of one target, or the tests of one module of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TestSuite {
    /// `sys` for the unit tests of `crates/sys`, `cli/shape` for `crates/cli/tests/shape.rs`.
    pub(super) name: String,
    pub(super) program: PathBuf,
    /// Folder of the package, in which cargo starts tests.
    pub(super) folder: PathBuf,
    /// Names of its tests, when other suites are in the same program; empty for a whole program.
    pub(super) tests: Vec<String>,
}

impl TestSuite {
    /// Arguments that select its tests.
    pub(super) fn selection(&self) -> Vec<&str> {
        let exact = (!self.tests.is_empty()).then_some("--exact");
        exact.into_iter().chain(self.tests.iter().map(String::as_str)).collect()
    }
}

/// Builds the tests of these packages, or of the workspace.
pub(super) fn build(packages: &[String]) -> Result<BuiltTests> {
    let output = Command::new(workspace::cargo())
        .args(["test", "--no-run", "--locked", "--message-format", "json-render-diagnostics"])
        .args(selection(packages))
        .current_dir(workspace::root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "the tests do not compile ({})", output.status);
    let text = String::from_utf8(output.stdout).context("the output of cargo is not UTF-8")?;
    let messages = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
    let messages = messages.context("cannot parse the output of cargo")?;
    let linerate = messages.iter().find_map(|message| program(message, false).filter(|_| is_linerate(message)));
    let mut suites = Vec::new();
    for message in &messages {
        match suite(message) {
            Some(suite) if is_of_modules(message) => suites.extend(suites_of_modules(&suite)?),
            suite => suites.extend(suite),
        }
    }
    Ok(BuiltTests { suites, linerate })
}

/// True for a program of which each module is a suite: `tests/main.rs` of a crate.
fn is_of_modules(message: &Value) -> bool {
    message["target"]["src_path"].as_str().is_some_and(|path| Path::new(path).ends_with("tests/main.rs"))
}

/// Suites in a program, which lists its tests.
fn suites_of_modules(program: &TestSuite) -> Result<Vec<TestSuite>> {
    let output = Command::new(&program.program).arg("--list").output();
    let output = output.with_context(|| format!("cannot start {}", program.program.display()))?;
    Ok(by_module(program, &String::from_utf8_lossy(&output.stdout)))
}

/// Sorts lines such as `shape::hosts::are_fair: test` by their first module.
fn by_module(program: &TestSuite, list: &str) -> Vec<TestSuite> {
    let mut modules: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for test in list.lines().filter_map(|line| line.strip_suffix(": test")) {
        let module = test.split("::").next().unwrap_or(test);
        modules.entry(module).or_default().push(test.to_owned());
    }
    let package = program.name.split('/').next().unwrap_or(&program.name);
    let suite = |(module, tests)| TestSuite { name: format!("{package}/{module}"), tests, ..program.clone() };
    modules.into_iter().map(suite).collect()
}

/// Returns the arguments of cargo that select the packages.
pub(super) fn selection(packages: &[String]) -> Vec<&str> {
    match packages {
        [] => vec!["--workspace"],
        _ => packages.iter().flat_map(|package| ["--package", package]).collect(),
    }
}

fn is_linerate(message: &Value) -> bool {
    message["target"]["name"] == "linerate" && message["target"]["kind"][0] == "bin"
}

fn program(message: &Value, is_test: bool) -> Option<PathBuf> {
    (message["profile"]["test"] == is_test).then_some(())?;
    Some(PathBuf::from(message["executable"].as_str()?))
}

fn suite(message: &Value) -> Option<TestSuite> {
    let program = program(message, true)?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = folder.file_name()?.to_str()?;
    let target = message["target"]["name"].as_str()?;
    let is_integration = message["target"]["kind"][0] == "test";
    let name = if is_integration { format!("{package}/{target}") } else { package.to_owned() };
    Some(TestSuite { name, program, folder: folder.to_path_buf(), tests: Vec::new() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(kind: &str, name: &str, is_test: bool) -> Value {
        json!({
            "reason": "compiler-artifact",
            "manifest_path": "/somewhere/crates/cli/Cargo.toml",
            "target": {"kind": [kind], "name": name},
            "profile": {"test": is_test},
            "executable": format!("/target/debug/{name}"),
        })
    }

    #[test]
    fn suites_are_named_after_their_crate_and_file() {
        let names = ["bin", "test"].map(|kind| suite(&message(kind, "shape", true)).map(|suite| suite.name));
        assert_eq!(names, [Some("cli".to_owned()), Some("cli/shape".to_owned())]);
        let suite = suite(&message("test", "shape", true)).expect("a suite");
        assert_eq!(suite.folder, Path::new("/somewhere/crates/cli"));
    }

    #[test]
    fn modules_of_one_program_are_suites() {
        let program = suite(&message("test", "cli", true)).expect("a suite");
        assert!(program.selection().is_empty());
        let list = "shape::hosts::are_fair: test\nlab::runs: test\nshape::ends: test\n\n3 tests, 0 benchmarks\n";
        let suites = by_module(&program, list);
        assert_eq!(suites.iter().map(|suite| &*suite.name).collect::<Vec<_>>(), ["cli/lab", "cli/shape"]);
        assert_eq!(suites[1].selection(), ["--exact", "shape::hosts::are_fair", "shape::ends"]);
        let path = |path: &str| is_of_modules(&json!({ "target": { "src_path": path } }));
        assert!(path("/somewhere/crates/cli/tests/main.rs") && !path("/somewhere/crates/cli/src/main.rs"));
    }

    #[test]
    fn programs_and_libraries_are_no_suites() {
        assert_eq!(suite(&message("bin", "linerate", false)), None);
        assert_eq!(suite(&json!({"reason": "build-finished", "success": true})), None);
        assert!(is_linerate(&message("bin", "linerate", false)));
        assert!(!is_linerate(&message("bin", "xtask", false)));
    }

    #[test]
    fn packages_select_a_part_of_the_workspace() {
        assert_eq!(selection(&[]), ["--workspace"]);
        assert_eq!(selection(&["a".to_owned(), "b".to_owned()]), ["--package", "a", "--package", "b"]);
    }
}
