//! Tests of the crate from outside: one program, of which each module is a suite of `cargo xtask test`.

mod support;

mod contents;
mod result_log;
mod several;
mod size;
mod trouble;
