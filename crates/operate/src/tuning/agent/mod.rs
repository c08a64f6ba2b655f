//! Agent of `linerate tune`: changes this host on request of the other end, over standard input and output.
//!
//! The peer has been authenticated by ssh, and may be allowed only this command (by `sudo`): the agent changes only
//! network settings, and no file but linerate's own.

use core::time::Duration;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;

use linerate_change::{ChangeStore, KeepOptions, RollbackGuard, drop_in};
use linerate_model::change::ChangePlan;
use linerate_model::change::document::PlanDocument;
use linerate_sys::host_access::RealHost;
use linerate_sys::poll::{self, PollInterest, PollItem};
use linerate_sys::process::own_program;
use linerate_sys::signals::InterruptSignals;

use super::near::NearHost;
use super::protocol::{self, AgentAnswer, AgentGreeting, AgentRequest, GREETING_TEXT, LineBuffer};
use super::tuned_host::{TunedHost, TunedHostError};

/// Serves the end that has started it over these streams, until that is gone or a signal has come. Returns what could not
/// be rolled back, with the reason.
pub fn run(
    input: &mut (impl Read + AsFd),
    output: &mut impl Write,
    interrupts: InterruptSignals,
) -> Result<Vec<String>, TunedHostError> {
    let store = ChangeStore::from_environment()?;
    let mut near = NearHost::new(&store, &RealHost, RollbackGuard::Program(own_program()?));
    let ended = serve(&mut near, input, output, Some(&interrupts));
    Ok(near.roll_back(ended.reason()).unwrap_or_default())
}

/// Reason for the end of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceEnd {
    /// The connection was closed or lost.
    Connection,
    /// A signal arrived.
    Signal,
    /// The peer does not speak the protocol.
    Garbage,
}

impl ServiceEnd {
    /// Reason as recorded with the changes.
    const fn reason(self) -> &'static str {
        match self {
            Self::Connection => "the connection to the peer was closed or lost",
            Self::Signal => "interrupted by a signal",
            Self::Garbage => "the peer sent a line without end",
        }
    }
}

/// Answers requests in order.
pub(super) fn serve(
    party: &mut dyn TunedHost,
    input: &mut (impl Read + AsFd),
    output: &mut impl Write,
    interrupts: Option<&InterruptSignals>,
) -> ServiceEnd {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let hello = protocol::encode(&AgentGreeting { hello: GREETING_TEXT.to_owned(), linerate_version: version })
        .unwrap_or_default();
    if write_line(output, &hello).is_err() {
        return ServiceEnd::Connection;
    }
    let mut lines = LineBuffer::default();
    loop {
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => match receive(input, &mut lines.bytes, interrupts) {
                Ok(true) => continue,
                Ok(false) if interrupts.is_some_and(|interrupts| interrupts.pending().is_some()) => {
                    return ServiceEnd::Signal;
                }
                Ok(false) | Err(_) => return ServiceEnd::Connection,
            },
            Err(wrong) => {
                let _ = write_line(output, &answer_text(&failed_answer(&wrong.to_string())));
                return ServiceEnd::Garbage;
            }
        };
        let answer = match protocol::decode(&line) {
            Ok(request) => carry_out(party, &request).unwrap_or_else(|error| AgentAnswer::Failed {
                reason: error.to_string(),
                needs_privilege: error.needs_privilege(),
            }),
            Err(wrong) => failed_answer(&wrong.to_string()),
        };
        if write_line(output, &answer_text(&answer)).is_err() {
            return ServiceEnd::Connection;
        }
    }
}

/// Waits for more bytes; `false` at the end or after a signal.
fn receive(
    input: &mut (impl Read + AsFd),
    bytes: &mut Vec<u8>,
    interrupts: Option<&InterruptSignals>,
) -> io::Result<bool> {
    let mut items = vec![PollItem::new(input, PollInterest::READ)];
    items.extend(interrupts.map(|interrupts| PollItem::new(interrupts, PollInterest::READ)));
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

fn write_line(output: &mut impl Write, line: &str) -> io::Result<()> {
    output.write_all(line.as_bytes()).and_then(|()| output.flush())
}

fn failed_answer(reason: &str) -> AgentAnswer {
    AgentAnswer::Failed { reason: reason.to_owned(), needs_privilege: false }
}

fn answer_text(answer: &AgentAnswer) -> String {
    let short =
        |wrong: protocol::AgentProtocolError| protocol::encode(&failed_answer(&format!("the answer would be {wrong}")));
    protocol::encode(answer).or_else(short).unwrap_or_default()
}

fn carry_out(party: &mut dyn TunedHost, request: &AgentRequest) -> Result<AgentAnswer, TunedHostError> {
    Ok(match request {
        AgentRequest::Host { connection } => AgentAnswer::Host { host: Box::new(party.describe(*connection)?) },
        AgentRequest::Begin { plan, purpose, limit_ms } => {
            let plan = checked_plan(plan)?;
            AgentAnswer::Begun { left: party.begin(&plan, purpose, time(*limit_ms))? }
        }
        AgentRequest::Extend { plan } => {
            let plan = checked_plan(plan)?;
            party.extend(&plan)?;
            AgentAnswer::Done
        }
        AgentRequest::Apply { group } => AgentAnswer::Applied { outcomes: party.apply(*group)? },
        AgentRequest::TakeBack { group } => AgentAnswer::TakenBack { left: party.roll_back_group(*group)? },
        AgentRequest::Renew { limit_ms } => {
            party.renew(time(*limit_ms))?;
            AgentAnswer::Done
        }
        AgentRequest::ForgetMetrics { peer } => {
            party.forget_metrics(*peer)?;
            AgentAnswer::Done
        }
        AgentRequest::Keep { in_file, evidence, warnings } => {
            let file = in_file.then(|| PathBuf::from(drop_in::DEFAULT_FILE));
            let keep = KeepOptions { file, evidence: evidence.clone(), warnings: warnings.clone() };
            AgentAnswer::Kept { kept: party.keep(&keep)? }
        }
        AgentRequest::RollBack { reason } => AgentAnswer::TakenBack { left: party.roll_back(reason)? },
    })
}

/// Maximum time that the peer may leave changes unattended.
const MAX_WATCHDOG_LIMIT: Duration = Duration::from_secs(24 * 3600);

fn time(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds).min(MAX_WATCHDOG_LIMIT)
}

fn checked_plan(document: &PlanDocument) -> Result<ChangePlan, TunedHostError> {
    let plan = ChangePlan::try_from(document).map_err(|cause| TunedHostError::new(cause.to_string()))?;
    match plan.changes.iter().find(|change| !change.target.is_of_network_namespace()) {
        Some(change) => {
            let text = format!(
                "{} is not a network setting and is not changed remotely; run `linerate tune` on that host",
                change.target
            );
            Err(TunedHostError::new(text))
        }
        None => Ok(plan),
    }
}

#[cfg(test)]
pub(super) mod tests;
