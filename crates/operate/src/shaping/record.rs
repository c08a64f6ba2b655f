//! Active shapers of this host, from the journals of `change` and the arguments recorded with them.

use std::fs;
use std::path::PathBuf;

use linerate_change::{ChangeId, ChangePhase, ChangeSet, ChangeSetState, ChangeStore};
use linerate_model::change::{ChangeTarget, intermediate_device};
use linerate_model::json;
use linerate_shape::back_ends::BackEndId;
use linerate_sys::host_access::{HostAccess, InterfaceLocation, RealHost};
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
    /// Interface, by the name that it has now.
    pub(crate) device: String,
    /// Interface, by the name that it had when the shaper was set up.
    pub(crate) device_then: String,
    /// Intermediate device, which keeps its name.
    pub(crate) intermediate: String,
    /// Recorded arguments; `None` when they are lost.
    pub(crate) recorded: Option<RecordedShaper>,
    /// Chosen back end.
    pub(crate) back_end: Option<BackEndId>,
}

/// Record stored with a journal.
#[derive(Debug, Serialize, Deserialize)]
struct ShaperRecord {
    schema: u32,
    words: Vec<String>,
    back_end: BackEndId,
    /// Text of the file of classes, which may change meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class_file: Option<String>,
}

fn path(store: &ChangeStore, id: ChangeId) -> PathBuf {
    store.state_directory().join("shape").join(format!("{id}.json"))
}

/// Records the arguments of the shaper of these changes.
pub(crate) fn keep(
    store: &ChangeStore,
    id: ChangeId,
    recorded: &RecordedShaper,
    back_end: BackEndId,
) -> Result<(), ShapeError> {
    let class_file = recorded.line.class_file.as_ref().map(|file| file.text().to_owned());
    let note = ShaperRecord { schema: 1, words: recorded.arguments(), back_end, class_file };
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
pub(crate) fn all(store: &ChangeStore, host: &dyn HostAccess) -> Result<Vec<ActiveShaper>, ShapeError> {
    let here = host.identity()?;
    let sets = store.list()?.into_iter().rev().filter_map(|(_, set)| set.ok());
    let stands = |set: &ChangeSet| {
        let is_here = set.identity.shares_namespace(&here);
        match set.state(&here) {
            ChangeSetState::Pending | ChangeSetState::UntilReboot | ChangeSetState::Kept => is_here,
            // A foreign change prevented the rollback, and may be gone now.
            ChangeSetState::Partly => is_here && is_unchanged(set, host),
            _ => false,
        }
    };
    let mut found: Vec<ActiveShaper> = Vec::new();
    for set in sets.filter(stands) {
        let Some((then, now)) = device_of(&set, host) else { continue };
        if found.iter().all(|known| known.device != now) {
            found.push(standing(store, set, (then, now)));
        }
    }
    Ok(found)
}

/// Returns the shaper of this interface, by its name now, or else, when no interface has that name, by the one that it had
/// when it was shaped.
pub(crate) fn of_device(
    store: &ChangeStore,
    host: &dyn HostAccess,
    device: &str,
) -> Result<Option<ActiveShaper>, ShapeError> {
    let mut all = all(store, host)?;
    let by_name = all.iter().position(|shaper| shaper.device == device);
    let by_earlier_name = || all.iter().position(|shaper| shaper.device_then == device);
    let is_free = host.interface_identity(device)?.is_none();
    let index = by_name.or_else(|| if is_free { by_earlier_name() } else { None });
    Ok(index.map(|index| all.swap_remove(index)))
}

/// Returns the recorded request for the shaper of an interface of this host.
pub fn recorded_of(device: &str) -> Result<RecordedShaper, ShapeError> {
    let standing = of_device(&ChangeStore::from_environment()?, &RealHost, device)?;
    standing.and_then(|standing| standing.recorded).ok_or_else(|| {
        let text = format!("having {device} shaped at each boot: linerate has no shaper there");
        ShapeError::impossible(text).with_advice("set one up first, or give its rates: --up, --down")
    })
}

/// True when a value of these changes is still on the host: traffic control, or an offload of an interface that has
/// come back from another network namespace.
fn is_unchanged(set: &ChangeSet, host: &dyn HostAccess) -> bool {
    let Some((then, now)) = device_of(set, host) else { return false };
    set.items.iter().any(|item| {
        let (ChangePhase::InForce { now: Some(put) } | ChangePhase::TakingBack { now: Some(Some(put)) }) = &item.phase
        else {
            return false;
        };
        let target = &item.change.target;
        let (put, target) = (target.value_with_renamed(put, &then, &now), target.with_renamed(&then, &now));
        let found = host.read(&target).ok().flatten();
        found.is_some_and(|found| match target {
            ChangeTarget::TrafficControl { .. } => traffic_control::is_still_installed(&put, &found),
            _ => found == put,
        })
    })
}

/// Names of the shaped interface, when it was shaped and now.
fn device_of(set: &ChangeSet, host: &dyn HostAccess) -> Option<(String, String)> {
    // Of a shaper that was partly rolled back, the tree itself may be gone.
    let was_closed = set.closed.is_some();
    set.items.iter().find_map(|item| match &item.change.target {
        ChangeTarget::TrafficControl { interface } if was_closed || item.phase.is_on_the_host() => {
            let identity = item.interfaces.iter().find(|identity| identity.name == *interface);
            let now = match identity.map(|identity| host.locate_interface(identity)) {
                Some(Ok(InterfaceLocation::Here { name })) => name,
                // One that is gone is known by its last name.
                _ => interface.clone(),
            };
            Some((interface.clone(), now))
        }
        _ => None,
    })
}

fn standing(store: &ChangeStore, set: ChangeSet, (device_then, device): (String, String)) -> ActiveShaper {
    let text = fs::read_to_string(path(store, set.id)).ok();
    let note = text.and_then(|text| json::from_str::<ShaperRecord>(&text).ok());
    let recorded = note
        .as_ref()
        .and_then(|note| RecordedShaper::from_arguments_with(&note.words, note.class_file.as_deref()).ok());
    let recorded = recorded.map(|recorded| RecordedShaper { device: device.clone(), ..recorded });
    let intermediate = intermediate_device(&device_then);
    ActiveShaper { set, device, device_then, intermediate, recorded, back_end: note.map(|note| note.back_end) }
}
