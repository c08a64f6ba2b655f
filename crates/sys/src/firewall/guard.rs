//! Process that keeps a port open for a server, and closes it however the server ends.
//!
//! The guard is this program again, in a process group of its own, so that neither Ctrl-C nor a signal to the server's
//! group reaches it. It opens the port and waits for the end of its standard input, which is what a server looks like
//! from there that ended, crashed or was killed. The rule's lifetime is short and renewed, so that it expires even when
//! the guard is killed, too (where the firewall supports lifetimes).

use core::time::Duration;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use linerate_units::Port;

use super::{FirewallOpening, open};
use crate::error::{Error, Result};
use crate::poll::{self, PollInterest};
use crate::signals;

/// Lifetime of the rule without renewal.
const RULE_LIFETIME: Duration = Duration::from_secs(600);
/// Interval of renewals.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(150);

const OPENED: &str = "opened ";
const FAILED: &str = "failed ";

/// Port that a guard holds open. Dropping it closes the port; [`GuardedOpening::close`] also reports errors.
#[derive(Debug)]
pub struct GuardedOpening {
    guard: Child,
    answers: BufReader<ChildStdout>,
    summary: String,
}

impl GuardedOpening {
    /// Starts `program ARGUMENTS`, which is to call [`hold_open`], and waits until the port is open.
    pub fn start(program: &Path, arguments: &[String]) -> Result<Self> {
        let failed = |cause| Error::system(format!("starting {} to guard the firewall", program.display()), cause);
        let mut command = Command::new(program);
        command.arg0("linerate").args(arguments).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut guard = command.spawn().map_err(failed)?;
        let output = guard.stdout.take().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
        let mut opening = Self { guard, answers: BufReader::new(output), summary: String::new() };
        let answer = opening.answer();
        if let Some(summary) = answer.strip_prefix(OPENED) {
            summary.clone_into(&mut opening.summary);
            return Ok(opening);
        }
        let cause = answer.strip_prefix(FAILED).unwrap_or("the guard ended without an answer");
        Err(Error::refused("opening the firewall", cause.replace('\u{1f}', "\n")))
    }

    /// One line for users, as of [`FirewallOpening::summary`].
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// Closes the port, and waits until it is closed.
    pub fn close(mut self) -> Result<()> {
        match self.end().strip_prefix(FAILED) {
            Some(cause) => Err(Error::refused("closing the firewall", cause.replace('\u{1f}', "\n"))),
            None => Ok(()),
        }
    }

    /// Ends the guard by the end of its input, and returns its last words.
    fn end(&mut self) -> String {
        drop(self.guard.stdin.take());
        let answer = self.answer();
        let _ = self.guard.wait();
        answer
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        // A guard that was killed gives no answer.
        let _ = self.answers.read_line(&mut line);
        line.trim_end().to_owned()
    }
}

impl Drop for GuardedOpening {
    fn drop(&mut self) {
        if self.guard.stdin.is_some() {
            self.end();
        }
    }
}

/// Opens `port`, writes its answers to `output`, and closes it at the end of standard input. Returns true on success.
pub fn hold_open(port: Port, output: &mut dyn Write) -> bool {
    let ready = signals::ignore_requests_to_end().and_then(|()| open(port, RULE_LIFETIME));
    let opening = match ready {
        Ok(opening) => opening,
        Err(cause) => {
            answer(output, FAILED, &cause.to_string());
            return false;
        }
    };
    answer(output, OPENED, &opening.summary());
    wait_for_end(&opening);
    match opening.close() {
        Ok(()) => true,
        Err(cause) => {
            answer(output, FAILED, &cause.to_string());
            false
        }
    }
}

/// Renews the rule until standard input ends.
fn wait_for_end(opening: &FirewallOpening) {
    let mut input = io::stdin().lock();
    loop {
        let is_readable = poll::wait_for(&input, PollInterest::READ, Some(RENEWAL_INTERVAL)).unwrap_or(true);
        if is_readable && !matches!(input.read(&mut [0; 64]), Ok(1..)) {
            return;
        }
        if !is_readable && opening.expires() {
            // A firewall that is being reloaded answers at the next renewal.
            let _ = opening.renew();
        }
    }
}

/// Writes one line; the server may be gone.
fn answer(output: &mut dyn Write, kind: &str, text: &str) {
    let line = text.replace('\n', "\u{1f}");
    let _ = writeln!(output, "{kind}{line}").and_then(|()| output.flush());
}
