//! Full segments vanish on the path, and the sender does not look for a size that arrives.

use linerate_model::change::Group;
use linerate_model::diagnosis::Cause;
use linerate_units::ByteCount;

use super::super::cases::{host, rhel};
use super::super::support::Feature;
use super::super::{Answer, Inputs, TuningRule};

const ID: &str = "mtu-probing";
const KEY: &str = "net.ipv4.tcp_mtu_probing";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Mtu,
    explanation: "With 1 the kernel tries smaller segments when none arrives any more: the transfer stalls once, and then \
                  goes on. 2 would begin every connection with small segments, also on paths without a black hole, and is \
                  never proposed.\n\nThe better remedy is a firewall that lets ICMP through.",
    citation: "RFC 4821; Documentation/networking/ip-sysctl.rst (tcp_mtu_probing); lab:300m-20ms-black-hole",
    causes: &[Cause::BlackHole],
    unmeasured: true,
    propose,
    fires: || {
        let mut inputs = rhel(host(&[(KEY, "0")]));
        inputs.path.out.black_hole = Some(ByteCount::new(1401));
        inputs
    },
    silent: || rhel(host(&[(KEY, "0")])),
};

fn propose(inputs: &Inputs) -> Vec<Answer> {
    let holes: Vec<ByteCount> = inputs.transfers().iter().filter_map(|transfer| transfer.way.black_hole).collect();
    let measured = inputs.cause() == Some(Cause::BlackHole);
    if holes.is_empty() && !measured {
        return Vec::new();
    }
    let from = |size: &ByteCount| format!("packets of {} bytes and more vanish", size.get());
    let feature = Feature {
        rule: ID,
        key: KEY,
        group: Group::Mtu,
        text: "Full segments vanish on the path without a word, and the sender sends them again and again.",
        risk: "a path that loses everything for some time is taken for one with a small MTU",
        concerns: if measured {
            |transfer, end| transfer.sender == end
        } else {
            |transfer, end| transfer.sender == end && transfer.way.black_hole.is_some()
        },
    };
    feature.restore(inputs, &holes.iter().map(from).collect::<Vec<_>>())
}
