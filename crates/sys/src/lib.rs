//! The system layer: everything linerate asks of the Linux kernel, of the host and of other programs.
//!
//! Sockets and their options, `tcp_info`, clocks, readiness, signals, processes, the terminal, temporary files and the
//! firewall. This crate does what it is told and says what came out; it decides nothing and prints nothing. It is the
//! only crate with `unsafe` code: each block says why it is sound.

#![allow(unsafe_code, reason = "the one crate that calls the kernel directly; every block has its SAFETY comment")]

pub mod clock;
pub mod command;
pub mod data;
mod error;
pub mod file;
pub mod firewall;
pub mod host;
pub mod net;
pub mod options;
pub mod poll;
pub mod process;
pub mod signals;
mod sockopt;
pub mod tcp_info;
pub mod terminal;

pub use error::{Error, Result, describe_os_error};
