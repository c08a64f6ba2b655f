//! One suite: its run, and what its output says.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::build::{TestSuite, selection};
use super::ignored::{IgnoredClass, IgnoredTest, ignored_tests};
use super::options::TestOptions;
use crate::workspace;

/// Name of the suite that consists of the examples in the documentation.
pub(super) const DOCUMENTATION: &str = "documentation";

/// Result of one suite.
#[derive(Debug, Default)]
pub(super) struct SuiteOutcome {
    pub(super) name: String,
    pub(super) passed: usize,
    pub(super) failed: usize,
    /// Tests that were left out, each with the reason.
    pub(super) not_run: Vec<String>,
    /// Names of the tests that failed, as far as the output has them.
    pub(super) failed_tests: Vec<String>,
    /// Tests that failed beside others and passed alone, each with its suite.
    pub(super) unstable: Vec<String>,
    pub(super) time: Duration,
    /// Processor time of the suite and all processes that it waited for.
    pub(super) processor_time: Duration,
    /// Output to be shown: empty when all passed.
    pub(super) complaint: String,
}

impl SuiteOutcome {
    /// Adds one run of the suite's program; one without a result, which ended early, is a failure.
    fn add(&mut self, output: &str, is_success: bool) {
        let counts = counts(output);
        self.processor_time += output.lines().last().and_then(processor_time).unwrap_or_default();
        self.passed += counts.passed;
        self.failed += counts.failed.max(usize::from(!is_success));
        self.failed_tests.extend(output.lines().filter_map(failed_test).map(str::to_owned));
        if !is_success {
            self.complaint += output.find("\nfailures:\n").map_or(output, |start| &output[start..]);
        }
    }

    fn fail(&mut self, text: &str) {
        self.failed += 1;
        self.complaint.push_str(text);
        self.complaint.push('\n');
    }
}

/// Sums of the result lines in an output.
#[derive(Debug, Default, PartialEq, Eq)]
struct ResultCounts {
    passed: usize,
    failed: usize,
    ignored: usize,
}

/// Runs each failed test again, alone; one that passes then is counted as passed and named as unstable.
pub(super) fn rerun_failed(suite: &TestSuite, outcome: &mut SuiteOutcome) -> Result<()> {
    for test in std::mem::take(&mut outcome.failed_tests) {
        let (output, is_success) = run_program(suite, &["--include-ignored", "--exact", &test])?;
        if is_success && counts(&output).passed == 1 {
            outcome.passed += 1;
            outcome.failed -= 1;
            outcome.unstable.push(format!("{} {test}", suite.name));
        }
    }
    Ok(())
}

/// Runs a suite, its ignored tests that need root where there is root, and further cases with `--long`.
pub(super) fn run_suite(suite: &TestSuite, options: &TestOptions) -> SuiteOutcome {
    let started = Instant::now();
    let mut outcome = SuiteOutcome { name: suite.name.clone(), ..SuiteOutcome::default() };
    if let Err(error) = run_both_parts(suite, options, &mut outcome) {
        outcome.fail(&format!("{}: {error:#}", suite.name));
    }
    outcome.time = started.elapsed();
    outcome
}

fn run_both_parts(suite: &TestSuite, options: &TestOptions, outcome: &mut SuiteOutcome) -> Result<()> {
    let (output, is_success) = run_program(suite, &suite.selection())?;
    outcome.add(&output, is_success);
    let ignored = ignored_tests(&output, counts(&output).ignored)?;
    let names = |class| ignored.iter().filter(move |test: &&IgnoredTest| test.class == class).map(|test| &*test.name);
    outcome.not_run.extend(names(IgnoredClass::Long).map(|name| format!("{} {name} (long)", suite.name)));
    let further: Vec<&str> = names(IgnoredClass::Further).collect();
    if !options.long {
        outcome.not_run.extend(further.iter().map(|name| format!("{} {name} (--long)", suite.name)));
    } else if !further.is_empty() {
        let (output, is_success) = run_program(suite, &[&["--ignored", "--exact"], &*further].concat())?;
        outcome.add(&output, is_success);
    }
    let needs_root: Vec<&str> = names(IgnoredClass::Root).collect();
    if needs_root.is_empty() {
    } else if is_root() {
        let (output, is_success) = run_program(suite, &[&["--ignored", "--exact"], &*needs_root].concat())?;
        outcome.add(&output, is_success);
    } else {
        outcome.not_run.extend(needs_root.iter().map(|name| format!("{} {name} (needs root)", suite.name)));
        if !options.without_root {
            outcome.fail(&format!("not run: needs root ({} tests; --without-root leaves them out)", needs_root.len()));
        }
    }
    Ok(())
}

/// Runs a program, then prints the shell's and its children's processor times (`times` of POSIX).
const TIMED: &str = "\"$@\"; code=$?; times; exit $code";

/// Parses the times of `times`, user and system: `1m2.25s 0m0.75s`.
fn processor_time(line: &str) -> Option<Duration> {
    let parse = |time: &str| {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
    };
    let (user, system) = line.split_once(' ')?;
    Duration::try_from_secs_f64(parse(user)? + parse(system)?).ok()
}

/// Runs the test program with its output in a file; returns that, and true when all tests passed.
fn run_program(suite: &TestSuite, arguments: &[&str]) -> Result<(String, bool)> {
    let path = log_path(suite)?;
    let log = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let status = Command::new("sh")
        .args(["-c", TIMED, "sh"])
        .arg(&suite.program)
        .args(arguments)
        .current_dir(&suite.folder)
        .env("CARGO_MANIFEST_DIR", &suite.folder)
        .env("CARGO", workspace::cargo())
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()
        .with_context(|| format!("cannot start {}", suite.program.display()))?;
    let output = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok((String::from_utf8_lossy(&output).into_owned(), status.success()))
}

/// Returns the file of a suite's output, in the folder above the test programs.
fn log_path(suite: &TestSuite) -> Result<PathBuf> {
    let folder = suite.program.ancestors().nth(2).unwrap_or(Path::new(".")).join("test-logs");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder.join(format!("{}.log", suite.name.replace('/', "-"))))
}

/// Runs the examples in the documentation, which cargo builds and runs itself.
pub(super) fn run_documentation(packages: &[String]) -> Result<SuiteOutcome> {
    let started = Instant::now();
    let output = Command::new(workspace::cargo())
        .args(["test", "--doc", "--locked", "--no-fail-fast"])
        .args(selection(packages))
        .current_dir(workspace::root())
        .output()
        .context("cannot start cargo")?;
    let mut outcome = SuiteOutcome { name: DOCUMENTATION.to_owned(), ..SuiteOutcome::default() };
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    outcome.add(&text, output.status.success());
    outcome.time = started.elapsed();
    Ok(outcome)
}

/// Parses a line such as `test a::b ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// Adds up lines such as `test result: ok. 3 passed; 1 failed; 2 ignored; …`.
fn counts(output: &str) -> ResultCounts {
    let mut counts = ResultCounts::default();
    for line in output.lines().filter(|line| line.starts_with("test result: ")) {
        let count = |word: &str| {
            let words: Vec<&str> = line.split([' ', ';']).filter(|word| !word.is_empty()).collect();
            let index = words.iter().position(|found| *found == word);
            index.and_then(|index| words[index - 1].parse::<usize>().ok()).unwrap_or(0)
        };
        counts.passed += count("passed");
        counts.failed += count("failed");
        counts.ignored += count("ignored");
    }
    counts
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: &str = "running 2 tests\n\nfailures:\n\n---- a stdout ----\nno\n\nfailures:\n    a\n\n\
                          test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 4 filtered out; finished in 1.20s\n";

    fn options(without_root: bool) -> TestOptions {
        TestOptions { jobs: 1, without_root, ..TestOptions::default() }
    }

    #[test]
    fn result_lines_are_added_up() {
        let text = FAILED.to_owned() + "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(counts(&text), ResultCounts { passed: 8, failed: 1, ignored: 2 });
    }

    #[test]
    fn failures_are_shown_and_a_program_that_ends_early_is_one() {
        let mut outcome = SuiteOutcome::default();
        outcome.add(FAILED, false);
        assert_eq!((outcome.passed, outcome.failed), (3, 1));
        assert!(outcome.complaint.contains("---- a stdout ----") && !outcome.complaint.contains("running"));
        outcome.add("running 2 tests\nsegmentation fault\n", false);
        assert_eq!(outcome.failed, 2);
        assert!(outcome.complaint.contains("segmentation fault"));
    }

    #[test]
    fn processor_times_are_those_of_the_program() {
        assert_eq!(processor_time("1m2.25s 0m0.750000s"), Some(Duration::from_secs(63)));
        assert_eq!(processor_time("test result: ok. 1 passed"), None);
        let suite = suite(
            "busy",
            "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done\necho \"test result: ok. 1 passed; 0 failed\"",
        );
        let outcome = run_suite(&suite, &options(true));
        assert!(outcome.passed == 1 && !outcome.processor_time.is_zero(), "{:?}", outcome.processor_time);
        std::fs::remove_dir_all(&suite.folder).expect("the folder is ours");
    }

    fn suite(name: &str, script: &str) -> TestSuite {
        let folder = std::env::temp_dir().join(format!("linerate-xtask-{name}-{}", std::process::id()));
        let program = folder.join("debug/deps/program");
        std::fs::create_dir_all(folder.join("debug/deps")).expect("the temporary folder is writable");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("the temporary folder is writable");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("the file is ours");
        TestSuite { name: name.to_owned(), program, folder, tests: Vec::new() }
    }

    #[test]
    fn tests_that_need_root_are_run_or_fail() {
        let script = "if [ \"$1\" = --ignored ]; then\n  echo \"test result: ok. 1 passed; 0 failed; 0 ignored\"\nelse\n  \
                      echo \"test c ... ignored, needs root: d\"\n  echo \"test e ... ignored, long: f\"\n  \
                      echo \"test result: ok. 2 passed; 0 failed; 2 ignored\"\nfi";
        let suite = suite("b", script);
        let outcome = run_suite(&suite, &options(false));
        let expected = if is_root() { (3, 0) } else { (2, 1) };
        assert_eq!((outcome.passed, outcome.failed), expected, "{}", outcome.complaint);
        assert_eq!(outcome.not_run[0], "b e (long)");
        assert_eq!(run_suite(&suite, &options(true)).failed, 0);
        std::fs::remove_dir_all(&suite.folder).expect("the folder is ours");
    }

    #[test]
    fn a_failed_test_that_passes_alone_is_unstable() {
        let script = "case \"$*\" in\n  *first) echo \"test result: ok. 1 passed; 0 failed\" ;;\n  \
                      *second) echo \"test result: FAILED. 0 passed; 1 failed\"; exit 101 ;;\n  \
                      *) echo \"test first ... FAILED\"; echo \"test second ... FAILED\"\n     \
                      echo \"test result: FAILED. 3 passed; 2 failed\"; exit 101 ;;\nesac";
        let suite = suite("rerun", script);
        let mut outcome = run_suite(&suite, &options(true));
        assert_eq!((outcome.passed, outcome.failed), (3, 2));
        rerun_failed(&suite, &mut outcome).expect("the program starts");
        assert_eq!((outcome.passed, outcome.failed), (4, 1));
        assert_eq!(outcome.unstable, ["rerun first"]);
        std::fs::remove_dir_all(&suite.folder).expect("the folder is ours");
    }
}
