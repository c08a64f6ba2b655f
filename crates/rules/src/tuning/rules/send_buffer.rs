//! The send buffer ends before what the path needs.

use linerate_model::change::Group;

use super::super::buffers::{Buffer, CAUSES};
use super::super::cases::{host, rhel};
use super::super::{Answer, Inputs, TuningRule};

const ID: &str = "send-buffer";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Buffers,
    explanation: "The send buffer holds what is under way and not yet acknowledged, and what is to follow. The kernel \
                  aims at two congestion windows, at three with BBR; with one, a path of 300 Mbit/s and 20 ms carried 186 \
                  Mbit/s, with two 286. It is the receive window's other half: raising one of them alone moves the limit \
                  to the other.",
    citation: "Linux, net/ipv4/tcp_input.c (tcp_sndbuf_expand), net/ipv4/tcp_bbr.c (bbr_sndbuf_expand); \
               lab:300m-20ms-send-buffer-750k",
    causes: CAUSES,
    unmeasured: true,
    propose,
    fires: || rhel(host(&[("net.ipv4.tcp_rmem", "4096 131072 6291456"), ("net.ipv4.tcp_wmem", "4096 16384 4194304")])),
    silent: || {
        rhel(host(&[("net.ipv4.tcp_rmem", "4096 131072 6291456"), ("net.ipv4.tcp_wmem", "4096 16384 438750000")]))
    },
};

fn propose(inputs: &Inputs) -> Vec<Answer> {
    let risk = "memory for each fast connection, and data that wait in this host when the path is slower than was measured \
                (tcp_notsent_lowat bounds that)";
    Buffer::Send.answers(inputs, ID, risk)
}
