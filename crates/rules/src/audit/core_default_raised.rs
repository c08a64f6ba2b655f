//! `rmem_default` and `wmem_default` raised, as if TCP used them.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Saying, finding, host};

const ID: &str = "core-default-raised";
const KEYS: &[&str] = &["net.core.rmem_default", "net.core.wmem_default"];
const CITATION: &str = "tcp(7); net/ipv4/tcp.c (tcp_init_sock takes tcp_rmem[1] and tcp_wmem[1]); \
                        Documentation/admin-guide/sysctl/net.rst";
/// The kernel's own, on 64-bit machines.
const USUAL: i64 = 212_992;
/// What many programs that receive UDP are given on purpose.
const LARGE: i64 = 1 << 20;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "The default buffers of all sockets were raised, which TCP does not use.",
    explanation: "rmem_default and wmem_default are for UDP, raw and unix sockets. TCP takes the second numbers of \
                  tcp_rmem and tcp_wmem. Raised, they let every UDP socket hold that much, and do nothing for a \
                  transfer. A program that loses datagrams should ask for a larger buffer itself (rmem_max allows \
                  it).",
    citation: CITATION,
    keys: KEYS,
    check,
    fires: || host(&[("net.core.rmem_default", "16777216")]),
    silent: || host(&[("net.core.rmem_default", "212992"), ("net.core.wmem_default", "524288")]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let of_key = |key: &&'static str| {
        let value = host.settings.number(key).filter(|value| *value > LARGE)?;
        let saying = Saying {
            rule: ID,
            severity: Severity::Advice,
            text: format!(
                "{key} = {value}: TCP does not use it, and every UDP, raw and unix socket may hold that much."
            ),
            to: Some(USUAL.to_string()),
            group: Group::Buffers,
            source: CITATION,
            risk: "a program that receives many datagrams and does not ask for a buffer may have relied on it: watch \
                   UdpRcvbufErrors",
        };
        Some(finding(host, key, saying))
    };
    KEYS.iter().filter_map(of_key).collect()
}
