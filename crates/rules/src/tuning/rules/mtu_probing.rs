//! Full segments vanish on the path, and the sender does not probe for a smaller path MTU.

use linerate_model::change::ChangeGroup;
use linerate_model::diagnosis::Cause;
use linerate_units::ByteCount;

use super::super::support::FeatureProposal;
use super::super::test_cases::{host, rhel};
use super::super::{RuleAnswer, TuningInputs, TuningRule};

const ID: &str = "mtu-probing";
const KEY: &str = "net.ipv4.tcp_mtu_probing";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: ChangeGroup::Mtu,
    explanation: "With 1 the kernel tries smaller segments when none arrive any more: the transfer stalls once, and \
    then continues. 2 would begin every connection with small segments, also on paths without a black hole, and is \
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

fn propose(inputs: &TuningInputs) -> Vec<RuleAnswer> {
    let holes: Vec<ByteCount> = inputs.transfers().iter().filter_map(|transfer| transfer.way.black_hole).collect();
    let measured = inputs.cause() == Some(Cause::BlackHole);
    if holes.is_empty() && !measured {
        return Vec::new();
    }
    let from = |size: &ByteCount| format!("packets of {} bytes and more are dropped silently", size.get());
    let feature = FeatureProposal {
        rule: ID,
        key: KEY,
        group: ChangeGroup::Mtu,
        text: "Full segments are dropped silently on the path, and the sender retransmits them endlessly.",
        risk: "a path that loses everything for some time is treated as one with a small MTU",
        concerns: if measured {
            |transfer, end| transfer.sender == end
        } else {
            |transfer, end| transfer.sender == end && transfer.way.black_hole.is_some()
        },
    };
    feature.restore(inputs, &holes.iter().map(from).collect::<Vec<_>>())
}
