//! Understanding an nftables rule set, and writing scripts for nft. Nothing is run here.

use core::fmt::{self, Write};
use std::collections::BTreeMap;

use serde_json::Value;

use super::step::{FirewallStep, FirewallTarget, TransportProtocol};

/// A table's family and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NftTable {
    pub(super) family: String,
    pub(super) name: String,
}

impl fmt::Display for NftTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.family, self.name)
    }
}

/// The objects of this kind in the output of `nft -j list ruleset`; others are skipped.
fn objects<'a>(ruleset: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    ruleset["nftables"].as_array().into_iter().flatten().filter_map(move |object| object.get(kind))
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

fn table_of(object: &Value) -> NftTable {
    NftTable { family: text(object, "family").to_owned(), name: text(object, "table").to_owned() }
}

/// Steps for every chain that filters incoming packets and refuses unknown ones. A packet has to pass all of them.
/// `None` when the text is not nft's JSON.
pub(super) fn steps(ruleset: &str) -> Option<Vec<FirewallStep>> {
    let ruleset: Value = serde_json::from_str(ruleset).ok()?;
    let mut blocking: BTreeMap<NftTable, Vec<String>> = BTreeMap::new();
    for chain in objects(&ruleset, "chain").filter(|chain| blocks(chain, &ruleset)) {
        blocking.entry(table_of(chain)).or_default().push(text(chain, "name").to_owned());
    }
    Some(blocking.into_iter().flat_map(|(table, chains)| steps_in(table, chains)).collect())
}

fn steps_in(table: NftTable, chains: Vec<String>) -> Vec<FirewallStep> {
    // iptables does not understand rules that use sets, and then refuses to show its chains.
    let program = match (table.family.as_str(), table.name.as_str(), chains.as_slice()) {
        ("ip", "filter", [chain]) if chain == "INPUT" => "iptables",
        ("ip6", "filter", [chain]) if chain == "INPUT" => "ip6tables",
        _ => return vec![FirewallStep::Nftables { table, chains }],
    };
    TransportProtocol::BOTH.map(|transport| FirewallStep::Iptables { program, transport }).into()
}

/// True when a base chain for incoming packets refuses by policy, or with its last rule.
fn blocks(chain: &Value, ruleset: &Value) -> bool {
    let filters_input = text(chain, "hook") == "input"
        && text(chain, "type") == "filter"
        && ["inet", "ip", "ip6"].contains(&text(chain, "family"));
    filters_input && (text(chain, "policy") == "drop" || ends_with_refusal(chain, ruleset))
}

fn ends_with_refusal(chain: &Value, ruleset: &Value) -> bool {
    let in_chain = |rule: &&Value| table_of(rule) == table_of(chain) && text(rule, "chain") == text(chain, "name");
    let Some(last) = objects(ruleset, "rule").filter(in_chain).last() else { return false };
    let statements: Vec<&str> = last["expr"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|statement| statement.as_object()?.keys().next().map(String::as_str))
        .collect();
    let Some((verdict, before)) = statements.split_last() else { return false };
    ["drop", "reject"].contains(verdict) && before.iter().all(|statement| ["counter", "log"].contains(statement))
}

/// True when nft reads this name as one token: names may come from anyone who writes rules.
pub(super) fn is_plain_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte))
}

/// Script that creates a set with the port in it, which expires after the lifetime, and rules at the start of the
/// chains that accept the ports in the set.
pub(super) fn open_script(target: &FirewallTarget, table: &NftTable, chains: &[String]) -> String {
    let set = target.set_name();
    let mut script = format!("add set {table} {set} {{ type inet_service; flags timeout; }}\n");
    script += &element(target, table);
    for chain in chains {
        let _ = writeln!(
            script,
            "insert rule {table} {chain} meta l4proto {{ tcp, udp }} th dport @{set} accept comment \"{}\"",
            target.tag
        );
    }
    script
}

/// Script that adds the port to the set again. Older kernels cannot change an element's time, so the set is emptied
/// first; it is all one transaction.
pub(super) fn renew_script(target: &FirewallTarget, table: &NftTable) -> String {
    format!("flush set {table} {}\n{}", target.set_name(), element(target, table))
}

fn element(target: &FirewallTarget, table: &NftTable) -> String {
    format!("add element {table} {} {{ {} timeout {}s }}\n", target.set_name(), target.port, target.seconds())
}

/// Script that removes our rules, identified by their comment, then the set. Handles are read from `ruleset` now, as
/// the table may have been recreated since.
pub(super) fn close_script(target: &FirewallTarget, table: &NftTable, ruleset: &str) -> String {
    let ruleset: Value = serde_json::from_str(ruleset).unwrap_or_default();
    let mut script = String::new();
    let ours = |rule: &&Value| table_of(rule) == *table && text(rule, "comment") == target.tag;
    for rule in objects(&ruleset, "rule").filter(ours) {
        if let Some(handle) = rule["handle"].as_u64() {
            let _ = writeln!(script, "delete rule {table} {} handle {handle}", text(rule, "chain"));
        }
    }
    let _ = writeln!(script, "delete set {table} {}", target.set_name());
    script
}
