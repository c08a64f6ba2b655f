//! Tests of the crate from outside: one program, of which each module is a suite of `cargo xtask test`.

mod simulation;

mod diagnosis;
mod judge_rates;
mod kernel_facts;
mod transport;
mod tuning;
