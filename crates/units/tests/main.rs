//! Tests of the crate from outside: one program, of which each module is a suite of `cargo xtask test`.

mod algebra;
mod fuzz_corpus;
mod human;
mod iperf3;
mod parse_laws;
