//! Running a test as a linerate of its own: one that fails or is late ends alone.

use std::path::Path;
use std::process::ExitStatus as ProgramStatus;
use std::thread;
use std::time::Duration;

use linerate_documents::fleet_result::SessionOutcome;
use linerate_documents::run::RunDocument;
use linerate_sys::clock::monotonic_now;
use linerate_sys::command_stream::{CommandEnding, OutputEvent, StreamedCommand, stream};
use linerate_sys::process::own_program;
use linerate_sys::signals::InterruptSignals;
use linerate_units::{MonotonicTime, display};

use crate::cmd::tls::TlsArguments;
use crate::recorder::GuestMailbox;

/// Variables by which a test finds the state of this process, and its emulated path.
const PASSED_VARIABLES: [&str; 2] = ["LINERATE_STATE", "XDG_STATE_HOME"];

/// Part of the messages about a server that has no room for a further client, its own and iperf3's.
const BUSY: &str = "server is busy";

/// Pause before a busy server is tried once more.
const BUSY_PAUSE: Duration = Duration::from_secs(2);

/// End of a test.
#[derive(Debug)]
pub(crate) struct TestEnding {
    /// Outcome.
    pub(crate) outcome: SessionOutcome,
    /// Reason why there is no result, or why it is a part of one.
    pub(crate) reason: Option<String>,
    /// Result.
    pub(crate) run: Option<RunDocument>,
}

impl TestEnding {
    fn failed(reason: impl Into<String>) -> Self {
        Self { outcome: SessionOutcome::Failed, reason: Some(reason.into()), run: None }
    }
}

/// The program that runs tests: this one.
pub(crate) struct TestProgram {
    program: String,
    environment: Vec<(&'static str, String)>,
    /// Arguments of every test.
    common: Vec<String>,
}

impl TestProgram {
    /// # Errors
    ///
    /// A sentence when the file of this program is unknown.
    pub(crate) fn new(tls: &TlsArguments) -> Result<Self, String> {
        let program = own_program().map_err(|error| error.to_string())?.to_string_lossy().into_owned();
        let variable = |name: &'static str| std::env::var(name).ok().map(|value| (name, value));
        let environment = PASSED_VARIABLES.into_iter().filter_map(variable).collect();
        let mut common = tls.to_arguments();
        common.extend(["--quiet".to_owned(), "--brief".to_owned()]);
        Ok(Self { program, environment, common })
    }

    /// Runs a test to its end, at the latest after `limit`. A server that is busy is tried once more.
    pub(crate) fn run(&self, words: &[String], limit: Duration, interrupts: InterruptSignals) -> TestEnding {
        let deadline = monotonic_now() + limit;
        let ending = self.run_once(words, (deadline, limit), interrupts);
        if !is_busy(&ending) {
            return ending;
        }
        if monotonic_now() + BUSY_PAUSE < deadline && interrupts.pending().is_none() {
            thread::sleep(BUSY_PAUSE);
        }
        let again = self.run_once(words, (deadline, limit), interrupts);
        if is_busy(&again) { TestEnding { outcome: SessionOutcome::Skipped, ..again } } else { again }
    }

    fn run_once(
        &self,
        words: &[String],
        (deadline, limit): (MonotonicTime, Duration),
        interrupts: InterruptSignals,
    ) -> TestEnding {
        // The run comes through a file, as from a guest of the lab.
        let Some(mailbox) = GuestMailbox::new(true) else {
            return TestEnding::failed("no directory for the result");
        };
        let mut words = words.to_vec();
        let options = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.splice(options..options, self.common.iter().cloned());
        let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        let (name, file) = mailbox.variable();
        let mut environment: Vec<(&str, &str)> =
            self.environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        environment.push((&name, &file));
        let command = StreamedCommand {
            program: &self.program,
            arguments: &arguments,
            directory: Path::new("/"),
            environment: &environment,
            interrupts: Some(&interrupts),
            deadline: Some(deadline),
        };
        let mut first = String::new();
        let ending = stream(&command, &mut |event| {
            if let OutputEvent::Line(line) = event
                && first.is_empty()
            {
                line.trim_start_matches("linerate: ").clone_into(&mut first);
            }
        });
        let run = mailbox.runs().pop();
        match ending {
            Ok(CommandEnding::Status(status)) => ended(status, run, first),
            Ok(CommandEnding::TooLate) => {
                TestEnding::failed(format!("it took longer than {}, and was ended", display::duration(limit)))
            }
            // The end of this program is no failure of the path.
            Ok(CommandEnding::Interrupted(_)) => TestEnding {
                outcome: SessionOutcome::Skipped,
                reason: Some("linerate was ended during the test".to_owned()),
                run: None,
            },
            Err(error) => TestEnding::failed(error.to_string()),
        }
    }
}

/// A missed threshold is a result.
fn ended(status: ProgramStatus, run: Option<RunDocument>, first: String) -> TestEnding {
    match (status.code(), run) {
        (Some(0 | 1), run @ Some(_)) => TestEnding { outcome: SessionOutcome::Done, reason: None, run },
        (Some(0 | 1), None) => TestEnding::failed("it ended without a result"),
        (Some(_), run) => TestEnding { outcome: SessionOutcome::Failed, reason: Some(first), run },
        (None, _) => TestEnding::failed(format!("it was ended: {status}")),
    }
}

fn is_busy(ending: &TestEnding) -> bool {
    ending.outcome == SessionOutcome::Failed && ending.reason.as_ref().is_some_and(|reason| reason.contains(BUSY))
}
