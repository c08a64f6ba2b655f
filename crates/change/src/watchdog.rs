//! Who takes changes back when the process that makes them cannot.
//!
//! A second linerate in a session of its own waits for one of three things: the lock of the state directory becomes free
//! without the set being kept (the process was killed, hung up on, or lost its terminal), the deadline passes (it hangs,
//! or whoever should confirm cannot reach the host any more), or the set is kept or taken back, with which it ends. Where
//! systemd runs the host, the watchdog is a transient service, so that the end of a login session does not end it;
//! elsewhere, and in network namespaces and containers, a process of its own, in the same namespace.

use core::time::Duration;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use linerate_sys::clock::{monotonic_now, sleep_until};
use linerate_sys::command;
use linerate_sys::host_access::Host;
use linerate_sys::process::ProcessIdentity;
use linerate_sys::supervise::Launch;
use linerate_units::MonotonicTime;

use crate::error::{ChangeError, Result};
use crate::id::ChangeId;
use crate::rollback::{Mode, Report, take_back};
use crate::set::{ChangeSet, State};
use crate::store::{Store, VARIABLE};

/// Who takes the changes back if this process cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// This program, which is linerate, as `PROGRAM rollback --watch ID`.
    Program(PathBuf),
    /// Nobody: a killed process leaves its changes until the next start or boot. For changes to a host in memory.
    Nobody,
}

const DEADLINE: &str = "deadline";
const WATCHING: &str = "watchdog";

/// How often the watchdog looks.
const LOOK: Duration = Duration::from_millis(200);

/// How long it may take to start.
const START: Duration = Duration::from_secs(10);

/// How long the process may take to end by itself when its time is over.
const GRACE: Duration = Duration::from_secs(2);

pub(crate) fn write_deadline(store: &Store, id: ChangeId, deadline: MonotonicTime) -> Result<()> {
    store.write_note(id, DEADLINE, &deadline.as_nanos().to_string())
}

fn deadline(store: &Store, id: ChangeId) -> Option<MonotonicTime> {
    store.read_note(id, DEADLINE)?.trim().parse().ok().map(MonotonicTime::from_nanos)
}

/// Starts the watchdog, and comes back when it watches.
pub(crate) fn arm(guard: &Guard, store: &Store, id: ChangeId) -> Result<()> {
    let Guard::Program(program) = guard else { return Ok(()) };
    let has_service = serves_systemd() && start_service(program, store, id);
    if has_service && comes_up(store, id) {
        return Ok(());
    }
    start_process(program, store, id)?;
    if comes_up(store, id) {
        return Ok(());
    }
    Err(ChangeError::Watchdog(format!(
        "{} rollback --watch {id} does not report within {} s",
        program.display(),
        START.as_secs()
    )))
}

fn comes_up(store: &Store, id: ChangeId) -> bool {
    let limit = monotonic_now() + START;
    while monotonic_now() < limit {
        if store.read_note(id, WATCHING).is_some() {
            return true;
        }
        sleep_until(monotonic_now() + Duration::from_millis(5));
    }
    false
}

/// Whether systemd runs the host and shares our network: its services run in the host's own.
fn serves_systemd() -> bool {
    let first = fs::read_to_string("/proc/1/comm").is_ok_and(|name| name.trim() == "systemd");
    let same = |kind: &str| {
        let here = fs::read_link(format!("/proc/self/ns/{kind}")).ok();
        here.is_some() && here == fs::read_link(format!("/proc/1/ns/{kind}")).ok()
    };
    let own_thread = fs::read_link("/proc/thread-self/ns/net").ok() == fs::read_link("/proc/self/ns/net").ok();
    first && Path::new("/run/systemd/system").is_dir() && same("net") && same("mnt") && same("pid") && own_thread
}

/// Whether systemd took it. It starts again what fails, which a watchdog that was killed by mistake should.
fn start_service(program: &Path, store: &Store, id: ChangeId) -> bool {
    let arguments = service_arguments(program, store, id);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    command::run_checked("systemd-run", &arguments, None, START).is_ok()
}

fn service_arguments(program: &Path, store: &Store, id: ChangeId) -> Vec<String> {
    vec![
        "--quiet".into(),
        "--collect".into(),
        format!("--unit=linerate-watchdog-{id}"),
        format!("--description=Takes back changes {id} of linerate unless they are kept"),
        "--property=Restart=on-failure".into(),
        format!("--setenv={VARIABLE}={}", store.state_directory().display()),
        "--".into(),
        program.display().to_string(),
        "rollback".into(),
        "--watch".into(),
        id.to_string(),
    ]
}

fn start_process(program: &Path, store: &Store, id: ChangeId) -> Result<()> {
    let arguments: [OsString; 3] = ["rollback".into(), "--watch".into(), id.to_string().into()];
    let mut environment: Vec<(OsString, OsString)> =
        ["PATH", "HOME", "TERM"].into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect();
    environment.push((VARIABLE.into(), store.state_directory().into()));
    let launch = Launch {
        program,
        arguments: &arguments,
        environment: Some(&environment),
        output: None,
        inherited: &[],
        own_session: true,
        dies_with_parent: false,
    };
    launch.start().map(drop).map_err(|error| ChangeError::Watchdog(error.to_string()))
}

/// What the watchdog does. Comes back when nothing is left to watch; with a report if it had to take the set back.
pub fn watch(store: &Store, host: &dyn Host, id: ChangeId) -> Result<Option<Report>> {
    let set = store.get(id)?;
    store.write_note(id, WATCHING, &std::process::id().to_string())?;
    let mut asked_at = None;
    loop {
        let here = host.identity()?;
        if let Some(_lock) = store.try_lock()? {
            let now = store.get(id)?;
            let is_pending = now.state(&here) == State::Pending;
            let reason = if asked_at.is_some() { "its time was over" } else { "the process that tried it was gone" };
            return is_pending.then(|| take_back(store, host, id, Mode::ForReal, reason)).transpose();
        }
        if store.get(id).is_ok_and(|set| set.state(&here) != State::Pending) {
            return Ok(None);
        }
        let now = monotonic_now();
        if deadline(store, id).is_none_or(|deadline| now > deadline) {
            end_the_process(&set, now, &mut asked_at);
        }
        sleep_until(now + LOOK);
    }
}

/// Asks the process whose time is over to end, and a little later makes it: it may hang, and as long as it is there it
/// could write again.
fn end_the_process(set: &ChangeSet, now: MonotonicTime, asked_at: &mut Option<MonotonicTime>) {
    let process = ProcessIdentity { number: set.process, began: set.process_began };
    // A process that cannot be reached keeps the lock, and is tried again at the next look.
    match asked_at {
        None => {
            let _ = process.terminate();
            *asked_at = Some(now);
        }
        Some(asked) if now - *asked > GRACE => {
            let _ = process.kill();
        }
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_told_where_and_what() {
        let store = Store::at(Path::new("/var/lib/linerate"));
        let arguments = service_arguments(Path::new("/usr/bin/linerate"), &store, ChangeId::new(7));
        let line = arguments.join(" ");
        assert!(
            line.contains("--unit=linerate-watchdog-7") && line.contains("LINERATE_STATE=/var/lib/linerate "),
            "{line}"
        );
        assert!(line.ends_with("-- /usr/bin/linerate rollback --watch 7"), "{line}");
    }
}
