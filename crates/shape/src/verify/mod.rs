//! Whether a shaper does what it should: the judge of measurements before it, with it, and before it again.
//!
//! Tools that set up a shaper do not look whether anything came of it, and what goes wrong goes wrong silently: no redirect
//! of what comes in, flows that pass by in hardware, a rate above the line, IPv6 forgotten, only ping made fast. Each of
//! these has its [`Kind`] of finding here, with the numbers that it rests on. [`verify`] also says where the delay that is
//! left comes from ([`Attribution`]), and [`margin::Search`] looks for the highest rates that pass.
//!
//! Nothing is measured here: [`Evidence`] comes in, a [`Verification`] comes out.

mod attribution;
mod carried;
mod delays;
mod evidence;
mod finding;
mod judge;
pub mod margin;
mod table;

pub use attribution::{Attribution, Place};
pub use evidence::{
    Both, ClassReading, Difference, DifferenceKind, Evidence, Family, Measurement, PhaseReading, Profile, TreeReading,
};
pub use finding::{Figure, Finding, Kind};
pub use judge::{Confidence, Verification, verify};
pub use table::{DelayRow, RateRow};
