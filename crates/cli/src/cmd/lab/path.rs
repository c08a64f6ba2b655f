//! Path lookup: in the library, or in a file.

use std::io::Read as _;

use linerate_lab::description::PathDescription;
use linerate_lab::library;

use super::ad_hoc::{self, AdHocPath};
use crate::console;
use crate::exit::ExitStatus;

/// Largest file of a trace.
const MAX_TRACE_SIZE: u64 = 200_000_000;

/// Path description and its source text.
pub(super) struct FoundPath {
    /// Parsed description.
    pub(super) description: PathDescription,
    /// Source text.
    pub(super) text: String,
}

/// Finds `name`: properties if it contains an equals sign, a file if it ends in `.toml` or contains a slash, else a path of
/// the library. Errors have been reported when it fails.
pub(super) fn find(name: &str) -> Result<FoundPath, ExitStatus> {
    if let Some(path) = AdHocPath::parse(name) {
        return path.and_then(|path| path.description()).map_err(unusable).and_then(|text| parse(ad_hoc::NAME, text));
    }
    let is_toml = std::path::Path::new(name).extension().is_some_and(|extension| extension == "toml");
    let text = if name.contains('/') || is_toml { read(name)? } else { library_text(name)? };
    parse(name, text)
}

/// Path of the given properties, which are its name: by that it is found again.
pub(super) fn of_properties(path: &AdHocPath) -> Result<FoundPath, ExitStatus> {
    let mut found = path.description().map_err(unusable).and_then(|text| parse(ad_hoc::NAME, text))?;
    if let Some(name) = path.properties() {
        found.description.name = name;
    }
    Ok(found)
}

fn parse(name: &str, text: String) -> Result<FoundPath, ExitStatus> {
    let directory = std::path::Path::new(name).parent().unwrap_or(std::path::Path::new(""));
    let mut read_trace = |file: &str| read_trace(&directory.join(file));
    match PathDescription::parse_with_traces(name, &text, &mut read_trace) {
        Ok(description) => Ok(FoundPath { description, text }),
        Err(error) => Err(unusable(error.to_string())),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn unusable(problem: String) -> ExitStatus {
    console::error(&problem, None);
    ExitStatus::Unable
}

fn read(name: &str) -> Result<String, ExitStatus> {
    std::fs::read_to_string(name).map_err(|cause| {
        let text =
            format!("reading the description of a path from {name}: {}", linerate_sys::describe_os_error(&cause));
        console::error(&text, None);
        ExitStatus::Unable
    })
}

/// Reads a trace, next to the description that names it.
fn read_trace(file: &std::path::Path) -> Result<String, String> {
    let mut content = Vec::new();
    let opened = std::fs::File::open(file).and_then(|file| file.take(MAX_TRACE_SIZE + 1).read_to_end(&mut content));
    opened.map_err(|cause| linerate_sys::describe_os_error(&cause))?;
    if content.len() as u64 > MAX_TRACE_SIZE {
        return Err(format!("it has more than {} MB", MAX_TRACE_SIZE / 1_000_000));
    }
    String::from_utf8(content).map_err(|_| "it is no text".to_owned())
}

fn library_text(name: &str) -> Result<String, ExitStatus> {
    library::find(name).map(|entry| entry.text().to_owned()).map_err(|unknown| {
        // Without a suggestion it names the list itself.
        let list = if unknown.suggestion().is_some() { "`linerate lab list` shows all; " } else { "" };
        console::error(
            &format!("{unknown}\n{list}name a description of your own by its file, as in ./{name}.toml"),
            None,
        );
        ExitStatus::Unable
    })
}
