//! Detecting the active firewall, and the steps that open a port in it.

use super::step::{CommandInvocation, FirewallStep, FirewallTarget, TransportProtocol};
use super::{FirewallManager, failed, is_open, nftables, run};
use crate::command::Output;
use crate::error::{Error, Result};

/// The firewall that is active, and what is not open in it yet.
#[derive(Debug)]
pub(super) struct DetectedFirewall {
    pub(super) firewall: Option<FirewallManager>,
    pub(super) steps: Vec<FirewallStep>,
}

/// A failed query of a firewall.
#[derive(Debug)]
pub(super) struct DetectError {
    pub(super) firewall: Option<FirewallManager>,
    pub(super) cause: Error,
}

pub(super) fn detect(target: &FirewallTarget) -> core::result::Result<DetectedFirewall, DetectError> {
    for (firewall, candidates) in [
        (FirewallManager::Firewalld, firewalld as fn() -> Result<Option<Vec<FirewallStep>>>),
        (FirewallManager::Ufw, ufw),
        (FirewallManager::Nftables, nftables),
    ] {
        let wrong = |cause| DetectError { firewall: Some(firewall), cause };
        if let Some(steps) = candidates().map_err(wrong)? {
            return Ok(DetectedFirewall {
                firewall: Some(firewall),
                steps: still_closed(steps, target).map_err(wrong)?,
            });
        }
    }
    Ok(DetectedFirewall { firewall: None, steps: Vec::new() })
}

/// Ports that the user has opened already are neither opened nor closed by us.
fn still_closed(steps: Vec<FirewallStep>, target: &FirewallTarget) -> Result<Vec<FirewallStep>> {
    let mut closed = Vec::with_capacity(steps.len());
    for step in steps {
        if !is_open(&step, target)? {
            closed.push(step);
        }
    }
    Ok(closed)
}

/// `None` when the program is not installed.
fn try_run(program: &'static str, arguments: &[&str]) -> Result<Option<Output>> {
    match run(&CommandInvocation::new(program, arguments)) {
        Err(error) if error.errno() == Some(libc::ENOENT) => Ok(None),
        output => output.map(Some),
    }
}

/// As [`try_run`], where a program that fails is an error.
fn ask(program: &'static str, arguments: &[&str]) -> Result<Option<String>> {
    match try_run(program, arguments)? {
        Some(output) if !output.status.success() => Err(failed(&CommandInvocation::new(program, arguments), &output)),
        output => Ok(output.map(|output| output.stdout_text())),
    }
}

fn firewalld() -> Result<Option<Vec<FirewallStep>>> {
    let runs = try_run("firewall-cmd", &["--state"])?.is_some_and(|output| output.status.success());
    if !runs {
        return Ok(None);
    }
    let active = ask("firewall-cmd", &["--get-active-zones"])?.unwrap_or_default();
    let default = ask("firewall-cmd", &["--get-default-zone"])?.unwrap_or_default();
    Ok(Some(firewalld_steps(&active, &default)))
}

/// Both transports in every zone that has an interface or source, and in the default zone, which has all the others.
pub(super) fn firewalld_steps(active: &str, default: &str) -> Vec<FirewallStep> {
    let names = active.lines().chain(default.lines()).filter(|line| !line.starts_with(char::is_whitespace));
    let mut zones: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    zones.sort_unstable();
    zones.dedup();
    let step = |zone: &str, transport| FirewallStep::Firewalld { zone: zone.to_owned(), transport };
    zones.iter().flat_map(|zone| TransportProtocol::BOTH.map(|transport| step(zone, transport))).collect()
}

fn ufw() -> Result<Option<Vec<FirewallStep>>> {
    let active = ask("ufw", &["status"])?.is_some_and(|status| status.starts_with("Status: active"));
    Ok(active.then(|| TransportProtocol::BOTH.map(|transport| FirewallStep::Ufw { transport }).into()))
}

/// Output of `nft -j list ruleset`; `None` when nft is not installed.
pub(super) fn ruleset() -> Result<Option<String>> {
    ask("nft", &["-j", "list", "ruleset"])
}

/// `None` also when no chain refuses anything.
fn nftables() -> Result<Option<Vec<FirewallStep>>> {
    let Some(ruleset) = ruleset()? else { return Ok(None) };
    let operation = "understanding the rules that nft lists";
    let steps = nftables::steps(&ruleset).ok_or_else(|| Error::refused(operation, "they are not its JSON"))?;
    for step in &steps {
        if let FirewallStep::Nftables { table, chains } = step
            && !chains.iter().chain([&table.name]).all(|name| nftables::is_plain_name(name))
        {
            return Err(Error::refused(operation, format!("a table or chain has an unusual name ({step})")));
        }
    }
    Ok((!steps.is_empty()).then_some(steps))
}
