//! Verification of a shaper from measurements without it, with it, and without it again.
//!
//! Tools that set up a shaper do not verify its effect, and failures are silent: a missing ingress redirect, flows that
//! bypass it in hardware, a rate above the capacity, IPv6 without filters, only ping made fast. Each of these is a
//! [`FindingKind`] of finding here, with its figures. [`verify`] also attributes the remaining delay ([`DelayAttribution`]), and
//! `Search` finds the highest rates that pass.
//!
//! Nothing is measured here: the input is [`ShaperEvidence`], the output a [`ShaperVerdict`].

mod attribution;
mod comparison_table;
mod counter_checks;
mod delay_checks;
mod evidence;
mod finding;
pub mod rate_search;
mod verdict;

pub use attribution::{DelayAttribution, DelayOrigin};
pub use comparison_table::{DelayRow, RateRow};
pub use evidence::{
    ClassDelays, PathMeasurement, PerDirection, PhaseMeasurement, PlanDifferenceKind, ReadBackDifference,
    ShaperEvidence, ShaperRequirements, TreeCounters,
};
pub use finding::{FigureName, FindingFigure, FindingKind, ShaperFinding};
pub use verdict::{ShaperVerdict, verify};
