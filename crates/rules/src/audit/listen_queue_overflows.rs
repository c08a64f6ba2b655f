//! Servers did not accept their connections in time.

use linerate_model::finding::Finding;
use linerate_model::host::HostFacts;

use super::Rule;
use super::link_support::{Saying, by_share, counted, counter, host_that_counted, part_of};

const ID: &str = "listen-queue-overflows";
const CITATION: &str = "listen(2); kernel: Documentation/networking/snmp_counter.rst (ListenOverflows)";
const OVERFLOWS: &str = "TcpExtListenOverflows";
const ACCEPTED: &str = "TcpPassiveOpens";
const KEY: &str = "net.core.somaxconn";
/// One in a thousand connections waits a second or more for its second attempt.
const FELT: f64 = 1e-3;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Queues of connections that wait to be accepted were full.",
    explanation: "A connection that is complete waits in the queue of its listening socket until the program accepts it. When the queue is full, the last packet of the handshake is dropped, and the client tries again after a second. The queue is as long as the program asked for, at most net.core.somaxconn: so raising that alone helps only programs that ask for more. A program that is too slow fills any queue.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host_that_counted(&[(OVERFLOWS, 50), (ACCEPTED, 1000)]),
    silent: || host_that_counted(&[(OVERFLOWS, 0), (ACCEPTED, 1000)]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let (overflows, accepted) = (counter(host, OVERFLOWS), counter(host, ACCEPTED));
    if overflows == 0 {
        return Vec::new();
    }
    let whole = accepted.saturating_add(overflows);
    let mut evidence = vec![counted(OVERFLOWS, overflows), counted(ACCEPTED, accepted)];
    evidence.extend(host.settings.value(KEY).map(|value| format!("{KEY} = {value}")));
    let saying = Saying {
        rule: (ID, CITATION),
        severity: by_share(overflows, whole, FELT),
        subject: KEY.to_owned(),
        text: format!("A connection found its server's queue full {} times.", part_of(overflows, whole)),
        evidence,
        remedy: vec![
            "ss -ltn (Recv-Q is what waits, Send-Q how long the queue is: which one is full?)".to_owned(),
            "raise the program's own backlog first; net.core.somaxconn only if that is at its limit".to_owned(),
        ],
        risk: "",
    };
    vec![saying.finding()]
}
