//! Taking a shaper down, and confirming one that waits.

use linerate_change::{Mode, State, Store, recover, roll_back};
use linerate_sys::host_access::{Host, RealHost};
use linerate_sys::signals::Interrupts;

use super::arguments::HowArguments;
use super::error::ShapeError;
use super::record;
use crate::cmd::measurement::print_json;
use crate::cmd::rollback;
use crate::console;
use crate::exit::Exit;

/// What was there before comes back. Nothing to take down is no error.
pub(crate) fn off(device: &str, how: &HowArguments) -> Result<Exit, ShapeError> {
    // Half of it helps nobody: the first Ctrl-C lets it come to its end.
    let _interrupts = Interrupts::install()?;
    let (store, host) = (Store::from_environment()?, RealHost);
    let mode = if how.dry_run { Mode::DryRun } else { Mode::ForReal };
    let mut reports = Vec::new();
    if mode == Mode::ForReal {
        reports.extend(recover(&store, &host)?);
    }
    while let Some(standing) = record::of_device(&store, &host, device)? {
        let report = roll_back(&store, &host, standing.set.id, mode, "linerate shape off")?;
        let (id, is_clean) = (report.id, report.is_clean());
        reports.push(report);
        if mode == Mode::DryRun || !is_clean {
            break;
        }
        record::forget(&store, id);
    }
    if how.json {
        print_json(&rollback::document_of(&reports, mode));
    } else if reports.is_empty() {
        console::note(&format!("no shaper of linerate stands on {device}"));
    } else {
        for report in &reports {
            console::data(&rollback::text_of(&store, report, mode));
        }
    }
    if reports.iter().all(linerate_change::Report::is_clean) {
        return Ok(Exit::Success);
    }
    console::note(&format!(
        "what is left alone keeps the shaper there: once it is gone, `linerate shape {device} off` again"
    ));
    Ok(Exit::Missed)
}

/// From another terminal or another connection: the shaper works, keep it.
pub(crate) fn confirm(device: &str) -> Result<Exit, ShapeError> {
    let (store, host) = (Store::from_environment()?, RealHost);
    let here = host.identity()?;
    let Some(standing) = record::of_device(&store, &host, device)? else {
        let text = format!("confirming the shaper of {device}: none of linerate's stands there");
        return Err(
            ShapeError::unable(text).with_advice("it may have been taken back already: `linerate rollback --list`")
        );
    };
    match standing.set.state(&here) {
        State::Pending => {
            store.confirm(standing.set.id)?;
            console::note(&format!("confirmed: the shaper of {device} stays until the next boot"));
        }
        _ => console::note(&format!("the shaper of {device} needs no confirmation: it stays until the next boot")),
    }
    Ok(Exit::Success)
}
