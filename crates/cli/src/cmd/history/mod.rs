//! `linerate history`: the runs that are kept.

mod arguments;
mod change;
mod compare;
mod list;
mod show;
mod transfer;
mod trend;

use linerate_history::{History, HistoryError, Location};

pub(crate) use arguments::HistoryArguments;
use arguments::{HistoryCommand, ListArguments};

use crate::console;
use crate::exit::Exit;
use crate::keep::explained;

/// Does what was asked for.
pub(crate) fn run(arguments: &HistoryArguments) -> Exit {
    let list = HistoryCommand::List(arguments.list.clone());
    let done = match arguments.command.as_ref().unwrap_or(&list) {
        HistoryCommand::List(ListArguments { filter, json }) => list::run(filter, *json),
        HistoryCommand::Show { run, json } => show::run(*run, *json),
        HistoryCommand::Compare { before, after, fail_on_worse, json } => {
            compare::run(*before, *after, *fail_on_worse, *json)
        }
        HistoryCommand::Trend { figure, filter, json } => trend::run(figure, filter, *json),
        HistoryCommand::Export { format, out, filter } => transfer::export(*format, out.as_deref(), filter),
        HistoryCommand::Import { files } => transfer::import(files),
        HistoryCommand::Delete { runs, yes } => change::delete(runs, *yes),
        HistoryCommand::Tag { run, text, remove } => change::tag(*run, text, *remove),
        HistoryCommand::Path => path(),
    };
    done.unwrap_or_else(|error| {
        console::error(&explained(&error), None);
        Exit::Unable
    })
}

fn path() -> Result<Exit, HistoryError> {
    match Location::from_environment()? {
        Location::File(file) => console::data(&format!("{}\n", file.display())),
        Location::Off => console::note("runs are not kept: LINERATE_HISTORY is off"),
    }
    Ok(Exit::Success)
}

/// The history, to look at. Other commands take runs from it, too.
pub(crate) fn open_existing() -> Result<History, HistoryError> {
    History::open_existing(&file()?)
}

/// The history, to change it.
fn open() -> Result<History, HistoryError> {
    History::open(&file()?)
}

fn file() -> Result<std::path::PathBuf, HistoryError> {
    match Location::from_environment()? {
        Location::File(file) => Ok(file),
        Location::Off => Err(HistoryError::SwitchedOff),
    }
}
