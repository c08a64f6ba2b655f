//! Location of the history.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::HistoryError;

/// The environment variable that names another file, or `off`.
pub const LOCATION_VARIABLE: &str = "LINERATE_HISTORY";

/// Location of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryLocation {
    /// A file.
    File(PathBuf),
    /// None: runs are not recorded.
    Off,
}

impl HistoryLocation {
    /// Location from the environment: the file in `$LINERATE_HISTORY` (`off` for none), else `linerate/history.sqlite`
    /// in `$XDG_DATA_HOME`, else in `~/.local/share` (XDG Base Directory Specification).
    ///
    /// # Errors
    ///
    /// [`HistoryError::NoPlace`] where the environment names no location.
    pub fn from_environment() -> Result<Self, HistoryError> {
        let variable = |name| std::env::var_os(name);
        Self::resolve(variable(LOCATION_VARIABLE), variable("XDG_DATA_HOME"), variable("HOME"))
    }

    /// [`Self::from_environment`] with the variables' values.
    fn resolve(
        given: Option<OsString>,
        data_home: Option<OsString>,
        home: Option<OsString>,
    ) -> Result<Self, HistoryError> {
        let set = |value: Option<OsString>| value.filter(|value| !value.is_empty());
        if let Some(given) = set(given) {
            return Ok(if given == "off" { Self::Off } else { Self::File(given.into()) });
        }
        // The specification requires that relative paths are ignored.
        let absolute = |value: Option<OsString>| set(value).map(PathBuf::from).filter(|path| path.is_absolute());
        let data_home = absolute(data_home).or_else(|| Some(absolute(home)?.join(".local/share")));
        let folder = data_home.ok_or(HistoryError::NoPlace)?;
        Ok(Self::File(folder.join("linerate").join("history.sqlite")))
    }

    /// The file; `None` when runs are not recorded.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Off => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(given: &str, data_home: &str, home: &str) -> Option<HistoryLocation> {
        let value = |text: &str| (text != "unset").then(|| OsString::from(text));
        HistoryLocation::resolve(value(given), value(data_home), value(home)).ok()
    }

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let file = |path: &str| Some(HistoryLocation::File(path.into()));
        assert_eq!(resolve("off", "/data", "/people/a"), Some(HistoryLocation::Off));
        assert_eq!(resolve("here.sqlite", "/data", "/people/a"), file("here.sqlite"));
        assert_eq!(resolve("unset", "/data", "/people/a"), file("/data/linerate/history.sqlite"));
        assert_eq!(resolve("", "", "/people/a"), file("/people/a/.local/share/linerate/history.sqlite"));
        assert_eq!(resolve("unset", "relative", "/people/a"), file("/people/a/.local/share/linerate/history.sqlite"));
        assert_eq!(resolve("unset", "unset", "unset"), None);
        assert_eq!(resolve("unset", "unset", "relative"), None);
    }
}
