//! Path lookup: in the library, or in a file.

use linerate_lab::description::PathDescription;
use linerate_lab::library;

use super::ad_hoc::{self, AdHocPath};
use crate::console;
use crate::exit::ExitStatus;

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
    if let Some(path) = AdHocPath::parse(name).filter(|_| !name.contains('/')) {
        return path.and_then(|path| path.description()).map_err(unusable).and_then(|text| parse(ad_hoc::NAME, text));
    }
    let is_toml = std::path::Path::new(name).extension().is_some_and(|extension| extension == "toml");
    let text = if name.contains('/') || is_toml { read(name)? } else { library_text(name)? };
    parse(name, text)
}

/// Path of the given properties.
pub(super) fn of_properties(path: &AdHocPath) -> Result<FoundPath, ExitStatus> {
    path.description().map_err(unusable).and_then(|text| parse(ad_hoc::NAME, text))
}

fn parse(name: &str, text: String) -> Result<FoundPath, ExitStatus> {
    match PathDescription::parse(name, &text) {
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

fn library_text(name: &str) -> Result<String, ExitStatus> {
    library::find(name).map(|entry| entry.text().to_owned()).map_err(|unknown| {
        let advice = "`linerate lab list` shows all; name a description of your own by its file";
        console::error(&format!("{unknown}\n{advice}, as in ./{name}.toml"), None);
        ExitStatus::Unable
    })
}
