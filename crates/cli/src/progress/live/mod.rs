//! Live picture of a measurement: goodput and delay as graphs, on the whole terminal.
//!
//! The measurement only updates the state; a thread of its own draws it, at most ten times a second, and reads the keys.
//! While the picture exists, the console holds back whatever is printed.

mod chart;
mod curve;
mod draw;
mod hop_chart;
mod hops;
mod label;
mod screen;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use draw::MIN_SIZE;
pub(super) use screen::LiveScreen;
pub(crate) use state::LivePicture;
