//! Host that sets the shaper up at boot.

use std::path::{Path, PathBuf};

use linerate_model::host::managers::InterfaceOwnership;
use linerate_sys::interface::NetworkInterface;
use linerate_sys::{facts, process};

use super::super::error::ShapeError;

/// A host, or a directory in its place in tests.
#[derive(Debug)]
pub(super) struct PersistenceHost {
    root: PathBuf,
    /// Manager of the interface; `None`: unmanaged, or no such interface now.
    pub(super) owner: Option<InterfaceOwnership>,
    /// True when the interface exists now.
    pub(super) has_interface: bool,
}

impl PersistenceHost {
    /// Returns this host.
    pub(super) fn here(device: &str) -> Self {
        let mut interfaces = facts::read().managers.interfaces;
        Self::below(Path::new("/"), interfaces.remove(device), NetworkInterface::by_name(device).is_ok())
    }

    /// Returns the host below a directory.
    pub(super) fn below(root: &Path, owner: Option<InterfaceOwnership>, has_interface: bool) -> Self {
        Self { root: root.to_owned(), owner, has_interface }
    }

    /// Maps a file path of that host to this one.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// True when it has such a directory.
    pub(super) fn has_directory(&self, path: &str) -> bool {
        self.path(path).is_dir()
    }

    /// True when it has such a file.
    pub(super) fn has_file(&self, path: &str) -> bool {
        self.path(path).is_file()
    }

    /// True when systemd is its init (`sd_booted(3)`).
    pub(super) fn runs_systemd(&self) -> bool {
        self.has_directory("/run/systemd/system")
    }
}

/// Path of this program.
pub(super) fn own_program() -> Result<String, ShapeError> {
    let program = process::own_program()?;
    program.to_str().map(str::to_owned).ok_or_else(|| {
        let place = program.display();
        let text = format!("the path of linerate, {place}, is not UTF-8: units and scripts cannot contain it");
        ShapeError::impossible(text).with_advice("install it elsewhere, for example in /usr/local/bin")
    })
}
