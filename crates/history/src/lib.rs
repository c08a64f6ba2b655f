//! Finished measurements, kept in one `SQLite` file of the user's.
//!
//! [`History`] stores each [`linerate_model::schema::run::RunDocument`] whole, as compressed JSON, beside the few columns by
//! which runs are listed and the table of figures from which trends are drawn. Several processes may write at once; what
//! has been stored is never lost to a later failure: a full disk, a directory without write permission or a file of a
//! newer linerate is an error that names the way out, and leaves the file as it is.
//!
//! This crate prints nothing and measures nothing.

#![forbid(unsafe_code)]

mod document;
mod error;
mod filter;
mod history;
mod id;
mod location;
mod migration;
pub mod moment;
mod opening;
pub mod transfer;

pub use error::HistoryError;
pub use filter::Filter;
pub use history::{Added, Entry, FigureReading, History};
pub use id::{NotARun, RunId, RunReference};
pub use location::{LOCATION_VARIABLE, Location};
