//! Errors of shaping.

use linerate_change::ChangeError;
use linerate_sys::Error;

/// Kind of a failure, from which a caller derives its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeErrorKind {
    /// Not possible with this command line, on this host or with the far end.
    Unable,
    /// Possible with more privilege.
    Privilege,
    /// Tried, and rolled back.
    RolledBack,
}

impl ShapeErrorKind {
    /// Kind of a refusal of the operating system.
    pub(crate) fn of(error: &Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => Self::Privilege,
            _ => Self::Unable,
        }
    }
}

/// A failure: what was tried and what was said, the way out, and the exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeError {
    /// One sentence or more.
    pub text: String,
    /// Remedy; `None` when that is plain.
    pub advice: Option<String>,
    /// Kind.
    pub kind: ShapeErrorKind,
}

impl ShapeError {
    /// Something that linerate cannot do here.
    pub fn impossible(text: impl Into<String>) -> Self {
        Self { text: text.into(), advice: None, kind: ShapeErrorKind::Unable }
    }

    /// The same with a way out.
    #[must_use]
    pub fn with_advice(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}

impl From<Error> for ShapeError {
    fn from(error: Error) -> Self {
        Self { text: error.to_string(), advice: None, kind: ShapeErrorKind::of(&error) }
    }
}

impl From<ChangeError> for ShapeError {
    fn from(error: ChangeError) -> Self {
        let kind = if error.needs_privilege() { ShapeErrorKind::Privilege } else { ShapeErrorKind::Unable };
        Self { text: error.to_string(), advice: None, kind }
    }
}
