//! Far host, changed by its own linerate: over the operator's ssh, or in a local network namespace.

use core::fmt;
use core::time::Duration;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use linerate_change::{ApplyOutcome, ChangeId, ChangeStore, KeepOptions, KeptChanges, STATE_VARIABLE};
use linerate_model::change::document::PlanDocument;
use linerate_model::change::{ChangeGroup, ChangePlan, ChangeTarget};
use linerate_rules::tuning::TuningHost;
use linerate_sys::clock::monotonic_now;
use linerate_sys::companion::{InteractiveCommand, InteractiveProcess};
use linerate_sys::namespace::NetworkNamespace;
use linerate_sys::process::own_program;
use linerate_sys::signals::InterruptSignals;
use linerate_units::serde::nanoseconds;

use super::protocol::{self, AgentAnswer, AgentGreeting, AgentRequest, GREETING_TEXT};
use super::tuned_host::{ConnectionAddresses, TunedHost, TunedHostError};
use crate::far::FarAddress;
use crate::far::connection::{AgentConnection, FarConnection, START_TIMEOUT};
use crate::far::ssh::SshDestination;

/// Journal directory of a local network namespace, separate from this host's own.
fn namespace_state(state: &Path, name: &str) -> PathBuf {
    state.join(format!("netns-{name}"))
}

impl FarAddress {
    /// Command, for this host, that rolls back changes kept there.
    pub fn rollback_command(&self, id: ChangeId) -> String {
        match self {
            Self::Ssh { destination, port } => {
                let port = port.map_or_else(String::new, |port| format!("-p {port} "));
                format!("ssh {port}{destination} linerate rollback {id}")
            }
            Self::Namespace(name) => {
                let state =
                    ChangeStore::from_environment().ok().map(|store| namespace_state(store.state_directory(), name));
                let state = state.map_or_else(String::new, |state| format!("{STATE_VARIABLE}={} ", state.display()));
                format!("{state}ip netns exec {name} linerate rollback {id}")
            }
        }
    }
}

/// Time limit of a read-only request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit of a request that writes or rolls back: each of several runs of `ip`, `tc` and `ethtool` has 10 s there,
/// and the watchdog twice that to start.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(120);

/// Far host. Dropping it rolls back everything that is not kept.
pub(crate) struct FarHost {
    connection: FarConnection,
    has_begun: bool,
    /// Targets of its changes.
    planned: Vec<ChangeTarget>,
}

impl FarHost {
    /// Starts the linerate at the far end and waits for its greeting. `program`: its command with any prefix; in a
    /// namespace always this program.
    pub(crate) fn start(address: &FarAddress, program: &str) -> Result<Self, TunedHostError> {
        let interrupts = InterruptSignals::install()?;
        let companion = match address {
            FarAddress::Ssh { destination, port } => {
                let words = program.split_ascii_whitespace().chain(AGENT_ARGUMENTS);
                SshDestination { destination, port: *port }.start(&[], words)?
            }
            FarAddress::Namespace(name) => start_in_namespace(name)?,
        };
        let far = Self::with_connection(Box::new(companion), address.to_string());
        far.receive_greeting(Some(&interrupts))
    }

    fn with_connection(wire: Box<dyn AgentConnection>, name: String) -> Self {
        Self { connection: FarConnection::new(wire, name), has_begun: false, planned: Vec::new() }
    }

    fn receive_greeting(mut self, interrupts: Option<&InterruptSignals>) -> Result<Self, TunedHostError> {
        let greeted =
            self.connection.receive_greeting::<AgentGreeting>(GREETING_TEXT, START_TIMEOUT, interrupts, |_| None);
        greeted.map(|_| self).map_err(TunedHostError::new)
    }

    /// Error of a lost connection: the far end rolls everything back itself.
    fn lost(&mut self, error: String) -> TunedHostError {
        let begun = core::mem::take(&mut self.has_begun);
        TunedHostError::new(error + if begun { "; the remote linerate rolls its changes back" } else { "" })
    }

    /// Closes the connection.
    fn fail_connection(&mut self, why: &str) -> TunedHostError {
        let error = self.connection.fail(why);
        self.lost(error)
    }

    fn ask(&mut self, request: &AgentRequest, patience: Duration) -> Result<AgentAnswer, TunedHostError> {
        if self.connection.is_lost() {
            return Err(TunedHostError::new(format!("{}: the connection was lost earlier", self.connection.name())));
        }
        let deadline = monotonic_now() + patience;
        let line = match protocol::encode(request) {
            Ok(line) => line,
            Err(wrong) => {
                return Err(TunedHostError::new(format!("{}: invalid request: {wrong}", self.connection.name())));
            }
        };
        let sent = self.connection.send(line.as_bytes(), deadline);
        let line =
            sent.and_then(|()| self.connection.receive_line(deadline, None)).map_err(|error| self.lost(error))?;
        match self.check_answer(protocol::decode(&line))? {
            AgentAnswer::Failed { reason, needs_privilege } => {
                let privilege = if needs_privilege {
                    " (on the far host, for example with --far-program 'sudo -n linerate')"
                } else {
                    ""
                };
                let text = format!("{}: {reason}{privilege}", self.connection.name());
                Err(TunedHostError::with_privilege(text, needs_privilege))
            }
            answer => Ok(answer),
        }
    }

    /// Closes the connection on an invalid answer, as the protocol state is unknown then.
    fn check_answer<T, E: fmt::Display>(&mut self, result: Result<T, E>) -> Result<T, TunedHostError> {
        result.map_err(|wrong| self.fail_connection(&format!("invalid answer: {wrong}")))
    }

    fn unexpected_reply(&mut self) -> TunedHostError {
        self.fail_connection("unexpected reply")
    }

    fn expect_done(&mut self, request: &AgentRequest, patience: Duration) -> Result<(), TunedHostError> {
        match self.ask(request, patience)? {
            AgentAnswer::Done => Ok(()),
            _ => Err(self.unexpected_reply()),
        }
    }

    fn expect_unrestored(&mut self, request: &AgentRequest) -> Result<Vec<String>, TunedHostError> {
        match self.ask(request, CHANGE_TIMEOUT)? {
            AgentAnswer::TakenBack { left } => Ok(left),
            _ => Err(self.unexpected_reply()),
        }
    }

    fn plan(&mut self, plan: &ChangePlan) -> PlanDocument {
        self.planned.extend(plan.changes.iter().map(|change| change.target.clone()));
        plan.into()
    }

    fn are_planned<'t>(&self, mut targets: impl Iterator<Item = &'t ChangeTarget>) -> bool {
        targets.all(|target| self.planned.contains(target))
    }
}

impl Drop for FarHost {
    fn drop(&mut self) {
        self.connection.close();
    }
}

/// Arguments that start linerate as the agent.
const AGENT_ARGUMENTS: [&str; 2] = ["tune", "--agent"];

/// Starts this program in a named network namespace, with separate journals: change ids and their lock are per host.
fn start_in_namespace(name: &str) -> Result<InteractiveProcess, TunedHostError> {
    let namespace = NetworkNamespace::open(&Path::new("/run/netns").join(name))?;
    let program = own_program()?;
    let program = program.to_str().ok_or_else(|| TunedHostError::new("the path of this program is not UTF-8"))?;
    let state = namespace_state(ChangeStore::from_environment()?.state_directory(), name);
    let environment: [(OsString, OsString); 1] = [(STATE_VARIABLE.into(), state.into())];
    let arguments = AGENT_ARGUMENTS.map(str::to_owned);
    let start =
        InteractiveCommand { program, arguments: &arguments, environment: &environment, namespace: Some(&namespace) };
    Ok(InteractiveProcess::start(&start)?)
}

fn milliseconds(time: Duration) -> u64 {
    nanoseconds(time) / 1_000_000
}

impl TunedHost for FarHost {
    fn describe(&mut self, connection: Option<ConnectionAddresses>) -> Result<TuningHost, TunedHostError> {
        match self.ask(&AgentRequest::Host { connection }, ANSWER_TIMEOUT)? {
            AgentAnswer::Host { host } => Ok(*host),
            _ => Err(self.unexpected_reply()),
        }
    }

    fn begin(&mut self, plan: &ChangePlan, purpose: &str, limit: Duration) -> Result<Vec<String>, TunedHostError> {
        let plan = self.plan(plan);
        let request = AgentRequest::Begin { plan, purpose: purpose.to_owned(), limit_ms: milliseconds(limit) };
        match self.ask(&request, CHANGE_TIMEOUT)? {
            AgentAnswer::Begun { left } => {
                self.has_begun = true;
                Ok(left)
            }
            _ => Err(self.unexpected_reply()),
        }
    }

    fn extend(&mut self, plan: &ChangePlan) -> Result<(), TunedHostError> {
        let plan = self.plan(plan);
        self.expect_done(&AgentRequest::Extend { plan }, CHANGE_TIMEOUT)
    }

    fn apply(&mut self, group: ChangeGroup) -> Result<Vec<ApplyOutcome>, TunedHostError> {
        let AgentAnswer::Applied { outcomes } = self.ask(&AgentRequest::Apply { group }, CHANGE_TIMEOUT)? else {
            return Err(self.unexpected_reply());
        };
        let fits = outcomes.iter().all(|outcome| outcome.change.group == group)
            && self.are_planned(outcomes.iter().map(|outcome| &outcome.change.target));
        if fits { Ok(outcomes) } else { Err(self.unexpected_reply()) }
    }

    fn roll_back_group(&mut self, group: ChangeGroup) -> Result<Vec<String>, TunedHostError> {
        self.expect_unrestored(&AgentRequest::TakeBack { group })
    }

    fn renew(&mut self, limit: Duration) -> Result<(), TunedHostError> {
        self.expect_done(&AgentRequest::Renew { limit_ms: milliseconds(limit) }, ANSWER_TIMEOUT)
    }

    fn forget_metrics(&mut self, peer: IpAddr) -> Result<(), TunedHostError> {
        self.expect_done(&AgentRequest::ForgetMetrics { peer }, ANSWER_TIMEOUT)
    }

    fn is_on_trial(&self) -> bool {
        self.has_begun
    }

    fn keep(&mut self, keep: &KeepOptions) -> Result<KeptChanges, TunedHostError> {
        let in_file = keep.file.is_some();
        let request = AgentRequest::Keep { in_file, evidence: keep.evidence.clone(), warnings: keep.warnings.clone() };
        let answer = self.ask(&request, CHANGE_TIMEOUT);
        // Whether kept or not, no changes are on trial any more.
        self.has_begun = false;
        let AgentAnswer::Kept { kept } = answer? else { return Err(self.unexpected_reply()) };
        let fits = self.are_planned(kept.lasting.iter().chain(&kept.until_reboot));
        if fits && (in_file || kept.file.is_none()) { Ok(kept) } else { Err(self.unexpected_reply()) }
    }

    fn roll_back(&mut self, reason: &str) -> Result<Vec<String>, TunedHostError> {
        let left = self.expect_unrestored(&AgentRequest::RollBack { reason: reason.to_owned() });
        self.has_begun = false;
        left
    }
}

#[cfg(test)]
mod tests;
