//! Where the runs of a report come from.

use std::io::{self, Read as _};
use std::path::Path;

use linerate_history::{HistoryError, RunReference};
use linerate_model::schema::run::{RunDocument, SCHEMA};
use serde::Deserialize;

/// A run, and what it is called in a file's name.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) run: RunDocument,
}

/// Why a run could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum SourceError {
    /// The history does not have it.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The file cannot be read.
    #[error(
        "cannot read {name}: {}. A run is a number of the history, last, last-1, or a file with a run as JSON",
        linerate_sys::describe_os_error(cause)
    )]
    Read { name: String, cause: io::Error },
    /// It is not a run.
    #[error("{name} is no run as `linerate report --format json` and `linerate history show --json` write it: {cause}")]
    NotARun { name: String, cause: serde_json::Error },
    /// It is of another version.
    #[error("{name} is of schema {found}; this linerate knows {SCHEMA}. A newer linerate has written it: use that one")]
    Schema { name: String, found: u32 },
}

/// The version alone: a document of another schema cannot be read as a whole.
#[derive(Deserialize)]
struct Version {
    schema: u32,
}

/// The runs that `wanted` names.
pub(super) fn find(wanted: &[String]) -> Result<Vec<Found>, SourceError> {
    let mut found = Vec::new();
    for name in wanted {
        if name == "-" {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map_err(|cause| unreadable("the standard input", cause))?;
            found.extend(documents("stdin", "the standard input", &text)?);
        } else if let Ok(reference) = name.parse::<RunReference>() {
            let history = crate::cmd::history::open_existing()?;
            let id = history.resolve(reference)?;
            found.push(Found { name: id.to_string(), run: history.get(id)? });
        } else {
            let text = std::fs::read_to_string(name).map_err(|cause| unreadable(name, cause))?;
            let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
            found.extend(documents(&stem, name, &text)?);
        }
    }
    Ok(found)
}

fn unreadable(name: &str, cause: io::Error) -> SourceError {
    SourceError::Read { name: name.to_owned(), cause }
}

/// The runs in `text`; they are called after `stem`, with a number where there are several.
fn documents(stem: &str, name: &str, text: &str) -> Result<Vec<Found>, SourceError> {
    if let Ok(Version { schema }) = serde_json::from_str(text)
        && schema != SCHEMA
    {
        return Err(SourceError::Schema { name: name.to_owned(), found: schema });
    }
    // A file may hold one run, or several as an array.
    let runs: Vec<RunDocument> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text)
    } else {
        serde_json::from_str(text).map(|run| vec![run])
    }
    .map_err(|cause| SourceError::NotARun { name: name.to_owned(), cause })?;
    if let Some(newer) = runs.iter().find(|run| run.schema != SCHEMA) {
        return Err(SourceError::Schema { name: name.to_owned(), found: newer.schema });
    }
    let several = runs.len() > 1;
    let name_of = |index: usize| if several { format!("{stem}-{}", index + 1) } else { stem.to_owned() };
    Ok(runs.into_iter().enumerate().map(|(index, run)| Found { name: name_of(index), run }).collect())
}
