//! Selective acknowledgements are switched off.

use linerate_model::change::Group;
use linerate_model::diagnosis::Cause;

use super::super::cases::{host, rhel};
use super::super::support::{Feature, both};
use super::super::{Answer, Inputs, TuningRule};

const ID: &str = "selective-acknowledgements";
const KEY: &str = "net.ipv4.tcp_sack";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Features,
    explanation: "At 300 Mbit/s and 20 ms with a queue of half a bandwidth-delay product a transfer of eight seconds gets 98 instead of 286 Mbit/s (docs/truth-table.md); on an emulator that lost more at once, 4.9 to 8.0 instead of 212.",
    citation: "RFC 2018; lab:300m-20ms-half-buffer-no-sack",
    causes: &[Cause::SackOff],
    unmeasured: true,
    propose,
    fires: || rhel(host(&[(KEY, "0")])),
    silent: || rhel(host(&[(KEY, "1")])),
};

fn propose(inputs: &Inputs) -> Vec<Answer> {
    let feature = Feature {
        rule: ID,
        key: KEY,
        group: Group::Features,
        text: "Without selective acknowledgements one lost segment is repaired per round trip.",
        risk: "none known: kernels without the errors of 2019 search their lists quickly",
        concerns: both,
    };
    feature.restore(inputs, &[])
}
