//! Moving test data: the few system calls that a data-plane thread makes, without allocation.
//!
//! Everything here blocks the calling thread for at most the socket's timeouts (`SO_SNDTIMEO`, `SO_RCVTIMEO`), so that
//! a thread can look at its stop flag. Errors are plain [`std::io::Error`]: the caller knows stream and peer.

pub mod probe_socket;
pub mod tcp;
pub mod train;
pub mod udp;

use std::io;

/// Repeats `operation` while a signal interrupts it.
fn retry_interrupted(mut operation: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        let result = operation();
        if let Ok(count) = usize::try_from(result) {
            return Ok(count);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
