//! Interfaces of changes by their numbers: a rename is followed, a removal and a move to another namespace are noticed.

use linerate_model::change::{ChangeTarget, HostChange, InterfaceIdentity};
use linerate_sys::host_access::{HostAccess, InterfaceLocation, is_gone};

use crate::error::{ChangeError, Result};
use crate::rollback::{RestoreOutcome, RollbackMode};
use crate::session::ChangeSession;

/// Identities of the interfaces that a change names. One that does not exist is reported when its target is read.
pub(crate) fn identities(host: &dyn HostAccess, change: &HostChange) -> Result<Vec<InterfaceIdentity>> {
    let values = change.from.iter().chain([&change.to]).map(String::as_str);
    let names = change.target.interfaces(values);
    let found = names.iter().map(|name| host.interface_identity(name)).collect::<linerate_sys::Result<Vec<_>>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// True for values that stay with a device when it moves to another network namespace; traffic control is shut down,
/// routes are removed, and settings are made anew.
pub(crate) const fn stays_with_device(target: &ChangeTarget) -> bool {
    matches!(
        target,
        ChangeTarget::Link { .. }
            | ChangeTarget::Offload { .. }
            | ChangeTarget::Device { .. }
            | ChangeTarget::File { .. }
    )
}

impl ChangeSession<'_> {
    /// Follows the interfaces of a change to their present names. Returns the outcome of its rollback when one is no
    /// longer here.
    pub(crate) fn follow_interfaces(&mut self, index: usize) -> Option<RestoreOutcome> {
        for interface in self.set.items[index].interfaces.clone() {
            // Without an answer the name is as good as any.
            match self.host.locate_interface(&interface) {
                Ok(InterfaceLocation::Here { name }) if name != interface.name => {
                    self.follow_rename(index, &interface.name, &name);
                }
                Ok(InterfaceLocation::Moved { name, file }) => {
                    return Some(self.moved(index, RestoreOutcome::Moved { name, file }));
                }
                Ok(InterfaceLocation::Gone) if self.ends_with(index, &interface) => return Some(RestoreOutcome::Gone),
                Ok(_) | Err(_) => {}
            }
        }
        None
    }

    /// True when the interfaces of a change still have the names under which its values were read and written.
    pub(crate) fn has_present_names(&self, index: usize) -> bool {
        self.set.items[index].interfaces.iter().all(|interface| match self.host.locate_interface(interface) {
            Ok(InterfaceLocation::Here { name }) => name == interface.name,
            Ok(_) => false,
            Err(_) => true,
        })
    }

    /// [`Self::follow_interfaces`] before a change is applied.
    pub(crate) fn check_interfaces(&mut self, index: usize) -> Result<()> {
        let lost = self.follow_interfaces(index);
        let target = self.set.items[index].change.target.clone();
        lost.map_or(Ok(()), |outcome| Err(ChangeError::InterfaceLost { target, outcome }))
    }

    /// True when nothing can be left of a change without this interface.
    fn ends_with(&self, index: usize, interface: &InterfaceIdentity) -> bool {
        let HostChange { target, from, .. } = &self.set.items[index].change;
        match target {
            // It has a device of its own, which is known by its own number.
            ChangeTarget::TrafficControl { .. } => false,
            ChangeTarget::Route { .. } => {
                from.as_deref().is_none_or(|from| target.interfaces([from]).contains(&interface.name))
            }
            _ => true,
        }
    }

    fn follow_rename(&mut self, index: usize, old: &str, new: &str) {
        self.note(format!("{old} was renamed to {new}"));
        self.set.items[index].follow_rename(old, new);
    }

    fn moved(&self, index: usize, outcome: RestoreOutcome) -> RestoreOutcome {
        let HostChange { target, from, .. } = &self.set.items[index].change;
        if stays_with_device(target) {
            return outcome;
        }
        self.remove_intermediate_device(target, from.as_deref());
        RestoreOutcome::Gone
    }

    /// Removes the intermediate device of an interface that is no longer here under that name: writing deletes it, and
    /// then fails.
    pub(crate) fn remove_intermediate_device(&self, target: &ChangeTarget, from: Option<&str>) {
        let is_absent = || self.host.read(target).is_err_and(|error| is_gone(&error));
        if self.mode == RollbackMode::ForReal && matches!(target, ChangeTarget::TrafficControl { .. }) && is_absent() {
            let _ = self.host.write(target, from);
        }
    }

    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
