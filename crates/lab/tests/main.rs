//! Tests of the crate from outside: one program, of which each module is a suite of `cargo xtask test`.

mod description;
mod fuzz_corpus;
mod library;
