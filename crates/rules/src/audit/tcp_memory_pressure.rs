//! TCP memory pressure: all TCP sockets together had too little memory.

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_units::display;

use super::AuditRule;
use super::link_support::{FindingDraft, counted, counter, host_that_counted};

const ID: &str = "tcp-memory-pressure";
const CITATION: &str =
    "kernel: Documentation/networking/ip-sysctl.rst (tcp_mem), snmp_counter.rst (TCPMemoryPressures, TCPAbortOnMemory)";
const KEY: &str = "net.ipv4.tcp_mem";
const PRESSURES: &str = "TcpExtTCPMemoryPressures";
const ABORTS: &str = "TcpExtTCPAbortOnMemory";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "All TCP sockets together had too little memory.",
    explanation: "net.ipv4.tcp_mem is the memory of all sockets together, in pages. Above its second number windows no \
        longer grow and shrink, above the third connections are aborted. It matters when many connections have large \
        buffers at once: raising buffers alone makes it worse.\n\nWithout these counters there is no reason to change \
        tcp_mem, which the kernel derives from its memory.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host_that_counted(&[(PRESSURES, 3)]),
    silent: || host_that_counted(&[(PRESSURES, 0), (ABORTS, 0)]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let (pressures, aborts) = (counter(host, PRESSURES), counter(host, ABORTS));
    if pressures == 0 && aborts == 0 {
        return Vec::new();
    }
    let mut evidence = vec![counted(PRESSURES, pressures), counted(ABORTS, aborts)];
    evidence.extend(host.settings.value(KEY).map(|value| format!("{KEY} = {value} (pages)")));
    let sockets = host.counters.sockets.known();
    evidence.extend(sockets.and_then(|all| all.get("TCP mem")).map(|pages| format!("now in use: {pages} pages")));
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: if aborts > 0 {
            FindingSeverity::Critical
        } else if pressures > 1 {
            FindingSeverity::Warning
        } else {
            FindingSeverity::Note
        },
        subject: KEY.to_owned(),
        text: format!(
            "TCP ran short of memory {} so far, and aborted {} because of it.",
            display::times(pressures),
            display::counted(aborts, "connection")
        ),
        evidence,
        remedy: vec![
            "cat /proc/net/sockstat (is `mem` of TCP near the second number of tcp_mem under load?)".to_owned(),
            "ss -tm (which sockets hold it: a program that does not read?)".to_owned(),
        ],
        risk: "memory for TCP is missing elsewhere: never more than a quarter of the host's memory",
    };
    vec![draft.finding()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aborted_connections_are_the_worst() {
        let severity = |counters: &[(&str, u64)]| check(&host_that_counted(counters))[0].severity;
        assert_eq!(severity(&[(ABORTS, 1)]), FindingSeverity::Critical);
        assert_eq!(
            (severity(&[(PRESSURES, 1)]), severity(&[(PRESSURES, 2)])),
            (FindingSeverity::Note, FindingSeverity::Warning)
        );
    }
}
