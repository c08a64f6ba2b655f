//! Listen queue overflows: servers did not accept their connections in time.

use linerate_model::finding::AuditFinding;
use linerate_model::host::HostFacts;

use super::AuditRule;
use super::link_support::{FindingDraft, by_share, counted, counter, host_that_counted, part_of};

const ID: &str = "listen-queue-overflows";
const CITATION: &str = "listen(2); kernel: Documentation/networking/snmp_counter.rst (ListenOverflows)";
const OVERFLOWS: &str = "TcpExtListenOverflows";
const ACCEPTED: &str = "TcpPassiveOpens";
const KEY: &str = "net.core.somaxconn";
/// Share of connections that have to wait a second or more for their second SYN.
const MIN_OVERFLOW_RATIO: f64 = 1e-3;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Listen queues were full.",
    explanation: "A connection that is complete waits in the queue of its listening socket until the program accepts \
        it. When the queue is full, the last packet of the handshake is dropped, and the client tries again after a \
        second. The queue is as long as the program requested, at most net.core.somaxconn: raising that alone helps \
        only programs that request more. A program that is too slow fills any queue.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host_that_counted(&[(OVERFLOWS, 50), (ACCEPTED, 1000)]),
    silent: || host_that_counted(&[(OVERFLOWS, 0), (ACCEPTED, 1000)]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let (overflows, accepted) = (counter(host, OVERFLOWS), counter(host, ACCEPTED));
    if overflows == 0 {
        return Vec::new();
    }
    let whole = accepted.saturating_add(overflows);
    let mut evidence = vec![counted(OVERFLOWS, overflows), counted(ACCEPTED, accepted)];
    evidence.extend(host.settings.value(KEY).map(|value| format!("{KEY} = {value}")));
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: by_share(overflows, whole, MIN_OVERFLOW_RATIO),
        subject: KEY.to_owned(),
        text: format!("The listen queue was full for {} connections.", part_of(overflows, whole)),
        evidence,
        remedy: vec![
            "ss -ltn (Recv-Q is the queue length, Send-Q its limit: which queue is full?)".to_owned(),
            "raise the program's own backlog first; net.core.somaxconn only if that is at its limit".to_owned(),
        ],
        risk: "",
    };
    vec![draft.finding()]
}
