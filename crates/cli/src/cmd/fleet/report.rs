//! `linerate fleet report`: the results of a fleet as one page, as text, or one of its runs.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use jiff::tz::TimeZone;
use linerate_documents::fleet_report::FleetReport;
use linerate_documents::fleet_result::FleetResult;
use linerate_documents::label::{DocumentKind, LabelledDocument};
use linerate_fleet::unusual_figures;
use linerate_history::result_log::ResultLog;
use linerate_report::fleet;

use crate::console;
use crate::exit::ExitStatus;
use crate::planned::usual_results;

/// `linerate fleet report`.
#[derive(Debug, Args)]
pub(in crate::cmd) struct FleetReportArguments {
    /// The results: directories and files, also of several hosts [default: `results` where the history is]
    #[arg(value_name = "RESULTS", value_hint = ValueHint::AnyPath)]
    results: Vec<PathBuf>,
    /// Report format
    #[arg(short, long, value_enum, default_value_t = FleetReportFormat::Html)]
    format: FleetReportFormat,
    /// Destination: a file, or - for the standard output. Without it, HTML goes to linerate-fleet.html in this directory,
    /// other formats to the standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    /// Title of the page
    #[arg(long, default_value = FLEET_REPORT_TITLE)]
    title: String,
    /// Print the run of the result with this id as JSON instead, for `linerate report -`
    #[arg(long, value_name = "ID", conflicts_with_all = ["format", "force", "title"])]
    run: Option<String>,
}

/// Title of the page without another one.
pub(crate) const FLEET_REPORT_TITLE: &str = "What limits the paths of this fleet";

/// File of the page without another one.
pub(crate) const FLEET_REPORT_FILE: &str = "linerate-fleet.html";

/// Remedy where there are no results.
const WRITERS: &str = "`linerate fleet agent` and `linerate monitor` write them";

/// Formats of the report of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FleetReportFormat {
    /// One file with the matrix, for a browser
    Html,
    /// For this terminal
    Text,
    /// A document (schema 1): the latest state of each direction, the faults, and what is worse than usual
    Json,
}

pub(super) fn run(arguments: &FleetReportArguments) -> ExitStatus {
    match show(arguments) {
        Ok(()) => ExitStatus::Success,
        Err(reason) => {
            console::error(&format!("fleet report: {reason}"), None);
            ExitStatus::Unable
        }
    }
}

fn show(arguments: &FleetReportArguments) -> Result<(), String> {
    let results = read(&arguments.results)?;
    if let Some(id) = &arguments.run {
        return print_run(&results, id);
    }
    let out = match (&arguments.out, arguments.format) {
        (Some(out), _) => out.as_path(),
        (None, FleetReportFormat::Html) => Path::new(FLEET_REPORT_FILE),
        (None, FleetReportFormat::Text | FleetReportFormat::Json) => Path::new("-"),
    };
    let text = render(&results, &arguments.title, arguments.format);
    if out == Path::new("-") {
        console::data(&text);
        return Ok(());
    }
    write(out, &text, arguments.force)?;
    console::note(&format!("report of {} results written to {}", results.len(), out.display()));
    Ok(())
}

/// Report of results in a format.
pub(crate) fn render(results: &[FleetResult], title: &str, format: FleetReportFormat) -> String {
    let unusual = unusual_figures(results, &TimeZone::system());
    match format {
        FleetReportFormat::Html => fleet::page(title, results, &unusual),
        FleetReportFormat::Text => fleet::summary(results, &unusual, console::data_style()),
        FleetReportFormat::Json => json(&fleet::document(results, &unusual)),
    }
}

fn json(report: &FleetReport) -> String {
    let document = LabelledDocument::new(DocumentKind::FleetReport, report);
    linerate_model::json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

/// Results of directories and files; of the usual directory without any.
///
/// # Errors
///
/// A sentence when they cannot be read, or there are none.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<FleetResult>, String> {
    let paths = if paths.is_empty() { vec![usual_results()?] } else { paths.to_vec() };
    if let Some(missing) = paths.iter().find(|path| !path.exists()) {
        return Err(format!("{} does not exist: {WRITERS}", missing.display()));
    }
    let read = ResultLog::read(&paths).map_err(|error| error.to_string())?;
    if read.unreadable > 0 {
        console::note(&format!("{} lines are no results, and were passed over", read.unreadable));
    }
    if read.results.is_empty() {
        let places: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(format!("no results in {}: {WRITERS}", places.join(", ")));
    }
    Ok(read.results)
}

fn print_run(results: &[FleetResult], id: &str) -> Result<(), String> {
    let found = results.iter().find(|result| result.id == id).ok_or_else(|| format!("no result has the id {id:?}"))?;
    let run = found.run.as_ref().ok_or_else(|| format!("the result {id:?} has no run: {}", found.outcome.name()))?;
    let text = linerate_model::json::to_string_pretty(&LabelledDocument::run(run));
    console::data(&(text.map_err(|error| error.to_string())? + "\n"));
    Ok(())
}

fn write(file: &Path, page: &str, force: bool) -> Result<(), String> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options.open(file).and_then(|mut open| open.write_all(page.as_bytes()));
    written.map_err(|cause| {
        let remedy = if cause.kind() == ErrorKind::AlreadyExists { " (--force overwrites it)" } else { "" };
        format!("writing {}: {}{remedy}", file.display(), linerate_sys::describe_os_error(&cause))
    })
}
