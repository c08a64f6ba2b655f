//! The host that is to set the shaper up.

use std::path::{Path, PathBuf};

use linerate_model::host::managers::Ownership;
use linerate_sys::interface::Interface;
use linerate_sys::{facts, process};

use super::super::error::ShapeError;

/// A host, or a directory that stands for one in tests.
#[derive(Debug)]
pub(super) struct Place {
    root: PathBuf,
    /// Who looks after the interface; `None`: nobody claims it, or it is not there now.
    pub(super) owner: Option<Ownership>,
    /// Whether the interface is there now.
    pub(super) has_interface: bool,
}

impl Place {
    /// This host.
    pub(super) fn here(device: &str) -> Self {
        let mut interfaces = facts::read().managers.interfaces;
        Self::below(Path::new("/"), interfaces.remove(device), Interface::by_name(device).is_ok())
    }

    /// Everything below a directory.
    pub(super) fn below(root: &Path, owner: Option<Ownership>, has_interface: bool) -> Self {
        Self { root: root.to_owned(), owner, has_interface }
    }

    /// A path of that host as one of this.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Whether it has such a directory.
    pub(super) fn has_directory(&self, path: &str) -> bool {
        self.path(path).is_dir()
    }

    /// Whether systemd runs it (`sd_booted(3)`).
    pub(super) fn runs_systemd(&self) -> bool {
        self.has_directory("/run/systemd/system")
    }
}

/// The file of this program.
pub(super) fn own_program() -> Result<String, ShapeError> {
    let program = process::own_program()?;
    program.to_str().map(str::to_owned).ok_or_else(|| {
        let place = program.display();
        let text = format!("linerate lies in {place}, whose name is no UTF-8: no unit and no script can have it");
        ShapeError::unable(text).with_advice("install it elsewhere, in /usr/local/bin for example")
    })
}
