//! Receive flow steering is set up in one of its two places.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{NetworkLink, ReceiveQueue};

use super::AuditRule;
use super::link_support::{FindingDraft, and_setting, host_with, link, working};

const ID: &str = "flow-steering-incomplete";
const CITATION: &str =
    "kernel: Documentation/networking/scaling.rst (\"Both of these need to be set before RFS is enabled\")";
const KEY: &str = "net.core.rps_sock_flow_entries";
/// Table size that the kernel's documentation suggests for a moderately loaded server.
const SUGGESTED_FLOW_ENTRIES: i64 = 32_768;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Receive flow steering is set up in one of its two places, and is therefore off.",
    explanation: "Receive flow steering brings packets to the processor on which the program runs that reads them. It \
        needs a table for the host (net.core.rps_sock_flow_entries) and one for each receive queue (rps_flow_cnt). \
        With only one of the two it is off, without a message.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || and_setting(host_with(vec![with_flows(0)]), KEY, "32768"),
    silent: || and_setting(host_with(vec![with_flows(4096)]), KEY, "32768"),
};

fn with_flows(flows: u32) -> NetworkLink {
    NetworkLink { receive_queues: Fact::Known(vec![ReceiveQueue { flows, ..ReceiveQueue::default() }]), ..link("eth0") }
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let Some(entries) = host.settings.number(KEY) else { return Vec::new() };
    let queues = |link: &NetworkLink| link.receive_queues.known().cloned().unwrap_or_default();
    let links: Vec<&NetworkLink> =
        working(host).filter(|link| link.is_hardware() && !queues(link).is_empty()).collect();
    let has_table = |link: &NetworkLink| queues(link).iter().any(|queue| queue.flows > 0);
    if entries > 0 && !links.is_empty() && !links.iter().any(|link| has_table(link)) {
        let count = links.iter().map(|link| queues(link).len()).max().unwrap_or(1);
        let each = entries / i64::try_from(count).unwrap_or(1).max(1);
        let text = format!("{KEY} is {entries}, but no receive queue has a flow table: flow steering is off.");
        let evidence =
            links.iter().map(|link| format!("{}: rps_flow_cnt = 0 in {} queues", link.name, queues(link).len()));
        let remedy = links.iter().flat_map(|link| {
            let name = link.name.clone();
            queues(link).into_iter().map(move |queue| {
                format!("echo {each} > /sys/class/net/{name}/queues/rx-{}/rps_flow_cnt", queue.number)
            })
        });
        return vec![draft_finding(text, evidence.collect(), remedy.take(4).collect())];
    }
    match links.iter().find(|link| has_table(link)) {
        Some(link) if entries == 0 => {
            let text =
                format!("Receive queues of {} have flow tables, but {KEY} is 0: flow steering is off.", link.name);
            vec![draft_finding(
                text,
                vec![format!("{KEY} = 0")],
                vec![format!("sysctl -w {KEY}={SUGGESTED_FLOW_ENTRIES}")],
            )]
        }
        _ => Vec::new(),
    }
}

fn draft_finding(text: String, evidence: Vec<String>, remedy: Vec<String>) -> AuditFinding {
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: FindingSeverity::Advice,
        subject: KEY.to_owned(),
        text,
        evidence,
        remedy,
        risk: "packets are passed between processors, which costs time on both",
    };
    draft.finding()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_queues_without_the_hosts() {
        let found = check(&and_setting(host_with(vec![with_flows(4096)]), KEY, "0"));
        assert_eq!(found[0].remedy, ["sysctl -w net.core.rps_sock_flow_entries=32768"]);
        assert_eq!(check(&and_setting(host_with(vec![with_flows(0)]), KEY, "0")), []);
    }
}
