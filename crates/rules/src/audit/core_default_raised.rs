//! `rmem_default` and `wmem_default` raised, as if TCP used them.

use linerate_model::change::ChangeGroup;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;

use super::AuditRule;
use super::settings_support::{SettingFindingDraft, finding, host, present_and_later};

const ID: &str = "core-default-raised";
const KEYS: &[&str] = &["net.core.rmem_default", "net.core.wmem_default"];
const CITATION: &str = "tcp(7); net/ipv4/tcp.c (tcp_init_sock takes tcp_rmem[1] and tcp_wmem[1]); \
                        Documentation/admin-guide/sysctl/net.rst";
/// The kernel's default on 64-bit machines.
const KERNEL_DEFAULT_BYTES: i64 = 212_992;
/// Size that many programs that receive UDP are given on purpose: up to it, the finding is a note.
const MAX_COMMON_BYTES: i64 = 1 << 20;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "The default buffers of all sockets were raised, which TCP does not use.",
    explanation: "rmem_default and wmem_default are for UDP, raw and unix sockets. TCP takes the second numbers of \
                  tcp_rmem and tcp_wmem. Raised, they let every UDP socket hold that much, and do nothing for a \
                  transfer. A program that loses datagrams should request a larger buffer itself (rmem_max allows \
                  it).",
    citation: CITATION,
    keys: KEYS,
    check,
    fires: || host(&[("net.core.rmem_default", "16777216")]),
    silent: || host(&[("net.core.rmem_default", "212992"), ("net.core.wmem_default", "212992")]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let of_key = |key: &&'static str| {
        let values = present_and_later(host, key).into_iter();
        let mut values = values.filter_map(|(value, prefix)| Some((value.parse::<i64>().ok()?, prefix)));
        let (value, prefix) = values.find(|(value, _)| *value > KERNEL_DEFAULT_BYTES)?;
        let is_common = value <= MAX_COMMON_BYTES;
        let draft = SettingFindingDraft {
            rule: ID,
            severity: if is_common { FindingSeverity::Note } else { FindingSeverity::Advice },
            text: format!(
                "{prefix}{key} = {value}: TCP does not use it, and every UDP, raw and unix socket may hold that much."
            ),
            to: Some(KERNEL_DEFAULT_BYTES.to_string()),
            group: ChangeGroup::Buffers,
            source: CITATION,
            risk: "a program that receives many datagrams and does not ask for a buffer may have relied on it: watch \
                   UdpRcvbufErrors",
        };
        Some(finding(host, key, draft))
    };
    KEYS.iter().filter_map(of_key).collect()
}
