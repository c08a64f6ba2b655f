//! Tests of the crate from outside: one program, of which each module is a suite of `cargo xtask test`.

mod support;

mod fuzz_corpus;
mod latest;
mod otlp;
