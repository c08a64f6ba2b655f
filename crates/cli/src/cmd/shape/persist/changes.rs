//! Files that are written or taken away, all or none of them, and the commands around that.

use std::time::Duration;

use linerate_model::schema::shaper_persistence::PersistenceStep;
use linerate_sys::command::{command_line, run_checked};
use linerate_sys::whole_file::{self, Mode};
use linerate_sys::{Error, Result as SystemResult};

use super::super::error::ShapeError;
use super::head;
use super::managers::PersistentFile;
use super::place::Place;
use super::wish::Wish;
use crate::exit::Exit;

/// systemctl has done its work in a second; while a host boots it may wait.
const PATIENCE: Duration = Duration::from_secs(60);

const UNITS: &str = "/etc/systemd/system/";

/// What becomes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileChange {
    /// Where, from the root.
    pub(super) path: String,
    /// What becomes of it.
    pub(super) becomes: PersistenceStep,
    /// What it is to have; `None`: it is to be gone.
    pub(super) new: Option<(String, Mode)>,
    /// What it has now.
    before: Option<(String, Mode)>,
}

impl FileChange {
    /// Fails where there is a file that is not linerate's.
    pub(super) fn to_write(place: &Place, wish: &Wish, file: PersistentFile) -> Result<Self, ShapeError> {
        let before = read(place, &file.path)?;
        let new = (file.contents, file.mode);
        let becomes = match &before {
            None => PersistenceStep::Created,
            Some(before) if *before == new => PersistenceStep::Unchanged,
            Some((contents, _)) if head::is_ours(contents, &wish.device) => PersistenceStep::Replaced,
            Some(_) => {
                let text = format!("{} is there already, and linerate did not make it: nothing was touched", file.path);
                return Err(ShapeError::unable(text)
                    .with_advice("move it away, or say with --manager who else is to set the shaper up"));
            }
        };
        Ok(Self { path: file.path, becomes, new: Some(new), before })
    }

    /// `None` where there is nothing of linerate's for this interface.
    pub(super) fn to_remove(place: &Place, wish: &Wish, path: &str) -> Result<Option<Self>, ShapeError> {
        let before = read(place, path)?.filter(|(contents, _)| head::is_ours(contents, &wish.device));
        let removed =
            |before| Self { path: path.to_owned(), becomes: PersistenceStep::Removed, new: None, before: Some(before) };
        Ok(before.map(removed))
    }

    fn unit(&self) -> Option<&str> {
        self.path.strip_prefix(UNITS)
    }

    fn carry_out(&self, place: &Place) -> SystemResult<()> {
        match self.becomes {
            PersistenceStep::Unchanged => Ok(()),
            _ => put(place, &self.path, self.new.as_ref()),
        }
    }

    fn undo(&self, place: &Place) -> SystemResult<()> {
        match self.becomes {
            PersistenceStep::Unchanged => Ok(()),
            _ => put(place, &self.path, self.before.as_ref()),
        }
    }
}

fn read(place: &Place, path: &str) -> Result<Option<(String, Mode)>, ShapeError> {
    whole_file::read(&place.path(path)).map_err(|error| failed(&error))
}

fn put(place: &Place, path: &str, what: Option<&(String, Mode)>) -> SystemResult<()> {
    match what {
        Some((contents, mode)) => whole_file::replace(&place.path(path), contents, *mode),
        None => whole_file::remove(&place.path(path)),
    }
}

fn failed(error: &Error) -> ShapeError {
    ShapeError { exit: Exit::of(error), ..ShapeError::unable(error.to_string()) }
}

/// A command: the program, then its arguments.
pub(super) type Command = Vec<String>;

/// Runs a command.
pub(super) fn run(command: &Command) -> SystemResult<()> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    run_checked(program, arguments, None, PATIENCE).map(drop)
}

fn systemctl(words: &[&str]) -> Command {
    ["systemctl"].iter().chain(words).map(|word| (*word).to_owned()).collect()
}

/// Commands around the changes of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    before: Vec<Command>,
    after: Vec<Command>,
    /// What takes the commands back, as far as that is needed.
    undo: Vec<Command>,
}

impl Changes {
    /// `unit`: the one that is to be enabled. It is started where the interface is there; else its interface starts it.
    pub(super) fn to_persist(place: &Place, files: &[FileChange], unit: Option<&str>) -> Self {
        let mut changes = Self::to_unpersist(place, files);
        let Some(unit) = unit else { return changes };
        let written = files.iter().find(|file| file.unit() == Some(unit)).map(|file| file.becomes);
        changes.reload();
        changes.after.push(systemctl(&["enable", unit]));
        if written == Some(PersistenceStep::Created) {
            changes.undo.push(systemctl(&["disable", unit]));
        }
        if place.has_interface {
            // One that runs with other words is to take these.
            let verb = if written == Some(PersistenceStep::Unchanged) { "start" } else { "restart" };
            changes.after.push(systemctl(&["--no-block", verb, unit]));
        }
        changes
    }

    /// Units that go are disabled while systemd still knows what they are wanted by, and stopped when it does not know
    /// any more what to do after that: what they have set up stays.
    pub(super) fn to_unpersist(place: &Place, files: &[FileChange]) -> Self {
        let mut changes = Self::default();
        if !place.runs_systemd() {
            return changes;
        }
        let gone = files.iter().filter(|file| file.becomes == PersistenceStep::Removed);
        for unit in gone.filter_map(FileChange::unit) {
            changes.before.push(systemctl(&["disable", unit]));
            changes.undo.push(systemctl(&["enable", unit]));
            changes.reload();
            changes.after.push(systemctl(&["--no-block", "stop", unit]));
        }
        changes
    }

    fn reload(&mut self) {
        let reload = systemctl(&["daemon-reload"]);
        if !self.after.contains(&reload) {
            self.after.push(reload);
        }
    }

    /// As a person would type them; before or after the files.
    pub(super) fn lines(&self) -> (Vec<String>, Vec<String>) {
        let lines = |commands: &[Command]| commands.iter().map(line).collect();
        (lines(&self.before), lines(&self.after))
    }

    /// Does it all; what was done is undone when something fails.
    pub(super) fn carry_out(
        &self,
        place: &Place,
        files: &[FileChange],
        run: &mut dyn FnMut(&Command) -> SystemResult<()>,
    ) -> Result<(), ShapeError> {
        let mut done: Vec<&FileChange> = Vec::new();
        let outcome = (|| {
            self.before.iter().try_for_each(&mut *run)?;
            for file in files {
                file.carry_out(place)?;
                done.push(file);
            }
            self.after.iter().try_for_each(&mut *run)
        })();
        let Err(error) = outcome else { return Ok(()) };
        let mut error = failed(&error);
        error.text.push_str(&self.take_back(place, &done, run));
        Err(error)
    }

    /// Undoes it, and says how that went.
    fn take_back(
        &self,
        place: &Place,
        done: &[&FileChange],
        run: &mut dyn FnMut(&Command) -> SystemResult<()>,
    ) -> String {
        // A unit that is to go is disabled while its file is there.
        let (disable, enable): (Vec<_>, Vec<_>) = self.undo.iter().partition(|command| command[1] == "disable");
        let mut attempt = |commands: &[&Command]| {
            for command in commands {
                // It may not have got that far; the first failure is the one to tell.
                let _ = run(command);
            }
        };
        attempt(&disable);
        let left: Vec<String> =
            done.iter().rev().filter_map(|file| file.undo(place).err()).map(|error| error.to_string()).collect();
        if !self.after.is_empty() {
            attempt(&[&systemctl(&["daemon-reload"])]);
        }
        attempt(&enable);
        if left.is_empty() {
            "; nothing is changed".to_owned()
        } else {
            format!("; taking it back: {}", left.join("; "))
        }
    }
}

fn line(command: &Command) -> String {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    words.split_first().map(|(program, arguments)| command_line(program, arguments)).unwrap_or_default()
}
