//! `linerate shape` on emulated paths: each way to shape comes and goes without a trace, whatever moment it is killed at; a
//! shaper that does nothing is found by its proof, and one that works passes it; a line whose capacity changes is followed.
//!
//! What it does on a host, in real time, is tested in `shape.rs`.

#[path = "support/mod.rs"]
mod support;

#[path = "shape_lab/autorate.rs"]
mod autorate;
#[path = "shape_lab/guest.rs"]
mod guest;
#[path = "shape_lab/killed.rs"]
mod killed;
#[path = "shape_lab/nothing.rs"]
mod nothing;
#[path = "shape_lab/proof.rs"]
mod proof;
#[path = "shape_lab/traces.rs"]
mod traces;
