//! Tests of the crate from outside: one program, of which each module is a suite of `cargo xtask test`.

mod common;

mod conversation;
mod fuzz_corpus;
mod hostile;
mod parameters;
mod results;
mod sequence;
