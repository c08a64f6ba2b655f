//! Results of a fleet as a matrix of sources and destinations: what limits each direction, over time.

mod document;
mod faults;
mod history_chart;
mod html;
mod matrix;
mod text;
mod unusual;

pub use document::document;
pub use faults::{Ends, FaultEnd, FleetFault, faults};
pub use html::page;
pub use matrix::{CellState, DirectedResults, FleetMatrix};
pub use text::summary;
