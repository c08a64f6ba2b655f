//! Tests of `linerate tune` as a whole: its changes on emulated paths, the state after it is killed, loses its terminal
//! or is disturbed during a trial, and its command line.
//!
//! An interface that vanishes meanwhile, a power cut at each record and byte of the journal, and a journal on a disk
//! that fills up later are tests of the crate `change`; the protocol with the far host is tested in `tune_far.rs`.

mod command_line;
mod crash;
mod effect;
mod guest;
mod over_ssh;
