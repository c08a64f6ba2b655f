//! Runs measurements: drives the control protocol over sockets and moves the test data.
//!
//! * [`client`] runs one test against a server; [`server`] serves any number of clients on one port.
//! * `stream` is the data plane: a blocking thread per stream, one file per transport; [`pace`] schedules it.
//! * `measurement` keeps the interval clock, samples the kernel and sums up.
//!
//! The protocol itself is `linerate-wire`'s: this crate adds its sockets, threads and clocks. Nothing is printed and no
//! host setting is changed; observers receive `Event`s.

#![forbid(unsafe_code)]

pub mod baseline;
mod budget;
pub mod client;
mod control;
pub mod diagnose;
mod error;
mod host_watch;
pub mod load;
mod measurement;
mod outcome;
pub mod pace;
pub mod path;
mod phases;
pub mod probe;
mod reservoir;
mod resources;
pub mod rfc6349;
pub mod rr;
pub mod server;
mod server_rate;
mod stream;
pub mod surroundings;
#[cfg(test)]
mod tests;
pub mod tls;
mod tracked;
pub mod watched;

pub use error::{Error, Result};
