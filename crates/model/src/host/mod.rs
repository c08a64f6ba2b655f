//! Everything that a host tells of itself that may matter to a transfer, read without changing it.
//!
//! `linerate_sys` fills these in, the rules of `linerate-rules` look at them. [`crate::environment`] is the short form that
//! travels with each measurement.

/// A host, as it was read at one time. The default is a host of which nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostFacts {}
