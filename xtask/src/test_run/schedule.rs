//! Order of the suites: several at a time, more of those that mostly wait, and some alone.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::build::TestSuite;
use super::options::TestOptions;
use super::outcome::{self, SuiteOutcome, run_suite};
use super::table::{self, StoredTimes};

/// Suites that run alone, each with the reason.
const ALONE: [(&str, &str); 3] = [
    ("cli/host_load", "names the program that makes a host late: others' would be named"),
    ("cli/many_clients", "counts memory and connections of a thousand sessions"),
    ("cli/lab_memory", "fills the memory of a guest"),
];

/// Largest share of a processor that a suite uses of which more can run at a time: it waits for clocks and peers.
const MAX_WAITING_SHARE: f64 = 0.4;

/// Runs the chosen suites: as many busy ones at a time as asked for, next to one more of those that mostly wait, which are three
/// quarters of the work; then those that run alone.
pub(super) fn run_all(suites: &[TestSuite], options: &TestOptions) -> Vec<SuiteOutcome> {
    let is_alone = |suite: &&TestSuite| ALONE.iter().any(|(name, _)| *name == suite.name);
    let chosen = suites.iter().filter(|suite| options.is_chosen(&suite.name));
    let (alone, together): (Vec<_>, Vec<_>) = chosen.partition(is_alone);
    let (busy, waiting) = queues(together, &table::stored_times());
    let run = |suite: &TestSuite| run_suite(suite, options);
    let (busy, waiting) = (Mutex::new(busy.into()), Mutex::new(waiting.into()));
    // A worker of the busy suites helps with the others at the end, but not the other way round: the suites that use the
    // processors stay as few as asked for.
    let (all, helpers) = ([&busy, &waiting], [&waiting]);
    let jobs = options.jobs.max(1);
    let workers = std::iter::repeat_n(&all[..], jobs).chain(std::iter::repeat_n(&helpers[..], jobs + 1));
    let mut outcomes = run_parallel(workers, run);
    outcomes.extend(run_parallel(std::iter::once(&[&Mutex::new(alone.into())][..]), run));
    if options.rerun_failed {
        rerun_failed(suites, &mut outcomes);
    }
    outcomes
}

/// Suites that have not begun, in their order.
type Queue<'a> = Mutex<VecDeque<&'a TestSuite>>;

/// Separates the suites that mostly wait from the others. Each begins with those that took longest, which leaves no
/// processor idle at the end; those without a stored time are taken for long and busy.
fn queues<'a>(suites: Vec<&'a TestSuite>, times: &[StoredTimes]) -> (Vec<&'a TestSuite>, Vec<&'a TestSuite>) {
    let stored = |suite: &TestSuite| times.iter().find(|times| times.name == suite.name);
    let wall = |suite: &TestSuite| stored(suite).map_or(f64::INFINITY, |times| times.wall);
    let waits =
        |suite: &&TestSuite| stored(suite).is_some_and(|times| times.processor <= MAX_WAITING_SHARE * times.wall);
    let (mut waiting, mut busy): (Vec<_>, Vec<_>) = suites.into_iter().partition(waits);
    for suites in [&mut waiting, &mut busy] {
        suites.sort_by(|one, other| wall(other).total_cmp(&wall(one)));
    }
    (busy, waiting)
}

fn rerun_failed(suites: &[TestSuite], outcomes: &mut [SuiteOutcome]) {
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.failed > 0) {
        let Some(suite) = suites.iter().find(|suite| suite.name == outcome.name) else { continue };
        if let Err(error) = outcome::rerun_failed(suite, outcome) {
            println!("{}: {error:#}", suite.name);
        }
    }
}

/// Runs suites with one thread for each worker, which takes the first of its queues as long as that has any.
fn run_parallel<'a: 'b, 'b>(
    workers: impl Iterator<Item = &'b [&'b Queue<'a>]>,
    run: impl Fn(&TestSuite) -> SuiteOutcome + Sync,
) -> Vec<SuiteOutcome> {
    let outcomes = Mutex::new(Vec::new());
    let work = |queues: &[&Queue<'_>]| {
        let next = || queues.iter().find_map(|queue| queue.lock().ok()?.pop_front());
        while let Some(suite) = next() {
            let outcome = run(suite);
            print_outcome(&outcome);
            if let Ok(mut outcomes) = outcomes.lock() {
                outcomes.push(outcome);
            }
        }
    };
    std::thread::scope(|scope| {
        for queues in workers {
            scope.spawn(|| work(queues));
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

    fn suites(names: &[&str]) -> Vec<TestSuite> {
        let suite = |name: &&str| TestSuite {
            name: (*name).to_owned(),
            program: PathBuf::new(),
            folder: PathBuf::new(),
            tests: Vec::new(),
        };
        names.iter().map(suite).collect()
    }

    #[test]
    fn each_suite_has_one_outcome() {
        let suites = suites(&["sys", "cli/shape", "cli/watch"]);
        let (busy, waiting) = suites.split_at(2);
        let (busy, waiting) = (Mutex::new(busy.iter().collect()), Mutex::new(waiting.iter().collect()));
        let run = |suite: &TestSuite| SuiteOutcome { name: suite.name.clone(), ..SuiteOutcome::default() };
        let workers = [&[&busy, &waiting][..], &[&waiting]];
        let mut names: Vec<_> =
            run_parallel(workers.into_iter(), run).into_iter().map(|outcome| outcome.name).collect();
        names.sort();
        assert_eq!(names, ["cli/shape", "cli/watch", "sys"]);
    }

    #[test]
    fn suites_that_mostly_wait_are_apart_and_the_longest_are_first() {
        let suites = suites(&["short", "long", "sleeper", "new"]);
        let times = [("short", 1.0, 1.0), ("long", 9.0, 9.0), ("sleeper", 5.0, 1.0)]
            .map(|(name, wall, processor)| StoredTimes { name: name.to_owned(), wall, processor });
        let names = |suites: Vec<&TestSuite>| suites.iter().map(|suite| suite.name.clone()).collect::<Vec<_>>();
        let (busy, waiting) = queues(suites.iter().collect(), &times);
        assert_eq!(
            (names(busy).join(" "), names(waiting).join(" ")),
            ("new long short".to_owned(), "sleeper".to_owned())
        );
    }
}
