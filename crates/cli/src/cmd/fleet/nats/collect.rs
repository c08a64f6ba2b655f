//! `linerate fleet collect`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use linerate_nats::{NatsError, ResultFile, ResultReader};
use linerate_sys::clock::monotonic_now;
use linerate_sys::file_lock;
use linerate_sys::poll::{PollInterest, wait_for};
use linerate_sys::signals::InterruptSignals;
use linerate_units::MonotonicTime;
use linerate_units::display::counted;

use super::finish;
use super::options::RequiredServers;
use crate::cmd::measurement::interrupts;
use crate::console;
use crate::exit::ExitStatus;
use crate::values;

/// Results that are written and acknowledged at once.
const BATCH: usize = 200;

/// Wait for further results.
const WAIT: Duration = Duration::from_secs(1);

/// `linerate fleet collect`.
#[derive(Debug, Args)]
pub(crate) struct CollectArguments {
    /// Servers.
    #[command(flatten)]
    servers: RequiredServers,
    /// File to append to, one JSON document a line; its results are recognised
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    results: PathBuf,
    /// Name under which the servers know how far this file is: another file needs another name
    #[arg(long, value_name = "NAME", default_value = "collect")]
    name: String,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = values::duration)]
    duration: Option<Duration>,
    /// End when no result has come for a second
    #[arg(long)]
    once: bool,
}

/// Collection into one file.
struct ResultCollection {
    reader: ResultReader,
    file: ResultFile,
    interrupts: InterruptSignals,
    end: Option<MonotonicTime>,
    once: bool,
    new: usize,
}

pub(crate) fn run(arguments: &CollectArguments) -> ExitStatus {
    let interrupts = match interrupts() {
        Ok(interrupts) => interrupts,
        Err(exit) => return exit,
    };
    finish("collect", collect(arguments, interrupts))
}

fn collect(arguments: &CollectArguments, interrupts: InterruptSignals) -> Result<(), String> {
    let path = &arguments.results;
    let lock = file_lock::try_lock(path).map_err(|error| error.to_string())?;
    let Some(_lock) = lock else {
        return Err(format!("another program collects into {}: end it, or name another file", path.display()));
    };
    let file = ResultFile::open(path).map_err(|error| error.to_string())?;
    if file.removed() > 0 {
        console::note(&format!("removed {} bytes of a partial line: its result comes once more", file.removed()));
    }
    let fleet = arguments.servers.connect()?;
    let reader = fleet.reader(&arguments.name).map_err(|error| error.to_string())?;
    let end = arguments.duration.map(|duration| monotonic_now() + duration);
    let mut collection = ResultCollection { reader, file, interrupts, end, once: arguments.once, new: 0 };
    collection.run().map_err(|error| error.to_string())?;
    let new = counted(collection.new, "new result");
    console::data(&format!("{new}; {} has {} in all.\n", path.display(), collection.file.count()));
    Ok(())
}

impl ResultCollection {
    fn run(&mut self) -> Result<(), NatsError> {
        let mut is_cut_off = false;
        while !self.is_over() {
            let done = self.collect_batch();
            match done {
                Ok(0) if self.once => return Ok(()),
                Ok(_) => {
                    if is_cut_off {
                        console::note("the servers answer again");
                    }
                    is_cut_off = false;
                }
                Err(error) if error.is_transient() => {
                    if !is_cut_off {
                        console::note(&format!("warning: {error}; trying until they answer"));
                    }
                    is_cut_off = true;
                    drop(wait_for(&self.interrupts, PollInterest::READ, Some(WAIT)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.interrupts.pending().is_some() || self.end.is_some_and(|end| monotonic_now() >= end)
    }

    /// Number of results that came.
    fn collect_batch(&mut self) -> Result<usize, NatsError> {
        let results = self.reader.next(BATCH, WAIT)?;
        let outcome = self
            .file
            .append(results.iter().map(|result| (result.id.as_str(), result.publisher.as_str(), &*result.bytes)))?;
        self.new += outcome.appended;
        for refused in &outcome.refused {
            console::note(&format!(
                "warning: a message is no result and was left out: {:?}: {}",
                refused.id, refused.reason
            ));
        }
        for foreign in &outcome.foreign {
            console::note(&format!("warning: a result is marked as foreign: {:?}: {}", foreign.id, foreign.reason));
        }
        // What is in the file stays there, whether or not the servers know of it.
        self.reader.acknowledge(&results)?;
        Ok(results.len())
    }
}
