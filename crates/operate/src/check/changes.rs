//! Changes to this host and their rollback: privilege, journal, watchdog.

use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};

use linerate_change::{ChangeStore, ChangeTrial, RollbackGuard, TrialOptions, WatchdogKind};
use linerate_documents::host_check::{CheckGroup, CheckedItem};
use linerate_model::change::ChangePlan;
use linerate_sys::host_access::RealHost;
use linerate_sys::{clock, kernel_support, process, traffic_control, whole_file};

use super::iproute2_item;

const GROUP: CheckGroup = CheckGroup::Changes;

/// Time limit of the tried watchdog; the trial ends long before.
const TRIAL_LIMIT: Duration = Duration::from_secs(60);

pub(super) fn items(store: &ChangeStore, program: &Path) -> Vec<CheckedItem> {
    let mut items = vec![root()];
    match ScratchState::create(store) {
        Ok(scratch) => {
            let place = store.state_directory().display().to_string();
            items.push(CheckedItem::working(GROUP, "state directory", place).needed());
            items.extend(watchdog(&scratch, program));
        }
        Err(reason) => items.extend(without_state(&reason)),
    }
    items.push(scratch_namespace());
    items.extend([iproute2_item("ip"), iproute2_item("tc")]);
    items.extend(kernel());
    items.extend(selinux(fs::read_to_string("/sys/fs/selinux/enforce").ok().as_deref(), program));
    items
}

fn root() -> CheckedItem {
    let item = if process::is_root() {
        CheckedItem::working(GROUP, "root", "this process is root")
    } else {
        CheckedItem::missing(GROUP, "root", "this user is not root", "nothing can be changed; measuring works")
    };
    item.with_remedy("run it with sudo".to_owned()).needed()
}

/// State directory of a trial in the real one, removed on drop.
struct ScratchState(PathBuf);

impl ScratchState {
    fn create(store: &ChangeStore) -> Result<Self, String> {
        let path = store.state_directory().join(format!("check-{}", std::process::id()));
        let scratch = Self(path);
        fs::create_dir_all(&scratch.0).map_err(|cause| format!("making {}: {cause}", scratch.0.display()))?;
        let file = scratch.0.join("written");
        whole_file::replace(&file, "written", whole_file::FileMode::Plain).map_err(|error| error.to_string())?;
        Ok(scratch)
    }
}

impl Drop for ScratchState {
    fn drop(&mut self) {
        // Only a directory of this check is left otherwise.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn without_state(reason: &str) -> [CheckedItem; 2] {
    let remedy = format!("name another directory in {}", linerate_change::STATE_VARIABLE);
    let watchdog = "not tried: it needs the state directory";
    [
        CheckedItem::missing(GROUP, "state directory", reason, "nothing can be changed: no journal can be written")
            .with_remedy(remedy)
            .needed(),
        CheckedItem::missing(GROUP, "watchdog", watchdog, "nothing can be changed").needed(),
    ]
}

/// Begins a trial that changes nothing, and ends it.
fn watchdog(scratch: &ScratchState, program: &Path) -> Vec<CheckedItem> {
    let store = ChangeStore::at(&scratch.0);
    let options = TrialOptions {
        purpose: "linerate doctor --check".to_owned(),
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        guard: RollbackGuard::Program(program.to_owned()),
        time_limit: TRIAL_LIMIT,
    };
    let nothing = ChangePlan { made_at: clock::realtime_now(), changes: Vec::new() };
    let begun = ChangeTrial::begin(&store, &RealHost, &nothing, &options);
    let kind = begun.map(|trial| {
        let kind = trial.watchdog().clone();
        let _ = trial.roll_back("it was only tried");
        kind
    });
    watchdog_items(kind.map_err(|error| error.to_string()))
}

fn watchdog_items(kind: Result<WatchdogKind, String>) -> Vec<CheckedItem> {
    let service = |because: &str| {
        CheckedItem::missing(GROUP, "watchdog as a service", because, "it is a process, which rolls back just as well")
    };
    match kind {
        Ok(WatchdogKind::Service) => {
            let works = |name| CheckedItem::working(GROUP, name, "started as a service of systemd");
            vec![works("watchdog").needed(), works("watchdog as a service")]
        }
        Ok(WatchdogKind::Process { because }) => {
            vec![CheckedItem::working(GROUP, "watchdog", "started as a process").needed(), service(&because)]
        }
        Ok(WatchdogKind::None) => Vec::new(),
        Err(error) => {
            let consequence = "nothing can be changed: a killed linerate would leave its changes";
            vec![CheckedItem::missing(GROUP, "watchdog", error, consequence).needed()]
        }
    }
}

fn scratch_namespace() -> CheckedItem {
    let made = traffic_control::in_scratch_namespace(|| "made and removed".to_owned());
    let consequence =
        "traffic control of others cannot be tried for its restoration, so it is not replaced; no `shape`";
    let remedy = "run it as root; in a container allow namespaces (CAP_SYS_ADMIN)";
    CheckedItem::tried(GROUP, "network namespaces", made, consequence).with_remedy(remedy.to_owned()).needed()
}

fn kernel() -> [CheckedItem; 3] {
    let works = |result: linerate_sys::Result<()>, detail: &str| result.map(|()| detail.to_owned());
    let newer = || "use a newer kernel".to_owned();
    [
        CheckedItem::tried(
            GROUP,
            "rtnetlink with error texts",
            works(kernel_support::error_texts(), "NETLINK_EXT_ACK"),
            "traffic control is neither read nor changed",
        )
        .with_remedy(newer())
        .needed(),
        CheckedItem::tried(
            GROUP,
            "process descriptors",
            works(kernel_support::process_descriptors(), "pidfd_open"),
            "none: a thread waits for each child process instead",
        ),
        CheckedItem::tried(
            GROUP,
            "files of threads",
            works(kernel_support::thread_files(), "/proc/thread-self"),
            "none: /proc/self/task is used instead",
        ),
    ]
}

/// Directories of the root directory whose files systemd may not execute where `SELinux` enforces its usual policy.
const UNLABELLED: [&str; 3] = ["root", "home", "tmp"];

fn selinux(enforcing: Option<&str>, program: &Path) -> Option<CheckedItem> {
    let enforcing = enforcing?.trim() == "1";
    let place = program.display().to_string();
    let top = program.iter().nth(1);
    let is_refused = enforcing && UNLABELLED.iter().any(|directory| top == Some(directory.as_ref()));
    let state = if enforcing { "enforcing" } else { "permissive" };
    let item = if is_refused {
        let consequence =
            "systemd may not execute it (203/EXEC): the watchdog is a process, and shapers do not start at boot";
        CheckedItem::missing(GROUP, "SELinux", format!("{state}, and this program is {place}"), consequence)
    } else {
        CheckedItem::working(GROUP, "SELinux", state)
    };
    Some(item.with_remedy(format!("install -m 755 {place} /usr/local/bin/linerate")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selinux_matters_where_systemd_may_not_execute_the_program() {
        let below = |directory: &str| Path::new("/").join(directory).join("linerate");
        let item = |enforcing, place| selinux(Some(enforcing), &below(place)).expect("SELinux is there");
        assert!(item("1", "usr/local/bin").works && item("0", "root").works && item("1", "opt/home").works);
        let refused = item("1\n", "home/me");
        assert!(!refused.works && !refused.needed, "the process watchdog takes its place");
        assert!(refused.remedy.is_some_and(|remedy| remedy.contains("/usr/local/bin")), "named");
        assert_eq!(selinux(None, &below("root")), None);
    }

    #[test]
    fn a_watchdog_that_is_a_process_suffices() {
        let items = watchdog_items(Ok(WatchdogKind::Process { because: "systemd does not run this host".into() }));
        assert!(items.iter().all(|item| item.works || !item.needed), "{items:?}");
        assert!(items.iter().any(|item| !item.works && item.detail.contains("systemd")), "{items:?}");
        let none = watchdog_items(Err("it did not start".into()));
        assert!(none.iter().any(|item| item.needed && !item.works), "{none:?}");
    }

    #[test]
    fn an_unwritable_state_directory_is_a_need() {
        let store = ChangeStore::at(Path::new("/proc/no-such-directory"));
        let items = items(&store, Path::new("/bin/false"));
        let unmet: Vec<&str> =
            items.iter().filter(|item| item.needed && !item.works).map(|item| item.name.as_str()).collect();
        assert!(unmet.contains(&"state directory") && unmet.contains(&"watchdog"), "{unmet:?}");
        let state = items.iter().find(|item| item.name == "state directory").expect("listed");
        assert!(state.remedy.as_deref().is_some_and(|remedy| remedy.contains("LINERATE_STATE")), "{state:?}");
    }
}
