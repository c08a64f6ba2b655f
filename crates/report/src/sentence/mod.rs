//! Results in one sentence, by kind of measurement.

pub mod load;
pub mod path;
pub mod route;
pub mod rr;
pub mod web;
