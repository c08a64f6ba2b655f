//! The host at the other end of the path, changed by the linerate that is there: over the operator's own ssh, or in a
//! network namespace of this machine.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use linerate_change::{ChangeId, Keep, Kept, Outcome, Store, VARIABLE};
use linerate_model::change::{Group, Plan, Target};
use linerate_model::schema::change::PlanDocument;
use linerate_model::schema::nanoseconds;
use linerate_report::escape;
use linerate_rules::tuning::Host;
use linerate_sys::clock::monotonic_now;
use linerate_sys::companion::{Companion, Received, Start};
use linerate_sys::namespace::NetworkNamespace;
use linerate_sys::process::own_program;
use linerate_sys::signals::Interrupts;
use linerate_units::{MonotonicTime, Port};

use super::party::{Party, PartyError};
use super::protocol::{self, Answer, HELLO, Hello, Lines, Request};

/// Where the far end's host can be changed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FarAddress {
    /// `ssh:[USER@]HOST[:PORT]`.
    Ssh {
        /// `[USER@]HOST`, as ssh takes it.
        destination: String,
        /// The port, where it is not the one that ssh is configured for.
        port: Option<Port>,
    },
    /// `netns:NAME`.
    Namespace(String),
}

impl FarAddress {
    /// Whether it shares this host's kernel, and so its memory.
    pub(crate) fn is_this_kernel(&self) -> bool {
        matches!(self, Self::Namespace(_))
    }
}

/// Where the journals of a network namespace of this host are: apart from this host's own.
fn namespace_state(state: &Path, name: &str) -> PathBuf {
    state.join(format!("netns-{name}"))
}

impl FarAddress {
    /// The command that takes back changes that were kept there.
    pub(crate) fn undo(&self, id: ChangeId) -> String {
        match self {
            Self::Ssh { destination, .. } => format!("linerate rollback {id}, on {destination}"),
            Self::Namespace(name) => {
                let state = Store::from_environment().ok().map(|store| namespace_state(store.state_directory(), name));
                let state = state.map_or_else(String::new, |state| format!("{VARIABLE}={} ", state.display()));
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
        found.ok_or_else(|| format!("{text:?} is neither ssh:[USER@]HOST[:PORT] nor netns:NAME"))
    }
}

fn ssh(rest: &str) -> Option<FarAddress> {
    let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
    let (host, port) = match host.strip_prefix('[') {
        // An IPv6 address, in brackets only where a port follows.
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
    // What begins with a hyphen would be an option of ssh.
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

/// How long the far end may take to come up: ssh looks names up, connects and authenticates meanwhile.
const START: Duration = Duration::from_secs(30);

/// How long it may take to answer a question for which it only looks.
const ANSWER: Duration = Duration::from_secs(30);

/// How long it may take to write or take back: each of several programs of `ip`, `tc` and `ethtool` has 10 s there, and
/// the watchdog twice that to start.
const WORK: Duration = Duration::from_secs(120);

/// How long it may take to end when the connection is closed. It ends by itself later, too.
const END: Duration = Duration::from_secs(10);

/// So many lines may come before the far end's first: what shells print when they start.
const NOISE: usize = 64;

/// Who the far end is reached through.
trait Wire {
    fn send(&mut self, line: &str, deadline: MonotonicTime) -> linerate_sys::Result<()>;

    fn receive(
        &mut self,
        to: &mut Vec<u8>,
        deadline: MonotonicTime,
        interrupts: Option<&Interrupts>,
    ) -> linerate_sys::Result<Received>;

    /// Ends it; how it ended, and what it said to that.
    fn close(&mut self, patience: Duration) -> String;
}

impl Wire for Companion {
    fn send(&mut self, line: &str, deadline: MonotonicTime) -> linerate_sys::Result<()> {
        Self::send(self, line.as_bytes(), deadline)
    }

    fn receive(
        &mut self,
        to: &mut Vec<u8>,
        deadline: MonotonicTime,
        interrupts: Option<&Interrupts>,
    ) -> linerate_sys::Result<Received> {
        Self::receive(self, to, deadline, interrupts)
    }

    fn close(&mut self, patience: Duration) -> String {
        let status = self.finish(patience);
        let ended = status.map_or_else(|| "still runs".to_owned(), |status| format!("ended with {status}"));
        let complaints = escape::text(&self.complaints()).into_owned();
        let said = if complaints.is_empty() { String::new() } else { format!(", and said: {complaints}") };
        format!("`{}` {ended}{said}{}", self.command_line(), way_out(&complaints))
    }
}

/// What can be done about the usual reasons for which nothing comes about.
fn way_out(complaints: &str) -> &'static str {
    let said = |words: &[&str]| words.iter().any(|word| complaints.contains(word));
    if said(&["Permission denied", "Host key verification failed", "Too many authentication"]) {
        " (ssh asks for nothing here, neither a password nor about a new host: let it in with a key or an agent, and \
         connect once by hand)"
    } else if said(&["command not found", "not found", "No such file"]) {
        " (install linerate there, or say with --far-program where it is)"
    } else if said(&["unrecognized subcommand", "unexpected argument"]) {
        " (the linerate there is too old: use the same version at both ends)"
    } else if said(&["password is required"]) {
        " (sudo asks for nothing here: allow it this command without a password)"
    } else {
        ""
    }
}

/// The host at the other end. Dropping it takes back everything that is not kept.
pub(crate) struct Far {
    wire: Box<dyn Wire>,
    name: String,
    lines: Lines,
    has_begun: bool,
    /// Where it was asked to change something.
    planned: Vec<Target>,
    /// Why nobody answers any more.
    is_lost: bool,
}

impl Far {
    /// Starts the linerate at the far end and waits until it answers: `program` with what must stand before it, for a
    /// namespace always this one.
    pub(crate) fn start(address: &FarAddress, program: &str) -> Result<Self, PartyError> {
        let interrupts = Interrupts::install()?;
        let companion = match address {
            FarAddress::Ssh { destination, port } => over_ssh(destination, *port, program)?,
            FarAddress::Namespace(name) => in_namespace(name)?,
        };
        let far = Self::over(Box::new(companion), address.to_string());
        far.greeted(Some(&interrupts))
    }

    fn over(wire: Box<dyn Wire>, name: String) -> Self {
        let (lines, planned) = (Lines::default(), Vec::new());
        Self { wire, name, lines, has_begun: false, planned, is_lost: false }
    }

    /// Waits for the first line, past whatever the shell over there prints before it.
    fn greeted(mut self, interrupts: Option<&Interrupts>) -> Result<Self, PartyError> {
        let deadline = monotonic_now() + START;
        for _ in 0..=NOISE {
            let line = self.line(deadline, interrupts)?;
            if !line.contains(HELLO) {
                continue;
            }
            return match protocol::decode::<Hello>(&line) {
                Ok(hello) if hello.hello == HELLO => Ok(self),
                Ok(_) => continue,
                Err(wrong) => Err(self.lose(&format!("it greeted with {wrong}"))),
            };
        }
        Err(self.lose(&format!("no linerate answered within {NOISE} lines")))
    }

    /// The next line.
    fn line(&mut self, deadline: MonotonicTime, interrupts: Option<&Interrupts>) -> Result<String, PartyError> {
        loop {
            match self.lines.next() {
                Ok(Some(line)) => return Ok(line),
                Ok(None) => {}
                Err(wrong) => return Err(self.lose(&format!("it sent {wrong}"))),
            }
            match self.wire.receive(&mut self.lines.bytes, deadline, interrupts) {
                Ok(Received::Bytes) => {}
                Ok(Received::End) => return Err(self.lose("it answers no more")),
                Ok(Received::Late) => return Err(self.lose("it does not answer in time")),
                Ok(Received::Interrupted(signal)) => {
                    return Err(self.lose(&format!("interrupted: {}", signal.describe())));
                }
                Err(error) => return Err(self.lose(&error.to_string())),
            }
        }
    }

    /// Breaks the connection off: the far end then takes everything back by itself.
    fn lose(&mut self, why: &str) -> PartyError {
        self.is_lost = true;
        let ended = self.wire.close(Duration::from_secs(2));
        let begun = core::mem::take(&mut self.has_begun);
        let rest = if begun { "; the linerate there takes its changes back by itself" } else { "" };
        PartyError::new(format!("{}: {why}: {ended}{rest}", self.name))
    }

    fn ask(&mut self, request: &Request, patience: Duration) -> Result<Answer, PartyError> {
        if self.is_lost {
            return Err(PartyError::new(format!("{}: the connection was lost before", self.name)));
        }
        let deadline = monotonic_now() + patience;
        let line = match protocol::encode(request) {
            Ok(line) => line,
            Err(wrong) => return Err(PartyError::new(format!("{}: the request would be {wrong}", self.name))),
        };
        if let Err(error) = self.wire.send(&line, deadline) {
            return Err(self.lose(&error.to_string()));
        }
        let line = self.line(deadline, None)?;
        match self.checked(protocol::decode(&line))? {
            Answer::Failed { reason, needs_privilege } => {
                let privilege = if needs_privilege {
                    " (over there, for example with --far-program 'sudo -n linerate')"
                } else {
                    ""
                };
                let text = format!("{}: {reason}{privilege}", self.name);
                Err(PartyError::with_privilege(text, needs_privilege))
            }
            answer => Ok(answer),
        }
    }

    /// What does not fit what was said before ends the conversation: nobody knows what else would be meant otherwise.
    fn checked<T, E: fmt::Display>(&mut self, result: Result<T, E>) -> Result<T, PartyError> {
        result.map_err(|wrong| self.lose(&format!("it answered with {wrong}")))
    }

    fn unfit(&mut self) -> PartyError {
        self.lose("it answered something else than it was asked")
    }

    fn done(&mut self, request: &Request, patience: Duration) -> Result<(), PartyError> {
        match self.ask(request, patience)? {
            Answer::Done => Ok(()),
            _ => Err(self.unfit()),
        }
    }

    fn left(&mut self, request: &Request) -> Result<Vec<String>, PartyError> {
        match self.ask(request, WORK)? {
            Answer::TakenBack { left } => Ok(left),
            _ => Err(self.unfit()),
        }
    }

    fn plan(&mut self, plan: &Plan) -> PlanDocument {
        self.planned.extend(plan.changes.iter().map(|change| change.target.clone()));
        plan.into()
    }

    fn are_planned<'t>(&self, mut targets: impl Iterator<Item = &'t Target>) -> bool {
        targets.all(|target| self.planned.contains(target))
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        if !self.is_lost {
            self.wire.close(END);
        }
    }
}

/// `ssh`, as the operator has set it up. Questions would wait for somebody who cannot answer them.
fn over_ssh(destination: &str, port: Option<Port>, program: &str) -> Result<Companion, PartyError> {
    let mut words: Vec<String> = ["-T", "-o", "BatchMode=yes"].map(str::to_owned).into();
    if let Some(port) = port {
        words.extend(["-p".to_owned(), port.to_string()]);
    }
    words.extend([destination.to_owned(), "--".to_owned()]);
    words.extend(program.split_ascii_whitespace().map(str::to_owned));
    words.extend(AGENT.map(str::to_owned));
    Ok(Companion::start(&Start { program: "ssh", arguments: &words, environment: &[], namespace: None })?)
}

/// The arguments by which linerate becomes the far end's side.
const AGENT: [&str; 2] = ["tune", "--agent"];

/// This program in a namespace that `ip netns` has named, with journals of its own: the numbers of changes and their lock
/// are those of one host.
fn in_namespace(name: &str) -> Result<Companion, PartyError> {
    let namespace = NetworkNamespace::open(&Path::new("/run/netns").join(name))?;
    let program = own_program()?;
    let program = program.to_str().ok_or_else(|| PartyError::new("the path of this program is no text in UTF-8"))?;
    let state = namespace_state(Store::from_environment()?.state_directory(), name);
    let environment: [(OsString, OsString); 1] = [(VARIABLE.into(), state.into())];
    let arguments = AGENT.map(str::to_owned);
    let start = Start { program, arguments: &arguments, environment: &environment, namespace: Some(&namespace) };
    Ok(Companion::start(&start)?)
}

fn milliseconds(time: Duration) -> u64 {
    nanoseconds(time) / 1_000_000
}

impl Party for Far {
    fn host(&mut self, peer: Option<IpAddr>) -> Result<Host, PartyError> {
        match self.ask(&Request::Host { peer }, ANSWER)? {
            Answer::Host { host } => Ok((*host).into()),
            _ => Err(self.unfit()),
        }
    }

    fn begin(&mut self, plan: &Plan, purpose: &str, limit: Duration) -> Result<Vec<String>, PartyError> {
        let plan = self.plan(plan);
        let request = Request::Begin { plan, purpose: purpose.to_owned(), limit_ms: milliseconds(limit) };
        match self.ask(&request, WORK)? {
            Answer::Begun { left } => {
                self.has_begun = true;
                Ok(left)
            }
            _ => Err(self.unfit()),
        }
    }

    fn extend(&mut self, plan: &Plan) -> Result<(), PartyError> {
        let plan = self.plan(plan);
        self.done(&Request::Extend { plan }, WORK)
    }

    fn apply(&mut self, group: Group) -> Result<Vec<Outcome>, PartyError> {
        let Answer::Applied { outcomes } = self.ask(&Request::Apply { group: group.name().to_owned() }, WORK)? else {
            return Err(self.unfit());
        };
        let outcomes: Result<Vec<Outcome>, _> = outcomes.into_iter().map(Outcome::try_from).collect();
        let outcomes = self.checked(outcomes)?;
        let fits = outcomes.iter().all(|outcome| outcome.change.group == group)
            && self.are_planned(outcomes.iter().map(|outcome| &outcome.change.target));
        if fits { Ok(outcomes) } else { Err(self.unfit()) }
    }

    fn take_back(&mut self, group: Group) -> Result<Vec<String>, PartyError> {
        self.left(&Request::TakeBack { group: group.name().to_owned() })
    }

    fn renew(&mut self, limit: Duration) -> Result<(), PartyError> {
        self.done(&Request::Renew { limit_ms: milliseconds(limit) }, ANSWER)
    }

    fn forget_metrics(&mut self, peer: IpAddr) -> Result<(), PartyError> {
        self.done(&Request::ForgetMetrics { peer }, ANSWER)
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn keep(&mut self, keep: &Keep) -> Result<Kept, PartyError> {
        let in_file = keep.file.is_some();
        let request = Request::Keep { in_file, evidence: keep.evidence.clone(), warnings: keep.warnings.clone() };
        let answer = self.ask(&request, WORK);
        // Also when it was not kept nothing is being tried any more.
        self.has_begun = false;
        let Answer::Kept { kept } = answer? else { return Err(self.unfit()) };
        let kept = self.checked(Kept::try_from(kept))?;
        let fits = self.are_planned(kept.lasting.iter().chain(&kept.until_reboot));
        if fits && (in_file || kept.file.is_none()) { Ok(kept) } else { Err(self.unfit()) }
    }

    fn roll_back(&mut self, reason: &str) -> Result<Vec<String>, PartyError> {
        let left = self.left(&Request::RollBack { reason: reason.to_owned() });
        self.has_begun = false;
        left
    }
}

#[cfg(test)]
mod tests;
