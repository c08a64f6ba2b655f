//! Tracked connections, as `/proc/net/nf_conntrack` lists them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

/// Addresses in the output of `ip -j address show dev …`.
pub(super) fn addresses(shown: &str) -> BTreeSet<IpAddr> {
    let document: Value = serde_json::from_str(shown).unwrap_or_default();
    let entries = document.as_array().map(Vec::as_slice).unwrap_or_default();
    let all = entries.iter().filter_map(|entry| entry["addr_info"].as_array()).flatten();
    all.filter_map(|address| address["local"].as_str()?.parse().ok()).collect()
}

/// True when a connection of another host goes out with one of these addresses: its replies go there, and not to its
/// source.
pub(super) fn is_translated(connections: &str, own: &BTreeSet<IpAddr>) -> bool {
    connections.lines().any(|line| {
        // Both directions, each with its source and destination: the first is the original one.
        let of = |key: &str| -> Vec<IpAddr> {
            line.split_whitespace().filter_map(|word| word.strip_prefix(key)?.parse().ok()).collect()
        };
        let (sources, destinations) = (of("src="), of("dst="));
        match (&sources[..], &destinations[..]) {
            ([source, _], [_, back]) => source != back && own.contains(back) && !own.contains(source),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_was_replaced_is_seen() {
        let shown = r#"[{"ifname": "eth0", "addr_info": [{"family": "inet", "local": "192.0.2.9", "prefixlen": 24}]}]"#;
        let own = addresses(shown);
        assert_eq!(own.len(), 1);
        let line = |original: &str, reply: &str| {
            format!(
                "ipv4     2 tcp      6 431999 ESTABLISHED {original} sport=40000 dport=443 {reply} sport=443 dport=40000 [ASSURED] mark=0 use=1"
            )
        };
        let reply = "src=198.51.100.1 dst=192.0.2.9";
        assert!(is_translated(&line("src=10.0.0.7 dst=198.51.100.1", reply), &own));
        // Of this host; through another interface; redirected to a host inside; not tracked to an end.
        assert!(!is_translated(&line("src=192.0.2.9 dst=198.51.100.1", reply), &own));
        assert!(!is_translated(&line("src=10.0.0.7 dst=198.51.100.1", "src=198.51.100.1 dst=203.0.113.4"), &own));
        assert!(!is_translated(&line("src=198.51.100.1 dst=192.0.2.9", "src=10.0.0.7 dst=198.51.100.1"), &own));
        assert!(!is_translated("", &own) && !is_translated("ipv4 2 tcp 6 src=10.0.0.7", &own));
        assert!(addresses("").is_empty());
    }
}
