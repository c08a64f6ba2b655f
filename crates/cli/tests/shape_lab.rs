//! Tests of `linerate shape` on emulated paths: each back end is installed and removed without a trace, even if killed
//! at any moment; verification rejects a shaper without effect and accepts a working one; links with a variable
//! capacity are followed.
//!
//! Effects on a host in real time are tested in `shape.rs`.

#[path = "support/mod.rs"]
mod support;

#[path = "shape_lab/autorate.rs"]
mod autorate;
#[path = "shape_lab/classes.rs"]
mod classes;
#[path = "shape_lab/dual_queue.rs"]
mod dual_queue;
#[path = "shape_lab/guest.rs"]
mod guest;
#[path = "shape_lab/hosts.rs"]
mod hosts;
#[path = "shape_lab/ineffective.rs"]
mod ineffective;
#[path = "shape_lab/killed.rs"]
mod killed;
#[path = "shape_lab/link_layer.rs"]
mod link_layer;
#[path = "shape_lab/one_flow.rs"]
mod one_flow;
#[path = "shape_lab/prediction.rs"]
mod prediction;
#[path = "shape_lab/qdisc_options.rs"]
mod qdisc_options;
#[path = "shape_lab/traces.rs"]
mod traces;
#[path = "shape_lab/verification.rs"]
mod verification;
