//! Deletion of runs, and tags.

use std::io;

use linerate_history::{History, HistoryError, RunId, RunReference};
use linerate_sys::terminal;

use crate::console;
use crate::exit::ExitStatus;

pub(super) fn delete(references: &[RunReference], yes: bool) -> Result<ExitStatus, HistoryError> {
    let mut history = open_existing_for_writing()?;
    let mut ids: Vec<RunId> = references.iter().map(|run| history.resolve(*run)).collect::<Result<_, _>>()?;
    ids.sort_unstable();
    ids.dedup();
    if !yes {
        match confirm_deletion(&ids) {
            None => return Ok(ExitStatus::Unable),
            Some(false) => {
                console::note("nothing was deleted");
                return Ok(ExitStatus::Success);
            }
            Some(true) => {}
        }
    }
    history.delete(&ids)?;
    console::note(&format!("deleted: {}", run_list(&ids)));
    Ok(ExitStatus::Success)
}

pub(super) fn tag(reference: RunReference, text: &str, remove: bool) -> Result<ExitStatus, HistoryError> {
    let mut history = open_existing_for_writing()?;
    let id = history.resolve(reference)?;
    if !remove {
        history.tag(id, text)?;
    } else if !history.untag(id, text)? {
        console::error(&format!("run {id} has no tag {text:?}"), None);
        return Ok(ExitStatus::Unable);
    }
    Ok(ExitStatus::Success)
}

/// Opens an existing history for writing.
fn open_existing_for_writing() -> Result<History, HistoryError> {
    drop(super::open_existing()?);
    super::open()
}

/// Confirmation from the user; `None` when there is no terminal, after reporting that.
fn confirm_deletion(ids: &[RunId]) -> Option<bool> {
    if !terminal::is_terminal(&io::stdin()) {
        console::error("cannot ask before deleting runs: there is no terminal\n--yes deletes without asking", None);
        return None;
    }
    console::ask(&format!("Delete {} permanently? [y/N] ", run_list(ids)));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).ok()?;
    Some(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn run_list(ids: &[RunId]) -> String {
    let numbers: Vec<String> = ids.iter().map(ToString::to_string).collect();
    format!("{} {}", if ids.len() == 1 { "run" } else { "runs" }, numbers.join(", "))
}
