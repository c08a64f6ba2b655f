//! `linerate tune` as a whole: what it changes on emulated paths, what is left of it when it is killed, hung up on or
//! disturbed in the middle of a trial, and its command line.
//!
//! An interface that vanishes meanwhile, a power cut at each record and byte of the journal, and a journal whose disk fills
//! up later are tests of the crate `change`; the language that is spoken with the far end is tested in `tune_far.rs`.

#[path = "support/mod.rs"]
mod support;

#[path = "tune/command_line.rs"]
mod command_line;
#[path = "tune/crash.rs"]
mod crash;
#[path = "tune/effect.rs"]
mod effect;
#[path = "tune/guest.rs"]
mod guest;
