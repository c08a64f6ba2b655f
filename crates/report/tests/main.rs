//! Tests of the crate from outside: one program, of which each module is a suite of `cargo xtask test`.

mod runs;
mod support;

mod fleet;
mod iperf3_json;
mod iperf3_text;
mod report_html;
mod report_markdown;
mod report_text;
mod report_tune;
mod throughput;
