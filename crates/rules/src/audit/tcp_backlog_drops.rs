//! Segments were dropped at a full socket backlog.

use linerate_model::finding::AuditFinding;
use linerate_model::host::HostFacts;

use super::AuditRule;
use super::link_support::{FindingDraft, by_share, counted, counter, host_that_counted, part_of};

const ID: &str = "tcp-backlog-drops";
const CITATION: &str = "kernel: net/ipv4/tcp_ipv4.c (tcp_add_backlog), commit ec00ed472bdb; \
    Documentation/networking/snmp_counter.rst (TCPBacklogDrop)";
const DROPS: &str = "TcpExtTCPBacklogDrop";
const SEGMENTS: &str = "TcpInSegs";
const MIN_DROP_RATIO: f64 = 1e-5;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Segments were dropped because their socket's backlog was full.",
    explanation: "While a program reads from or writes to a socket, segments for it wait in a backlog, which holds \
        about as much as both buffers of the socket, and 64 KiB; since 6.10 and the stable releases of its time, twice the \
        receive buffer, half of the send buffer and 64 KiB. It overflows when the processor that receives is much faster than the one \
        that runs the program, or the program's buffers are small. Received segments are then lost inside the host, \
        and TCP takes that for congestion.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_that_counted(&[(DROPS, 500), (SEGMENTS, 1_000_000)]),
    silent: || host_that_counted(&[(DROPS, 0), (SEGMENTS, 1_000_000)]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let (drops, segments) = (counter(host, DROPS), counter(host, SEGMENTS));
    if drops == 0 {
        return Vec::new();
    }
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: by_share(drops, segments, MIN_DROP_RATIO),
        subject: "sockets".to_owned(),
        text: format!(
            "{} received segments were dropped because their socket's backlog was full.",
            part_of(drops, segments)
        ),
        evidence: vec![counted(DROPS, drops), counted(SEGMENTS, segments)],
        remedy: vec![
            "mpstat -P ALL 1 (is the processor of the receiving program at its limit?)".to_owned(),
            "ss -tmi (bl of skmem is the backlog: which connection is it?)".to_owned(),
        ],
        risk: "",
    };
    vec![draft.finding()]
}
