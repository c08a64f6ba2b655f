//! Changes of linerate's that are in force on this host.

use linerate_change::{ChangeError, ChangeId, ChangePhase, ChangeSet, ChangeSetState, ChangeStore};
use linerate_model::change::HostChange;
use linerate_sys::host_access::{HostAccess, RealHost};
use linerate_units::WallTime;

/// Change sets, and what is in force of them.
#[derive(Clone, Debug)]
pub struct ChangesInForce {
    /// Numbers of the sets.
    pub sets: Vec<ChangeId>,
    /// Time of the latest set; `None` without sets.
    pub changed_at: Option<WallTime>,
    /// Changes with the values that the host has now.
    pub changes: Vec<HostChange>,
}

/// Reads the set that is asked for; else all that are kept.
pub fn changes_in_force(id: Option<ChangeId>) -> Result<ChangesInForce, ChangeError> {
    let sets = sets(id)?;
    let changed_at = sets.iter().map(|set| set.begun_at).max();
    Ok(ChangesInForce { sets: sets.iter().map(|set| set.id).collect(), changed_at, changes: in_force(&sets) })
}

/// The one that is asked for; else all that are kept.
fn sets(id: Option<ChangeId>) -> Result<Vec<ChangeSet>, ChangeError> {
    let store = ChangeStore::from_environment()?;
    if let Some(id) = id {
        return store.get(id).map(|set| vec![set]);
    }
    // One that cannot be read may be kept, too.
    store.check_readable()?;
    let here = RealHost.identity()?;
    let kept = |set: &ChangeSet| matches!(set.state(&here), ChangeSetState::Kept | ChangeSetState::UntilReboot);
    Ok(store.list()?.into_iter().filter_map(|(_, set)| set.ok().filter(kept)).collect())
}

/// Returns the changes in effect on the host; of two for the same target the later one.
fn in_force(sets: &[ChangeSet]) -> Vec<HostChange> {
    let mut changes: Vec<HostChange> = Vec::new();
    for item in sets.iter().flat_map(|set| &set.items) {
        let ChangePhase::InForce { now } = &item.phase else { continue };
        let mut change = item.change.clone();
        change.to = now.clone().unwrap_or(change.to);
        changes.retain(|other| other.target != change.target);
        changes.push(change);
    }
    changes
}
