//! Tests of `linerate tune` as a whole: its changes on emulated paths, the state after it is killed, loses its terminal
//! or is disturbed during a trial, and its command line.
//!
//! An interface that vanishes meanwhile, a power cut at each record and byte of the journal, and a journal on a disk
//! that fills up later are tests of the crate `change`; the protocol with the far host is tested in `tune_far.rs`.

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
#[path = "tune/over_ssh.rs"]
mod over_ssh;
