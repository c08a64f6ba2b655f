//! Refusal to plan a shaper.

use core::fmt;

use crate::back_ends::BackEndId;

/// Refusal of a back end, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShaperRefusal {
    /// Back end; `None` before one was considered.
    pub back_end: Option<BackEndId>,
    /// Reason with the kernel's message, as a phrase without a full stop.
    pub reason: String,
    /// Remedy, as a phrase without a full stop.
    pub way_out: String,
}

impl ShaperRefusal {
    /// The reason with the name of the back end, without the remedy.
    #[must_use]
    pub fn message(&self) -> String {
        self.back_end.map_or_else(|| self.reason.clone(), |back_end| format!("{back_end}: {}", self.reason))
    }
}

impl fmt::Display for ShaperRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message(), self.way_out)
    }
}

impl core::error::Error for ShaperRefusal {}
