//! Programs that must not outlive this one: starting them, shutting them into namespaces, ending them with everything
//! that they have started.
//!
//! A program that is killed cannot tidy up, and programs that it traces or that have left its process group go on
//! without it. Three things hold them together here: a process-identifier namespace, which the kernel empties when its
//! first process ends; a signal at the parent's death ([`Launch::dies_with_parent`]); and a parent that adopts every
//! orphan below it ([`adopt_orphans`]) and so can find and kill them ([`kill_descendants`]).

mod descendants;
mod launch;
mod namespaces;

pub(crate) use descendants::parse as parse_state;
pub use descendants::{
    ProcessState, adopt_orphans, alarm_running, descendants, kill_descendants, kill_remains, process_state,
};
pub use launch::{Launch, Process, become_program, die_with_parent, reap_until, take_inherited};
pub use namespaces::{Isolation, isolate};

use std::os::fd::{AsFd, AsRawFd};

use linerate_units::ByteCount;

use crate::error::{Error, Result, check};

/// Has reads and writes of this descriptor return at once (`WouldBlock`) instead of waiting.
pub fn set_nonblocking(descriptor: &impl AsFd) -> Result<()> {
    let failed = |cause| Error::system("making a pipe non-blocking", cause);
    let descriptor = descriptor.as_fd().as_raw_fd();
    // SAFETY: takes numbers; the descriptor is open, as it is borrowed.
    let flags = check(unsafe { libc::fcntl(descriptor, libc::F_GETFL) }).map_err(failed)?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop).map_err(failed)
}

/// Lets a pipe hold this much, so that its writer seldom waits. Users who are not root may have up to 1 MiB
/// (`fs.pipe-max-size`).
pub fn set_pipe_capacity(pipe: &impl AsFd, capacity: ByteCount) -> Result<()> {
    let size = libc::c_int::try_from(capacity.get()).unwrap_or(libc::c_int::MAX);
    // SAFETY: takes numbers; the descriptor is open, as it is borrowed.
    check(unsafe { libc::fcntl(pipe.as_fd().as_raw_fd(), libc::F_SETPIPE_SZ, size) })
        .map(drop)
        .map_err(|cause| Error::system(format!("enlarging a pipe to {size} bytes"), cause))
}
