//! Path lookup: in the library, or in a file.

use linerate_lab::description::PathDescription;
use linerate_lab::library;

use crate::console;
use crate::exit::ExitStatus;

/// Path description and its source text.
pub(super) struct FoundPath {
    /// Parsed description.
    pub(super) description: PathDescription,
    /// Source text.
    pub(super) text: String,
}

/// Finds `name`: a file if it ends in `.toml` or contains a slash, else a path of the library. Errors have been
/// reported when it fails.
pub(super) fn find(name: &str) -> Result<FoundPath, ExitStatus> {
    let is_toml = std::path::Path::new(name).extension().is_some_and(|extension| extension == "toml");
    let text = if name.contains('/') || is_toml { read(name)? } else { library_text(name)? };
    match PathDescription::parse(name, &text) {
        Ok(description) => Ok(FoundPath { description, text }),
        Err(error) => {
            console::error(&error.to_string(), None);
            Err(ExitStatus::Unable)
        }
    }
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
