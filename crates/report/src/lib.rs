//! Renders results of `linerate_model`: iperf3's text and JSON, and reports for people.
//!
//! Everything here is pure: it takes `&Event`s or results, in order, and returns text. It reads no clock and no
//! terminal; the version, the system's name, the width and the colours are arguments.
//!
//! * [`iperf3_text`]: iperf3's text output, line by line;
//! * [`iperf3_json`]: iperf3's JSON document (`-J`) and stream (`--json-stream`);
//! * [`throughput_text`]: what `linerate test` shows a person;
//! * [`sentence`]: a result in one sentence, as it is kept with the run;
//! * [`presentation`]: what the report of a run says, whatever its form;
//! * [`text`]: the report for a terminal;
//! * [`markdown`]: the same in Markdown;
//! * [`html`]: the same as one HTML file with charts;
//! * [`bars`]: values as bars in a line of text;
//! * [`escape`]: escapes control characters in text from the network.

#![forbid(unsafe_code)]

pub mod bars;
pub mod escape;
mod figures;
pub mod fleet;
mod footnotes;
pub mod html;
pub mod iperf3_json;
pub mod iperf3_text;
pub mod markdown;
pub mod presentation;
pub mod sentence;
pub mod text;
pub mod throughput_text;
