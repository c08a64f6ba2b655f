//! `linerate shape DEV persist`: installs files with which the host's managers set the shaper up at each boot and after
//! each change; `unpersist` removes them.
//!
//! Each manager is a file of this directory and an entry of `MANAGERS`. Its files name linerate and
//! their interface; no other file is ever overwritten or removed.

mod changes;
mod file_header;
mod hook;
mod host;
mod ifupdown;
mod managers;
mod network_manager;
mod networkd;
mod ppp;
mod request;
mod systemd;
mod unit_escaping;

use linerate_documents::shaper_persistence::{
    PersistenceFile, PersistenceManager, SCHEMA, ShaperManager, ShaperPersistenceDocument,
};

use self::changes::{PersistenceChanges, PersistentFileChange};
use self::host::PersistenceHost;
use self::managers::{MANAGERS, PersistenceManagerEntry};
use self::request::PersistRequest;
use super::error::ShapeError;

/// Sets the shaper up at each boot. `words`: arguments after `linerate shape`, the interface first; `autorate`:
/// arguments of automatic rates, empty for fixed rates; `manager`: use only this one. Fails without privilege, or when
/// a file of that name is not linerate's; files written until then are rolled back.
pub fn persist(
    (words, autorate): (&[String], &[String]),
    device: &str,
    manager: Option<ShaperManager>,
    dry_run: bool,
) -> Result<ShaperPersistenceDocument, ShapeError> {
    let place = PersistenceHost::here(device);
    let wish = PersistRequest::following(device, words, autorate, &host::own_program()?)?;
    let plan = PersistencePlan::to_persist(&place, &wish, manager)?;
    plan.carry_out(&place, dry_run)?;
    Ok(document(&plan, !dry_run))
}

/// Removes the files of [`persist`] for this interface. The active shaper stays until reboot.
pub fn unpersist(device: &str, dry_run: bool) -> Result<ShaperPersistenceDocument, ShapeError> {
    let place = PersistenceHost::here(device);
    let wish = PersistRequest::to_forget(device)?;
    let plan = PersistencePlan::to_unpersist(&place, &wish)?;
    plan.carry_out(&place, dry_run)?;
    Ok(document(&plan, !dry_run))
}

/// Values for `--manager`.
pub fn managers() -> impl Iterator<Item = ShaperManager> {
    MANAGERS.iter().map(|manager| manager.id)
}

/// Plan of `persist` or `unpersist`.
#[derive(Debug)]
struct PersistencePlan {
    device: String,
    /// Empty for a removal.
    words: Vec<String>,
    managers: Vec<PersistenceManager>,
    files: Vec<PersistentFileChange>,
    changes: PersistenceChanges,
    notes: Vec<String>,
}

impl PersistencePlan {
    fn to_persist(
        place: &PersistenceHost,
        wish: &PersistRequest,
        manager: Option<ShaperManager>,
    ) -> Result<Self, ShapeError> {
        let chosen = managers::choose(place, wish, manager)?;
        let mut files = Vec::new();
        for (manager, _) in &chosen {
            for file in (manager.files)(wish) {
                if file.is_wanted(place) {
                    files.push(PersistentFileChange::to_write(place, wish, file)?);
                }
            }
        }
        // Files of an earlier choice would also set the shaper up.
        files.extend(leftovers(place, wish, &files)?);
        let unit = chosen.iter().find_map(|(manager, _)| (manager.unit)(wish));
        let mut notes: Vec<String> = chosen.iter().flat_map(|(manager, _)| (manager.notes)(wish)).collect();
        notes.extend(wish.notes());
        Ok(Self {
            device: wish.device.clone(),
            words: [wish.words.as_slice(), &wish.autorate].concat(),
            changes: PersistenceChanges::to_persist(place, &files, unit.as_deref()),
            files,
            managers: chosen.iter().map(|(manager, reason)| manager_entry(manager, reason)).collect(),
            notes,
        })
    }

    fn to_unpersist(place: &PersistenceHost, wish: &PersistRequest) -> Result<Self, ShapeError> {
        let files = leftovers(place, wish, &[])?;
        let stays = format!(
            "the shaper of {} stays active until reboot; `linerate shape {} off` removes it",
            wish.device, wish.device
        );
        Ok(Self {
            device: wish.device.clone(),
            words: Vec::new(),
            managers: Vec::new(),
            changes: PersistenceChanges::to_unpersist(place, &files),
            notes: if files.is_empty() { Vec::new() } else { vec![stays] },
            files,
        })
    }

    fn carry_out(&self, place: &PersistenceHost, dry_run: bool) -> Result<(), ShapeError> {
        if dry_run {
            return Ok(());
        }
        self.changes.carry_out(place, &self.files, &mut changes::run)
    }
}

fn manager_entry(manager: &PersistenceManagerEntry, reason: &str) -> PersistenceManager {
    PersistenceManager { manager: manager.id, reason: reason.to_owned() }
}

/// Files of linerate for this interface that are not among these.
fn leftovers(
    place: &PersistenceHost,
    wish: &PersistRequest,
    kept: &[PersistentFileChange],
) -> Result<Vec<PersistentFileChange>, ShapeError> {
    let mut found: Vec<PersistentFileChange> = Vec::new();
    for file in MANAGERS.iter().flat_map(|manager| (manager.files)(wish)) {
        if kept.iter().chain(&found).all(|other| other.path != file.path) {
            found.extend(PersistentFileChange::to_remove(place, wish, &file.path)?);
        }
    }
    Ok(found)
}

fn document(plan: &PersistencePlan, is_done: bool) -> ShaperPersistenceDocument {
    let (before, after) = plan.changes.command_lines();
    let file = |file: &PersistentFileChange| PersistenceFile {
        path: file.path.clone(),
        change: file.becomes,
        mode: file.new.as_ref().map(|(_, mode)| mode.octal().to_owned()),
        contents: file.new.as_ref().map(|(contents, _)| contents.clone()),
    };
    ShaperPersistenceDocument {
        schema: SCHEMA,
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        device: plan.device.clone(),
        arguments: plan.words.clone(),
        is_done,
        managers: plan.managers.clone(),
        files: plan.files.iter().map(file).collect(),
        commands: before.into_iter().chain(after).collect(),
        notes: plan.notes.clone(),
    }
}

#[cfg(test)]
mod tests;
