//! Whether this host lets a process do what User-Mode Linux does: trace its children, and be shut into namespaces. Each
//! is tried, in a child process, as what is allowed depends on users, containers and filters that no version tells of.

use std::io;

use crate::clock::retry;
use crate::error::{Error, Result, check};
use crate::process::is_root;

/// Tries to trace a child: to stop it, to run it to its next system call, and to have that call not happen
/// (`PTRACE_SYSEMU`).
pub fn try_tracing() -> Result<()> {
    let failed = |what: &str, cause| Error::system(format!("tracing a child process ({what})"), cause);
    // SAFETY: the child makes system calls only, and ends.
    let child = check(unsafe { libc::fork() }).map_err(|cause| failed("fork", cause))?;
    if child == 0 {
        be_traced();
    }
    let outcome = trace(child);
    // SAFETY: takes numbers; the child is ours and has not been waited for to its end.
    unsafe { libc::kill(child, libc::SIGKILL) };
    let _ = wait_for(child);
    outcome.map_err(|(what, cause)| failed(what, cause))
}

/// The child's part. Its exit code is the error number when it may not be traced.
fn be_traced() -> ! {
    let nothing = core::ptr::null_mut::<libc::c_void>();
    // SAFETY: these take numbers and null pointers; `_exit` ends the process at once. When tracing works, the call after
    // the stop does not happen, and the parent kills the process.
    unsafe {
        if libc::ptrace(libc::PTRACE_TRACEME, 0, nothing, nothing) != 0 {
            libc::_exit(*libc::__errno_location());
        }
        libc::raise(libc::SIGSTOP);
        libc::getppid();
        libc::_exit(0);
    }
}

fn trace(child: libc::pid_t) -> core::result::Result<(), (&'static str, io::Error)> {
    let status = wait_for(child).map_err(|cause| ("waitpid", cause))?;
    if libc::WIFEXITED(status) {
        return Err(("PTRACE_TRACEME", io::Error::from_raw_os_error(libc::WEXITSTATUS(status))));
    }
    let options = usize::try_from(libc::PTRACE_O_TRACESYSGOOD).unwrap_or(0);
    request(libc::PTRACE_SETOPTIONS, child, options).map_err(|cause| ("PTRACE_SETOPTIONS", cause))?;
    request(libc::PTRACE_SYSEMU, child, 0).map_err(|cause| ("PTRACE_SYSEMU", cause))?;
    let status = wait_for(child).map_err(|cause| ("waitpid", cause))?;
    if libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGTRAP | 0x80 {
        return Ok(());
    }
    Err(("PTRACE_SYSEMU", io::Error::other("the child did not stop at its system call")))
}

fn request(what: libc::c_uint, child: libc::pid_t, data: usize) -> io::Result<()> {
    // SAFETY: the requests that come here take numbers in place of pointers, and the child is stopped.
    let answer = unsafe { libc::ptrace(what, child, core::ptr::null_mut::<libc::c_void>(), data) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until the child has stopped or ended.
fn wait_for(child: libc::pid_t) -> io::Result<libc::c_int> {
    let mut status = 0;
    // SAFETY: `status` is ours alone.
    retry(|| check(unsafe { libc::waitpid(child, &raw mut status, 0) }))?;
    Ok(status)
}

/// Tries to make a namespace for processes, as root by itself, else (or when that is refused) within a user namespace.
pub fn try_process_namespace() -> Result<()> {
    let operation = "making a process namespace";
    // SAFETY: the child makes system calls only, and ends.
    let child = check(unsafe { libc::fork() }).map_err(|cause| Error::system(operation, cause))?;
    if child == 0 {
        // SAFETY: takes numbers; `_exit` ends the process at once.
        unsafe {
            let alone = is_root() && libc::unshare(libc::CLONE_NEWPID) == 0;
            if alone || libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID) == 0 {
                libc::_exit(0);
            }
            libc::_exit(*libc::__errno_location());
        }
    }
    let status = wait_for(child).map_err(|cause| Error::system(operation, cause))?;
    if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 {
        return Ok(());
    }
    let cause =
        io::Error::from_raw_os_error(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { libc::EIO });
    Err(Error::system(operation, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `action` in a child process; its exit code.
    fn in_child(action: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the child uses the allocator, which the C library keeps usable after a fork, and no other lock.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = action();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) };
        }
        libc::WEXITSTATUS(wait_for(child).expect("our child"))
    }

    #[test]
    fn tracing_works_or_the_kernel_says_why_not() {
        if let Err(error) = try_tracing() {
            assert!(error.errno().is_some(), "{error}");
        }
    }

    /// A traced process cannot have another tracer: a refusal that every kernel gives.
    #[test]
    fn a_process_that_may_not_be_traced_is_found_out() {
        let code = in_child(|| {
            let nothing = core::ptr::null_mut::<libc::c_void>();
            // SAFETY: takes numbers and null pointers.
            let first = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, nothing, nothing) };
            // SAFETY: as above.
            let second = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, nothing, nothing) };
            // Where nothing at all may be traced the first is refused too.
            i32::from(second == 0) + i32::from(first == 0) * 2
        });
        assert!([0, 2].contains(&code), "{code}");
    }

    #[test]
    fn a_limit_of_no_namespaces_is_found_out() {
        let code = in_child(|| i32::from(try_process_namespace().is_err_and(|error| error.errno().is_none())));
        assert_eq!(code, 0);
    }

    /// With no more processes allowed the fork itself is refused.
    #[test]
    fn no_more_processes() {
        let code = in_child(|| {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: `none` lives through the call, which only reads it; changing the user affects this child alone.
            unsafe {
                libc::setrlimit(libc::RLIMIT_NPROC, &raw const none);
                if libc::getuid() == 0 && libc::setuid(65534) != 0 {
                    return 0;
                }
            }
            let text = try_tracing().map_or_else(|error| error.to_string(), |()| String::new());
            i32::from(!text.starts_with("tracing a child process (fork): "))
        });
        assert_eq!(code, 0);
    }
}
