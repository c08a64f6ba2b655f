//! Responsiveness over HTTP/2 with TLS (draft-ietf-ippm-responsiveness), at both ends: figures that are comparable with those of
//! networkQuality and goresponsiveness.
//!
//! | file | purpose |
//! |---|---|
//! | `server`, `service` | the objects that all clients of the draft ask for, under the limits of the server |
//! | `config` | configuration of a server, and the hosts that it may name |
//! | `test`, `phase` | the test of a client, and its loaded phases |
//! | `client`, `load`, `probe` | connections, the load on them, and the probes |
//! | `stream_io` | adapter between hyper and a TLS connection |

mod client;
pub mod config;
mod load;
mod phase;
mod probe;
mod server;
mod service;
mod stream_io;
mod test;
#[cfg(test)]
mod tests;

pub use config::HttpsUrl;
pub use server::{BoundResponsivenessService, ResponsivenessOptions, ResponsivenessServerError};
pub use test::{HttpTestOptions, run};

/// Longest text of a stranger in a message.
const MAX_SHOWN: usize = 100;

/// Text of a stranger for a message: printable, and shortened.
fn shown(text: &str) -> String {
    crate::claims::shortened(text, MAX_SHOWN)
}
