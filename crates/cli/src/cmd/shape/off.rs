//! Removal and confirmation of a shaper.

use linerate_change::{ChangeStore, RollbackMode, RollbackReport};
use linerate_operate::shaping::error::ShapeError;
use linerate_operate::shaping::{self};

use super::arguments::ShapeOptions;
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::cmd::rollback;
use crate::console;
use crate::exit::ExitStatus;

/// Removes the shaper and restores the previous configuration. No shaper is no error.
pub(crate) fn off(device: &str, how: &ShapeOptions) -> Result<ExitStatus, ShapeError> {
    let mode = if how.dry_run { RollbackMode::DryRun } else { RollbackMode::ForReal };
    let reports = shaping::off(device, mode)?;
    let store = ChangeStore::from_environment()?;
    if reports.is_empty() {
        // One that cannot be read may be its shaper.
        store.check_readable()?;
    }
    if how.json {
        print_json(DocumentKind::ChangeReports, &rollback::reports_document(&reports, mode));
    } else if reports.is_empty() {
        console::note(&format!("{device} has no shaper of linerate"));
    } else {
        for report in &reports {
            console::data(&rollback::report_text(&store, report, mode));
        }
    }
    store.check_readable()?;
    if reports.iter().all(RollbackReport::is_clean) {
        return Ok(ExitStatus::Success);
    }
    console::note(&format!(
        "a foreign change keeps the shaper active; remove it, then run `linerate shape {device} off` again"
    ));
    Ok(ExitStatus::Missed)
}

/// Confirms a waiting shaper from another terminal or connection.
pub(crate) fn confirm(device: &str) -> Result<ExitStatus, ShapeError> {
    if shaping::confirm(device)? {
        console::note(&format!("confirmed: the shaper of {device} stays until the next boot"));
    } else {
        console::note(&format!("the shaper of {device} needs no confirmation: it stays until the next boot"));
    }
    Ok(ExitStatus::Success)
}
