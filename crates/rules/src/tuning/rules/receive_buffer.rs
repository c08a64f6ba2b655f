//! The receive buffer ends before the window that the path needs.

use linerate_model::change::Group;

use super::super::buffers::{Buffer, CAUSES};
use super::super::cases::{host, rhel};
use super::super::{Answer, Inputs, TuningRule};

const ID: &str = "receive-buffer";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Buffers,
    explanation: "The third number of tcp_rmem bounds how far the kernel lets a receive buffer grow. A part of the buffer \
                  becomes window, and the window must hold what is under way on the path, with a quarter to spare for \
                  repairs. The first two numbers stay: they are for connections that are not fast.",
    citation: "RFC 6349 section 3.3.1; Linux, net/ipv4/tcp_input.c (tcp_rcv_space_adjust); lab:rhel-10g-117ms",
    causes: CAUSES,
    unmeasured: true,
    propose,
    fires: || rhel(host(&[("net.ipv4.tcp_rmem", "4096 131072 6291456"), ("net.ipv4.tcp_wmem", "4096 16384 4194304")])),
    silent: || {
        rhel(host(&[("net.ipv4.tcp_rmem", "4096 131072 438750000"), ("net.ipv4.tcp_wmem", "4096 16384 4194304")]))
    },
};

fn propose(inputs: &Inputs) -> Vec<Answer> {
    let risk = "memory for each fast connection, and a longer queue where the path's own buffer is deep: the trial looks \
                at the round trip under load";
    Buffer::Receive.answers(inputs, ID, risk)
}
