//! Emulated network paths on a real Linux TCP stack.
//!
//! A path is described in TOML ([`description`]), becomes a `Plan` in plain data (namespaces, links, queueing
//! disciplines, kernel settings), and is carried out by the same code ([`guest`]) in two back ends: a User-Mode Linux
//! guest in virtual time, and network namespaces of this host in real time.
//!
//! This crate prints nothing: the output of a command in the lab is reported as events.

#![forbid(unsafe_code)]

pub mod bounds;
pub mod check;
pub mod compile;
pub mod description;
pub mod export;
pub mod frame;
#[doc(hidden)]
pub mod fuzzing;
pub mod guest;
pub mod job;
pub mod kernel;
pub mod library;
pub mod plan;
pub mod session;
pub mod sizing;
pub mod truth;
