//! The system layer: all access to the Linux kernel, to the host and to other programs.
//!
//! Sockets and their options, packets with their time stamps, ICMP, `tcp_info`, clocks, routes, interfaces, readiness,
//! signals, processes, the terminal, temporary files, the firewall, facts about the host; namespaces, mounts, network
//! devices and captures for emulated networks. This crate executes and reports; it decides nothing and prints nothing.
//! It is the only crate with `unsafe` code: each block states why it is sound.

#![allow(unsafe_code, reason = "the one crate that calls the kernel directly; every block has its SAFETY comment")]

pub mod address_translation;
pub mod capture;
pub mod channel;
pub mod clock;
pub mod command;
pub mod command_reader;
pub mod command_stream;
pub mod companion;
pub mod data;
pub mod disk;
pub mod distribution;
pub mod environment;
mod error;
pub mod error_queue;
pub mod facts;
pub mod features;
pub mod file;
pub mod file_lock;
pub mod firewall;
pub mod full_screen;
pub mod host;
pub mod host_access;
pub mod icmp;
pub mod interface;
pub mod iproute2;
pub mod kernel_events;
pub mod kernel_support;
pub mod launch;
pub mod machine;
mod message;
pub mod mount;
pub mod namespace;
pub mod net;
pub mod netem;
mod netlink;
pub mod options;
pub mod poll;
pub mod process;
pub mod ptrace_probe;
pub mod queue_statistics;
pub mod resources;
pub mod route;
pub mod route_events;
pub mod signals;
pub mod sock_diag;
mod socket_memory;
mod sockopt;
pub mod supervise;
pub mod syn;
pub mod tcp_info;
pub mod terminal;
#[cfg(test)]
mod test_network;
pub mod time_stamp;
pub mod traffic_control;
pub mod whole_file;

pub use error::{Error, Result, describe_os_error};
pub use socket_memory::socket_memory;
