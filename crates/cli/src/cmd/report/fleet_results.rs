//! Reports of the results of monitors and agents, as `linerate fleet report` makes them.

use std::path::{Path, PathBuf};

use linerate_history::result_log::ResultLog;

use super::arguments::ReportFormat;
use crate::cmd::fleet::report::{self, FLEET_REPORT_TITLE, FleetReportFormat};

/// Directories and files of results; `None` when there are none among the arguments.
///
/// # Errors
///
/// A sentence when there are runs among them, too.
pub(super) fn paths(arguments: &[String]) -> Result<Option<Vec<PathBuf>>, String> {
    let (results, others): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|name| ResultLog::has_results(Path::new(name)));
    match (results.first(), others.first()) {
        (None, _) => Ok(None),
        (Some(_), None) => Ok(Some(results.into_iter().map(PathBuf::from).collect())),
        (Some(result), Some(other)) => {
            Err(format!("{result:?} has results of a fleet and {other:?} has none: make a report of each"))
        }
    }
}

/// Report of the results of directories and files.
///
/// # Errors
///
/// A sentence for the user.
pub(super) fn render(paths: &[PathBuf], format: ReportFormat) -> Result<String, String> {
    let format = match format {
        ReportFormat::Html => FleetReportFormat::Html,
        ReportFormat::Text => FleetReportFormat::Text,
        ReportFormat::Json => FleetReportFormat::Json,
        ReportFormat::Markdown => {
            return Err("results of a fleet have no report in Markdown: choose --format html, text or json".to_owned());
        }
    };
    Ok(report::render(&report::read(paths)?, FLEET_REPORT_TITLE, format))
}
