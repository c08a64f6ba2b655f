//! The two ends whose host can be changed, under one set of questions.

use core::fmt;
use core::time::Duration;
use std::net::IpAddr;

use linerate_change::{ChangeError, Keep, Kept, Outcome};
use linerate_model::change::{Group, Plan};
use linerate_rules::tuning::Host;

/// An end whose host can be changed: this one, or the one at the other end of the path. Whatever ends it in between (it is
/// dropped, killed, or its connection is lost), everything that is not kept is taken back.
pub(crate) trait Party {
    /// What tuning must know of the host: settings with those that cannot be written, kernel, memory, sockets; with a peer
    /// also the interface and the route towards it, as far as they can be read.
    fn host(&mut self, peer: Option<IpAddr>) -> Result<Host, PartyError>;

    /// Takes back what an interrupted earlier trial left, records what stands at the plan's targets, and starts the
    /// watchdog; writes nothing of the plan. Returns a sentence for each target that an earlier trial had left.
    fn begin(&mut self, plan: &Plan, purpose: &str, limit: Duration) -> Result<Vec<String>, PartyError>;

    /// Takes up further changes. One for a target that was only planned, or taken back, takes its place; one for a target
    /// that is in force is refused.
    fn extend(&mut self, plan: &Plan) -> Result<(), PartyError>;

    /// Carries out the changes of this group that are not in force: all of them, or none and an error.
    fn apply(&mut self, group: Group) -> Result<Vec<Outcome>, PartyError>;

    /// Takes the changes of this group back, so that they can be applied again. Returns what could not be put back, with
    /// the reason.
    fn take_back(&mut self, group: Group) -> Result<Vec<String>, PartyError>;

    /// From now on there is this much time until the watchdog takes everything back.
    fn renew(&mut self, limit: Duration) -> Result<(), PartyError>;

    /// Forgets what the kernel remembers of earlier connections with this address (`ip-tcp_metrics(8)`), which would
    /// carry over from one measurement to the next.
    fn forget_metrics(&mut self, peer: IpAddr) -> Result<(), PartyError>;

    /// Whether changes are being tried there: begun, and neither kept nor taken back.
    fn has_begun(&self) -> bool;

    /// Keeps what is in force. When this is an error, everything has been taken back.
    fn keep(&mut self, keep: &Keep) -> Result<Kept, PartyError>;

    /// Takes everything back. Returns what could not be put back, with the reason.
    fn roll_back(&mut self, reason: &str) -> Result<Vec<String>, PartyError>;
}

/// Why an end did not do what it was asked for. The text is complete, and harmless for a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartyError {
    text: String,
    needs_privilege: bool,
}

impl PartyError {
    /// An error that privilege would not help.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), needs_privilege: false }
    }

    /// An error that may be another one with more privilege.
    pub(super) fn with_privilege(text: impl Into<String>, needs_privilege: bool) -> Self {
        Self { text: text.into(), needs_privilege }
    }

    /// Whether more privilege would help.
    pub(crate) fn needs_privilege(&self) -> bool {
        self.needs_privilege
    }
}

impl From<ChangeError> for PartyError {
    fn from(error: ChangeError) -> Self {
        Self { text: error.to_string(), needs_privilege: error.needs_privilege() }
    }
}

impl From<linerate_sys::Error> for PartyError {
    fn from(error: linerate_sys::Error) -> Self {
        let needs_privilege = error.kind() == std::io::ErrorKind::PermissionDenied;
        Self { text: error.to_string(), needs_privilege }
    }
}

impl fmt::Display for PartyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl core::error::Error for PartyError {}
