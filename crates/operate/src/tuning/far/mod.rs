//! Far host, changed by its own linerate: over the operator's ssh, or in a local network namespace.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use linerate_change::{ApplyOutcome, ChangeId, ChangeStore, KeepOptions, KeptChanges, STATE_VARIABLE};
use linerate_model::change::document::PlanDocument;
use linerate_model::change::{ChangeGroup, ChangePlan, ChangeTarget};
use linerate_report::escape;
use linerate_rules::tuning::TuningHost;
use linerate_sys::clock::monotonic_now;
use linerate_sys::companion::{CompanionOutput, InteractiveCommand, InteractiveProcess};
use linerate_sys::namespace::NetworkNamespace;
use linerate_sys::process::own_program;
use linerate_sys::signals::InterruptSignals;
use linerate_units::serde::nanoseconds;
use linerate_units::{MonotonicTime, Port};

use super::party::{TunedHost, TunedHostError};
use super::protocol::{self, AgentAnswer, AgentGreeting, AgentRequest, GREETING_TEXT, LineBuffer};

/// Access to the far host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FarAddress {
    /// `ssh:[USER@]HOST[:PORT]`.
    Ssh {
        /// `[USER@]HOST`, in ssh's syntax.
        destination: String,
        /// Port, if not the one of ssh's configuration.
        port: Option<Port>,
    },
    /// `netns:NAME`.
    Namespace(String),
}

impl FarAddress {
    /// True when it shares this host's kernel and memory.
    pub fn is_this_kernel(&self) -> bool {
        matches!(self, Self::Namespace(_))
    }
}

/// Journal directory of a local network namespace, separate from this host's own.
fn namespace_state(state: &Path, name: &str) -> PathBuf {
    state.join(format!("netns-{name}"))
}

impl FarAddress {
    /// Command that rolls back changes kept there.
    pub fn rollback_command(&self, id: ChangeId) -> String {
        match self {
            Self::Ssh { destination, .. } => format!("linerate rollback {id}, on {destination}"),
            Self::Namespace(name) => {
                let state =
                    ChangeStore::from_environment().ok().map(|store| namespace_state(store.state_directory(), name));
                let state = state.map_or_else(String::new, |state| format!("{STATE_VARIABLE}={} ", state.display()));
                format!("{state}ip netns exec {name} linerate rollback {id}")
            }
        }
    }
}

impl fmt::Display for FarAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssh { destination, port: None } => write!(formatter, "ssh:{destination}"),
            Self::Ssh { destination, port: Some(port) } if destination.contains(':') => {
                let (user, host) = destination.rsplit_once('@').unwrap_or(("", destination));
                let at = if user.is_empty() { "" } else { "@" };
                write!(formatter, "ssh:{user}{at}[{host}]:{port}")
            }
            Self::Ssh { destination, port: Some(port) } => write!(formatter, "ssh:{destination}:{port}"),
            Self::Namespace(name) => write!(formatter, "netns:{name}"),
        }
    }
}

impl FromStr for FarAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = match text.split_once(':') {
            Some(("ssh", rest)) => ssh(rest),
            Some(("netns", name)) => namespace(name),
            _ => None,
        };
        found.ok_or_else(|| format!("invalid address {text:?} (expected ssh:[USER@]HOST[:PORT] or netns:NAME)"))
    }
}

fn ssh(rest: &str) -> Option<FarAddress> {
    let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
    let (host, port) = match host.strip_prefix('[') {
        // An IPv6 address is in brackets only before a port.
        Some(bracketed) => {
            let (host, after) = bracketed.split_once(']')?;
            (host, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
        }
        None if host.matches(':').count() == 1 => host.split_once(':').map(|(host, port)| (host, Some(port)))?,
        None => (host, None),
    };
    let port = match port {
        Some(port) => Some(Port::new(port.parse().ok()?)?),
        None => None,
    };
    // A leading hyphen would be an option of ssh.
    let is_plain = |word: &str| {
        let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:%+\\".contains(&byte);
        !word.is_empty() && !word.starts_with('-') && word.bytes().all(harmless)
    };
    if !is_plain(host) || !user.is_none_or(is_plain) {
        return None;
    }
    let destination = user.map_or_else(|| host.to_owned(), |user| format!("{user}@{host}"));
    Some(FarAddress::Ssh { destination, port })
}

fn namespace(name: &str) -> Option<FarAddress> {
    let is_plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    is_plain.then(|| FarAddress::Namespace(name.to_owned()))
}

/// Time limit of the start: ssh resolves names, connects and authenticates.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit of a read-only request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit of a request that writes or rolls back: each of several runs of `ip`, `tc` and `ethtool` has 10 s there,
/// and the watchdog twice that to start.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(120);

/// Time limit of the end after the connection is closed. It ends by itself later, too.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of lines before the greeting, as shells print some at start.
const MAX_NOISE_LINES: usize = 64;

/// Connection to the far end.
trait AgentConnection {
    fn send(&mut self, line: &str, deadline: MonotonicTime) -> linerate_sys::Result<()>;

    fn receive(
        &mut self,
        to: &mut Vec<u8>,
        deadline: MonotonicTime,
        interrupts: Option<&InterruptSignals>,
    ) -> linerate_sys::Result<CompanionOutput>;

    /// Closes the connection; returns its exit status and error output.
    fn close(&mut self, patience: Duration) -> String;
}

impl AgentConnection for InteractiveProcess {
    fn send(&mut self, line: &str, deadline: MonotonicTime) -> linerate_sys::Result<()> {
        Self::send(self, line.as_bytes(), deadline)
    }

    fn receive(
        &mut self,
        to: &mut Vec<u8>,
        deadline: MonotonicTime,
        interrupts: Option<&InterruptSignals>,
    ) -> linerate_sys::Result<CompanionOutput> {
        Self::receive(self, to, deadline, interrupts)
    }

    fn close(&mut self, patience: Duration) -> String {
        let status = self.finish(patience);
        let ended = status.map_or_else(|| "is still running".to_owned(), |status| format!("ended with {status}"));
        let complaints = escape::text(&self.complaints()).into_owned();
        let said = if complaints.is_empty() { String::new() } else { format!(" with: {complaints}") };
        format!("`{}` {ended}{said}{}", self.command_line(), remedy(&complaints))
    }
}

/// Remedies for common errors.
fn remedy(complaints: &str) -> &'static str {
    let said = |words: &[&str]| words.iter().any(|word| complaints.contains(word));
    if said(&["Permission denied", "Host key verification failed", "Too many authentication"]) {
        " (ssh cannot ask for a password or a new host key here: use a key or an ssh agent, and connect once manually)"
    } else if said(&["command not found", "not found", "No such file"]) {
        " (install linerate there, or give its location with --far-program)"
    } else if said(&["unrecognized subcommand", "unexpected argument"]) {
        " (the remote linerate is too old: use the same version at both ends)"
    } else if said(&["password is required"]) {
        " (sudo cannot ask here: allow this command without a password)"
    } else {
        ""
    }
}

/// Far host. Dropping it rolls back everything that is not kept.
pub(crate) struct FarHost {
    wire: Box<dyn AgentConnection>,
    name: String,
    lines: LineBuffer,
    has_begun: bool,
    /// Targets of its changes.
    planned: Vec<ChangeTarget>,
    /// True when the connection is lost.
    is_lost: bool,
}

impl FarHost {
    /// Starts the linerate at the far end and waits for its greeting. `program`: its command with any prefix; in a
    /// namespace always this program.
    pub(crate) fn start(address: &FarAddress, program: &str) -> Result<Self, TunedHostError> {
        let interrupts = InterruptSignals::install()?;
        let companion = match address {
            FarAddress::Ssh { destination, port } => start_ssh(destination, *port, program)?,
            FarAddress::Namespace(name) => start_in_namespace(name)?,
        };
        let far = Self::with_connection(Box::new(companion), address.to_string());
        far.receive_greeting(Some(&interrupts))
    }

    fn with_connection(wire: Box<dyn AgentConnection>, name: String) -> Self {
        let (lines, planned) = (LineBuffer::default(), Vec::new());
        Self { wire, name, lines, has_begun: false, planned, is_lost: false }
    }

    /// Waits for the greeting, and skips output of the remote shell.
    fn receive_greeting(mut self, interrupts: Option<&InterruptSignals>) -> Result<Self, TunedHostError> {
        let deadline = monotonic_now() + START_TIMEOUT;
        for _ in 0..=MAX_NOISE_LINES {
            let line = self.receive_line(deadline, interrupts)?;
            if !line.contains(GREETING_TEXT) {
                continue;
            }
            return match protocol::decode::<AgentGreeting>(&line) {
                Ok(hello) if hello.hello == GREETING_TEXT => Ok(self),
                Ok(_) => continue,
                Err(wrong) => Err(self.fail_connection(&format!("invalid greeting: {wrong}"))),
            };
        }
        Err(self.fail_connection(&format!("no linerate answered within {MAX_NOISE_LINES} lines")))
    }

    /// Receives the next line.
    fn receive_line(
        &mut self,
        deadline: MonotonicTime,
        interrupts: Option<&InterruptSignals>,
    ) -> Result<String, TunedHostError> {
        loop {
            match self.lines.next() {
                Ok(Some(line)) => return Ok(line),
                Ok(None) => {}
                Err(wrong) => return Err(self.fail_connection(&format!("it sent {wrong}"))),
            }
            match self.wire.receive(&mut self.lines.bytes, deadline, interrupts) {
                Ok(CompanionOutput::Bytes) => {}
                Ok(CompanionOutput::End) => return Err(self.fail_connection("the connection is closed")),
                Ok(CompanionOutput::Late) => return Err(self.fail_connection("no answer in time")),
                Ok(CompanionOutput::Interrupted(signal)) => {
                    return Err(self.fail_connection(&format!("interrupted: {}", signal.describe())));
                }
                Err(error) => return Err(self.fail_connection(&error.to_string())),
            }
        }
    }

    /// Closes the connection: the far end then rolls everything back itself.
    fn fail_connection(&mut self, why: &str) -> TunedHostError {
        self.is_lost = true;
        let ended = self.wire.close(Duration::from_secs(2));
        let begun = core::mem::take(&mut self.has_begun);
        let rest = if begun { "; the remote linerate rolls its changes back" } else { "" };
        TunedHostError::new(format!("{}: {why}: {ended}{rest}", self.name))
    }

    fn ask(&mut self, request: &AgentRequest, patience: Duration) -> Result<AgentAnswer, TunedHostError> {
        if self.is_lost {
            return Err(TunedHostError::new(format!("{}: the connection was lost earlier", self.name)));
        }
        let deadline = monotonic_now() + patience;
        let line = match protocol::encode(request) {
            Ok(line) => line,
            Err(wrong) => return Err(TunedHostError::new(format!("{}: invalid request: {wrong}", self.name))),
        };
        if let Err(error) = self.wire.send(&line, deadline) {
            return Err(self.fail_connection(&error.to_string()));
        }
        let line = self.receive_line(deadline, None)?;
        match self.check_answer(protocol::decode(&line))? {
            AgentAnswer::Failed { reason, needs_privilege } => {
                let privilege = if needs_privilege {
                    " (on the far host, for example with --far-program 'sudo -n linerate')"
                } else {
                    ""
                };
                let text = format!("{}: {reason}{privilege}", self.name);
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
        if !self.is_lost {
            self.wire.close(END_TIMEOUT);
        }
    }
}

/// Options of ssh: batch mode, as questions cannot be answered; and a connection without answers for 20 s ends, as after a
/// change that cuts the network. The far watchdog rolls back meanwhile.
const SSH_OPTIONS: [&str; 7] =
    ["-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=4"];

/// Starts `ssh` with the operator's configuration.
fn start_ssh(destination: &str, port: Option<Port>, program: &str) -> Result<InteractiveProcess, TunedHostError> {
    let mut words: Vec<String> = SSH_OPTIONS.map(str::to_owned).into();
    if let Some(port) = port {
        words.extend(["-p".to_owned(), port.to_string()]);
    }
    words.extend([destination.to_owned(), "--".to_owned()]);
    words.extend(program.split_ascii_whitespace().map(str::to_owned));
    words.extend(AGENT_ARGUMENTS.map(str::to_owned));
    Ok(InteractiveProcess::start(&InteractiveCommand {
        program: "ssh",
        arguments: &words,
        environment: &[],
        namespace: None,
    })?)
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
    fn describe(&mut self, peer: Option<IpAddr>) -> Result<TuningHost, TunedHostError> {
        match self.ask(&AgentRequest::Host { peer }, ANSWER_TIMEOUT)? {
            AgentAnswer::Host { host } => Ok((*host).into()),
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
