//! Duties of the first process of a system, or of a process namespace: reap all orphans, end all processes, switch the
//! machine off.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::io::retry_on_intr;
use rustix::process::{Resource, Rlimit, WaitOptions, setrlimit, wait};
use rustix::system::{RebootCommand, reboot, sethostname};
use rustix::thread::UnshareFlags;

use crate::error::{Error, Result, check};
use crate::namespace;

/// True for the first process of the system or of its process namespace.
#[must_use]
pub fn is_first_process() -> bool {
    std::process::id() == 1
}

/// Reaps a child that has ended, and returns its exit status; `None` when there is none at the moment. It is any child,
/// also one of a process that ended before it: for the first process only, which has no [`std::process::Child`] to wait
/// for at the time.
pub fn reap() -> Option<(u32, ExitStatus)> {
    let (process, status) = retry_on_intr(|| wait(WaitOptions::NOHANG)).ok()??;
    Some((process.as_raw_pid().cast_unsigned(), ExitStatus::from_raw(status.as_raw())))
}

/// Kills every other process of this process namespace, and waits for them. Refuses when this is not its first process:
/// then they would be the host's.
pub fn kill_all_other_processes() -> Result<()> {
    let operation = "ending all other processes";
    if !is_first_process() {
        return Err(Error::refused(operation, "this is not the first process of its namespace"));
    }
    // SAFETY: takes numbers. From the first process of a namespace, -1 means all others in it.
    match check(unsafe { libc::kill(-1, libc::SIGKILL) }) {
        Err(cause) if cause.raw_os_error() != Some(libc::ESRCH) => return Err(Error::system(operation, cause)),
        _ => {}
    }
    while retry_on_intr(|| wait(WaitOptions::empty())).is_ok() {}
    Ok(())
}

/// Has the kernel write everything that it still holds to the disks (`sync(2)`): of the whole system.
pub fn sync_disks() {
    rustix::fs::sync();
}

/// Switches the machine off at once. Returns only when that fails.
pub fn switch_off() -> Error {
    let operation = "switching the machine off";
    if !is_first_process() {
        return Error::refused(operation, "this is not the first process of the system");
    }
    let answer = reboot(RebootCommand::PowerOff).map_err(io::Error::from);
    Error::system(operation, answer.err().unwrap_or_else(|| io::ErrorKind::Other.into()))
}

/// Runs the calling thread whenever it can, before all others of the system (`SCHED_FIFO`). Threads and programs that
/// it starts do not inherit that.
pub fn use_realtime_scheduling() -> Result<()> {
    schedule(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1)
        .map_err(|cause| Error::system("running before all others (SCHED_FIFO)", cause))
}

/// Runs the calling thread, and threads and programs that it starts from now on, when no others can (`SCHED_IDLE`).
pub fn use_idle_scheduling() -> Result<()> {
    schedule(libc::SCHED_IDLE, 0).map_err(|cause| Error::system("running after all others (SCHED_IDLE)", cause))
}

/// Has the kernel's existing workers run whenever they can (`SCHED_FIFO`): where time stops while a program computes,
/// they would never get the processor from it. Returns their number.
pub fn prioritise_kernel_workers() -> usize {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<libc::pid_t>().ok())
        .filter(|process| {
            let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            name.starts_with("kworker/u")
        })
        .filter(|process| schedule_process(*process, libc::SCHED_FIFO, 1).is_ok())
        .count()
}

fn schedule(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    schedule_process(0, policy, priority)
}

fn schedule_process(process: libc::pid_t, policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // The system call itself: musl's function refuses with ENOSYS, as it would have to concern the whole process.
    // SAFETY: sched_param is integers, for which zero is a value. It lives through the call, which only reads it; 0 is
    // the calling thread.
    let answer = unsafe {
        let mut parameters: libc::sched_param = core::mem::zeroed();
        parameters.sched_priority = priority;
        libc::syscall(libc::SYS_sched_setscheduler, process, policy, &raw const parameters)
    };
    check(answer).map(drop)
}

/// Allows this process, and those that it starts, as many open files as the kernel can give one process, and any amount
/// of locked memory. Needs root.
pub fn lift_limits() -> Result<()> {
    let most = fs::read_to_string("/proc/sys/fs/nr_open").ok().and_then(|text| text.trim().parse().ok());
    let files = most.unwrap_or(1 << 20);
    for (resource, limit, name) in
        [(Resource::Nofile, Some(files), "open files"), (Resource::Memlock, None, "locked memory")]
    {
        setrlimit(resource, Rlimit { current: limit, maximum: limit })
            .map_err(|cause| Error::system(format!("lifting the limit of {name}"), cause))?;
    }
    Ok(())
}

/// Gives this process a host name of its own (a new UTS namespace), so that [`set_host_name`] does not reach the host.
pub fn unshare_host_name() -> Result<()> {
    namespace::unshare(UnshareFlags::NEWUTS).map_err(|cause| {
        Error::system("making a namespace for the host name", cause).hint_on(libc::EPERM, "namespaces need root")
    })
}

/// Sets the host name of this process's UTS namespace.
pub fn set_host_name(name: &str) -> Result<()> {
    sethostname(name.as_bytes()).map_err(|cause| Error::system(format!("setting the host name to {name}"), cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_process_may_end_everything() {
        assert!(!is_first_process());
        assert!(kill_all_other_processes().expect_err("refused").to_string().contains("not the first process"));
        assert!(switch_off().to_string().contains("not the first process"));
    }

    #[test]
    #[ignore = "needs root: a real-time thread, a host name of its own"]
    fn privileges_of_a_first_process() {
        let other = std::thread::spawn(|| {
            use_realtime_scheduling().expect("root");
            unshare_host_name().expect("root");
            set_host_name("near").expect("its own");
            let name = fs::read_to_string("/proc/sys/kernel/hostname").expect("procfs");
            // SAFETY: takes a number.
            let policy = unsafe { libc::sched_getscheduler(0) };
            (policy & !libc::SCHED_RESET_ON_FORK, name)
        });
        assert_eq!(other.join().expect("no panic"), (libc::SCHED_FIFO, "near\n".to_owned()));
        let output = crate::command::run("hostname", &[], None, core::time::Duration::from_secs(5)).expect("runs");
        assert_ne!(output.stdout_text(), "near\n");
    }
}
