//! Source address translation of this host (NAT): rules of nftables and iptables, read and never changed.

use core::time::Duration;
use std::io;
use std::path::Path;

use linerate_model::fact::Fact;
use serde_json::Value;

use crate::command;
use crate::error::{Error, Result};

/// Exists where connection tracking, without which nothing is translated, is available in this network namespace.
const CONNECTION_COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

/// Timeout of a program that lists rules.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// True when packets that leave through this interface may get another source address: a rule masquerades or rewrites
/// sources, and names no other interface.
#[must_use]
pub fn translates_sources(device: &str) -> Fact<bool> {
    if !Path::new(CONNECTION_COUNT).exists() {
        return Fact::Known(false);
    }
    let nftables = list("nft", &["-j", "list", "ruleset"]);
    let iptables = list("iptables-save", &["-t", "nat"]);
    match (&nftables, &iptables) {
        (Ok(Some(text)), _) if in_nftables(text, device) => Fact::Known(true),
        (_, Ok(Some(text))) if in_iptables(text, device) => Fact::Known(true),
        (Err(error), _) | (_, Err(error)) => unread(error),
        (Ok(None), Ok(None)) => Fact::absent("connections are tracked, but neither nft nor iptables-save is installed"),
        _ => Fact::Known(false),
    }
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

/// True when a rule of `nft -j list ruleset` translates sources of packets that leave through the interface.
fn in_nftables(ruleset: &str, device: &str) -> bool {
    let Ok(document) = serde_json::from_str::<Value>(ruleset) else { return false };
    let entries = document["nftables"].as_array().map(Vec::as_slice).unwrap_or_default();
    let expressions = entries.iter().filter_map(|entry| entry["rule"]["expr"].as_array());
    expressions.into_iter().any(|all| all.iter().any(translates) && !all.iter().any(|one| is_other(one, device)))
}

/// True for `masquerade`, `snat`, and the targets of iptables' rules that nftables holds.
fn translates(expression: &Value) -> bool {
    let target = expression["xt"]["name"].as_str();
    expression.get("masquerade").is_some()
        || expression.get("snat").is_some()
        || matches!(target, Some("MASQUERADE" | "SNAT"))
}

/// True for a match of another outgoing interface. Sets and negations may include this one.
fn is_other(expression: &Value, device: &str) -> bool {
    let matched = &expression["match"];
    let name = matched["right"].as_str().filter(|name| !name.ends_with('*'));
    matched["left"]["meta"]["key"] == "oifname" && matched["op"] == "==" && name.is_some_and(|name| name != device)
}

/// True when a rule of `iptables-save` translates sources of packets that leave through the interface.
fn in_iptables(rules: &str, device: &str) -> bool {
    rules.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |option: &str| words.iter().position(|word| *word == option).and_then(|at| words.get(at + 1));
        let is_negated = words.windows(2).any(|pair| pair == ["!", "-o"]);
        let is_other = after("-o").is_some_and(|name| *name != device && !name.ends_with('+'));
        matches!(after("-j"), Some(&"MASQUERADE" | &"SNAT")) && (is_negated || !is_other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::NetworkNamespace;

    fn rule(expressions: &str) -> String {
        format!(r#"{{"nftables": [{{"metainfo": {{}}}}, {{"rule": {{"chain": "p", "expr": [{expressions}]}}}}]}}"#)
    }

    #[test]
    fn rules_of_nftables() {
        let out = |right: &str| {
            format!(r#"{{"match": {{"op": "==", "left": {{"meta": {{"key": "oifname"}}}}, "right": {right}}}}}, "#)
        };
        let masquerade = r#"{"masquerade": null}"#;
        for (text, expected) in [
            (rule(masquerade), true),
            (rule(&format!("{}{masquerade}", out("\"eth0\""))), true),
            (rule(&format!("{}{masquerade}", out("\"eth1\""))), false),
            (rule(&format!("{}{masquerade}", out(r#"{"set": ["eth1", "eth0"]}"#))), true),
            (rule(r#"{"snat": {"addr": "192.0.2.1"}}"#), true),
            (rule(r#"{"xt": {"type": "target", "name": "MASQUERADE"}}"#), true),
            (rule(r#"{"accept": null}"#), false),
            (String::new(), false),
        ] {
            assert_eq!(in_nftables(&text, "eth0"), expected, "{text}");
        }
    }

    #[test]
    fn rules_of_iptables() {
        for (line, expected) in [
            ("-A POSTROUTING -o eth0 -j MASQUERADE", true),
            ("-A POSTROUTING -s 10.0.0.0/8 -o eth1 -j MASQUERADE", false),
            ("-A POSTROUTING -o eth+ -j MASQUERADE", true),
            ("-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE", true),
            ("-A POSTROUTING -j SNAT --to-source 192.0.2.1", true),
            ("-A PREROUTING -i eth0 -j DNAT --to-destination 10.0.0.2", false),
            (":POSTROUTING ACCEPT [0:0]", false),
        ] {
            assert_eq!(in_iptables(line, "eth0"), expected, "{line}");
        }
    }

    #[test]
    #[ignore = "needs root: a network namespace"]
    fn a_namespace_without_rules_does_not_translate() {
        let namespace = NetworkNamespace::create().expect("root");
        let found = namespace.within(|| translates_sources("lo")).expect("entered");
        assert_ne!(found.known(), Some(&true), "{found:?}");
    }
}
