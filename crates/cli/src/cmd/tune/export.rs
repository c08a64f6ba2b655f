//! What is in force, in another tool's words.

use linerate_change::{ChangeError, ChangeId, ChangeSet, Phase, State, Store};
use linerate_model::change::{Change, Plan};
use linerate_rules::export::Format;
use linerate_sys::host_access::{Host, RealHost};

use super::given::heading;
use crate::cmd::diagnose::document::Begun;
use crate::console;
use crate::exit::Exit;

/// Prints it.
pub(super) fn run(format: &Format, id: Option<ChangeId>) -> Exit {
    match sets(id) {
        Ok(sets) if sets.is_empty() => {
            console::note("nothing of linerate's is in force that could be exported");
            Exit::Success
        }
        Ok(sets) => {
            let begun = Begun::now();
            let numbers: Vec<String> = sets.iter().map(|set| set.id.to_string()).collect();
            let evidence = format!("change sets {} of `linerate rollback --list`", numbers.join(", "));
            let plan = Plan { made_at: begun.at, changes: in_force(&sets) };
            console::data(&format.export(&plan, &heading(&begun, evidence)));
            Exit::Success
        }
        Err(error) => {
            console::error(&error.to_string(), None);
            if error.needs_privilege() { Exit::Privilege } else { Exit::Unable }
        }
    }
}

/// The one that is asked for; else all that are kept.
fn sets(id: Option<ChangeId>) -> Result<Vec<ChangeSet>, ChangeError> {
    let store = Store::from_environment()?;
    if let Some(id) = id {
        return store.get(id).map(|set| vec![set]);
    }
    let here = RealHost.identity()?;
    let kept = |set: &ChangeSet| matches!(set.state(&here), State::Kept | State::UntilReboot);
    Ok(store.list()?.into_iter().filter_map(|(_, set)| set.ok().filter(kept)).collect())
}

/// What stands on the host; of two for the same place the later one.
fn in_force(sets: &[ChangeSet]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for item in sets.iter().flat_map(|set| &set.items) {
        let Phase::InForce { now } = &item.phase else { continue };
        let mut change = item.change.clone();
        change.to = now.clone().unwrap_or(change.to);
        changes.retain(|other| other.target != change.target);
        changes.push(change);
    }
    changes
}
