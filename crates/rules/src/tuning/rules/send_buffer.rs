//! The send buffer limit is too small for the path.

use linerate_model::change::ChangeGroup;

use super::super::buffers::{BUFFER_CAUSES, SocketBuffer};
use super::super::test_cases::{host, rhel};
use super::super::{RuleAnswer, TuningInputs, TuningRule};

const ID: &str = "send-buffer";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: ChangeGroup::Buffers,
    explanation: "The send buffer holds the data in flight and the unsent data. The kernel \
    sizes it for two congestion windows, for three with BBR; with one, a path of 300 Mbit/s and 20 ms carried 186 \
    Mbit/s, with two 286. It complements the receive window: raising one of them alone moves the limit \
    to the other.",
    citation: "Linux, net/ipv4/tcp_input.c (tcp_sndbuf_expand), net/ipv4/tcp_bbr.c (bbr_sndbuf_expand); \
               lab:300m-20ms-send-buffer-750k",
    causes: BUFFER_CAUSES,
    unmeasured: true,
    propose,
    fires: || rhel(host(&[("net.ipv4.tcp_rmem", "4096 131072 6291456"), ("net.ipv4.tcp_wmem", "4096 16384 4194304")])),
    silent: || {
        rhel(host(&[("net.ipv4.tcp_rmem", "4096 131072 6291456"), ("net.ipv4.tcp_wmem", "4096 16384 438750000")]))
    },
};

fn propose(inputs: &TuningInputs) -> Vec<RuleAnswer> {
    let risk = "memory for each fast connection, and data that waits in this host when the path is slower than \
                measured (tcp_notsent_lowat bounds that)";
    SocketBuffer::Send.answers(inputs, ID, risk)
}
