//! File changes of `persist`, all or none, and the commands before and after them.

use std::time::Duration;

use linerate_documents::shaper_persistence::PersistenceStep;
use linerate_sys::command::{command_line, run_checked};
use linerate_sys::whole_file::{self, FileMode};
use linerate_sys::{Error, Result as SystemResult};

use super::super::error::{ShapeError, ShapeErrorKind};
use super::file_header;
use super::host::PersistenceHost;
use super::managers::PersistentFile;
use super::request::PersistRequest;

/// Time limit of a command; systemctl takes a second but may wait during boot.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

const UNIT_DIRECTORY: &str = "/etc/systemd/system/";

/// Planned change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PersistentFileChange {
    /// Absolute path.
    pub(super) path: String,
    /// Kind of change.
    pub(super) becomes: PersistenceStep,
    /// New content and mode; `None`: removed.
    pub(super) new: Option<(String, FileMode)>,
    /// Current content and mode.
    before: Option<(String, FileMode)>,
}

impl PersistentFileChange {
    /// Plans to write a file. Fails for an existing file that linerate did not write.
    pub(super) fn to_write(
        place: &PersistenceHost,
        wish: &PersistRequest,
        file: PersistentFile,
    ) -> Result<Self, ShapeError> {
        let is_ours = |contents: &str| file_header::is_ours(contents, &wish.device);
        Self::to_write_shared(place, &file.path, (file.contents, file.mode), is_ours)
    }

    /// Plans to write a file that is recognised as linerate's by its contents, for any interface.
    pub(super) fn to_write_shared(
        place: &PersistenceHost,
        path: &str,
        new: (String, FileMode),
        is_ours: impl Fn(&str) -> bool,
    ) -> Result<Self, ShapeError> {
        let before = read(place, path)?;
        let becomes = match &before {
            None => PersistenceStep::Created,
            Some(before) if *before == new => PersistenceStep::Unchanged,
            Some((contents, _)) if is_ours(contents) => PersistenceStep::Replaced,
            Some(_) => {
                let text = format!("{path} exists and was not written by linerate; nothing was changed");
                return Err(
                    ShapeError::impossible(text).with_advice("move it away, or choose another manager with --manager")
                );
            }
        };
        Ok(Self { path: path.to_owned(), becomes, new: Some(new), before })
    }

    /// Plans to change linerate's part of a file that it was read from; without any content left, the file is removed.
    pub(super) fn to_edit(path: &str, before: Option<(String, FileMode)>, after: Option<String>) -> Self {
        let becomes = match (&before, &after) {
            (None, _) => PersistenceStep::Created,
            (_, None) => PersistenceStep::Removed,
            (Some((before, _)), Some(after)) if before == after => PersistenceStep::Unchanged,
            _ => PersistenceStep::Edited,
        };
        let mode = before.as_ref().map_or(FileMode::Plain, |(_, mode)| *mode);
        Self { path: path.to_owned(), becomes, new: after.map(|after| (after, mode)), before }
    }

    /// Plans to remove a file; `None` when linerate has none for this interface.
    pub(super) fn to_remove(
        place: &PersistenceHost,
        wish: &PersistRequest,
        path: &str,
    ) -> Result<Option<Self>, ShapeError> {
        Self::to_remove_shared(place, path, |contents| file_header::is_ours(contents, &wish.device))
    }

    /// Plans to remove a file that is recognised as linerate's by its contents.
    pub(super) fn to_remove_shared(
        place: &PersistenceHost,
        path: &str,
        is_ours: impl Fn(&str) -> bool,
    ) -> Result<Option<Self>, ShapeError> {
        let before = read(place, path)?.filter(|(contents, _)| is_ours(contents));
        let removed =
            |before| Self { path: path.to_owned(), becomes: PersistenceStep::Removed, new: None, before: Some(before) };
        Ok(before.map(removed))
    }

    fn unit(&self) -> Option<&str> {
        self.path.strip_prefix(UNIT_DIRECTORY)
    }

    fn carry_out(&self, place: &PersistenceHost) -> SystemResult<()> {
        match self.becomes {
            PersistenceStep::Unchanged => Ok(()),
            _ => write_or_remove(place, &self.path, self.new.as_ref()),
        }
    }

    fn roll_back(&self, place: &PersistenceHost) -> SystemResult<()> {
        match self.becomes {
            PersistenceStep::Unchanged => Ok(()),
            _ => write_or_remove(place, &self.path, self.before.as_ref()),
        }
    }
}

/// Content and mode of a file; `None` without one.
pub(super) fn read(place: &PersistenceHost, path: &str) -> Result<Option<(String, FileMode)>, ShapeError> {
    whole_file::read(&place.path(path)).map_err(|error| system_error(&error))
}

fn write_or_remove(place: &PersistenceHost, path: &str, what: Option<&(String, FileMode)>) -> SystemResult<()> {
    match what {
        Some((contents, mode)) => whole_file::replace(&place.path(path), contents, *mode),
        None => whole_file::remove(&place.path(path)),
    }
}

fn system_error(error: &Error) -> ShapeError {
    ShapeError { kind: ShapeErrorKind::of(error), ..ShapeError::impossible(error.to_string()) }
}

/// Program and arguments of a command.
pub(super) type CommandArguments = Vec<String>;

/// Runs a command.
pub(super) fn run(command: &CommandArguments) -> SystemResult<()> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    run_checked(program, arguments, None, COMMAND_TIMEOUT).map(drop)
}

fn systemctl(words: &[&str]) -> CommandArguments {
    ["systemctl"].iter().chain(words).map(|word| (*word).to_owned()).collect()
}

/// Commands before and after the file changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PersistenceChanges {
    before: Vec<CommandArguments>,
    after: Vec<CommandArguments>,
    /// Commands that roll back the others, where needed.
    undo: Vec<CommandArguments>,
}

impl PersistenceChanges {
    /// `unit` is enabled, and started if the interface exists; otherwise the interface starts it.
    pub(super) fn to_persist(place: &PersistenceHost, files: &[PersistentFileChange], unit: Option<&str>) -> Self {
        let mut changes = Self::to_unpersist(place, files);
        let Some(unit) = unit else { return changes };
        let written = files.iter().find(|file| file.unit() == Some(unit)).map(|file| file.becomes);
        changes.reload();
        changes.after.push(systemctl(&["enable", unit]));
        if written == Some(PersistenceStep::Created) {
            changes.undo.push(systemctl(&["disable", unit]));
        }
        if place.has_interface {
            // A unit running with other arguments is restarted.
            let verb = if written == Some(PersistenceStep::Unchanged) { "start" } else { "restart" };
            changes.after.push(systemctl(&["--no-block", verb, unit]));
        }
        changes
    }

    /// Units to remove are disabled while systemd still knows their dependants, and stopped once it no longer knows
    /// their `ExecStopPost`: their shaper stays active.
    pub(super) fn to_unpersist(place: &PersistenceHost, files: &[PersistentFileChange]) -> Self {
        let mut changes = Self::default();
        if !place.runs_systemd() {
            return changes;
        }
        let gone = files.iter().filter(|file| file.becomes == PersistenceStep::Removed);
        for unit in gone.filter_map(PersistentFileChange::unit) {
            changes.before.push(systemctl(&["disable", unit]));
            changes.undo.push(systemctl(&["enable", unit]));
            changes.reload();
            changes.after.push(systemctl(&["--no-block", "stop", unit]));
        }
        changes
    }

    /// Adds commands before and after the changes of files, and those that roll the former back.
    pub(super) fn add(&mut self, commands: Vec<[Vec<CommandArguments>; 3]>) {
        for [before, after, undo] in commands {
            self.before.extend(before);
            self.after.extend(after);
            self.undo.extend(undo);
        }
    }

    fn reload(&mut self) {
        let reload = systemctl(&["daemon-reload"]);
        if !self.after.contains(&reload) {
            self.after.push(reload);
        }
    }

    /// Command lines before and after the file changes.
    pub(super) fn command_lines(&self) -> (Vec<String>, Vec<String>) {
        let lines = |commands: &[CommandArguments]| commands.iter().map(command_text).collect();
        (lines(&self.before), lines(&self.after))
    }

    /// Carries out all changes, and rolls them back on failure.
    pub(super) fn carry_out(
        &self,
        place: &PersistenceHost,
        files: &[PersistentFileChange],
        run: &mut dyn FnMut(&CommandArguments) -> SystemResult<()>,
    ) -> Result<(), ShapeError> {
        let mut done: Vec<&PersistentFileChange> = Vec::new();
        let outcome = (|| {
            self.before.iter().try_for_each(&mut *run)?;
            for file in files {
                file.carry_out(place)?;
                done.push(file);
            }
            self.after.iter().try_for_each(&mut *run)
        })();
        let Err(error) = outcome else { return Ok(()) };
        let mut error = system_error(&error);
        error.text.push_str(&self.roll_back(place, &done, run));
        Err(error)
    }

    /// Rolls the changes back and describes the result.
    fn roll_back(
        &self,
        place: &PersistenceHost,
        done: &[&PersistentFileChange],
        run: &mut dyn FnMut(&CommandArguments) -> SystemResult<()>,
    ) -> String {
        // A unit is disabled while its file exists.
        let (disable, enable): (Vec<_>, Vec<_>) = self.undo.iter().partition(|command| command[1] == "disable");
        let mut attempt = |commands: &[&CommandArguments]| {
            for command in commands {
                // A change may not have happened yet; only the first failure is reported.
                let _ = run(command);
            }
        };
        attempt(&disable);
        let left: Vec<String> =
            done.iter().rev().filter_map(|file| file.roll_back(place).err()).map(|error| error.to_string()).collect();
        let reload = systemctl(&["daemon-reload"]);
        if self.after.contains(&reload) {
            attempt(&[&reload]);
        }
        attempt(&enable);
        if left.is_empty() {
            "; nothing was changed".to_owned()
        } else {
            format!("; rolling back failed: {}", left.join("; "))
        }
    }
}

fn command_text(command: &CommandArguments) -> String {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    words.split_first().map(|(program, arguments)| command_line(program, arguments)).unwrap_or_default()
}
