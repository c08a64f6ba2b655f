//! Reading and writing what a host has under a [`Target`]: the one way in which linerate changes a host.
//!
//! [`Host`] is what the crate `change` works with; [`RealHost`] is this machine, [`FakeHost`] one in memory that can be
//! told to refuse, clamp, vanish or lose power. Nothing here keeps a record: whoever writes without the journal of
//! `change` leaves no way back.

mod device;
mod explain;
mod fake;
mod identity;
mod link;
mod queueing;
mod real;
mod route;
mod setting;

use std::path::Path;

use linerate_model::change::Target;

pub use fake::{FakeHost, Fault};
pub(crate) use link::write as write_link;
pub use real::RealHost;
pub use route::towards as route_towards;
pub use setting::path_of as setting_path;

use crate::error::{Error, Result};

/// Which machine, which start of it, and which of its networks a change was made in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Of this start of the machine (`/proc/sys/kernel/random/boot_id`).
    pub boot: String,
    /// Of the installation (`/etc/machine-id`); `None` where there is none, as in many containers.
    pub machine: Option<String>,
    /// Number of the network namespace's file (`/proc/thread-self/ns/net`).
    pub namespace: u64,
    /// Release of the kernel.
    pub kernel: String,
}

/// A host whose settings can be read and written.
pub trait Host {
    /// What stands at `target`, in its canonical form: one blank between words, no blanks around, numbers as the kernel
    /// prints them. `None` where this kernel, device or namespace has no such thing; an interface that is not there is
    /// an error ([`is_gone`]).
    fn read(&self, target: &Target) -> Result<Option<String>>;

    /// Puts `value` there; `None` takes away what stands there, which only routes and queueing disciplines can do
    /// without. What then stands there is for the caller to read: the kernel may clamp or round.
    fn write(&self, target: &Target, value: Option<&str>) -> Result<()>;

    /// Fails when `value`, which [`read`](Self::read) gave, could not be written back exactly; says what to do then. To be
    /// asked before anything is written.
    fn check_restorable(&self, target: &Target, value: &str) -> Result<()> {
        let _ = (target, value);
        Ok(())
    }

    /// What a configuration file has; `None` when there is no such file.
    fn read_file(&self, path: &Path) -> Result<Option<String>>;

    /// Replaces a configuration file as a whole, so that at any time, after a power cut too, there is the old or the new
    /// one; `None` removes it.
    fn replace_file(&self, path: &Path, contents: Option<&str>) -> Result<()>;

    /// Which host this is.
    fn identity(&self) -> Result<Identity>;

    /// A way into the network namespace of this number: a file that stands for it. `None` when it is no more.
    fn way_into_namespace(&self, namespace: u64) -> Option<String>;
}

/// Whether an error says that the interface is not there any more; its settings went with it.
#[must_use]
pub fn is_gone(error: &Error) -> bool {
    matches!(error.errno(), Some(libc::ENODEV | libc::ENXIO))
}

/// Whether an error says that there is no room for what was to be written.
#[must_use]
pub fn is_no_room(error: &Error) -> bool {
    matches!(error.errno(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// One blank between words, none around.
fn squeezed(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}
