//! Common interface of the two hosts that can be changed.

use core::fmt;
use core::time::Duration;
use std::net::IpAddr;

use linerate_change::{ApplyOutcome, ChangeError, KeepOptions, KeptChanges};
use linerate_model::change::{ChangeGroup, ChangePlan};
use linerate_rules::tuning::TuningHost;
use serde::{Deserialize, Serialize};

/// Addresses of a measured connection, at one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConnectionAddresses {
    /// Address of this end.
    pub(crate) own: IpAddr,
    /// Address of the other end.
    pub(crate) peer: IpAddr,
}

impl ConnectionAddresses {
    /// The same connection at its other end.
    pub(crate) const fn at_peer(self) -> Self {
        Self { own: self.peer, peer: self.own }
    }
}

/// A host that can be changed: the near or the far one. If it is dropped or killed, or its connection is lost,
/// everything that is not kept is rolled back.
pub(crate) trait TunedHost {
    /// Describes the host: settings and their write access, kernel, memory, sockets; of a connection also the
    /// interface and the route towards its peer, where readable.
    fn describe(&mut self, connection: Option<ConnectionAddresses>) -> Result<TuningHost, TunedHostError>;

    /// Rolls back an interrupted earlier trial, records the current values of the plan's targets, and starts the
    /// watchdog; writes nothing of the plan. Returns a sentence for each target left by an earlier trial.
    fn begin(&mut self, plan: &ChangePlan, purpose: &str, limit: Duration) -> Result<Vec<String>, TunedHostError>;

    /// Adds changes. One for a target that is only planned, or rolled back, replaces the earlier one; one for a target
    /// in effect is refused.
    fn extend(&mut self, plan: &ChangePlan) -> Result<(), TunedHostError>;

    /// Applies the changes of this group that are not in effect: all of them, or none and an error.
    fn apply(&mut self, group: ChangeGroup) -> Result<Vec<ApplyOutcome>, TunedHostError>;

    /// Rolls the changes of this group back, so that they can be applied again. Returns the targets that could not be
    /// restored, with the reason.
    fn roll_back_group(&mut self, group: ChangeGroup) -> Result<Vec<String>, TunedHostError>;

    /// Restarts the watchdog with this limit.
    fn renew(&mut self, limit: Duration) -> Result<(), TunedHostError>;

    /// Deletes the kernel's metrics of earlier connections with this address (`ip-tcp_metrics(8)`), which would carry
    /// over to the next measurement.
    fn forget_metrics(&mut self, peer: IpAddr) -> Result<(), TunedHostError>;

    /// True when changes are on trial: begun, and neither kept nor rolled back.
    fn is_on_trial(&self) -> bool;

    /// Keeps the changes in effect. On an error, everything has been rolled back.
    fn keep(&mut self, keep: &KeepOptions) -> Result<KeptChanges, TunedHostError>;

    /// Rolls everything back. Returns the targets that could not be restored, with the reason.
    fn roll_back(&mut self, reason: &str) -> Result<Vec<String>, TunedHostError>;
}

/// Error of a host. The text is complete, and safe for a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunedHostError {
    text: String,
    needs_privilege: bool,
}

impl TunedHostError {
    /// Creates an error unrelated to privilege.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), needs_privilege: false }
    }

    /// Creates an error that more privilege may avoid.
    pub(super) fn with_privilege(text: impl Into<String>, needs_privilege: bool) -> Self {
        Self { text: text.into(), needs_privilege }
    }

    /// True when more privilege would help.
    pub fn needs_privilege(&self) -> bool {
        self.needs_privilege
    }
}

impl From<ChangeError> for TunedHostError {
    fn from(error: ChangeError) -> Self {
        Self { text: error.to_string(), needs_privilege: error.needs_privilege() }
    }
}

impl From<linerate_sys::Error> for TunedHostError {
    fn from(error: linerate_sys::Error) -> Self {
        let needs_privilege = error.kind() == std::io::ErrorKind::PermissionDenied;
        Self { text: error.to_string(), needs_privilege }
    }
}

impl fmt::Display for TunedHostError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl core::error::Error for TunedHostError {}
