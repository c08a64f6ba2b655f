//! Losses limit, and the segments are half of what the path takes, or less.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};
use linerate_units::ByteCount;

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, percent, verdict};

/// Losses limit, and the segments are half of what the path takes, or less.
pub(super) const RULE: Rule = Rule {
    id: "small-packets",
    test: "Losses limit, and the segments are half of what the path takes, or less.",
    citation: "Mathis et al. 1997: rate grows with the segment size",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    if !evidence.loses_without_queue() {
        return None;
    }
    let segment = evidence.segment?;
    let path = evidence.path()?.mtu.as_ref()?.bytes;
    if u64::from(segment.get()) * 2 > path {
        return None;
    }
    let gain = ByteCount::new(path).as_f64() / f64::from(segment.get());
    let text = format!(
        "Segments of {} bytes on a path that takes packets of {path}: at the same loss rate, full ones would get up to {gain:.1} times as much.",
        segment.get()
    );
    Some(
        verdict(Cause::SmallPackets, Confidence::High, text)
            .figure("sent again", evidence.retransmitted.map(percent))
            .advice(
                "raise the MTU of both hosts' interfaces to the path's, and remove MSS clamps (firewalls; iperf3 -M)",
            ),
    )
}
