//! `linerate shape DEV persist`: installs files with which the host's managers set the shaper up at each boot and after
//! each change; `unpersist` removes them.
//!
//! Each manager is a file of this directory and an entry of `MANAGERS`. Its files name linerate and
//! their interface, or are linerate's for all interfaces; no other file is ever overwritten or removed.

mod changes;
mod file_header;
mod hook;
mod host;
mod ifupdown;
mod managers;
mod network_manager;
mod networkd;
mod openwrt;
mod ppp;
mod request;
mod systemd;
mod unit_escaping;

use linerate_documents::shaper_persistence::{
    PersistenceFile, PersistenceManager, PersistenceStep, SCHEMA, ShaperManager, ShaperPersistenceDocument,
};

use self::changes::{CommandArguments, PersistenceChanges, PersistentFileChange};
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
        let mut commands = Vec::new();
        for (manager, _) in &chosen {
            if let Some(shared) = manager.shared {
                let changes = (shared.to_persist)(place, wish)?;
                commands.push((shared.commands)(place, wish, &changes));
                files.extend(changes);
            }
            for file in (manager.files)(wish) {
                if file.is_wanted(place) {
                    files.push(PersistentFileChange::to_write(place, wish, file)?);
                }
            }
        }
        // Files of an earlier choice would also set the shaper up.
        let (removed, more) = leftovers(place, wish, &files)?;
        files.extend(removed);
        commands.extend(more);
        let unit = chosen.iter().find_map(|(manager, _)| (manager.unit)(wish));
        let mut notes: Vec<String> = chosen.iter().flat_map(|(manager, _)| (manager.notes)(wish)).collect();
        notes.extend(wish.notes());
        let mut changes = PersistenceChanges::to_persist(place, &files, unit.as_deref());
        changes.add(commands);
        Ok(Self {
            device: wish.device.clone(),
            words: [wish.words.as_slice(), &wish.autorate].concat(),
            changes,
            files,
            managers: chosen.iter().map(|(manager, reason)| manager_entry(manager, reason)).collect(),
            notes,
        })
    }

    fn to_unpersist(place: &PersistenceHost, wish: &PersistRequest) -> Result<Self, ShapeError> {
        let (files, commands) = leftovers(place, wish, &[])?;
        let mut changes = PersistenceChanges::to_unpersist(place, &files);
        changes.add(commands);
        let is_edited =
            files.iter().any(|file| file.becomes == PersistenceStep::Edited && openwrt::keeps_section(file, wish));
        let kept =
            "its section was edited since linerate wrote it: it is switched off, and its options stay".to_owned();
        let stays = format!(
            "the shaper of {} stays active until reboot; `linerate shape {} off` removes it",
            wish.device, wish.device
        );
        Ok(Self {
            device: wish.device.clone(),
            words: Vec::new(),
            managers: Vec::new(),
            changes,
            notes: if files.is_empty() {
                Vec::new()
            } else {
                [stays].into_iter().chain(is_edited.then_some(kept)).collect()
            },
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

/// Changes of files, and commands around them.
type ChangesAndCommands = (Vec<PersistentFileChange>, Vec<[Vec<CommandArguments>; 3]>);

/// Files of linerate for this interface that are not among these, and the commands around their removal.
fn leftovers(
    place: &PersistenceHost,
    wish: &PersistRequest,
    kept: &[PersistentFileChange],
) -> Result<ChangesAndCommands, ShapeError> {
    let mut found: Vec<PersistentFileChange> = Vec::new();
    let mut commands = Vec::new();
    for shared in MANAGERS.iter().filter_map(|manager| manager.shared) {
        let changes = (shared.to_unpersist)(place, wish)?;
        if changes.iter().all(|change| kept.iter().all(|other| other.path != change.path)) {
            commands.push((shared.commands)(place, wish, &changes));
            found.extend(changes);
        }
    }
    for file in MANAGERS.iter().flat_map(|manager| (manager.files)(wish)) {
        if kept.iter().chain(&found).all(|other| other.path != file.path) {
            found.extend(PersistentFileChange::to_remove(place, wish, &file.path)?);
        }
    }
    Ok((found, commands))
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
