//! Versioned shapes for serialisation. Domain types are not `Serialize`; what leaves the process goes through here.

pub mod audit;
pub mod baseline;
pub mod change;
pub mod diagnose;
pub mod doctor;
pub mod environment;
pub mod far;
#[cfg(test)]
mod json_schema;
pub mod load;
pub mod path;
pub mod rfc6349;
pub mod run;
pub mod shape;
pub mod shaper;
pub mod shaper_persistence;
pub mod shaper_status;
pub mod throughput;
pub mod tune;
pub mod watch;

/// A time as documents write it: whole nanoseconds; 584 years and more are the largest number.
#[must_use]
pub fn nanoseconds(time: core::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
