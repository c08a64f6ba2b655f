//! Receive buffers do not grow.

use linerate_model::change::Group;
use linerate_model::diagnosis::Cause;

use super::super::cases::{host, rhel};
use super::super::support::Feature;
use super::super::{Answer, Inputs, TuningRule};

const ID: &str = "receive-autotuning";
const KEY: &str = "net.ipv4.tcp_moderate_rcvbuf";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Buffers,
    explanation: "With tcp_moderate_rcvbuf = 0 each receive buffer stays as it was when the connection was opened.",
    citation: "Documentation/networking/ip-sysctl.rst (tcp_moderate_rcvbuf)",
    causes: &[Cause::ReceiveWindow, Cause::SocketBuffer],
    unmeasured: true,
    propose,
    fires: || rhel(host(&[(KEY, "0")])),
    silent: || rhel(host(&[(KEY, "1")])),
};

fn propose(inputs: &Inputs) -> Vec<Answer> {
    let feature = Feature {
        rule: ID,
        key: KEY,
        group: Group::Buffers,
        text: "Receive buffers stay at the second number of tcp_rmem, whatever the path needs.",
        risk: "memory for each fast connection, within tcp_rmem",
        concerns: |transfer, end| transfer.receiver == end,
    };
    feature.restore(inputs, &[])
}
