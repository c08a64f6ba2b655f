//! Tests of the crate from outside: one program, of which each module is a suite of `cargo xtask test`.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "milliseconds"
)]

mod simulation;

mod autorate;
mod fuzz_corpus;
mod verify;
