//! Responsiveness over HTTP/2 with TLS (draft-ietf-ippm-responsiveness), at both ends: figures that are comparable with those of
//! networkQuality and goresponsiveness.
//!
//! | file | purpose |
//! |---|---|
//! | `server`, `service` | the objects that all clients of the draft ask for, under the limits of the server |
//! | `stream_io` | adapter between hyper and a TLS connection |

mod server;
mod service;
mod stream_io;

pub use server::{BoundResponsivenessService, ResponsivenessOptions, ResponsivenessServerError};
