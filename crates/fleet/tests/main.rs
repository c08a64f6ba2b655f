//! Tests of the crate from outside: one program, of which each module is a suite of `cargo xtask test`.

mod alerts;
mod calendar;
mod description;
mod free_slots;
mod fuzz_corpus;
mod pscheduler_input;
mod timetable;
mod unusual;
mod usual;
