//! Conversation with a program at the far end: lines over its standard input and output.

use core::time::Duration;

use linerate_report::escape;
use linerate_sys::clock::monotonic_now;
use linerate_sys::companion::{CompanionOutput, InteractiveProcess};
use linerate_sys::signals::InterruptSignals;
use linerate_units::MonotonicTime;
use serde::de::DeserializeOwned;

use super::lines::{self, LineBuffer};

/// Time limit of the start: ssh resolves names, connects and authenticates.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit of the end after the connection is closed. It ends by itself later, too.
pub(crate) const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of lines before an expected one, as shells print some at start.
pub(crate) const MAX_NOISE_LINES: usize = 64;

/// Connection to the far end.
pub(crate) trait AgentConnection: Send {
    /// Sends all of it.
    fn send(&mut self, bytes: &[u8], deadline: MonotonicTime) -> linerate_sys::Result<()>;

    /// Waits for bytes.
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
    fn send(&mut self, bytes: &[u8], deadline: MonotonicTime) -> linerate_sys::Result<()> {
        Self::send(self, bytes, deadline)
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
        format!("`{}` {ended}{said}{}", shortened(self.command_line()), remedy(&complaints))
    }
}

/// Longest command line in an error.
const MAX_SHOWN_COMMAND: usize = 240;

/// Command line without the end of a long script.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(MAX_SHOWN_COMMAND) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Remedies for common errors.
pub(crate) fn remedy(complaints: &str) -> &'static str {
    let said = |words: &[&str]| words.iter().any(|word| complaints.contains(word));
    if said(&["REMOTE HOST IDENTIFICATION HAS CHANGED"]) {
        " (the host has another key than in your known_hosts: find out why before you connect)"
    } else if said(&["Permission denied", "Host key verification failed", "Too many authentication"]) {
        " (ssh cannot ask for a password or a new host key here: use a key or an ssh agent, and connect once manually)"
    } else if said(&["command not found", "not found", "No such file"]) {
        " (install linerate there, give its location with --far-program, or copy this one there for the run with --push)"
    } else if said(&["unrecognized subcommand", "unexpected argument"]) {
        " (the remote linerate is too old: use the same version at both ends, or --push)"
    } else if said(&["password is required"]) {
        " (sudo cannot ask here: allow this command without a password)"
    } else if said(&["Could not resolve hostname"]) {
        " (is the name right, or an alias of your ~/.ssh/config?)"
    } else {
        ""
    }
}

/// Connection that exchanges lines.
pub(crate) struct FarConnection {
    wire: Box<dyn AgentConnection>,
    name: String,
    lines: LineBuffer,
    /// True when the connection is lost.
    is_lost: bool,
}

impl FarConnection {
    pub(crate) fn new(wire: Box<dyn AgentConnection>, name: String) -> Self {
        Self { wire, name, lines: LineBuffer::default(), is_lost: false }
    }

    /// Address as given, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Waits for the greeting with this text, and skips output of the remote shell, but for a line of which `refusal`
    /// returns an error.
    pub(crate) fn receive_greeting<T: DeserializeOwned>(
        &mut self,
        text: &str,
        patience: Duration,
        interrupts: Option<&InterruptSignals>,
        refusal: impl Fn(&str) -> Option<String>,
    ) -> Result<T, String> {
        let deadline = monotonic_now() + patience;
        for _ in 0..=MAX_NOISE_LINES {
            let line = self.receive_line(deadline, interrupts)?;
            if let Some(reason) = refusal(&line) {
                return Err(self.refuse(&reason));
            }
            // A banner without a line feed precedes the greeting in its line.
            let Some(greeting) = line.find(text).and_then(|at| Some(&line[line[..at].rfind('{')?..])) else { continue };
            return lines::decode(greeting).map_err(|wrong| self.fail(&format!("invalid greeting: {wrong}")));
        }
        Err(self.fail(&format!("no linerate answered within {MAX_NOISE_LINES} lines")))
    }

    /// Receives the next line.
    pub(crate) fn receive_line(
        &mut self,
        deadline: MonotonicTime,
        interrupts: Option<&InterruptSignals>,
    ) -> Result<String, String> {
        loop {
            match self.lines.next() {
                Ok(Some(line)) => return Ok(line),
                Ok(None) => {}
                Err(wrong) => return Err(self.fail(&format!("it sent {wrong}"))),
            }
            match self.wire.receive(&mut self.lines.bytes, deadline, interrupts) {
                Ok(CompanionOutput::Bytes) => {}
                Ok(CompanionOutput::End) => return Err(self.fail("the connection is closed")),
                Ok(CompanionOutput::Late) => return Err(self.fail("no answer in time")),
                Ok(CompanionOutput::Interrupted(signal)) => {
                    return Err(self.fail(&format!("interrupted: {}", signal.words())));
                }
                Err(error) => return Err(self.fail(&error.to_string())),
            }
        }
    }

    /// Sends bytes.
    pub(crate) fn send(&mut self, bytes: &[u8], deadline: MonotonicTime) -> Result<(), String> {
        self.wire.send(bytes, deadline).map_err(|error| self.fail(&error.to_string()))
    }

    /// True when the far end has closed its output, without waiting.
    pub(crate) fn has_ended(&mut self) -> bool {
        let received = self.wire.receive(&mut Vec::new(), monotonic_now(), None);
        !matches!(received, Ok(CompanionOutput::Bytes | CompanionOutput::Late))
    }

    /// Closes the connection, and returns the error text with what the program left.
    pub(crate) fn fail(&mut self, why: &str) -> String {
        self.is_lost = true;
        let ended = self.wire.close(Duration::from_secs(2));
        format!("{}: {why}: {ended}", self.name)
    }

    /// Closes the connection for a reason that needs no text of the program.
    pub(crate) fn refuse(&mut self, reason: &str) -> String {
        self.is_lost = true;
        self.wire.close(Duration::from_secs(2));
        format!("{}: {reason}", self.name)
    }

    /// Closes the connection; what it holds ends at the far end.
    pub(crate) fn close(&mut self) {
        if !self.is_lost {
            self.is_lost = true;
            self.wire.close(END_TIMEOUT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_errors_have_a_remedy() {
        for (complaint, way) in [
            ("me@far: Permission denied (publickey,password).", "use a key or an ssh agent"),
            ("Host key verification failed.", "connect once manually"),
            ("bash: line 1: linerate: command not found", "--far-program"),
            ("error: unrecognized subcommand 'tune'", "same version"),
            ("sudo: a password is required", "without a password"),
        ] {
            assert!(remedy(complaint).contains(way), "{complaint}");
        }
        assert_eq!(remedy("Connection refused"), "");
    }
}
