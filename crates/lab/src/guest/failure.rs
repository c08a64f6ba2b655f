//! Why a guest could not be set up.

/// What was tried and what came of it, and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) error: String,
    pub(super) advice: Option<String>,
}

impl Failure {
    pub(super) fn new(error: impl Into<String>) -> Self {
        Self { error: error.into(), advice: None }
    }

    pub(super) fn with_advice(error: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { error: error.into(), advice: Some(advice.into()) }
    }

    /// Says where in the plan it happened.
    pub(super) fn in_namespace(mut self, name: &str) -> Self {
        self.error = format!("in {name}: {}", self.error);
        self
    }
}

impl From<linerate_sys::Error> for Failure {
    /// The system layer's texts have their way out in them.
    fn from(error: linerate_sys::Error) -> Self {
        Self::new(error.to_string())
    }
}
