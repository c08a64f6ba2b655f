//! Taking a shaper down, and confirming one that waits.

use linerate_change::{ChangeSetState, ChangeStore, RollbackMode, RollbackReport, recover, roll_back};
use linerate_sys::host_access::{HostAccess, RealHost};
use linerate_sys::signals::InterruptSignals;

use super::error::ShapeError;
use super::record;

/// Restores the previous configuration. Nothing to remove is no error: then there is no report. Changes that cannot be read
/// are left to [`ChangeStore::check_readable`].
pub fn off(device: &str, mode: RollbackMode) -> Result<Vec<RollbackReport>, ShapeError> {
    // Half of it is of no use: the first Ctrl-C lets it come to its end.
    let _interrupts = InterruptSignals::install()?;
    let (store, host) = (ChangeStore::from_environment()?, RealHost);
    let mut reports = Vec::new();
    if mode == RollbackMode::ForReal {
        reports.extend(recover(&store, &host)?);
    }
    while let Some(standing) = record::of_device(&store, &host, device)? {
        let report = roll_back(&store, &host, standing.set.id, mode, "linerate shape off")?;
        let (id, is_clean) = (report.id, report.is_clean());
        reports.push(report);
        if mode == RollbackMode::DryRun || !is_clean {
            break;
        }
        record::delete_record(&store, id);
    }
    Ok(reports)
}

/// From another terminal or another connection: the shaper works, keep it.
/// `false` where nothing waited for it.
pub fn confirm(device: &str) -> Result<bool, ShapeError> {
    let (store, host) = (ChangeStore::from_environment()?, RealHost);
    let here = host.identity()?;
    let Some(standing) = record::of_device(&store, &host, device)? else {
        store.check_readable()?;
        let text = format!("confirming the shaper of {device}: linerate has none there");
        return Err(ShapeError::impossible(text)
            .with_advice("it may have been rolled back already: `linerate rollback --list`"));
    };
    let waits = standing.set.state(&here) == ChangeSetState::Pending;
    if waits {
        store.confirm(standing.set.id)?;
    }
    Ok(waits)
}
