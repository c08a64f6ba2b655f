//! Which shapers stand on this host, as the journals of `change` and the words kept beside them tell.

use std::fs;
use std::path::PathBuf;

use linerate_change::{ChangeId, ChangeSet, Phase, State, Store};
use linerate_model::change::Target;
use linerate_sys::host_access::Host;
use linerate_sys::traffic_control;
use linerate_sys::whole_file::{self, Mode};
use serde::{Deserialize, Serialize};

use super::error::ShapeError;
use super::line::Recorded;

/// A shaper that linerate has set up here.
#[derive(Debug)]
pub(crate) struct Standing {
    /// Its changes.
    pub(crate) set: ChangeSet,
    /// How it was asked for; `None` when that is not on record any more.
    pub(crate) recorded: Option<Recorded>,
    /// Which back end was taken.
    pub(crate) back_end: Option<String>,
}

/// What is kept beside a journal.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    schema: u32,
    words: Vec<String>,
    back_end: String,
}

fn path(store: &Store, id: ChangeId) -> PathBuf {
    store.state_directory().join("shape").join(format!("{id}.json"))
}

/// Keeps how the shaper of these changes was asked for.
pub(crate) fn keep(store: &Store, id: ChangeId, recorded: &Recorded, back_end: &str) -> Result<(), ShapeError> {
    let note = Note { schema: 1, words: recorded.words(), back_end: back_end.to_owned() };
    let path = path(store, id);
    let text = serde_json::to_string(&note).map_err(|cause| ShapeError::unable(cause.to_string()))?;
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|cause| {
            let text = format!("making {}: {}", directory.display(), linerate_sys::describe_os_error(&cause));
            ShapeError::unable(text).with_advice("set LINERATE_STATE to a directory that can be written")
        })?;
    }
    Ok(whole_file::replace(&path, &text, Mode::Plain)?)
}

/// Forgets it.
pub(crate) fn forget(store: &Store, id: ChangeId) {
    // What is left is a line about changes that are not in force.
    let _ = fs::remove_file(path(store, id));
}

/// All shapers of this network namespace, the latest first.
pub(crate) fn all(store: &Store, host: &dyn Host) -> Result<Vec<(String, Standing)>, ShapeError> {
    let here = host.identity()?;
    let sets = store.list()?.into_iter().rev().filter_map(|(_, set)| set.ok());
    let stands = |set: &ChangeSet| {
        let is_here = set.identity.boot == here.boot && set.identity.namespace == here.namespace;
        match set.state(&here) {
            State::Pending | State::UntilReboot | State::Kept => is_here,
            // Somebody else was in the way when it was to be taken back, and may have gone since.
            State::Partly => is_here && is_ours_again(set, host),
            _ => false,
        }
    };
    let mut found: Vec<(String, Standing)> = Vec::new();
    for set in sets.filter(stands) {
        let Some(device) = device_of(&set) else { continue };
        if found.iter().all(|(known, _)| *known != device) {
            found.push((device, standing(store, set)));
        }
    }
    Ok(found)
}

/// The one of this interface.
pub(crate) fn of_device(store: &Store, host: &dyn Host, device: &str) -> Result<Option<Standing>, ShapeError> {
    Ok(all(store, host)?.into_iter().find(|(name, _)| name == device).map(|(_, standing)| standing))
}

/// Whether what stands there is what these changes had put there.
fn is_ours_again(set: &ChangeSet, host: &dyn Host) -> bool {
    set.items.iter().any(|item| match (&item.change.target, &item.phase) {
        (
            target @ Target::TrafficControl { .. },
            Phase::InForce { now: Some(put) } | Phase::TakingBack { now: Some(Some(put)) },
        ) => host.read(target).is_ok_and(|now| now.is_some_and(|now| traffic_control::is_still(put, &now))),
        _ => false,
    })
}

fn device_of(set: &ChangeSet) -> Option<String> {
    set.items.iter().find_map(|item| match &item.change.target {
        Target::TrafficControl { interface } if item.phase.is_on_the_host() => Some(interface.clone()),
        _ => None,
    })
}

fn standing(store: &Store, set: ChangeSet) -> Standing {
    let text = fs::read_to_string(path(store, set.id)).ok();
    let note = text.and_then(|text| serde_json::from_str::<Note>(&text).ok());
    let recorded = note.as_ref().and_then(|note| Recorded::from_words(&note.words).ok());
    Standing { set, recorded, back_end: note.map(|note| note.back_end) }
}
