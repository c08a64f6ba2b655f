//! Finding a path: one of the library, or a file.

use linerate_lab::description::PathDescription;
use linerate_lab::library;

use crate::console;
use crate::exit::Exit;

/// A path and the text that describes it.
pub(super) struct Found {
    /// Understood.
    pub(super) description: PathDescription,
    /// As it is written.
    pub(super) text: String,
}

/// Finds `name`: a file when it looks like one (`.toml` at its end, or a slash in it), else a path of the library. What is
/// wrong has been said when it fails.
pub(super) fn find(name: &str) -> Result<Found, Exit> {
    let is_toml = std::path::Path::new(name).extension().is_some_and(|extension| extension == "toml");
    let text = if name.contains('/') || is_toml { read(name)? } else { look_up(name)? };
    match PathDescription::parse(name, &text) {
        Ok(description) => Ok(Found { description, text }),
        Err(error) => {
            console::error(&error.to_string(), None);
            Err(Exit::Unable)
        }
    }
}

fn read(name: &str) -> Result<String, Exit> {
    std::fs::read_to_string(name).map_err(|cause| {
        let text =
            format!("reading the description of a path from {name}: {}", linerate_sys::describe_os_error(&cause));
        console::error(&text, None);
        Exit::Unable
    })
}

fn look_up(name: &str) -> Result<String, Exit> {
    library::find(name).map(|entry| entry.text().to_owned()).map_err(|unknown| {
        let advice = "`linerate lab list` shows all; a description of your own is named by its file";
        console::error(&format!("{unknown}\n{advice}, as in ./{name}.toml"), None);
        Exit::Unable
    })
}
