//! Versioned shapes for serialisation. Domain types are not `Serialize`; what leaves the process goes through here.

pub mod environment;
pub mod far;
#[cfg(test)]
mod json_schema;
pub mod load;
pub mod path;
pub mod rfc6349;
pub mod run;
pub mod throughput;
