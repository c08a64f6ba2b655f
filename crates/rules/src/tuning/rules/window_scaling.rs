//! The window scale option is switched off.

use linerate_model::change::Group;
use linerate_model::diagnosis::Cause;

use super::super::cases::{host, rhel};
use super::super::support::{Feature, both};
use super::super::{Answer, Inputs, TuningRule};

const ID: &str = "window-scaling";
const KEY: &str = "net.ipv4.tcp_window_scaling";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Features,
    explanation: "The window field has 16 bits. Both ends must offer the option in the handshake, so it must be on at both.",
    citation: "RFC 7323 section 2; lab:rhel-1g-1500us-no-window-scaling",
    causes: &[Cause::WindowScalingOff],
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
        text: "Without the window scale option no more than 65535 bytes are under way.",
        risk: "none known: all systems of the last twenty years agree on it",
        concerns: both,
    };
    feature.restore(inputs, &[])
}
