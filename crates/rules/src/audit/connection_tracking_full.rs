//! The table of tracked connections is nearly full.

use linerate_model::change::{ChangeGroup, ChangeTarget, EffectTiming};
use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::counters::ConntrackUsage;

use super::AuditRule;
use super::link_support::{FindingChange, FindingDraft};

const ID: &str = "connection-tracking-full";
const CITATION: &str = "kernel: Documentation/networking/nf_conntrack-sysctl.rst";
const KEY: &str = "net.netfilter.nf_conntrack_max";
const MIN_USED_SHARE: f64 = 0.8;
const CRITICAL_USED_SHARE: f64 = 0.95;
/// Bytes of kernel memory per tracked connection.
const BYTES_PER_CONNECTION: u64 = 320;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "The table of tracked connections is at least 80 % full.",
    explanation: "When it is full, packets of new connections are dropped (`nf_conntrack: table full, dropping \
        packet`), which looks like a network that does not answer. A larger table takes memory; bulk transfers can \
        also be exempted from tracking (nft `notrack`), which saves the processor's time as well.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host(90),
    silent: || host(70),
};

fn host(count: u64) -> HostFacts {
    let mut host = HostFacts::default();
    host.counters.tracked_connections = Fact::Known(ConntrackUsage { count, most: 100 });
    host
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let Some(table) = host.counters.tracked_connections.known() else { return Vec::new() };
    let Some(used) = table.fill_ratio().filter(|used| used.get() >= MIN_USED_SHARE) else { return Vec::new() };
    let to = table.most.saturating_mul(2);
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: if used.get() >= CRITICAL_USED_SHARE { FindingSeverity::Critical } else { FindingSeverity::Warning },
        subject: KEY.to_owned(),
        text: format!(
            "{used} of the table of tracked connections is in use; when it is full, new connections are dropped."
        ),
        evidence: vec![
            format!("net.netfilter.nf_conntrack_count = {}", table.count),
            format!("{KEY} = {}", table.most),
        ],
        remedy: vec![format!("sysctl -w {KEY}={to}")],
        risk: "each entry takes some 320 bytes of the kernel's memory; the buckets (nf_conntrack_buckets) should grow \
            with it",
    };
    let memory = table.most.saturating_mul(BYTES_PER_CONNECTION);
    vec![draft.with_change(FindingChange {
        target: ChangeTarget::Setting { key: KEY.to_owned() },
        from: table.most.to_string(),
        to: to.to_string(),
        group: ChangeGroup::Buffers,
        takes_effect: EffectTiming::Now,
        arithmetic: Some(format!("2 x {} = {to} entries, {memory} bytes more when all are used", table.most)),
    })]
}
