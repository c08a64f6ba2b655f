//! The processes below this one, found in `/proc`.

use core::time::Duration;
use std::collections::HashMap;
use std::fs;

use linerate_model::socket::ProcessId;
use linerate_units::MonotonicTime;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

use crate::clock::{monotonic_now, sleep_until};
use crate::error::{Error, Result};

/// Makes orphans below this process its children instead of the first process's (`PR_SET_CHILD_SUBREAPER`), so that
/// [`descendants`] finds them. The caller has to wait for them, too.
pub fn adopt_orphans() -> Result<()> {
    set_child_subreaper(Some(getpid())).map_err(|cause| Error::system("asking to adopt orphaned processes", cause))
}

/// State of a process, and its processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessState {
    /// Parent process.
    pub parent: ProcessId,
    /// Session, named after the process that began it.
    pub session: u32,
    /// The kernel's letter: `R` runs or could, `S` sleeps, `t` is stopped by its tracer, `Z` has ended and waits to be
    /// reaped by its parent.
    pub letter: char,
    /// Processor time so far, in user mode and in the kernel, in ticks of 1/100 s.
    pub ticks: u64,
    /// The processor that it ran on last.
    pub processor: Option<u16>,
}

/// The state of a process (`/proc/PID/stat`); `None` when there is no such process.
#[must_use]
pub fn process_state(process: ProcessId) -> Option<ProcessState> {
    parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// The fields as `proc_pid_stat(5)` numbers them. The second is a name in parentheses that may have any characters.
pub(crate) fn parse(stat: &str) -> Option<ProcessState> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let number = |at: usize| field(at)?.parse::<u64>().ok();
    Some(ProcessState {
        parent: ProcessId(field(4)?.parse().ok()?),
        session: field(6)?.parse().ok()?,
        letter: field(3)?.chars().next()?,
        ticks: number(14)? + number(15)?,
        processor: field(39).and_then(|text| text.parse().ok()),
    })
}

/// All processes that this one can see, with their states.
fn all_processes() -> Result<Vec<(ProcessId, ProcessState)>> {
    let failed = |cause| Error::system("listing the processes in /proc", cause);
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()).map(ProcessId) else { continue };
        // One that has ended meanwhile is skipped.
        all.extend(process_state(id).map(|state| (id, state)));
    }
    Ok(all)
}

/// Every process below this one, children before their own children. Processes that end or begin meanwhile may be
/// missing.
pub fn descendants(process: ProcessId) -> Result<Vec<ProcessId>> {
    let mut children: HashMap<ProcessId, Vec<ProcessId>> = HashMap::new();
    for (id, state) in all_processes()? {
        children.entry(state.parent).or_default().push(id);
    }
    let mut found = children.remove(&process).unwrap_or_default();
    let mut next = 0;
    while let Some(id) = found.get(next) {
        found.extend(children.remove(id).unwrap_or_default());
        next += 1;
    }
    Ok(found)
}

/// Interval between checks for the end of killed processes.
const KILL_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Kills every process below this one and waits until all are gone, including those that start meanwhile. An error when
/// some are left after `limit`: a process that waits for a device cannot be killed.
pub fn kill_descendants(limit: Duration) -> Result<()> {
    let deadline = monotonic_now() + limit;
    loop {
        reap_ended();
        let left = descendants(ProcessId(std::process::id()))?;
        if left.is_empty() {
            return Ok(());
        }
        if (deadline - monotonic_now()).is_zero() {
            let list = left.iter().map(ProcessId::to_string).collect::<Vec<_>>().join(", ");
            return Err(Error::TimedOut { operation: format!("killing the processes {list}"), after: limit });
        }
        for id in left {
            kill(id);
        }
        pause(KILL_POLL_INTERVAL);
    }
}

/// Kills the remains of a program whose parent, which should have done that, was itself killed: every process of its
/// session (`setsid(2)`), and every process that was started with `mark` in its environment. Waits until all are gone;
/// an error when some are left after `limit`.
pub fn kill_remains(session: u32, mark: &str, limit: Duration) -> Result<()> {
    let deadline = monotonic_now() + limit;
    loop {
        let left: Vec<ProcessId> = all_processes()?
            .into_iter()
            .filter(|(id, state)| state.letter != 'Z' && (state.session == session || has_mark(*id, mark)))
            .map(|(id, _)| id)
            .collect();
        if left.is_empty() {
            return Ok(());
        }
        if (deadline - monotonic_now()).is_zero() {
            let operation = format!("killing the processes of session {session}");
            return Err(Error::TimedOut { operation, after: limit });
        }
        left.into_iter().for_each(kill);
        pause(KILL_POLL_INTERVAL);
    }
}

/// Other users' environments cannot be read: they are not of this program.
fn has_mark(process: ProcessId, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    environment.windows(mark.len()).any(|window| window == mark.as_bytes())
}

fn pause(time: Duration) {
    let until: MonotonicTime = monotonic_now() + time;
    sleep_until(until);
}

fn kill(process: ProcessId) {
    send(process, Signal::KILL);
}

/// Sends `SIGALRM` to those of these processes that run at this moment. A kernel in user mode takes that for a tick of
/// its clock, and may switch from the program that computes in the process to another.
pub fn alarm_running(processes: &[ProcessId]) {
    for process in processes.iter().filter(|process| process_state(**process).is_some_and(|state| state.letter == 'R'))
    {
        send(*process, Signal::ALARM);
    }
}

fn send(process: ProcessId, signal: Signal) {
    if let Ok(process @ 2..) = i32::try_from(process.0) {
        // The process was there a moment ago, and numbers are not used again soon.
        let _ = Pid::from_raw(process).map(|process| kill_process(process, signal));
    }
}

/// Reaps all children that have ended.
fn reap_ended() {
    let options = WaitOptions::NOHANG | WaitOptions::from_bits_retain(libc::__WALL.cast_unsigned());
    while let Ok(Some(_)) | Err(Errno::INTR) = wait(options) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_anything_in_it() {
        let stat =
            "17 (a) b) R 4 17 17 0 -1 4194304 1 0 0 0 250 31 0 0 20 0 1 0 5 2 3 4 5 6 7 8 9 0 0 0 0 0 0 0 17 3 0";
        let state = parse(stat).expect("whole");
        assert_eq!(
            state,
            ProcessState { parent: ProcessId(4), session: 17, letter: 'R', ticks: 281, processor: Some(3) }
        );
        assert_eq!(parse("17 (a"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn this_process_is_below_its_parent() {
        let own = ProcessId(std::process::id());
        let state = process_state(own).expect("we run");
        assert!(descendants(state.parent).expect("procfs").contains(&own));
        assert_eq!(process_state(ProcessId(u32::MAX)), None);
    }

    /// In a child of its own, as adopting and killing are for a whole process.
    #[test]
    fn orphans_are_found_and_killed() {
        // SAFETY: the child uses the allocator, which the C library keeps usable after a fork, and no other lock.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let clean = adopt_orphans().is_ok() && leave_orphan() && kill_descendants(Duration::from_secs(10)).is_ok();
            let is_childless = descendants(ProcessId(std::process::id())).is_ok_and(|left| left.is_empty());
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!(clean && is_childless))) };
        }
        let mut status = -1;
        // SAFETY: `status` is ours alone; the child is ours to wait for.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "one process in a session of its own, below one that has ended, was found and killed");
    }

    /// Starts a process that starts another, which leaves its group and session; returns true if the other is then
    /// below us.
    fn leave_orphan() -> bool {
        // SAFETY: as in the test.
        let between = unsafe { libc::fork() };
        if between == 0 {
            // SAFETY: as in the test.
            let orphan = unsafe { libc::fork() };
            if orphan == 0 {
                // SAFETY: both only make system calls.
                unsafe {
                    libc::setsid();
                    loop {
                        libc::pause();
                    }
                }
            }
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: the child is ours to wait for; without a place for it the status is not written.
        unsafe { libc::waitpid(between, core::ptr::null_mut(), 0) };
        descendants(ProcessId(std::process::id())).is_ok_and(|below| below.len() == 1)
    }
}
