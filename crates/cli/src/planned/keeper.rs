//! Keeping results: each in the log, and on the standard output.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::{Args, ValueHint};
use linerate_documents::civil_time::rfc3339;
use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_documents::label::{DocumentKind, LabelledDocument};
use linerate_history::result_log::ResultLog;

use super::{PlannedTest, RunningTest};
use crate::console;

/// Largest number of results that wait for a log that cannot be written.
const MAX_UNSAVED: usize = 10_000;

/// Options of commands that keep results.
#[derive(Clone, Debug, Args)]
pub(crate) struct ResultArguments {
    /// Directory of the results, one JSON document a line, one file a day [default: `results` where the history is]
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub(crate) results: Option<PathBuf>,
    /// Print each result as a JSON document (schema 1) in one line instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

impl ResultArguments {
    /// Log of the results; made when it is missing.
    ///
    /// # Errors
    ///
    /// A sentence when there is no place for it.
    pub(crate) fn open_log(&self) -> Result<ResultLog, String> {
        let directory = match &self.results {
            Some(directory) => directory.clone(),
            None => ResultLog::usual_directory()
                .map_err(|error| format!("{error}\n--results names a directory for the results"))?,
        };
        ResultLog::open(&directory).map_err(|error| format!("{error}\n--results names another directory"))
    }
}

/// Directory of the results where no other is named.
///
/// # Errors
///
/// A sentence with the remedy when there is none.
pub(crate) fn usual_results() -> Result<PathBuf, String> {
    ResultLog::usual_directory().map_err(|error| {
        let remedy = error.advice().map(|advice| format!(": {advice}")).unwrap_or_default();
        format!("{error}{remedy}, or name a directory")
    })
}

/// Keeper of the results of one process; its threads share it.
pub(crate) struct ResultKeeper {
    log: ResultLog,
    json: bool,
    /// Results that the log has not, for example on a full disk.
    unsaved: Mutex<Vec<FleetResult>>,
    /// True when the output can be written no longer: the pipe has no reader, or the disk is full.
    is_unheard: AtomicBool,
}

impl ResultKeeper {
    /// Keeper of a log, which gets the results of tests whose processes were killed.
    pub(crate) fn new(log: ResultLog, json: bool) -> Self {
        let keeper = Self { log, json, unsaved: Mutex::default(), is_unheard: AtomicBool::new(false) };
        for (mark, result) in RunningTest::left_behind(keeper.log.directory()) {
            if let Some(result) = result {
                keeper.keep(&result);
            }
            drop(mark);
        }
        keeper
    }

    /// Marks a test as running, until the mark is dropped: if this process is killed, the next one records it.
    pub(crate) fn mark(&self, test: &PlannedTest) -> Option<RunningTest> {
        RunningTest::begin(self.log.directory(), test)
    }

    /// True when the output can be written no longer.
    pub(crate) fn is_unheard(&self) -> bool {
        self.is_unheard.load(Ordering::Relaxed)
    }

    /// Log of the results.
    pub(crate) const fn log(&self) -> &ResultLog {
        &self.log
    }

    /// Keeps a result, and prints it.
    pub(crate) fn keep(&self, result: &FleetResult) {
        let line = if self.json {
            serde_json::to_string(&LabelledDocument::new(DocumentKind::FleetResult, result)).unwrap_or_default() + "\n"
        } else {
            text(result)
        };
        let mut unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
        unsaved.push(result.clone());
        self.save(&mut unsaved);
        if !console::relay_data(line.as_bytes()) {
            self.is_unheard.store(true, Ordering::Relaxed);
        }
    }

    /// Writes what the log has not, the oldest first.
    fn save(&self, unsaved: &mut Vec<FleetResult>) {
        let had_waiting = unsaved.len() > 1;
        while let Some(result) = unsaved.first() {
            if let Err(error) = self.log.append(result) {
                if !had_waiting {
                    console::note(&format!("warning: {error}\nthe results are kept in memory until it can be written"));
                }
                break;
            }
            unsaved.remove(0);
        }
        if had_waiting && unsaved.is_empty() {
            console::note("all results are in their log again");
        }
        if unsaved.len() > MAX_UNSAVED {
            unsaved.remove(0);
            console::note(&format!("warning: a result is lost: more than {MAX_UNSAVED} wait for the log"));
        }
    }

    /// Tries once more to write what the log has not.
    pub(crate) fn finish(&self) {
        let mut unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
        if !unsaved.is_empty() {
            self.save(&mut unsaved);
        }
        if !unsaved.is_empty() {
            console::note(&format!("warning: {} results are lost: they could not be written", unsaved.len()));
        }
    }
}

/// Two lines for people.
fn text(result: &FleetResult) -> String {
    let time = rfc3339(result.at());
    let time = time.trim_end_matches('Z').replace('T', " ");
    let detail = match (result.outcome, &result.reason) {
        (SessionOutcome::Done, _) => result.verdict.clone(),
        (outcome, reason) => format!("{}: {}", outcome.name(), reason.as_deref().unwrap_or("no reason is known")),
    };
    format!("{time}  {} -> {}  {} ({})\n  {detail}\n", result.source, result.destination, result.test, result.task)
}
