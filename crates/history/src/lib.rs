//! Finished measurements, kept in one `SQLite` file of the user's.
//!
//! [`History`] stores each [`linerate_documents::run::RunDocument`] whole, as compressed JSON, with a few columns
//! for lists and a table of figures for trends. Several processes may write at once. Stored runs survive every later
//! failure: a full disk, a directory without write permission or a file of a newer linerate is an error that names the
//! remedy, and leaves the file unchanged.
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
mod open_file;
pub mod result_log;
mod row;
mod size;
pub mod transfer;

pub use error::HistoryError;
pub use filter::RunFilter;
pub use history::History;
pub use id::{InvalidRunReference, RunReference, RunReferences};
pub use linerate_documents::run_list::{ListedRun, RunId};
pub use location::{HistoryLocation, LOCATION_VARIABLE};
pub use size::DeletedRuns;
