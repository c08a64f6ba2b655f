//! Deletion of runs, and tags.

use std::io;

use linerate_history::{History, HistoryError, RunId, RunReference, RunReferences};
use linerate_sys::terminal;

use crate::console;
use crate::exit::ExitStatus;

pub(super) fn delete(references: &[RunReferences], yes: bool) -> Result<ExitStatus, HistoryError> {
    let mut history = open_existing_for_writing()?;
    let runs = references.iter().flat_map(RunReferences::as_slice);
    let mut ids: Vec<RunId> = runs.map(|run| history.resolve(*run)).collect::<Result<_, _>>()?;
    ids.sort_unstable();
    ids.dedup();
    if !yes {
        match confirm_deletion(&run_list(&ids)) {
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
pub(super) fn open_existing_for_writing() -> Result<History, HistoryError> {
    drop(super::open_existing()?);
    super::open()
}

/// Confirmation from the user; `None` when there is no terminal, after reporting that.
pub(super) fn confirm_deletion(runs: &str) -> Option<bool> {
    if !terminal::is_terminal(&io::stdin()) {
        console::error("cannot ask before deleting runs: there is no terminal\n--yes deletes without asking", None);
        return None;
    }
    console::ask(&format!("Delete {runs} permanently? [y/N] "));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).ok()?;
    Some(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Runs in ascending order, as ranges where numbers follow each other: `3 runs: 1, 4..5`.
fn run_list(ids: &[RunId]) -> String {
    let follows = |first: &RunId, second: &RunId| first.get() + 1 == second.get();
    let ranges = ids.chunk_by(follows).map(|range| match range {
        [first, .., last] => format!("{first}..{last}"),
        one => one.iter().map(ToString::to_string).collect(),
    });
    let ranges = ranges.collect::<Vec<_>>().join(", ");
    match ids.len() {
        1 => format!("run {ranges}"),
        count => format!("{count} runs ({ranges})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_runs_are_listed_as_ranges() {
        let list = |ids: &[i64]| run_list(&ids.iter().copied().map(RunId::new).collect::<Vec<_>>());
        assert_eq!(list(&[7]), "run 7");
        assert_eq!(list(&[1, 4, 5, 6, 9]), "5 runs (1, 4..6, 9)");
        assert_eq!(list(&(1..=900).collect::<Vec<_>>()), "900 runs (1..900)");
    }
}
