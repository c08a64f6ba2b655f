//! What can go wrong with a shaper, and how the command ends then.

use linerate_change::ChangeError;
use linerate_sys::Error;

use crate::exit::Exit;

/// A failure: what was tried and what was said, the way out, and the exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShapeError {
    /// One sentence or more.
    pub(crate) text: String,
    /// What to do about it; `None` when that is plain.
    pub(crate) advice: Option<String>,
    /// How the command ends.
    pub(crate) exit: Exit,
}

impl ShapeError {
    /// Something that linerate cannot do here.
    pub(crate) fn unable(text: impl Into<String>) -> Self {
        Self { text: text.into(), advice: None, exit: Exit::Unable }
    }

    /// The same with a way out.
    pub(crate) fn with_advice(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    /// Says it, and how the command ends.
    pub(crate) fn report(&self) -> Exit {
        let text = match &self.advice {
            Some(advice) => format!("{}\n{advice}", self.text),
            None => self.text.clone(),
        };
        crate::console::error(&text, None);
        self.exit
    }
}

impl From<Error> for ShapeError {
    fn from(error: Error) -> Self {
        Self { text: error.to_string(), advice: None, exit: Exit::of(&error) }
    }
}

impl From<ChangeError> for ShapeError {
    fn from(error: ChangeError) -> Self {
        let exit = if error.needs_privilege() { Exit::Privilege } else { Exit::Unable };
        Self { text: error.to_string(), advice: None, exit }
    }
}
