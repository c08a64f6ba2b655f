//! The path's measurement found a token bucket: losses without a queue, at a rate that does not depend on what is sent.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};
use linerate_units::{BitRate, ByteCount};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, percent, rate, size, verdict};

/// The path's measurement found a token bucket: losses without a queue, at a rate that does not depend on what is sent.
pub(super) const RULE: Rule = Rule {
    id: "policer",
    test: "The path's measurement found a token bucket: losses without a queue, at a rate that does not depend on what is sent.",
    citation: "Flach et al., SIGCOMM 2016",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let found = evidence.path()?.policer.as_ref().filter(|policer| policer.present)?;
    let policed = found.bits_per_second.map(BitRate::from_bits_per_second);
    let text = format!(
        "A policer lets {} through and drops the rest without queueing it: TCP sees losses that no delay announces.",
        policed.map_or("a fixed rate".to_owned(), rate)
    );
    Some(
        verdict(Cause::Policer, Confidence::High, text)
            .figure("bucket", found.burst_bytes.map(|bytes| size(ByteCount::new(bytes))))
            .figure("found by", Some(found.evidence.clone()))
            .figure("sent again", evidence.retransmitted.map(percent))
            .advice(policed.map_or("pace below its rate".to_owned(), |policed| format!("pace each connection below it: {} in all (0.95 of its rate): `fq maxrate`, SO_MAX_PACING_RATE, or iperf3 --fq-rate to try it", rate(policed * 0.95)))),
    )
}
