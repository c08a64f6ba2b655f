//! Far hosts over the user's own ssh: a linerate there that serves one measurement ([`FarServer`]), or that changes its
//! host for `tune`.
//!
//! The program is the one found there, or a copy of this one ([`PushedProgram`]) that has no name in any directory when it
//! runs. Both end with the ssh connection, so that nothing remains however one of the ends disappears.

mod address;
pub(crate) mod connection;
pub(crate) mod lines;
mod push;
mod server;
pub mod service;
pub(crate) mod ssh;

pub use address::FarAddress;
pub use push::PushedProgram;
pub use server::{FarEndpoint, FarServer, FarServerRequest};
