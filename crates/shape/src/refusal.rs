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

impl fmt::Display for ShaperRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(back_end) = self.back_end {
            write!(f, "{back_end}: ")?;
        }
        write!(f, "{}; {}", self.reason, self.way_out)
    }
}

impl core::error::Error for ShaperRefusal {}
