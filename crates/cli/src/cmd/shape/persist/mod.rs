//! `linerate shape DEV persist`: has the programs that look after this host set the shaper up at each boot and after
//! each change, and `unpersist`, which takes that back.
//!
//! Each manager is a file of this directory and an entry of [`managers::MANAGERS`]. What they write says that linerate made it and for
//! which interface; nothing else is ever overwritten or removed.

mod changes;
mod head;
mod hook;
mod ifupdown;
mod managers;
mod network_manager;
mod networkd;
mod output;
mod place;
mod ppp;
mod systemd;
mod unit_text;
mod wish;

use linerate_model::schema::shaper_persistence::PersistenceManager;

use self::changes::{Changes, FileChange};
use self::managers::{MANAGERS, Manager};
use self::place::Place;
use self::wish::Wish;
use super::error::ShapeError;
use crate::exit::Exit;

/// Has the shaper that these words ask for set up at each boot. `words` are those behind `linerate shape`, the interface
/// first; `autorate`: those with which rates follow the line, empty where they are fixed; `manager`: only by this one.
/// Without rights, and for files of that name that are not linerate's, an error; what was written until then is taken back.
pub(crate) fn persist(
    (words, autorate): (&[String], &[String]),
    device: &str,
    manager: Option<&str>,
    dry_run: bool,
    json: bool,
) -> Result<Exit, ShapeError> {
    let place = Place::here(device);
    let wish = Wish::following(device, words, autorate, &place::own_program()?)?;
    let plan = Plan::to_persist(&place, &wish, manager)?;
    plan.carry_out(&place, dry_run)?;
    output::show(&plan, dry_run, json);
    Ok(Exit::Success)
}

/// Takes away what [`persist`] has made for this interface. The shaper that stands now stays until the next boot.
pub(crate) fn unpersist(device: &str, dry_run: bool, json: bool) -> Result<Exit, ShapeError> {
    let place = Place::here(device);
    let wish = Wish::to_forget(device)?;
    let plan = Plan::to_unpersist(&place, &wish)?;
    plan.carry_out(&place, dry_run)?;
    output::show(&plan, dry_run, json);
    Ok(Exit::Success)
}

/// The names that `--manager` takes.
pub(crate) fn manager_names() -> impl Iterator<Item = &'static str> {
    MANAGERS.iter().map(|manager| manager.id)
}

/// What is to be done.
#[derive(Debug)]
struct Plan {
    device: String,
    /// Empty where everything is taken away.
    words: Vec<String>,
    managers: Vec<PersistenceManager>,
    files: Vec<FileChange>,
    changes: Changes,
    notes: Vec<String>,
}

impl Plan {
    fn to_persist(place: &Place, wish: &Wish, manager: Option<&str>) -> Result<Self, ShapeError> {
        let chosen = managers::choose(place, wish, manager)?;
        let mut files = Vec::new();
        for (manager, _) in &chosen {
            for file in (manager.files)(wish) {
                if file.is_wanted(place) {
                    files.push(FileChange::to_write(place, wish, file)?);
                }
            }
        }
        // What another choice left behind would set the shaper up, too.
        files.extend(leftovers(place, wish, &files)?);
        let unit = chosen.iter().find_map(|(manager, _)| (manager.unit)(wish));
        let mut notes: Vec<String> = chosen.iter().flat_map(|(manager, _)| (manager.notes)(wish)).collect();
        notes.extend(wish.notes());
        Ok(Self {
            device: wish.device.clone(),
            words: [wish.words.as_slice(), &wish.autorate].concat(),
            changes: Changes::to_persist(place, &files, unit.as_deref()),
            files,
            managers: chosen.iter().map(|(manager, reason)| named(manager, reason)).collect(),
            notes,
        })
    }

    fn to_unpersist(place: &Place, wish: &Wish) -> Result<Self, ShapeError> {
        let files = leftovers(place, wish, &[])?;
        let stays = format!(
            "the shaper that stands on {} stays until the next boot; `linerate shape {} off` takes it down",
            wish.device, wish.device
        );
        Ok(Self {
            device: wish.device.clone(),
            words: Vec::new(),
            managers: Vec::new(),
            changes: Changes::to_unpersist(place, &files),
            notes: if files.is_empty() { Vec::new() } else { vec![stays] },
            files,
        })
    }

    fn carry_out(&self, place: &Place, dry_run: bool) -> Result<(), ShapeError> {
        if dry_run {
            return Ok(());
        }
        self.changes.carry_out(place, &self.files, &mut changes::run)
    }
}

fn named(manager: &Manager, reason: &str) -> PersistenceManager {
    PersistenceManager { manager: manager.id.to_owned(), reason: reason.to_owned() }
}

/// Files that linerate has made for this interface, and that are not among these.
fn leftovers(place: &Place, wish: &Wish, kept: &[FileChange]) -> Result<Vec<FileChange>, ShapeError> {
    let mut found: Vec<FileChange> = Vec::new();
    for file in MANAGERS.iter().flat_map(|manager| (manager.files)(wish)) {
        if kept.iter().chain(&found).all(|other| other.path != file.path) {
            found.extend(FileChange::to_remove(place, wish, &file.path)?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
