//! Text output of `linerate test`: a progress line while it measures, and the result.
//!
//! Both are pure functions of the data and of a [`TextStyle`]. Colours are plain ANSI codes, used only on request; without
//! Unicode everything is ASCII.

mod diagnosis;
mod hosts;
mod progress;
mod quic;
mod result;
mod run_comparison;
mod style;
mod verdict;

pub use hosts::HostTable;
pub use progress::{TestProgress, progress_line};
pub use quic::quic_text;
pub use result::{
    conclusion, conclusion_details, heading, result_text, run_details, run_result, run_summary, summary_text,
};
pub(crate) use style::TextColour;
pub use style::{TerminalWidth, TextStyle};
pub use verdict::sentence;
