//! Options of `cargo xtask test`.

use anyhow::{Context, Result, bail};

/// Options of the command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TestOptions {
    /// Busy suites that run at the same time, next to one more of those that mostly wait.
    pub(super) jobs: usize,
    /// True when tests that need root may be left out.
    pub(super) without_root: bool,
    /// True when further cases are run that take long.
    pub(super) long: bool,
    /// True when tests that failed beside others are run again, alone.
    pub(super) rerun_failed: bool,
    /// True when the table is stored in the documentation.
    pub(super) write: bool,
    /// Packages to build; all when empty.
    pub(super) packages: Vec<String>,
    /// Suites to run, by a part of their name; all when empty.
    pub(super) suites: Vec<String>,
}

impl TestOptions {
    /// True when the examples in the documentation are run, which are a suite too.
    pub(super) fn has_documentation(&self) -> bool {
        self.is_chosen(super::outcome::DOCUMENTATION)
    }

    /// True when the suite called `name` is to be run.
    pub(super) fn is_chosen(&self, name: &str) -> bool {
        self.suites.is_empty() || self.suites.iter().any(|suite| name.contains(suite.as_str()))
    }
}

pub(super) fn parse(arguments: &[String]) -> Result<TestOptions> {
    // One more than processors: busy suites also wait for peers and clocks.
    let jobs = std::thread::available_parallelism().map_or(1, usize::from) + 1;
    let mut options = TestOptions { jobs, ..TestOptions::default() };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--jobs" => options.jobs = value()?.parse().context("--jobs needs a number")?,
            "--package" => options.packages.push(value()?.clone()),
            "--without-root" => options.without_root = true,
            "--long" => options.long = true,
            "--rerun-failed" => options.rerun_failed = true,
            "--write" => options.write = true,
            suite if !suite.starts_with('-') => options.suites.push(suite.to_owned()),
            _ => bail!("unknown argument '{argument}'"),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(text: &str) -> Result<TestOptions> {
        parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn all_suites_are_chosen_unless_some_are_named() {
        let options = parse_text("--jobs 3 --without-root").expect("known options");
        assert_eq!((options.jobs, options.without_root, options.write), (3, true, false));
        assert!(options.is_chosen("cli/shape") && options.has_documentation());
        let options = parse_text("cli/ --package linerate-cli --write").expect("known options");
        assert!(options.is_chosen("cli/shape") && !options.is_chosen("sys") && !options.has_documentation());
        assert_eq!(options.packages, ["linerate-cli"]);
    }

    #[test]
    fn unknown_options_and_missing_values_are_refused() {
        for text in ["--fast", "--jobs", "--jobs many", "--package"] {
            assert!(parse_text(text).is_err(), "{text}");
        }
    }
}
