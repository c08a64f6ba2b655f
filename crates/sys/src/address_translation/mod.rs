//! Source address translation of this host (NAT): rules of nftables and iptables, and where neither can be listed the
//! tracked connections. Read and never changed.

mod connections;
mod iptables;
mod nftables;

use core::time::Duration;
use std::fs;
use std::io;
use std::path::Path;

use linerate_model::fact::Fact;

use crate::command;
use crate::error::{Error, Result};

/// Exists where connection tracking, without which nothing is translated, is available in this network namespace.
const CONNECTION_COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

/// Tracked connections, where the kernel lists them as text.
const CONNECTIONS: &str = "/proc/net/nf_conntrack";

/// Timeout of a program that lists rules.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// Programs that list the NAT rules of iptables: a host may have rules of both implementations.
const IPTABLES: [&str; 2] = ["iptables-save", "iptables-legacy-save"];

/// True when packets that leave through this interface may get another source address: a rule that they reach masquerades
/// or rewrites sources.
#[must_use]
pub fn translates_sources(device: &str) -> Fact<bool> {
    if !Path::new(CONNECTION_COUNT).exists() {
        return Fact::Known(false);
    }
    let nftables =
        list("nft", &["-j", "list", "ruleset"]).map(|text| text.map(|text| nftables::translates(&text, device)));
    let iptables = IPTABLES
        .map(|program| list(program, &["-t", "nat"]).map(|text| text.map(|text| iptables::translates(&text, device))));
    let answers = || [&nftables].into_iter().chain(&iptables);
    if answers().any(|answer| matches!(answer, Ok(Some(true)))) {
        return Fact::Known(true);
    }
    let failure = answers().find_map(|answer| answer.as_ref().err());
    let is_listed = answers().any(|answer| matches!(answer, Ok(Some(_))));
    match failure {
        None if is_listed => Fact::Known(false),
        _ if has_translated_connection(device) => Fact::Known(true),
        Some(error) => unread(error),
        None => Fact::absent("connections are tracked, but neither nft nor iptables-save is installed"),
    }
}

/// True when the kernel lists a connection whose source it has replaced by an address of this interface.
fn has_translated_connection(device: &str) -> bool {
    let shown = command::run_checked("ip", &["-j", "address", "show", "dev", device], None, LIST_TIMEOUT);
    let addresses = shown.map(|output| connections::addresses(&output.stdout_text())).unwrap_or_default();
    fs::read_to_string(CONNECTIONS).is_ok_and(|text| connections::is_translated(&text, &addresses))
}

fn unread(error: &Error) -> Fact<bool> {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Fact::denied(error.to_string()),
        _ => Fact::failed(error.to_string()),
    }
}

/// Output of a program; `None` when it is not installed.
fn list(program: &str, arguments: &[&str]) -> Result<Option<String>> {
    match command::run_checked(program, arguments, None, LIST_TIMEOUT) {
        Err(error) if error.errno() == Some(libc::ENOENT) => Ok(None),
        output => output.map(|output| Some(output.stdout_text())),
    }
}

/// A rule, as far as translation is concerned.
struct NatRule<Chain> {
    /// Chain that has it.
    chain: Chain,
    /// Chains in which it continues.
    targets: Vec<Chain>,
    /// True when it replaces the source address.
    translates: bool,
}

/// True when a packet that starts in one of these chains reaches a rule that replaces its source address. `rules` are
/// those that the packet may match.
fn is_reached<Chain: PartialEq + Clone>(mut chains: Vec<Chain>, rules: &[NatRule<Chain>]) -> bool {
    let mut seen = 0;
    while let Some(chain) = chains.get(seen).cloned() {
        for rule in rules.iter().filter(|rule| rule.chain == chain) {
            if rule.translates {
                return true;
            }
            let new: Vec<Chain> = rule.targets.iter().filter(|target| !chains.contains(target)).cloned().collect();
            chains.extend(new);
        }
        seen += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::NetworkNamespace;

    #[test]
    #[ignore = "needs root: a network namespace"]
    fn a_namespace_without_rules_does_not_translate() {
        let namespace = NetworkNamespace::create().expect("root");
        let found = namespace.within(|| translates_sources("lo")).expect("entered");
        assert_ne!(found.known(), Some(&true), "{found:?}");
    }
}
