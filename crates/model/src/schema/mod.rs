//! Versioned shapes for serialisation. Domain types are not `Serialize`; what leaves the process goes through here.

pub mod far;
pub mod throughput;
