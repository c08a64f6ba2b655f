//! All of TCP's sockets together had too little memory.

use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::link_support::{Saying, counted, counter, host_that_counted};

const ID: &str = "tcp-memory-pressure";
const CITATION: &str =
    "kernel: Documentation/networking/ip-sysctl.rst (tcp_mem), snmp_counter.rst (TCPMemoryPressures, TCPAbortOnMemory)";
const KEY: &str = "net.ipv4.tcp_mem";
const PRESSURES: &str = "TcpExtTCPMemoryPressures";
const ABORTS: &str = "TcpExtTCPAbortOnMemory";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "All TCP sockets together had too little memory.",
    explanation: "net.ipv4.tcp_mem is the memory of all sockets together, in pages. Above its second number windows no longer grow and are taken back, above the third connections are aborted. It matters when many connections have large buffers at once: raising buffers alone makes it worse.\n\nWithout these counters there is no reason to touch tcp_mem, which the kernel sizes by the memory that it has.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host_that_counted(&[(PRESSURES, 3)]),
    silent: || host_that_counted(&[(PRESSURES, 0), (ABORTS, 0)]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let (pressures, aborts) = (counter(host, PRESSURES), counter(host, ABORTS));
    if pressures == 0 && aborts == 0 {
        return Vec::new();
    }
    let mut evidence = vec![counted(PRESSURES, pressures), counted(ABORTS, aborts)];
    evidence.extend(host.settings.value(KEY).map(|value| format!("{KEY} = {value} (pages)")));
    let sockets = host.counters.sockets.known();
    evidence.extend(sockets.and_then(|all| all.get("TCP mem")).map(|pages| format!("now in use: {pages} pages")));
    let saying = Saying {
        rule: (ID, CITATION),
        severity: if aborts > 0 {
            Severity::Critical
        } else if pressures > 1 {
            Severity::Warning
        } else {
            Severity::Note
        },
        subject: KEY.to_owned(),
        text: format!("TCP ran short of memory {pressures} times so far, and aborted {aborts} connections for it."),
        evidence,
        remedy: vec![
            "cat /proc/net/sockstat (is `mem` of TCP near the second number of tcp_mem under load?)".to_owned(),
            "ss -tm (which sockets hold it: a program that does not read?)".to_owned(),
        ],
        risk: "more for TCP is less for everything else: never more than a quarter of the host's memory",
    };
    vec![saying.finding()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aborted_connections_are_the_worst() {
        let severity = |counters: &[(&str, u64)]| check(&host_that_counted(counters))[0].severity;
        assert_eq!(severity(&[(ABORTS, 1)]), Severity::Critical);
        assert_eq!((severity(&[(PRESSURES, 1)]), severity(&[(PRESSURES, 2)])), (Severity::Note, Severity::Warning));
    }
}
