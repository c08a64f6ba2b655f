//! Programs that must not outlive this one: starting them, isolating them in namespaces, ending them with everything
//! that they have started.
//!
//! A program that is killed cannot tidy up, and programs that it traces or that have left its process group continue
//! without it. Three mechanisms keep them together: a process-identifier namespace, which the kernel empties when its
//! first process ends; a signal at the parent's death ([`SupervisedLaunch::dies_with_parent`]); and a parent that adopts every
//! orphan below it ([`adopt_orphans`]) and so can find and kill them ([`kill_descendants`]).

mod descendants;
mod launch;
mod namespaces;

pub(crate) use descendants::parse as parse_state;
pub use descendants::{
    ProcessState, adopt_orphans, alarm_running, descendants, kill_descendants, kill_remains, process_state,
};
pub use launch::{SupervisedLaunch, SupervisedProcess, become_program, die_with_parent, reap_until, take_inherited};
pub use namespaces::{NamespaceIsolation, isolate};

use std::os::fd::AsFd;

use linerate_units::ByteCount;

use crate::command;
use crate::error::{Error, Result};

/// Makes reads and writes of this descriptor return at once (`WouldBlock`) instead of waiting.
pub fn set_nonblocking(descriptor: &impl AsFd) -> Result<()> {
    command::set_nonblocking(descriptor).map_err(|cause| Error::system("making a pipe non-blocking", cause))
}

/// Sets a pipe's capacity, so that its writer seldom waits. Users who are not root may have up to 1 MiB
/// (`fs.pipe-max-size`).
pub fn set_pipe_capacity(pipe: &impl AsFd, capacity: ByteCount) -> Result<()> {
    let size = capacity.to_usize();
    rustix::pipe::fcntl_setpipe_size(pipe, size)
        .map(drop)
        .map_err(|cause| Error::system(format!("enlarging a pipe to {size} bytes"), cause))
}
