//! `linerate export`: a log of results, without the agent or monitor that wrote it.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use linerate_documents::civil_time::rfc3339;
use linerate_export::{Exposition, LatestResults, archive_document};
use linerate_history::result_log::ResultLog;
use linerate_sys::poll::{PollInterest, wait_for};

use crate::cmd::measurement::interrupts;
use crate::console;
use crate::exit::ExitStatus;
#[cfg(feature = "otlp")]
use crate::export::ship_once;
use crate::export::{ExportArguments, Exporter};
use crate::planned::usual_results;

/// `linerate export`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  linerate export --otlp http://127.0.0.1:4318       what was not sent yet\n  \
    linerate export --follow --metrics 127.0.0.1:9821  a page for Prometheus\n  \
    linerate export --format pscheduler                a document per result")]
pub(crate) struct ExportCommandArguments {
    /// Directory of the log [default: `results` next to the history]
    #[arg(value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,
    /// Print all results in this format instead
    #[arg(long, value_name = "FORMAT", conflicts_with = "follow")]
    format: Option<ResultFormat>,
    /// Go on with results that are written to the log later, until interrupted
    #[arg(long)]
    follow: bool,
    /// Destinations.
    #[command(flatten)]
    destinations: ExportArguments,
}

const NO_DESTINATION: &str = "no destination: --otlp URL, --metrics ADDRESS:PORT, --textfile FILE or --format FORMAT";

/// Format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ResultFormat {
    /// Prometheus' text format: the latest result of each pair
    Prometheus,
    /// One line of JSON per result, as pScheduler's archiver `http` puts them
    Pscheduler,
}

/// Runs the command.
pub(crate) fn run(arguments: &ExportCommandArguments) -> ExitStatus {
    export(arguments).unwrap_or_else(|reason| {
        console::error(&format!("export: {reason}"), None);
        ExitStatus::Unable
    })
}

fn export(arguments: &ExportCommandArguments) -> Result<ExitStatus, String> {
    let directory = match &arguments.directory {
        Some(directory) => directory.clone(),
        None => usual_results()?,
    };
    if !directory.is_dir() {
        return Err(format!("{} is no directory: an agent or a monitor writes its results there", directory.display()));
    }
    if let Some(format) = arguments.format {
        if arguments.destinations.is_any() {
            return Err("--format prints the results: leave out the destinations".to_owned());
        }
        return print(format, directory);
    }
    let log = ResultLog::open(&directory).map_err(|error| error.to_string())?;
    if arguments.follow {
        return follow(&arguments.destinations, &log);
    }
    if arguments.destinations.metrics.is_some() {
        return Err("--metrics serves until interrupted: add --follow".to_owned());
    }
    ship(&arguments.destinations, &log)
}

fn follow(arguments: &ExportArguments, log: &ResultLog) -> Result<ExitStatus, String> {
    let interrupts = match interrupts() {
        Ok(interrupts) => interrupts,
        Err(exit) => return Ok(exit),
    };
    if !arguments.is_any() {
        return Err(NO_DESTINATION.to_owned());
    }
    let exporter = Exporter::start(arguments, log, Vec::new())?;
    wait_for(&interrupts, PollInterest::READ, None).map_err(|error| error.to_string())?;
    drop(exporter);
    Ok(ExitStatus::Success)
}

fn print(format: ResultFormat, directory: PathBuf) -> Result<ExitStatus, String> {
    let read = ResultLog::read(&[directory]).map_err(|error| error.to_string())?;
    let text = match format {
        ResultFormat::Prometheus => {
            let (mut latest, mut page) = (LatestResults::default(), Exposition::default());
            read.results.iter().for_each(|result| latest.add(result));
            latest.expose(&mut page);
            page.finish()
        }
        ResultFormat::Pscheduler => {
            let line = |result| format!("{}\n", archive_document(result, &rfc3339(result.at())));
            read.results.iter().map(line).collect()
        }
    };
    console::data(&text);
    Ok(ExitStatus::Success)
}

#[cfg(not(feature = "otlp"))]
fn ship(arguments: &ExportArguments, log: &ResultLog) -> Result<ExitStatus, String> {
    write_once(arguments, log).map(|()| ExitStatus::Success)
}

#[cfg(feature = "otlp")]
fn ship(arguments: &ExportArguments, log: &ResultLog) -> Result<ExitStatus, String> {
    if arguments.otlp.url.is_none() {
        return write_once(arguments, log).map(|()| ExitStatus::Success);
    }
    let shipped = ship_once(&arguments.otlp, log)?;
    let (sent, refused) = shipped.counts;
    let refused_text = if refused == 0 { String::new() } else { format!(", {refused} refused") };
    console::note(&format!("sent: {sent} results{refused_text}"));
    if arguments.textfile.is_some() {
        write_once(arguments, log)?;
    }
    Ok(match (shipped.is_complete, sent) {
        (true, _) => ExitStatus::Success,
        (false, 0) => ExitStatus::Unable,
        (false, _) => ExitStatus::Partial,
    })
}

/// Writes the text file from the results that are there.
fn write_once(arguments: &ExportArguments, log: &ResultLog) -> Result<(), String> {
    if arguments.textfile.is_none() {
        return Err(NO_DESTINATION.to_owned());
    }
    let only_file = ExportArguments { textfile: arguments.textfile.clone(), ..ExportArguments::default() };
    // What is there is read before the end.
    Exporter::start(&only_file, log, Vec::new()).map(drop)
}
