//! Rules of nftables, as `nft -j list ruleset` prints them (libnftables-json(5)).

use serde_json::Value;

use super::{NatRule, is_reached};

/// Family, table and name.
type ChainName = (String, String, String);

/// True when a rule that packets reach on their way out of the interface replaces their source.
pub(super) fn translates(ruleset: &str, device: &str) -> bool {
    let Ok(document) = serde_json::from_str::<Value>(ruleset) else { return false };
    let entries = document["nftables"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let name = |entry: &Value, chain: &str| (of(entry, "family"), of(entry, "table"), chain.to_owned());
    let chains = entries.iter().filter_map(|entry| entry.get("chain"));
    let first = chains.filter(|chain| chain["hook"] == "postrouting");
    let first = first.map(|chain| name(chain, &of(chain, "name"))).collect();
    let rules = entries.iter().filter_map(|entry| entry.get("rule")).filter_map(|rule| {
        let expressions = rule["expr"].as_array()?;
        if expressions.iter().any(|one| excludes(one, device)) {
            return None;
        }
        let maps = |wanted: &str| map_elements(entries, rule, wanted);
        let targets = expressions.iter().flat_map(|one| targets(one, device, &maps));
        let targets: Vec<ChainName> = targets.map(|chain| name(rule, &chain)).collect();
        let chain = name(rule, &of(rule, "chain"));
        Some(NatRule { chain, targets, translates: expressions.iter().any(replaces_source) })
    });
    is_reached(first, &rules.collect::<Vec<_>>())
}

/// True for `masquerade`, `snat`, and the targets of iptables' rules that nftables holds.
fn replaces_source(expression: &Value) -> bool {
    let target = expression["xt"]["name"].as_str();
    expression.get("masquerade").is_some()
        || expression.get("snat").is_some()
        || matches!(target, Some("MASQUERADE" | "SNAT"))
}

/// True for an expression on the outgoing interface.
fn is_outgoing(expression: &Value) -> bool {
    matches!(expression["meta"]["key"].as_str(), Some("oifname" | "oif"))
}

/// True when a pattern of interface names selects this one; `None` for a named set, whose elements are elsewhere.
fn selects(pattern: &Value, device: &str) -> Option<bool> {
    match pattern {
        Value::String(name) if name.starts_with('@') => None,
        Value::String(name) => Some(match name.strip_suffix('*') {
            Some(beginning) => device.starts_with(beginning),
            None => name == device,
        }),
        Value::Object(of) => {
            let each = of.get("set")?.as_array()?.iter().map(|one| selects(one, device)).collect::<Vec<_>>();
            each.contains(&Some(true)).then_some(true).or(if each.contains(&None) { None } else { Some(false) })
        }
        _ => None,
    }
}

/// True for a match that packets through this interface do not pass.
fn excludes(expression: &Value, device: &str) -> bool {
    let matched = &expression["match"];
    if !is_outgoing(&matched["left"]) {
        return false;
    }
    let selected = selects(&matched["right"], device);
    match matched["op"].as_str() {
        Some("==" | "in") => selected == Some(false),
        Some("!=") => selected == Some(true),
        _ => false,
    }
}

/// Chains in which a packet continues behind this expression.
fn targets(expression: &Value, device: &str, maps: &dyn Fn(&str) -> Vec<Value>) -> Vec<String> {
    let jump = |verdict: &Value| {
        let of = |kind: &str| verdict[kind]["target"].as_str().map(str::to_owned);
        of("jump").or_else(|| of("goto"))
    };
    let Some(map) = expression.get("vmap") else { return jump(expression).into_iter().collect() };
    let elements = match &map["data"] {
        Value::String(name) => maps(name.trim_start_matches('@')),
        data => data["set"].as_array().cloned().unwrap_or_default(),
    };
    let by_interface = is_outgoing(&map["key"]);
    let is_taken = |element: &&Value| !by_interface || selects(&element[0], device) != Some(false);
    elements.iter().filter(is_taken).filter_map(|element| jump(&element[1])).collect()
}

/// Elements of a named map of the rule's table.
fn map_elements(entries: &[Value], rule: &Value, name: &str) -> Vec<Value> {
    let is_it = |map: &&Value| map["family"] == rule["family"] && map["table"] == rule["table"] && map["name"] == name;
    let found = entries.iter().filter_map(|entry| entry.get("map")).find(is_it);
    found.and_then(|map| map["elem"].as_array()).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAIN: &str =
        r#"{"chain": {"family": "ip", "table": "t", "name": "p", "type": "nat", "hook": "postrouting"}}"#;

    fn rule(chain: &str, expressions: &str) -> String {
        format!(r#"{{"rule": {{"family": "ip", "table": "t", "chain": "{chain}", "expr": [{expressions}]}}}}"#)
    }

    fn ruleset(entries: &[String]) -> String {
        format!(r#"{{"nftables": [{{"metainfo": {{}}}}, {CHAIN}, {}]}}"#, entries.join(", "))
    }

    fn out(operator: &str, right: &str) -> String {
        let left = r#"{"meta": {"key": "oifname"}}"#;
        format!(r#"{{"match": {{"op": "{operator}", "left": {left}, "right": {right}}}}}"#)
    }

    const MASQUERADE: &str = r#"{"masquerade": null}"#;

    #[test]
    fn rules_of_one_chain() {
        let with = |matched: String| ruleset(&[rule("p", &format!("{matched}, {MASQUERADE}"))]);
        for (text, expected) in [
            (ruleset(&[rule("p", MASQUERADE)]), true),
            (with(out("==", "\"eth0\"")), true),
            (with(out("==", "\"eth1\"")), false),
            (with(out("==", "\"eth*\"")), true),
            (with(out("==", "\"ppp*\"")), false),
            (with(out("!=", "\"eth0\"")), false),
            (with(out("!=", "\"lo\"")), true),
            (with(out("==", r#"{"set": ["eth1", "eth0"]}"#)), true),
            (with(out("==", r#"{"set": ["eth1", "eth2"]}"#)), false),
            (with(out("==", "\"@uplinks\"")), true),
            (with(out("==", "\"eth1\"").replace("oifname", "oif")), false),
            (with(out("==", "\"eth1\"").replace("oifname", "iifname")), true),
            (ruleset(&[rule("p", r#"{"snat": {"addr": "192.0.2.1"}}"#)]), true),
            (ruleset(&[rule("p", r#"{"xt": {"type": "target", "name": "MASQUERADE"}}"#)]), true),
            (ruleset(&[rule("p", r#"{"accept": null}"#)]), false),
            (ruleset(&[rule("unused", MASQUERADE)]), false),
            (String::new(), false),
        ] {
            assert_eq!(translates(&text, "eth0"), expected, "{text}");
        }
    }

    /// As the firewalls of `OpenWrt` (jump by interface), firewalld (goto) and others (verdict maps) have them.
    #[test]
    fn chains_that_other_interfaces_do_not_reach() {
        let jump = r#"{"jump": {"target": "srcnat_wan"}}"#;
        let by_rule = [rule("p", &format!("{}, {jump}", out("==", "\"wan\""))), rule("srcnat_wan", MASQUERADE)];
        let key = r#"{"meta": {"key": "oifname"}}"#;
        let element = r#"["wan", {"goto": {"target": "srcnat_wan"}}]"#;
        let map = |data: &str| rule("p", &format!(r#"{{"vmap": {{"key": {key}, "data": {data}}}}}"#));
        let inline = [map(&format!(r#"{{"set": [{element}]}}"#)), rule("srcnat_wan", MASQUERADE)];
        let named = [
            format!(r#"{{"map": {{"family": "ip", "table": "t", "name": "zones", "elem": [{element}]}}}}"#),
            map("\"@zones\""),
            rule("srcnat_wan", MASQUERADE),
        ];
        for text in [ruleset(&by_rule), ruleset(&inline), ruleset(&named)] {
            assert_eq!((translates(&text, "wan"), translates(&text, "br-lan")), (true, false), "{text}");
        }
        let circle = [rule("p", jump), rule("srcnat_wan", r#"{"jump": {"target": "p"}}"#)];
        assert!(!translates(&ruleset(&circle), "wan"));
    }
}
