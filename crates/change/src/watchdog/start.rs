//! Start of the watchdog: as a service of systemd, else as a process.

use core::time::Duration;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use linerate_sys::clock::{monotonic_now, sleep_until};
use linerate_sys::command;
use linerate_sys::namespace;
use linerate_sys::supervise::SupervisedLaunch;

use super::WATCHDOG_NOTE;
use crate::error::{ChangeError, Result};
use crate::id::ChangeId;
use crate::store::{ChangeStore, STATE_VARIABLE};

/// Maximum time for its start.
const MAX_START_TIME: Duration = Duration::from_secs(10);

/// Interval between checks whether it is ready.
const READY_INTERVAL: Duration = Duration::from_millis(5);

/// Interval between questions about the service's state.
const STATE_INTERVAL: Duration = Duration::from_millis(100);

/// Exit status of a service whose program may not be executed, as by `SELinux` (`systemd.exec(5)`).
const EXEC_FAILURE: u32 = 203;

/// Form in which the watchdog of a trial runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchdogKind {
    /// A transient service of systemd, which outlives the login session.
    Service,
    /// A process in a session of its own.
    Process {
        /// Reason why it is no service.
        because: String,
    },
    /// None.
    None,
}

/// Watchdog to start.
#[derive(Clone, Copy)]
pub(super) struct WatchdogStart<'a> {
    pub(super) program: &'a Path,
    pub(super) store: &'a ChangeStore,
    pub(super) id: ChangeId,
}

impl WatchdogStart<'_> {
    /// Starts it; as a process when the service manager cannot, which is noticed without waiting for the time limit.
    pub(super) fn start(self, manager: core::result::Result<ServiceManager, String>) -> Result<WatchdogKind> {
        let because = match manager.and_then(|manager| manager.start(self)) {
            Ok(()) => return Ok(WatchdogKind::Service),
            Err(reason) => reason,
        };
        self.start_process()?;
        if self.wait_until_ready(|| None).is_ok() {
            return Ok(WatchdogKind::Process { because });
        }
        Err(ChangeError::Watchdog(format!(
            "{} rollback --watch {} does not report within {} s",
            self.program.display(),
            self.id,
            MAX_START_TIME.as_secs()
        )))
    }

    fn is_ready(self) -> bool {
        self.store.read_note(self.id, WATCHDOG_NOTE).is_some()
    }

    /// Waits for its note; fails after the time limit, and when `ended` knows that it does not run.
    fn wait_until_ready(self, mut ended: impl FnMut() -> Option<String>) -> core::result::Result<(), String> {
        let limit = monotonic_now() + MAX_START_TIME;
        let mut ask_at = monotonic_now() + STATE_INTERVAL;
        while monotonic_now() < limit {
            if self.is_ready() {
                return Ok(());
            }
            if monotonic_now() > ask_at {
                // It may have become ready meanwhile.
                if let Some(reason) = ended().filter(|_| !self.is_ready()) {
                    return Err(reason);
                }
                ask_at = monotonic_now() + STATE_INTERVAL;
            }
            sleep_until(monotonic_now() + READY_INTERVAL);
        }
        Err(format!("it did not report within {} s", MAX_START_TIME.as_secs()))
    }

    fn start_process(self) -> Result<()> {
        let arguments: [OsString; 3] = ["rollback".into(), "--watch".into(), self.id.to_string().into()];
        let inherited = ["PATH", "HOME", "TERM"];
        let mut environment: Vec<(OsString, OsString)> =
            inherited.into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect();
        environment.push((STATE_VARIABLE.into(), self.store.state_directory().into()));
        let launch = SupervisedLaunch {
            program: self.program,
            arguments: &arguments,
            environment: Some(&environment),
            output: None,
            inherited: &[],
            own_session: true,
            dies_with_parent: false,
        };
        launch.start().map(drop).map_err(|error| ChangeError::Watchdog(error.to_string()))
    }
}

/// systemd's programs.
#[derive(Clone, Debug)]
pub(super) struct ServiceManager {
    run: String,
    control: String,
}

impl ServiceManager {
    /// systemd, when it runs the host and shares this process's namespaces, as its services run in the host's own; else
    /// the reason not to use it.
    pub(super) fn of_this_host() -> core::result::Result<Self, String> {
        if !Path::new("/run/systemd/system").is_dir() || !is_first_process("systemd") {
            return Err("systemd does not run this host".to_owned());
        }
        let same = |kind: &str| {
            let here = fs::read_link(format!("/proc/self/ns/{kind}")).ok();
            here.is_some() && here == fs::read_link(format!("/proc/1/ns/{kind}")).ok()
        };
        let own_thread = namespace::own_number() == namespace::number_of(Path::new("/proc/self/ns/net")).ok();
        if !(same("net") && same("mnt") && same("pid") && own_thread) {
            return Err("this is a namespace, and systemd's services are outside of it".to_owned());
        }
        Ok(Self { run: "systemd-run".to_owned(), control: "systemctl".to_owned() })
    }

    /// Starts the watchdog as a service, and waits until it is ready; else the reason why it does not run.
    fn start(&self, start: WatchdogStart<'_>) -> core::result::Result<(), String> {
        let arguments = service_arguments(start);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        command::run_checked(&self.run, &arguments, None, MAX_START_TIME).map_err(|error| error.to_string())?;
        let unit = unit_of(start.id);
        start.wait_until_ready(|| self.reason_of_end(&unit)).inspect_err(|_| {
            // One that is late would watch, too, which is harmless.
            let _ = command::run(&self.control, &["stop", &unit], None, MAX_START_TIME);
        })
    }

    /// Reason why the service does not run; `None` while it does, or when that cannot be learnt.
    fn reason_of_end(&self, unit: &str) -> Option<String> {
        let question = ["show", "--property=ActiveState", "--property=SubState", unit];
        let output = command::run(&self.control, &question, None, MAX_START_TIME).ok()?;
        let states = output.stdout_text();
        let is = |line: &str| states.lines().any(|state| state == line);
        let has_ended = is("ActiveState=failed") || is("ActiveState=inactive") || is("SubState=auto-restart");
        has_ended.then(|| {
            "systemd could not run this program as a service (`journalctl -t systemd` has the reason; with SELinux, status \
             203/EXEC: install it in /usr/local/bin)"
                .to_owned()
        })
    }
}

fn is_first_process(name: &str) -> bool {
    fs::read_to_string("/proc/1/comm").is_ok_and(|first| first.trim() == name)
}

fn unit_of(id: ChangeId) -> String {
    format!("linerate-watchdog-{id}")
}

/// Arguments of `systemd-run` for a service that is restarted on failure, unless its program may not be executed.
fn service_arguments(start: WatchdogStart<'_>) -> Vec<String> {
    let id = start.id;
    vec![
        "--quiet".into(),
        "--collect".into(),
        format!("--unit={}", unit_of(id)),
        format!("--description=Rolls back changes {id} of linerate unless they are kept"),
        "--property=Restart=on-failure".into(),
        format!("--property=RestartPreventExitStatus={EXEC_FAILURE}"),
        format!("--setenv={STATE_VARIABLE}={}", start.store.state_directory().display()),
        "--".into(),
        start.program.display().to_string(),
        "rollback".into(),
        "--watch".into(),
        id.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn the_service_has_the_state_directory_and_the_set() {
        let store = ChangeStore::at(Path::new("/var/lib/linerate"));
        let program = Path::new("/usr/bin/linerate");
        let line = service_arguments(WatchdogStart { program, store: &store, id: ChangeId::new(7) }).join(" ");
        assert!(
            line.contains("--unit=linerate-watchdog-7") && line.contains("LINERATE_STATE=/var/lib/linerate "),
            "{line}"
        );
        assert!(line.ends_with("-- /usr/bin/linerate rollback --watch 7"), "{line}");
    }

    /// A script that another thread's new process still has open cannot be started.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Scripts in place of systemd's programs and of linerate's.
    struct Programs {
        _alone: MutexGuard<'static, ()>,
        scratch: Scratch,
        store: ChangeStore,
        id: ChangeId,
    }

    impl Programs {
        fn new() -> Self {
            let scratch = Scratch::new();
            let store = ChangeStore::at(&scratch.path().join("state"));
            let _lock = store.lock().expect("no panic holds it");
            let id = store.create_next().expect("room");
            Self { _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner), scratch, store, id }
        }

        fn script(&self, name: &str, body: &str) -> PathBuf {
            let path = self.scratch.path().join(name);
            fs::write(
                &path,
                format!("#!/bin/sh\necho {name} \"$1\" >>'{}/calls'\n{body}\n", self.scratch.path().display()),
            )
            .expect("room");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
            path
        }

        /// Starts a watchdog that reports at once, where systemd's programs do this.
        fn start(&self, run: &str, control: &str) -> WatchdogKind {
            let note = self.store.set_directory(self.id).join(WATCHDOG_NOTE);
            let program = self.script("watchdog", &format!("echo 1 >'{}'", note.display()));
            let name = |path: PathBuf| path.display().to_string();
            let run = run.replace("NOTE", &note.display().to_string());
            let manager = ServiceManager {
                run: name(self.script("systemd-run", &run)),
                control: name(self.script("systemctl", control)),
            };
            let start = WatchdogStart { program: &program, store: &self.store, id: self.id };
            start.start(Ok(manager)).expect("a watchdog")
        }

        fn calls(&self) -> Vec<String> {
            let text = fs::read_to_string(self.scratch.path().join("calls")).expect("written");
            text.lines().map(|line| line.split(" rollback").next().unwrap_or(line).trim().to_owned()).collect()
        }
    }

    #[test]
    fn a_service_that_reports_is_the_watchdog() {
        let programs = Programs::new();
        assert_eq!(programs.start("echo 1 >'NOTE'", "exit 1"), WatchdogKind::Service);
        assert!(!programs.calls().iter().any(|call| call == "watchdog"), "{:?}", programs.calls());
    }

    #[test]
    fn without_systemd_it_is_a_process() {
        let programs = Programs::new();
        let program = programs.script("watchdog", "echo 1 >\"$LINERATE_STATE/changes/$3/watchdog\"");
        let start = WatchdogStart { program: &program, store: &programs.store, id: programs.id };
        let manager = ServiceManager { run: "no-such-systemd-run".into(), control: "no-such-systemctl".into() };
        let WatchdogKind::Process { because } = start.start(Ok(manager)).expect("a process") else {
            panic!("no service is there")
        };
        assert!(because.contains("not installed"), "{because}");
    }

    #[test]
    fn an_old_systemd_run_is_replaced_by_a_process() {
        let programs = Programs::new();
        let old = "echo \"systemd-run: unrecognized option '--collect'\" >&2; exit 1";
        let WatchdogKind::Process { because } = programs.start(old, "exit 1") else { panic!("it refuses") };
        assert!(because.contains("unrecognized option"), "{because}");
        assert_eq!(programs.calls(), ["systemd-run --quiet", "watchdog"]);
    }

    /// As `SELinux` does: systemd accepts the unit, and then may not execute the program (203/EXEC).
    #[test]
    fn a_service_that_cannot_be_executed_is_replaced_at_once() {
        for state in
            ["ActiveState=failed", "ActiveState=inactive", "ActiveState=activating\necho SubState=auto-restart"]
        {
            let programs = Programs::new();
            let kind = programs.start("exit 0", &format!("echo {state}"));
            let WatchdogKind::Process { because } = kind else { panic!("{state}: it does not run") };
            assert!(because.contains("203/EXEC"), "{because}");
            // One look was enough, and the service cannot come later.
            assert_eq!(programs.calls(), ["systemd-run --quiet", "systemctl show", "systemctl stop", "watchdog"]);
        }
    }
}
