//! Reading and writing the value of a [`ChangeTarget`]: the only code with which linerate changes a host.
//!
//! [`HostAccess`] is the interface for the crate `change`; [`RealHost`] is this machine, [`FakeHost`] one in memory that can
//! refuse, clamp, vanish or lose power on demand. Nothing here keeps a record: writes without the journal of `change`
//! cannot be rolled back.

mod device;
mod explain;
mod fake;
mod firewall_table;
mod identity;
mod interface;
mod link;
mod queueing;
mod real;
mod route;
mod setting;

use std::collections::BTreeSet;
use std::path::Path;

use linerate_model::change::{ChangeTarget, InterfaceIdentity};

pub use fake::{FakeHost, WriteFault};
pub(crate) use link::write as write_link;
pub use real::RealHost;
pub use route::towards as route_towards;
pub use setting::path_of as setting_path;

use crate::error::{Error, Result};

/// Machine, boot and network namespace in which a change was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostIdentity {
    /// Identifier of this boot (`/proc/sys/kernel/random/boot_id`).
    pub boot: String,
    /// Identifier of the installation (`/etc/machine-id`); `None` where there is none, as in many containers.
    pub machine: Option<String>,
    /// Number of the network namespace's file (`/proc/thread-self/ns/net`).
    pub namespace: u64,
    /// Its number that no later namespace of this boot has (`SO_NETNS_COOKIE`); `None` before Linux 5.14.
    pub namespace_cookie: Option<u64>,
    /// Release of the kernel.
    pub kernel: String,
}

impl HostIdentity {
    /// True for the same network namespace of one boot. The kernel reuses the number of a file.
    #[must_use]
    pub fn shares_namespace(&self, other: &Self) -> bool {
        let differs = self.namespace_cookie.zip(other.namespace_cookie).is_some_and(|(own, others)| own != others);
        self.boot == other.boot && self.namespace == other.namespace && !differs
    }
}

/// Present location of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceLocation {
    /// In this network namespace.
    Here {
        /// Present name.
        name: String,
    },
    /// In another network namespace.
    Moved {
        /// Name there.
        name: String,
        /// File that names the namespace.
        file: String,
    },
    /// Removed.
    Gone,
}

/// A host whose settings can be read and written.
pub trait HostAccess {
    /// Returns the value of `target` in its canonical form: one blank between words, no blanks around, numbers as the
    /// kernel prints them. `None` where this kernel, device or namespace does not have it; a missing interface is an
    /// error ([`is_gone`]).
    fn read(&self, target: &ChangeTarget) -> Result<Option<String>>;

    /// Sets `value`; `None` removes the present one, possible only for routes, queueing disciplines and tables. The caller has
    /// to read the result back: the kernel may clamp or round.
    fn write(&self, target: &ChangeTarget, value: Option<&str>) -> Result<()>;

    /// Fails when `value`, which [`read`](Self::read) returned, could not be restored exactly, with the remedy. To be
    /// called before anything is written.
    fn check_restorable(&self, target: &ChangeTarget, value: &str) -> Result<()> {
        let _ = (target, value);
        Ok(())
    }

    /// Contents of a configuration file; `None` when there is no such file.
    fn read_file(&self, path: &Path) -> Result<Option<String>>;

    /// Replaces a configuration file atomically, so that the old or the new one exists at any time, even after a power
    /// cut; `None` removes it.
    fn replace_file(&self, path: &Path, contents: Option<&str>) -> Result<()>;

    /// Identity of this host.
    fn identity(&self) -> Result<HostIdentity>;

    /// A file through which the network namespace of this number can be entered; `None` when it no longer exists.
    fn way_into_namespace(&self, namespace: u64) -> Option<String>;

    /// Identity of the interface of this name in this namespace; `None` when there is none.
    fn interface_identity(&self, name: &str) -> Result<Option<InterfaceIdentity>>;

    /// Names of the loaded kernel modules; empty where they are unknown.
    fn modules(&self) -> BTreeSet<String>;

    /// Location of an interface that was in this namespace.
    fn locate_interface(&self, interface: &InterfaceIdentity) -> Result<InterfaceLocation>;
}

/// True when an error means that the interface no longer exists; its settings are gone with it.
#[must_use]
pub fn is_gone(error: &Error) -> bool {
    matches!(error.errno(), Some(libc::ENODEV | libc::ENXIO))
}

/// Text with one blank between words, none around.
fn squeezed(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}
