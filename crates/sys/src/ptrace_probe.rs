//! Checks if this host lets a process do what User-Mode Linux does: trace its children or filter their system calls, and enter
//! namespaces. Each is
//! tried in a child process, as permissions depend on users, containers and filters that no version number reveals.

use std::io;

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getppid, kill_process, waitpid};
use rustix::thread::{UnshareFlags, set_no_new_privs};

use crate::error::{Error, Result, check};
use crate::namespace::unshare;
use crate::process::{exit_at_once, is_root};
use crate::signals::raise;

/// Requests of ptrace(2), in a type that converts to glibc's unsigned and to musl's signed numbers.
const PTRACE_TRACEME: u16 = 0;
const PTRACE_SYSEMU: u16 = 31;
const PTRACE_SETOPTIONS: u16 = 0x4200;

/// Runs `action`, which only makes system calls, in a child process that ends with the code that it returns.
fn fork_child(action: impl FnOnce() -> i32) -> io::Result<Pid> {
    // SAFETY: the child makes system calls only, and ends.
    match check(unsafe { libc::fork() })? {
        0 => exit_at_once(action()),
        child => Pid::from_raw(child).ok_or_else(|| io::ErrorKind::Other.into()),
    }
}

/// The error's number as an exit code.
fn exit_code(outcome: io::Result<()>) -> i32 {
    outcome.map_or_else(|cause| cause.raw_os_error().unwrap_or(libc::EIO), |()| 0)
}

/// Tries to trace a child: to stop it, to run it to its next system call, and to have that call not happen
/// (`PTRACE_SYSEMU`).
pub fn try_tracing() -> Result<()> {
    let failed = |what: &str, cause| Error::system(format!("tracing a child process ({what})"), cause);
    let child = fork_child(|| exit_code(be_traced())).map_err(|cause| failed("fork", cause))?;
    let outcome = trace(child);
    // The child is ours and has not been waited for to its end.
    let _ = kill_process(child, Signal::KILL);
    let _ = wait_for(child);
    outcome.map_err(|(what, cause)| failed(what, cause))
}

/// The child's part. When tracing works, the call after the stop does not happen, and the parent kills the process.
fn be_traced() -> io::Result<()> {
    request(PTRACE_TRACEME, None, 0)?;
    raise(libc::SIGSTOP);
    let _ = getppid();
    Ok(())
}

fn trace(child: Pid) -> core::result::Result<(), (&'static str, io::Error)> {
    let status = wait_for(child).map_err(|cause| ("waitpid", cause))?;
    if let Some(number) = status.exit_status() {
        return Err(("PTRACE_TRACEME", io::Error::from_raw_os_error(number)));
    }
    let options = usize::try_from(libc::PTRACE_O_TRACESYSGOOD).unwrap_or(0);
    request(PTRACE_SETOPTIONS, Some(child), options).map_err(|cause| ("PTRACE_SETOPTIONS", cause))?;
    request(PTRACE_SYSEMU, Some(child), 0).map_err(|cause| ("PTRACE_SYSEMU", cause))?;
    let status = wait_for(child).map_err(|cause| ("waitpid", cause))?;
    if status.stopping_signal() == Some(libc::SIGTRAP | 0x80) {
        return Ok(());
    }
    Err(("PTRACE_SYSEMU", io::Error::other("the child did not stop at its system call")))
}

/// Tries to filter the system calls of a child (seccomp(2)), as User-Mode Linux does from 6.16 on instead of tracing.
pub fn try_filtering() -> Result<()> {
    let failed = |cause| Error::system("filtering the system calls of a child process (seccomp)".to_owned(), cause);
    let child = fork_child(|| exit_code(be_filtered())).map_err(failed)?;
    match wait_for(child).map_err(failed)?.exit_status() {
        Some(0) => Ok(()),
        number => Err(failed(io::Error::from_raw_os_error(number.unwrap_or(libc::EIO)))),
    }
}

/// The child's part: a filter that permits everything.
fn be_filtered() -> io::Result<()> {
    /// `BPF_RET | BPF_K`.
    const RETURN: u16 = 0x06;
    let mut permit = libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let program = libc::sock_fprog { len: 1, filter: &raw mut permit };
    set_no_new_privs(true)?;
    // SAFETY: the program and its one instruction live until the call has copied them.
    let answer = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn request(what: u16, child: Option<Pid>, data: usize) -> io::Result<()> {
    // SAFETY: the requests that come here take numbers in place of pointers, and the child is stopped.
    let answer = unsafe { libc::ptrace(what.into(), Pid::as_raw(child), core::ptr::null_mut::<libc::c_void>(), data) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until the child has stopped or ended.
fn wait_for(child: Pid) -> io::Result<WaitStatus> {
    let ended = retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()))?;
    ended.map(|(_, status)| status).ok_or_else(|| io::ErrorKind::Other.into())
}

/// Tries to make a namespace for processes, as root by itself, else (or when that is refused) within a user namespace.
pub fn try_process_namespace() -> Result<()> {
    let failed = |cause| Error::system("making a process namespace", cause);
    let make = || {
        let alone = is_root() && unshare(UnshareFlags::NEWPID).is_ok();
        if alone { Ok(()) } else { unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWPID) }
    };
    let child = fork_child(|| exit_code(make())).map_err(failed)?;
    match wait_for(child).map_err(failed)?.exit_status() {
        Some(0) => Ok(()),
        number => Err(failed(io::Error::from_raw_os_error(number.unwrap_or(libc::EIO)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `action` in a child process, where it may also use the allocator, which the C library keeps usable after a
    /// fork; returns its exit code.
    fn in_child(action: impl FnOnce() -> i32) -> i32 {
        let status = wait_for(fork_child(action).expect("processes")).expect("our child");
        status.exit_status().expect("it was not killed")
    }

    #[test]
    fn tracing_works_or_the_kernel_says_why_not() {
        if let Err(error) = try_tracing() {
            assert!(error.errno().is_some(), "{error}");
        }
    }

    #[test]
    fn filtering_works_or_the_kernel_says_why_not() {
        if let Err(error) = try_filtering() {
            assert!(error.errno().is_some(), "{error}");
        }
    }

    /// A traced process cannot have another tracer: a refusal that every kernel gives.
    #[test]
    fn a_process_that_may_not_be_traced_is_detected() {
        let code = in_child(|| {
            let first = request(PTRACE_TRACEME, None, 0);
            let second = request(PTRACE_TRACEME, None, 0);
            // Where nothing at all may be traced the first is refused too.
            i32::from(second.is_ok()) + i32::from(first.is_ok()) * 2
        });
        assert!([0, 2].contains(&code), "{code}");
    }

    #[test]
    fn a_limit_of_no_namespaces_is_detected() {
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
