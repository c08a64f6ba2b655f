//! The receive buffer limit is too small for the window that the path needs.

use linerate_model::change::ChangeGroup;

use super::super::buffers::{BUFFER_CAUSES, SocketBuffer};
use super::super::test_cases::{host, rhel};
use super::super::{RuleAnswer, TuningInputs, TuningRule};

const ID: &str = "receive-buffer";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: ChangeGroup::Buffers,
    explanation: "The third number of tcp_rmem limits the growth of a receive buffer. A part of the buffer \
    becomes window, and the window must cover the data in flight on the path, with a quarter to spare for \
    loss recovery. The first two numbers are unchanged: they are for connections that are not fast.",
    citation: "RFC 6349 section 3.3.1; Linux, net/ipv4/tcp_input.c (tcp_rcv_space_adjust); lab:rhel-10g-117ms",
    causes: BUFFER_CAUSES,
    unmeasured: true,
    propose,
    fires: || rhel(host(&[("net.ipv4.tcp_rmem", "4096 131072 6291456"), ("net.ipv4.tcp_wmem", "4096 16384 4194304")])),
    silent: || {
        rhel(host(&[("net.ipv4.tcp_rmem", "4096 131072 438750000"), ("net.ipv4.tcp_wmem", "4096 16384 4194304")]))
    },
};

fn propose(inputs: &TuningInputs) -> Vec<RuleAnswer> {
    let risk = "memory for each fast connection, and a longer queue where the path's own buffer is deep: the trial \
    checks the round trip under load";
    SocketBuffer::Receive.answers(inputs, ID, risk)
}
