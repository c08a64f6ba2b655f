//! Failure to set up a guest.

/// The operation and its error, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GuestFailure {
    pub(super) error: String,
    pub(super) advice: Option<String>,
}

impl GuestFailure {
    pub(super) fn new(error: impl Into<String>) -> Self {
        Self { error: error.into(), advice: None }
    }

    pub(super) fn with_advice(error: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { error: error.into(), advice: Some(advice.into()) }
    }

    /// Adds the namespace of the plan in which it happened.
    pub(super) fn in_namespace(mut self, name: &str) -> Self {
        self.error = format!("in {name}: {}", self.error);
        self
    }
}

/// Remedy for what only newer kernels have.
pub(super) const NEWER_KERNEL: &str = "run the path with a newer kernel: dualpi2 needs Linux 6.17, Accurate ECN 6.18; `linerate lab kernel \
    build` builds Linux 7.2 where Debian's backports are available, and with `--source FILE` any other";

impl From<linerate_sys::Error> for GuestFailure {
    /// The system layer's texts include their remedy.
    fn from(error: linerate_sys::Error) -> Self {
        Self::new(error.to_string())
    }
}
