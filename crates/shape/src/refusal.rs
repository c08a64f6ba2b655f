//! Why something cannot be planned.

use core::fmt;

/// A back end that cannot be had here, and what can be done instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The back end's id; `None` when none was in question yet.
    pub back_end: Option<&'static str>,
    /// Why, as a phrase without a full stop; what the kernel said is in it.
    pub reason: String,
    /// What to do instead, as a phrase without a full stop.
    pub way_out: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(back_end) = self.back_end {
            write!(f, "{back_end}: ")?;
        }
        write!(f, "{}; {}", self.reason, self.way_out)
    }
}

impl core::error::Error for Refusal {}
