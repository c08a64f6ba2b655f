//! The table of tracked connections is nearly full.

use linerate_model::change::{Group, TakesEffect, Target};
use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::counters::TrackedConnections;

use super::Rule;
use super::link_support::{Edit, Saying};

const ID: &str = "connection-tracking-full";
const CITATION: &str = "kernel: Documentation/networking/nf_conntrack-sysctl.rst";
const KEY: &str = "net.netfilter.nf_conntrack_max";
const NEARLY: f64 = 0.8;
const FULL: f64 = 0.95;
/// Bytes of the kernel's memory for each.
const BYTES_EACH: u64 = 320;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "The table of tracked connections is at least 80 % full.",
    explanation: "When it is full, packets of new connections are dropped (`nf_conntrack: table full, dropping packet`), which looks like a network that does not answer. A larger table takes memory; bulk transfers can also be exempted from tracking (nft `notrack`), which saves the processor's time as well.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host(90),
    silent: || host(70),
};

fn host(count: u64) -> HostFacts {
    let mut host = HostFacts::default();
    host.counters.tracked_connections = Fact::Known(TrackedConnections { count, most: 100 });
    host
}

fn check(host: &HostFacts) -> Vec<Finding> {
    let Some(table) = host.counters.tracked_connections.known() else { return Vec::new() };
    let Some(used) = table.used().filter(|used| used.get() >= NEARLY) else { return Vec::new() };
    let to = table.most.saturating_mul(2);
    let saying = Saying {
        rule: (ID, CITATION),
        severity: if used.get() >= FULL { Severity::Critical } else { Severity::Warning },
        subject: KEY.to_owned(),
        text: format!(
            "{used} of the table of tracked connections is in use; when it is full, new connections are dropped."
        ),
        evidence: vec![
            format!("net.netfilter.nf_conntrack_count = {}", table.count),
            format!("{KEY} = {}", table.most),
        ],
        remedy: vec![format!("sysctl -w {KEY}={to}")],
        risk: "each entry takes some 320 bytes of the kernel's memory; the buckets (nf_conntrack_buckets) should grow with it",
    };
    let memory = table.most.saturating_mul(BYTES_EACH);
    vec![saying.with_change(Edit {
        target: Target::Setting { key: KEY.to_owned() },
        from: table.most.to_string(),
        to: to.to_string(),
        group: Group::Buffers,
        takes_effect: TakesEffect::Now,
        arithmetic: Some(format!("2 x {} = {to} entries, {memory} bytes more when all are used", table.most)),
    })]
}
