//! Sources of the documents of a report.

use std::io::{self, Read as _};
use std::path::Path;

use linerate_documents::label::DocumentKind;
use linerate_documents::run::{RunDocument, SCHEMA};
use linerate_history::{HistoryError, RunReferences};
use linerate_model::json::{self, JsonError};
use serde::de::Error as _;
use serde_json::{Map, Value};

/// Document, and its name in a file name.
#[derive(Debug)]
pub(super) struct NamedDocument {
    pub(super) name: String,
    pub(super) document: ReportedDocument,
}

/// Document of a report.
#[derive(Debug)]
pub(super) enum ReportedDocument {
    /// A run.
    Run(Box<RunDocument>),
    /// Another output of `--json`.
    Other(DocumentKind, Map<String, Value>),
}

impl NamedDocument {
    /// The run, if it is one.
    pub(super) fn run(&self) -> Option<&RunDocument> {
        match &self.document {
            ReportedDocument::Run(run) => Some(run),
            ReportedDocument::Other(..) => None,
        }
    }
}

/// Error reading a run.
#[derive(Debug, thiserror::Error)]
pub(super) enum SourceError {
    /// The history does not contain it.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The file is unreadable.
    #[error(
        "cannot read {name}: {}; expected runs of the history (4..9, last) or a file with the output of --json",
        linerate_sys::describe_os_error(cause)
    )]
    Read { name: String, cause: io::Error },
    /// The file is not a document of linerate.
    #[error("{name} is not what a command of linerate prints with --json: {cause}")]
    NotADocument { name: String, cause: JsonError },
    /// The schema version is another one.
    #[error("{name} has schema {found}; this linerate supports {SCHEMA}; use the newer linerate that wrote it")]
    Schema { name: String, found: Value },
}

/// Reads the runs named in `wanted`.
pub(super) fn find(wanted: &[String]) -> Result<Vec<NamedDocument>, SourceError> {
    let mut found = Vec::new();
    for name in wanted {
        if name == "-" {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map_err(|cause| unreadable("the standard input", cause))?;
            found.extend(documents("stdin", "the standard input", &text)?);
        } else if let Ok(references) = name.parse::<RunReferences>() {
            found.extend(runs(&references)?);
        } else {
            let text = std::fs::read_to_string(name).map_err(|cause| unreadable(name, cause))?;
            let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
            found.extend(documents(&stem, name, &text)?);
        }
    }
    Ok(found)
}

fn runs(references: &RunReferences) -> Result<Vec<NamedDocument>, HistoryError> {
    let history = crate::cmd::history::open_existing()?;
    let named = |reference: &_| {
        let id = history.resolve(*reference)?;
        let run = Box::new(history.get(id)?);
        Ok(NamedDocument { name: id.to_string(), document: ReportedDocument::Run(run) })
    };
    references.as_slice().iter().map(named).collect()
}

fn unreadable(name: &str, cause: io::Error) -> SourceError {
    SourceError::Read { name: name.to_owned(), cause }
}

/// Parses the documents in `text`: one, several one after the other, or an array. Their names begin with `stem`, with a
/// number if there are several.
fn documents(stem: &str, name: &str, text: &str) -> Result<Vec<NamedDocument>, SourceError> {
    let invalid = |cause| SourceError::NotADocument { name: name.to_owned(), cause };
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value.map_err(|cause| invalid(cause.into()))? {
            Value::Array(several) => values.extend(several),
            one => values.push(one),
        }
    }
    let found: Vec<ReportedDocument> =
        values.into_iter().map(|value| document(name, value)).collect::<Result<_, _>>()?;
    if found.is_empty() {
        return Err(invalid(JsonError::custom("it is empty")));
    }
    let several = found.len() > 1;
    let name_of = |index: usize| if several { format!("{stem}-{}", index + 1) } else { stem.to_owned() };
    let named = |(index, document)| NamedDocument { name: name_of(index), document };
    Ok(found.into_iter().enumerate().map(named).collect())
}

fn document(name: &str, value: Value) -> Result<ReportedDocument, SourceError> {
    // One of another schema cannot be parsed as a whole.
    if let Some(found) = value.get("schema").filter(|schema| schema.as_u64() != Some(SCHEMA.into())) {
        return Err(SourceError::Schema { name: name.to_owned(), found: found.clone() });
    }
    match (value.get("kind").and_then(Value::as_str).and_then(DocumentKind::from_name), value) {
        (Some(kind), Value::Object(document)) => Ok(ReportedDocument::Other(kind, document)),
        (_, value) => match json::from_value(value) {
            Ok(run) => Ok(ReportedDocument::Run(Box::new(run))),
            Err(cause) => Err(SourceError::NotADocument { name: name.to_owned(), cause }),
        },
    }
}
