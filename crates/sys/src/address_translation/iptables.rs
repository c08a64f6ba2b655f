//! Rules of iptables, as `iptables-save` prints them.

use super::{NatRule, is_reached};

/// Chain that packets pass on their way out.
const FIRST: &str = "POSTROUTING";

/// True when a rule that packets reach on their way out of the interface replaces their source.
pub(super) fn translates(rules: &str, device: &str) -> bool {
    let rules = rules.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after =
            |option: &str| words.iter().position(|word| *word == option).and_then(|at| words.get(at + 1)).copied();
        let chain = after("-A")?.to_owned();
        let is_negated = words.windows(2).any(|pair| pair == ["!", "-o"]);
        if after("-o").is_some_and(|pattern| selects(pattern, device) == is_negated) {
            return None;
        }
        let target = after("-j").or_else(|| after("-g"))?;
        let translates = matches!(target, "MASQUERADE" | "SNAT");
        Some(NatRule { chain, targets: vec![target.to_owned()], translates })
    });
    is_reached(vec![FIRST.to_owned()], &rules.collect::<Vec<_>>())
}

/// A final `+` stands for any end.
fn selects(pattern: &str, device: &str) -> bool {
    pattern.strip_suffix('+').map_or(pattern == device, |beginning| device.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_by_interface_and_chain() {
        for (lines, expected) in [
            ("-A POSTROUTING -o eth0 -j MASQUERADE", true),
            ("-A POSTROUTING -s 10.0.0.0/8 -o eth1 -j MASQUERADE", false),
            ("-A POSTROUTING -o eth+ -j MASQUERADE", true),
            ("-A POSTROUTING -o ppp+ -j MASQUERADE", false),
            ("-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE", true),
            ("-A POSTROUTING ! -o eth0 -j MASQUERADE", false),
            ("-A POSTROUTING -j SNAT --to-source 192.0.2.1", true),
            ("-A PREROUTING -i eth0 -j DNAT --to-destination 10.0.0.2", false),
            ("-A POSTROUTING -o eth0 -j zone\n-A zone ! -o lo -j MASQUERADE", true),
            ("-A POSTROUTING -o eth1 -g zone\n-A zone ! -o lo -j MASQUERADE", false),
            ("-A zone -j MASQUERADE", false),
            (":POSTROUTING ACCEPT [0:0]", false),
        ] {
            assert_eq!(translates(lines, "eth0"), expected, "{lines}");
        }
    }
}
