//! `linerate lab export`: a path for other tools.

use linerate_lab::export;

use super::arguments::ExportFormat;
use super::path;
use crate::console;
use crate::exit::ExitStatus;

/// Prints the path for a tool.
pub(super) fn run(name: &str, format: ExportFormat) -> ExitStatus {
    let path = match path::find(name) {
        Ok(found) => found.description,
        Err(exit) => return exit,
    };
    console::data(&match format {
        ExportFormat::Tc => export::tc_script(&path),
        ExportFormat::Containerlab => export::containerlab(&path),
    });
    ExitStatus::Success
}
