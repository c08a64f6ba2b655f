//! Facts of this host for `linerate audit` and the rules, read without changing anything and without privilege.
//!
//! Everything is of the calling process's namespaces. An unreadable fact has a reason.

mod applications;
mod counters;
mod ethtool;
mod link;
mod managers;
mod placement;
mod processors;
mod queueing;
mod reading;
mod routes;
mod running;
pub mod settings;
mod surroundings;

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use linerate_model::fact::Fact;
use linerate_model::host::HostFacts;

pub use self::counters::host_counters;
pub(crate) use self::ethtool::link_speed;
use crate::describe_os_error;

/// Reads everything of this host.
#[must_use]
pub fn read() -> HostFacts {
    let (interfaces, processes) = (link::read(), running::processes());
    HostFacts {
        routes: routes::read(&interfaces),
        managers: managers::read(&processes, &interfaces),
        applications: applications::read(&processes),
        processors: processors::read(),
        counters: counters::read(),
        interfaces,
        ..read_files_below(Path::new("/"))
    }
}

/// Reads facts from files below `root`: the settings, their files, the kernel, memory and privileges. With another root
/// than `/`, that is a made-up or an unpacked host.
#[must_use]
pub fn read_files_below(root: &Path) -> HostFacts {
    let privileges = surroundings::privileges(root);
    HostFacts {
        kernel: surroundings::kernel(root),
        settings: settings::read(root, &privileges.settings_mounted_for_writing),
        memory: surroundings::memory(root),
        privileges,
        ..HostFacts::default()
    }
}

/// A path below a root, absolute or not.
fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Contents of a file; bytes that are not text are replaced.
fn text(root: &Path, path: &str) -> Fact<String> {
    match fs::read(below(root, path)) {
        Ok(bytes) => Fact::Known(String::from_utf8_lossy(&bytes).into_owned()),
        Err(cause) => unread("reading", &format!("/{}", path.trim_start_matches('/')), &cause),
    }
}

/// Unknown fact with the kernel's error.
fn unread<T>(action: &str, path: &str, cause: &Error) -> Fact<T> {
    let reason = format!("{action} {path}: {}", describe_os_error(cause));
    match cause.kind() {
        ErrorKind::NotFound => Fact::absent(reason),
        ErrorKind::PermissionDenied => Fact::denied(reason),
        _ => Fact::failed(reason),
    }
}
