//! Order of the suites: several at a time, and some alone.

use std::sync::Mutex;

use super::build::TestSuite;
use super::options::TestOptions;
use super::outcome::{self, SuiteOutcome, run_suite};
use super::table;

/// Suites that run alone, each with the reason.
const ALONE: [(&str, &str); 3] = [
    ("cli/host_load", "names the program that makes a host late: others' would be named"),
    ("cli/many_clients", "counts memory and connections of a thousand sessions"),
    ("cli/lab_memory", "fills the memory of a guest"),
];

/// Runs the chosen suites, as many at a time as asked for; then those that run alone.
pub(super) fn run_all(suites: &[TestSuite], options: &TestOptions) -> Vec<SuiteOutcome> {
    let is_alone = |suite: &&TestSuite| ALONE.iter().any(|(name, _)| *name == suite.name);
    let chosen = suites.iter().filter(|suite| options.is_chosen(&suite.name));
    let (alone, mut together): (Vec<_>, Vec<_>) = chosen.partition(is_alone);
    // Begun first, the suites that took longest leave no processor idle at the end.
    let longest_first = table::stored_order();
    together.sort_by_key(|suite| longest_first.iter().position(|name| *name == suite.name).unwrap_or(usize::MAX));
    let run = |suite: &TestSuite| run_suite(suite, options);
    let mut outcomes = run_parallel(&together, options.jobs, run);
    outcomes.extend(run_parallel(&alone, 1, run));
    if options.rerun_failed {
        rerun_failed(suites, &mut outcomes);
    }
    outcomes
}

fn rerun_failed(suites: &[TestSuite], outcomes: &mut [SuiteOutcome]) {
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.failed > 0) {
        let Some(suite) = suites.iter().find(|suite| suite.name == outcome.name) else { continue };
        if let Err(error) = outcome::rerun_failed(suite, outcome) {
            println!("{}: {error:#}", suite.name);
        }
    }
}

fn run_parallel(
    suites: &[&TestSuite],
    jobs: usize,
    run: impl Fn(&TestSuite) -> SuiteOutcome + Sync,
) -> Vec<SuiteOutcome> {
    let waiting = Mutex::new(suites.iter());
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(suite) = waiting.lock().ok().and_then(|mut suites| suites.next()) {
                    let outcome = run(suite);
                    print_outcome(&outcome);
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push(outcome);
                    }
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_default()
}

/// Prints one line, below the output of the tests that failed.
fn print_outcome(outcome: &SuiteOutcome) {
    let SuiteOutcome { name, passed, failed, time, complaint, .. } = outcome;
    println!("{complaint}{name}: {passed} passed, {failed} failed in {:.1} s", time.as_secs_f64());
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn each_suite_has_one_outcome() {
        let suite = |name: &str| TestSuite { name: name.to_owned(), program: PathBuf::new(), folder: PathBuf::new() };
        let suites = ["sys", "cli/shape", "cli/watch"].map(suite);
        let run = |suite: &TestSuite| SuiteOutcome { name: suite.name.clone(), ..SuiteOutcome::default() };
        let mut names: Vec<_> =
            run_parallel(&suites.each_ref(), 2, run).into_iter().map(|outcome| outcome.name).collect();
        names.sort();
        assert_eq!(names, ["cli/shape", "cli/watch", "sys"]);
    }
}
