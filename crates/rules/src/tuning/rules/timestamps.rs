//! TCP timestamps are switched off.

use linerate_model::change::Group;
use linerate_model::diagnosis::Cause;

use super::super::cases::{host, rhel};
use super::super::support::{Feature, both};
use super::super::{Answer, Inputs, TuningRule};

const ID: &str = "timestamps";
const KEY: &str = "net.ipv4.tcp_timestamps";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Features,
    explanation: "At 10 Gbit/s sequence numbers wrap every 3.4 s; timestamps protect against segments of the round before (PAWS). Switching them off gains nothing that could be measured.",
    citation: "RFC 7323 sections 4 and 5; lab:300m-20ms-half-buffer-no-timestamps",
    causes: &[Cause::TimestampsOff],
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
        text: "Without timestamps old segments are not told from new ones when sequence numbers wrap, and round trips are measured less often.",
        risk: "12 bytes in each segment",
        concerns: both,
    };
    feature.restore(inputs, &[])
}
