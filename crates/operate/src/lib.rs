//! Procedures that need a measurement, a decision and a change of the host: [`tuning`] with the diagnosis that it starts
//! from ([`diagnose`]), hosts over ssh ([`far`]), [`shaping`], the guided run of [`doctor`], and the [`check`] of this host's requirements.
//!
//! Nothing is printed and no argument of the command line is read here, and nothing ends the process. Each procedure
//! reports its events to a trait or a callback of its caller, asks it before a host is touched, and returns data: an
//! outcome, a document, or an error with the kind from which a caller derives its exit code.

#![forbid(unsafe_code)]

pub mod check;
pub mod diagnose;
pub mod doctor;
pub mod far;
pub mod shaping;
pub mod tuning;
