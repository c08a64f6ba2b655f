//! Plain data of a measurement: what was asked ([`parameters`]), what was seen while it ran ([`sample`], [`event`]),
//! what came out ([`report`]), what held it back ([`limit`]).
//!
//! Data walks one way through linerate: `sys` reads, `engine` fills these types, `report` shows them. Nothing here does
//! IO, reads a clock or starts a thread. What is not known is `None`, never 0.

#![forbid(unsafe_code)]

pub mod baseline;
pub mod capacity;
pub mod change;
pub mod diagnosis;
pub mod environment;
pub mod event;
pub mod fact;
pub mod finding;
pub mod flow;
pub mod formulas;
pub mod host;
pub mod ippm;
pub mod latency_under_load;
pub mod limit;
pub mod parameters;
pub mod path_mtu;
pub mod policer;
pub mod report;
pub mod rfc6349;
pub mod sample;
pub mod schema;
pub mod socket;
pub mod statistics;
pub mod stream;
pub mod summary;
pub mod tcp_info;
pub mod throughput;
