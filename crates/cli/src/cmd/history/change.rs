//! Changes: runs deleted, tags written.

use std::io;

use linerate_history::{History, HistoryError, RunId, RunReference};
use linerate_sys::terminal;

use crate::console;
use crate::exit::Exit;

pub(super) fn delete(references: &[RunReference], yes: bool) -> Result<Exit, HistoryError> {
    let mut history = existing()?;
    let mut ids: Vec<RunId> = references.iter().map(|run| history.resolve(*run)).collect::<Result<_, _>>()?;
    ids.sort_unstable();
    ids.dedup();
    if !yes {
        match confirmed(&ids) {
            None => return Ok(Exit::Unable),
            Some(false) => {
                console::note("nothing was deleted");
                return Ok(Exit::Success);
            }
            Some(true) => {}
        }
    }
    history.delete(&ids)?;
    console::note(&format!("deleted: {}", named(&ids)));
    Ok(Exit::Success)
}

pub(super) fn tag(reference: RunReference, text: &str, remove: bool) -> Result<Exit, HistoryError> {
    let mut history = existing()?;
    let id = history.resolve(reference)?;
    if !remove {
        history.tag(id, text)?;
    } else if !history.untag(id, text)? {
        console::error(&format!("run {id} has no tag {text:?}"), None);
        return Ok(Exit::Unable);
    }
    Ok(Exit::Success)
}

/// To change it, but not to make one.
fn existing() -> Result<History, HistoryError> {
    drop(super::open_existing()?);
    super::open()
}

/// What the user answers; `None` when there is nobody to ask, which has been said.
fn confirmed(ids: &[RunId]) -> Option<bool> {
    if !terminal::is_terminal(&io::stdin()) {
        console::error("deleting runs: there is no terminal to ask at\n--yes deletes without asking", None);
        return None;
    }
    console::ask(&format!("Delete {} for good? [y/N] ", named(ids)));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).ok()?;
    Some(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn named(ids: &[RunId]) -> String {
    let numbers: Vec<String> = ids.iter().map(ToString::to_string).collect();
    format!("{} {}", if ids.len() == 1 { "run" } else { "runs" }, numbers.join(", "))
}
