//! The far end's side of `linerate tune`: changes this host as the other end asks, over the standard input and output.
//!
//! Whoever speaks to it has been let in by ssh, and may be allowed no more than this command (by `sudo`): it changes
//! what belongs to the network, and no file but linerate's own.

use core::time::Duration;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;

use linerate_change::{Guard, Keep, Store, drop_in};
use linerate_model::change::{Group, Plan};
use linerate_model::schema::change::PlanDocument;
use linerate_sys::host_access::RealHost;
use linerate_sys::poll::{self, Interest, PollItem};
use linerate_sys::process::own_program;
use linerate_sys::signals::Interrupts;

use super::near::Near;
use super::party::{Party, PartyError};
use super::protocol::{self, Answer, HELLO, Hello, Lines, Request};
use crate::console;
use crate::exit::Exit;

/// Serves the end that has started it, until that is gone.
pub(crate) fn run() -> Exit {
    let failed = |text: String, needs_privilege: bool| {
        console::error(&text, None);
        if needs_privilege { Exit::Privilege } else { Exit::Unable }
    };
    let store = match Store::from_environment() {
        Ok(store) => store,
        Err(error) => return failed(error.to_string(), error.needs_privilege()),
    };
    let streams = Interrupts::install().map_err(io::Error::from).and_then(|interrupts| {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok((interrupts, input))
    });
    let (interrupts, mut input) = match streams {
        Ok(streams) => streams,
        Err(cause) => return failed(format!("opening the standard input: {cause}"), false),
    };
    let program = match own_program() {
        Ok(program) => program,
        Err(error) => return failed(error.to_string(), false),
    };
    let mut near = Near::new(&store, &RealHost, Guard::Program(program));
    let ended = serve(&mut near, &mut input, &mut io::stdout().lock(), Some(&interrupts));
    let left = near.roll_back(ended.reason()).unwrap_or_default();
    for line in &left {
        console::note(line);
    }
    if left.is_empty() { Exit::Success } else { Exit::Missed }
}

/// Why there is nobody to serve any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The other end has closed the connection, or it broke.
    Connection,
    /// A signal came.
    Signal,
    /// The other end does not speak the language.
    Garbage,
}

impl Ended {
    /// In words for the list of changes.
    const fn reason(self) -> &'static str {
        match self {
            Self::Connection => "the connection to the other end was closed or lost",
            Self::Signal => "interrupted by a signal",
            Self::Garbage => "the other end sent something without end",
        }
    }
}

/// Answers one request after the other.
pub(super) fn serve(
    party: &mut dyn Party,
    input: &mut (impl Read + AsFd),
    output: &mut impl Write,
    interrupts: Option<&Interrupts>,
) -> Ended {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let hello = protocol::encode(&Hello { hello: HELLO.to_owned(), linerate_version: version }).unwrap_or_default();
    if say(output, &hello).is_err() {
        return Ended::Connection;
    }
    let mut lines = Lines::default();
    loop {
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => match receive(input, &mut lines.bytes, interrupts) {
                Ok(true) => continue,
                Ok(false) if interrupts.is_some_and(|interrupts| interrupts.pending().is_some()) => {
                    return Ended::Signal;
                }
                Ok(false) | Err(_) => return Ended::Connection,
            },
            Err(wrong) => {
                let _ = say(output, &answer_text(&failed(&wrong.to_string())));
                return Ended::Garbage;
            }
        };
        let answer = match protocol::decode(&line) {
            Ok(request) => carry_out(party, &request).unwrap_or_else(|error| Answer::Failed {
                reason: error.to_string(),
                needs_privilege: error.needs_privilege(),
            }),
            Err(wrong) => failed(&wrong.to_string()),
        };
        if say(output, &answer_text(&answer)).is_err() {
            return Ended::Connection;
        }
    }
}

/// Waits for more bytes; `false` at the end, or when a signal has come.
fn receive(input: &mut (impl Read + AsFd), bytes: &mut Vec<u8>, interrupts: Option<&Interrupts>) -> io::Result<bool> {
    let mut items = vec![PollItem::new(input, Interest::READ)];
    items.extend(interrupts.map(|interrupts| PollItem::new(interrupts, Interest::READ)));
    poll::wait(&mut items, None)?;
    if interrupts.is_some_and(|interrupts| interrupts.pending().is_some()) {
        return Ok(false);
    }
    let mut block = vec![0; 16 << 10];
    match input.read(&mut block) {
        Ok(length) => {
            bytes.extend_from_slice(&block[..length]);
            Ok(length > 0)
        }
        Err(cause) if cause.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(cause) => Err(cause),
    }
}

fn say(output: &mut impl Write, line: &str) -> io::Result<()> {
    output.write_all(line.as_bytes()).and_then(|()| output.flush())
}

fn failed(reason: &str) -> Answer {
    Answer::Failed { reason: reason.to_owned(), needs_privilege: false }
}

fn answer_text(answer: &Answer) -> String {
    let short = |wrong: protocol::Wrong| protocol::encode(&failed(&format!("the answer would be {wrong}")));
    protocol::encode(answer).or_else(short).unwrap_or_default()
}

fn carry_out(party: &mut dyn Party, request: &Request) -> Result<Answer, PartyError> {
    let group = |name: &str| {
        let unknown = || PartyError::new(format!("there is no group of changes {name:?}"));
        Group::from_name(name).ok_or_else(unknown)
    };
    Ok(match request {
        Request::Host { peer } => Answer::Host { host: Box::new((&party.host(*peer)?).into()) },
        Request::Begin { plan, purpose, limit_ms } => {
            let plan = checked(plan)?;
            Answer::Begun { left: party.begin(&plan, purpose, time(*limit_ms))? }
        }
        Request::Extend { plan } => {
            let plan = checked(plan)?;
            party.extend(&plan)?;
            Answer::Done
        }
        Request::Apply { group: name } => {
            Answer::Applied { outcomes: party.apply(group(name)?)?.iter().map(Into::into).collect() }
        }
        Request::TakeBack { group: name } => Answer::TakenBack { left: party.take_back(group(name)?)? },
        Request::Renew { limit_ms } => {
            party.renew(time(*limit_ms))?;
            Answer::Done
        }
        Request::ForgetMetrics { peer } => {
            party.forget_metrics(*peer)?;
            Answer::Done
        }
        Request::Keep { in_file, evidence, warnings } => {
            let file = in_file.then(|| PathBuf::from(drop_in::PATH));
            let keep = Keep { file, evidence: evidence.clone(), warnings: warnings.clone() };
            Answer::Kept { kept: (&party.keep(&keep)?).into() }
        }
        Request::RollBack { reason } => Answer::TakenBack { left: party.roll_back(reason)? },
    })
}

/// The longest time that the other end may leave changes unattended.
const LONGEST_LIMIT: Duration = Duration::from_secs(24 * 3600);

fn time(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds).min(LONGEST_LIMIT)
}

fn checked(document: &PlanDocument) -> Result<Plan, PartyError> {
    let plan = Plan::try_from(document).map_err(|cause| PartyError::new(cause.to_string()))?;
    match plan.changes.iter().find(|change| !change.target.is_of_network_namespace()) {
        Some(change) => {
            let text = format!(
                "{} is not changed from afar: it does not belong to the network; run `linerate tune` on that host",
                change.target
            );
            Err(PartyError::new(text))
        }
        None => Ok(plan),
    }
}

#[cfg(test)]
pub(super) mod tests;
