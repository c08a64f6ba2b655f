//! Tests of the crate from outside: one program, of which each module is a suite of `cargo xtask test`.

mod support;

mod identity;
mod interfaces;
mod others;
mod power_cut;
mod real_kernel;
mod traffic_control;
