//! `linerate history`: recorded runs.

mod arguments;
mod change;
mod compare;
mod limit;
mod list;
mod results;
mod show;
mod transfer;
mod trend;

use linerate_history::{History, HistoryError, HistoryLocation};

pub(crate) use arguments::HistoryArguments;
use arguments::{HistoryCommand, ListArguments};
pub(crate) use limit::note_deleted;

use crate::console;
use crate::exit::ExitStatus;
use crate::recorder::explained;

/// Runs the selected command.
pub(crate) fn run(arguments: &HistoryArguments) -> ExitStatus {
    let list = HistoryCommand::List(arguments.list.clone());
    let done = match arguments.command.as_ref().unwrap_or(&list) {
        HistoryCommand::List(ListArguments { filter, results, json }) => match &results.results {
            Some(directory) => results::list(directory.as_deref(), filter, *json),
            None => list::run(filter, *json),
        },
        HistoryCommand::Show { run, json, verbose } => show::run(*run, *json, *verbose),
        HistoryCommand::Compare { before, after, fail_on_worse, json } => {
            compare::run(before, after, *fail_on_worse, *json)
        }
        HistoryCommand::Trend { figure, filter, results, json } => match &results.results {
            Some(directory) => trend::of_results(directory.as_deref(), figure, filter, *json),
            None => trend::run(figure, filter, *json),
        },
        HistoryCommand::Export { format, out, filter } => transfer::export(*format, out.as_deref(), filter),
        HistoryCommand::Import { files } => transfer::import(files),
        HistoryCommand::Delete { runs, yes } => change::delete(runs, *yes),
        HistoryCommand::Limit { size, yes } => limit::run(*size, *yes),
        HistoryCommand::Tag { run, text, remove } => change::tag(*run, text, *remove),
        HistoryCommand::Path => path(),
    };
    done.unwrap_or_else(|error| {
        console::error(&explained(&error), None);
        ExitStatus::Unable
    })
}

fn path() -> Result<ExitStatus, HistoryError> {
    match HistoryLocation::from_environment()? {
        HistoryLocation::File(file) => console::data(&format!("{}\n", file.display())),
        HistoryLocation::Off => console::note("runs are not recorded: LINERATE_HISTORY is off"),
    }
    Ok(ExitStatus::Success)
}

/// Opens the history for reading; other commands use it for their runs, too.
pub(crate) fn open_existing() -> Result<History, HistoryError> {
    History::open_existing(&file()?)
}

/// Opens the history for writing.
fn open() -> Result<History, HistoryError> {
    History::open(&file()?)
}

fn file() -> Result<std::path::PathBuf, HistoryError> {
    match HistoryLocation::from_environment()? {
        HistoryLocation::File(file) => Ok(file),
        HistoryLocation::Off => Err(HistoryError::SwitchedOff),
    }
}
