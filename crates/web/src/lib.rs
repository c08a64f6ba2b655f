//! The web service of a server (`linerate serve --web`): measures browsers over HTTP, and shows the history.
//!
//! It runs on a thread of its own with an asynchronous runtime, as thousands of connections of strangers may be idle
//! (`server`). Sessions, memory and rate are those of the measurement server (`ServiceAccess`); connections have a cap of
//! their own in which no network can keep others away (`connection_table`). A browser opens a session, moves data in both
//! directions, and sends the round trips that it measured (`session`); everything else in the result (`result`) is counted
//! here: bytes by the sockets, and `tcp_info` while they move (`sampling`). No answer depends on the file system: the page is
//! compiled in (`assets`), and unknown paths are unknown (`routes`).
//!
//! `responsiveness` measures over HTTP/2 as other programs do, at both ends, and shares the limits of the service.

mod acceptor;
mod assets;
mod body;
mod claims;
mod connection;
mod connection_table;
mod history_pages;
mod keep_limit;
mod librespeed;
mod origin;
mod request_body;
mod response;
#[cfg(feature = "responsiveness")]
pub mod responsiveness;
mod result;
mod routes;
mod sampling;
mod server;
mod service;
mod session;
mod session_table;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;

pub use server::{BoundWebService, RunningWebService, WebError, WebObserver, WebOptions};
