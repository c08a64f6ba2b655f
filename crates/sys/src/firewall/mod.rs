//! Opening a port in this host's firewall for as long as a server runs (`--open-firewall`).
//!
//! Only runtime rules are made, with a lifetime where the firewall supports one, so that a crash leaves no hole:
//! firewalld's `--timeout`, and in nftables a set whose element expires. ufw and iptables have none: there the rule
//! stays if neither the server nor its guard ([`GuardedOpening`]) can clean up. Nothing is made permanent, and nothing reloaded (a reload would discard
//! others' runtime rules). Closing removes exactly the added rules, and verifies that they are gone.

mod detect;
mod guard;
mod nftables;
mod step;

use core::fmt;
use core::time::Duration;

use linerate_units::Port;

use crate::command::{self, Output};
use crate::error::{Error, Result};
pub use guard::{GuardedOpening, hold_open};
use step::{CommandInvocation, FirewallStep, FirewallTarget};

/// Programs that manage a host's firewall, in the order in which they are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FirewallManager {
    /// firewalld, through `firewall-cmd`.
    Firewalld,
    /// ufw.
    Ufw,
    /// An nftables rule set of the host's own, iptables' chains in it included.
    Nftables,
}

impl fmt::Display for FirewallManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Firewalld => "firewalld",
            Self::Ufw => "ufw",
            Self::Nftables => "nftables",
        })
    }
}

/// A port that is open in the firewall, over TCP and UDP. Dropping it closes the port as well as it can;
/// [`FirewallOpening::close`] also reports errors. Both need the privileges that opening it needed.
#[derive(Debug)]
pub struct FirewallOpening {
    firewall: Option<FirewallManager>,
    target: FirewallTarget,
    steps: Vec<FirewallStep>,
}

/// Timeout of one call of a firewall's program.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);

/// Opens `port` for `lifetime` (at least a second) in the active firewall, if there is one. Ports that are open already
/// are left alone, now and when closing. Fails without root (or `CAP_NET_ADMIN`, or firewalld's consent); the error has
/// the commands to do it by hand.
pub fn open(port: Port, lifetime: Duration) -> Result<FirewallOpening> {
    let target = FirewallTarget::new(port, lifetime, std::process::id());
    let found = detect::detect(&target).map_err(|error| with_manual_commands(&target, error.firewall, &error.cause))?;
    let mut opening = FirewallOpening { firewall: found.firewall, target, steps: Vec::new() };
    for step in found.steps {
        let done = execute(&step.open(&opening.target)).and_then(|_| is_open(&step, &opening.target));
        // Recorded before the check, so that half-done work is undone on return.
        opening.steps.push(step);
        match done {
            Ok(true) => {}
            Ok(false) => {
                let cause = Error::refused("reading the rule back", "the firewall does not have it");
                return Err(with_manual_commands(&opening.target, opening.firewall, &cause));
            }
            Err(cause) => return Err(with_manual_commands(&opening.target, opening.firewall, &cause)),
        }
    }
    Ok(opening)
}

impl FirewallOpening {
    /// The firewall that is active; `None` when none is, so that nothing needed opening.
    #[must_use]
    pub fn firewall(&self) -> Option<FirewallManager> {
        self.firewall
    }

    /// True when something had to be opened, and so will be closed.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.steps.is_empty()
    }

    /// True when the firewall closes the port by itself at the end of the lifetime: [`FirewallOpening::renew`] it in
    /// time.
    #[must_use]
    pub fn expires(&self) -> bool {
        self.steps.iter().any(|step| !step.renew(&self.target).is_empty())
    }

    /// One line for users: the opened port, the places, and the lifetime.
    #[must_use]
    pub fn summary(&self) -> String {
        let (port, seconds) = (self.target.port, self.target.seconds());
        match self.firewall {
            None => "no firewall is active, nothing to open".to_owned(),
            Some(firewall) if self.steps.is_empty() => format!("port {port} is open already in {firewall}"),
            Some(firewall) => {
                let places: Vec<_> = self.steps.iter().map(ToString::to_string).collect();
                let end = if self.expires() { format!("for {seconds} s at a time") } else { "until closed".to_owned() };
                format!("port {port} opened in {firewall} ({}) {end}", places.join(", "))
            }
        }
    }

    /// Restarts the lifetime.
    pub fn renew(&self) -> Result<()> {
        for step in &self.steps {
            for invocation in step.renew(&self.target) {
                execute(&invocation)?;
            }
        }
        Ok(())
    }

    /// Removes the added rules, and verifies that they are gone.
    pub fn close(mut self) -> Result<()> {
        self.close_all()
    }

    /// Continues after an error, and returns the first one.
    fn close_all(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        while let Some(step) = self.steps.pop() {
            outcome = outcome.and(close_step(&step, &self.target));
        }
        outcome
    }
}

impl Drop for FirewallOpening {
    fn drop(&mut self) {
        // Callers that need the result call `close`.
        let _ = self.close_all();
    }
}

fn close_step(step: &FirewallStep, target: &FirewallTarget) -> Result<()> {
    if !is_open(step, target)? {
        return Ok(()); // it has expired, or was removed by another program
    }
    let ruleset = if step.close_needs_ruleset() { detect::ruleset()?.unwrap_or_default() } else { String::new() };
    execute(&step.close(target, &ruleset))?;
    if is_open(step, target)? {
        let operation = format!("closing port {} in the firewall ({step})", target.port);
        return Err(Error::refused(operation, "the rule is still there after it was removed"));
    }
    Ok(())
}

fn is_open(step: &FirewallStep, target: &FirewallTarget) -> Result<bool> {
    let probe = step.probe(target);
    let output = run(&probe)?;
    step.parse_probe(target, output.status.code(), &output.stdout_text(), &output.stderr_text())
        .ok_or_else(|| failed(&probe, &output))
}

fn execute(invocation: &CommandInvocation) -> Result<Output> {
    let output = run(invocation)?;
    if output.status.success() { Ok(output) } else { Err(failed(invocation, &output)) }
}

fn run(invocation: &CommandInvocation) -> Result<Output> {
    let arguments: Vec<&str> = invocation.arguments.iter().map(String::as_str).collect();
    command::run(invocation.program, &arguments, invocation.input.as_deref().map(str::as_bytes), COMMAND_TIMEOUT)
}

fn failed(invocation: &CommandInvocation, output: &Output) -> Error {
    Error::Program { command: invocation.to_string(), status: output.status.to_string(), output: output.stderr_text() }
}

/// Adds the remedy: the commands to type instead.
fn with_manual_commands(target: &FirewallTarget, firewall: Option<FirewallManager>, cause: &Error) -> Error {
    let commands = step::manual_commands(target, firewall);
    Error::refused(
        format!("opening port {} in the firewall", target.port),
        format!("{cause}; run this program as root, or open the port by hand: {commands}"),
    )
}

#[cfg(test)]
mod tests;
