//! Active shapers of this host, from the journals of `change` and the arguments recorded with them.

use std::fs;
use std::path::PathBuf;

use linerate_change::{ChangeId, ChangePhase, ChangeSet, ChangeSetState, ChangeStore};
use linerate_model::change::ChangeTarget;
use linerate_sys::host_access::{HostAccess, RealHost};
use linerate_sys::traffic_control;
use linerate_sys::whole_file::{self, FileMode};
use serde::{Deserialize, Serialize};

use super::error::ShapeError;
use super::line::RecordedShaper;

/// A shaper that linerate has installed on this host.
#[derive(Debug)]
pub(crate) struct ActiveShaper {
    /// Change set of the shaper.
    pub(crate) set: ChangeSet,
    /// Recorded arguments; `None` when they are lost.
    pub(crate) recorded: Option<RecordedShaper>,
    /// Chosen back end.
    pub(crate) back_end: Option<String>,
}

/// Record stored with a journal.
#[derive(Debug, Serialize, Deserialize)]
struct ShaperRecord {
    schema: u32,
    words: Vec<String>,
    back_end: String,
}

fn path(store: &ChangeStore, id: ChangeId) -> PathBuf {
    store.state_directory().join("shape").join(format!("{id}.json"))
}

/// Records the arguments of the shaper of these changes.
pub(crate) fn keep(
    store: &ChangeStore,
    id: ChangeId,
    recorded: &RecordedShaper,
    back_end: &str,
) -> Result<(), ShapeError> {
    let note = ShaperRecord { schema: 1, words: recorded.arguments(), back_end: back_end.to_owned() };
    let path = path(store, id);
    let text = serde_json::to_string(&note).map_err(|cause| ShapeError::impossible(cause.to_string()))?;
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|cause| {
            let text = format!("cannot create {}: {}", directory.display(), linerate_sys::describe_os_error(&cause));
            ShapeError::impossible(text).with_advice("set LINERATE_STATE to a writable directory")
        })?;
    }
    Ok(whole_file::replace(&path, &text, FileMode::Plain)?)
}

/// Deletes the record.
pub(crate) fn delete_record(store: &ChangeStore, id: ChangeId) {
    // A leftover record refers to changes that are not in effect.
    let _ = fs::remove_file(path(store, id));
}

/// Returns all shapers of this network namespace, latest first.
pub(crate) fn all(store: &ChangeStore, host: &dyn HostAccess) -> Result<Vec<(String, ActiveShaper)>, ShapeError> {
    let here = host.identity()?;
    let sets = store.list()?.into_iter().rev().filter_map(|(_, set)| set.ok());
    let stands = |set: &ChangeSet| {
        let is_here = set.identity.boot == here.boot && set.identity.namespace == here.namespace;
        match set.state(&here) {
            ChangeSetState::Pending | ChangeSetState::UntilReboot | ChangeSetState::Kept => is_here,
            // A foreign change prevented the rollback, and may be gone now.
            ChangeSetState::Partly => is_here && is_unchanged(set, host),
            _ => false,
        }
    };
    let mut found: Vec<(String, ActiveShaper)> = Vec::new();
    for set in sets.filter(stands) {
        let Some(device) = device_of(&set) else { continue };
        if found.iter().all(|(known, _)| *known != device) {
            found.push((device, standing(store, set)));
        }
    }
    Ok(found)
}

/// Returns the shaper of this interface.
pub(crate) fn of_device(
    store: &ChangeStore,
    host: &dyn HostAccess,
    device: &str,
) -> Result<Option<ActiveShaper>, ShapeError> {
    Ok(all(store, host)?.into_iter().find(|(name, _)| name == device).map(|(_, standing)| standing))
}

/// Returns the recorded request for the shaper of an interface of this host.
pub fn recorded_of(device: &str) -> Result<RecordedShaper, ShapeError> {
    let standing = of_device(&ChangeStore::from_environment()?, &RealHost, device)?;
    standing.and_then(|standing| standing.recorded).ok_or_else(|| {
        let text = format!("having {device} shaped at each boot: linerate has no shaper there");
        ShapeError::impossible(text).with_advice("set one up first, or give its rates: --up, --down")
    })
}

/// True when the current state matches these changes.
fn is_unchanged(set: &ChangeSet, host: &dyn HostAccess) -> bool {
    set.items.iter().any(|item| match (&item.change.target, &item.phase) {
        (
            target @ ChangeTarget::TrafficControl { .. },
            ChangePhase::InForce { now: Some(put) } | ChangePhase::TakingBack { now: Some(Some(put)) },
        ) => host.read(target).is_ok_and(|now| now.is_some_and(|now| traffic_control::is_still_installed(put, &now))),
        _ => false,
    })
}

fn device_of(set: &ChangeSet) -> Option<String> {
    set.items.iter().find_map(|item| match &item.change.target {
        ChangeTarget::TrafficControl { interface } if item.phase.is_on_the_host() => Some(interface.clone()),
        _ => None,
    })
}

fn standing(store: &ChangeStore, set: ChangeSet) -> ActiveShaper {
    let text = fs::read_to_string(path(store, set.id)).ok();
    let note = text.and_then(|text| serde_json::from_str::<ShaperRecord>(&text).ok());
    let recorded = note.as_ref().and_then(|note| RecordedShaper::from_arguments(&note.words).ok());
    ActiveShaper { set, recorded, back_end: note.map(|note| note.back_end) }
}
