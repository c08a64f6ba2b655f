//! Plain data of a measurement: request ([`parameters`]), observations ([`sample`], [`event`]), results ([`report`]),
//! limits ([`limit`]).
//!
//! Data flows in one direction through linerate: `sys` reads, `engine` fills these types, `report` shows them. Nothing
//! here does IO, reads a clock or starts a thread. Unknown values are `None`, never 0.

#![forbid(unsafe_code)]

pub mod address_family;
pub mod autonomous_systems;
pub mod baseline;
pub mod change;
pub mod diagnosis;
pub mod direction;
pub mod environment;
pub mod event;
pub mod fact;
pub mod far;
pub mod finding;
pub mod flow;
pub mod flow_events;
pub mod fuzzing;
pub mod header_mark;
pub mod host;
pub mod json;
pub mod lab_check;
pub mod limit;
pub mod load;
pub mod parameters;
pub mod path;
pub mod quic;
pub mod report;
pub mod route;
pub mod rr;
pub mod sample;
pub mod socket;
pub mod stream;
pub mod summary;
pub mod tcp_info;
pub mod throughput;
pub mod tls;
pub mod traffic_profile;
