//! Tests of `linerate shape` on emulated paths: each back end is installed and removed without a trace, even if killed
//! at any moment; verification rejects a shaper without effect and accepts a working one; links with a variable
//! capacity are followed.
//!
//! Effects on a host in real time are tested in `shape.rs`.

mod autorate;
mod classes;
mod dual_queue;
mod guest;
mod hosts;
mod ineffective;
mod killed;
mod link_layer;
mod one_flow;
mod prediction;
mod qdisc_options;
mod traces;
mod verification;
