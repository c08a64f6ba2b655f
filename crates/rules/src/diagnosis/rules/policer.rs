//! The path measurement found a token bucket: losses without a queue, at a rate independent of the sending rate.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::{BitRate, ByteCount};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, rate, size, verdict};

/// The path measurement found a token bucket: losses without a queue, at a rate independent of the sending rate.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "policer",
    test: "The path measurement found a token bucket: losses without a queue, at a rate independent of the sending \
        rate.",
    citation: "Flach et al., SIGCOMM 2016",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let found = evidence.path()?.policer.as_ref().filter(|policer| policer.present)?;
    let policed = found.bits_per_second.map(BitRate::from_bits_per_second);
    let text = format!(
        "A policer passes {} and drops the excess without queueing it: TCP sees losses without a preceding delay.",
        policed.map_or("a fixed rate".to_owned(), rate)
    );
    Some(
        verdict(Cause::Policer, Confidence::High, text)
            .figure("bucket", found.burst_bytes.map(|bytes| size(ByteCount::new(bytes))))
            .figure("detected from", Some(found.evidence.clone()))
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .advice(policed.map_or("pace below its rate".to_owned(), |policed| {
                format!(
                    "pace each connection below it: \
                {} in all (0.95 of its rate): `fq maxrate`, SO_MAX_PACING_RATE, or iperf3 --fq-rate to try \
                it",
                    rate(policed * 0.95)
                )
            })),
    )
}
