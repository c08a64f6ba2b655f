//! The path measurement found a token bucket: losses without a queue, at a rate independent of the sending rate.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_model::path::CapacityMeasurement;
use linerate_units::{BitRate, ByteCount};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, rate, size, time, verdict};

/// Share of a packet's own time up to which a wait is none.
const MAX_WAIT: f64 = 0.5;
/// The same where other traffic uses the path as well.
const MAX_SHARED_WAIT: f64 = 0.05;
/// Delay variation at rest, in packets of the limit's rate, in which no queue can hide.
const MAX_VARIATION: f64 = 4.0;
/// Share of the limit's rate from which a transfer meets it: below, delays may vary by other traffic.
const MIN_USED_SHARE: f64 = 0.5;
/// Loss of a search that sends a twentieth more than arrives: less where a second of it is few packets.
const MIN_SURPLUS_LOSS: f64 = 0.02;

/// The path measurement found a token bucket: losses without a queue, at a rate independent of the sending rate.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "policer",
    test: "The path measurement found a token bucket: losses without a queue, at a rate independent of the sending \
        rate.",
    citation: "Flach et al., SIGCOMM 2016",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let path = evidence.path()?;
    let Some(found) = path.policer.as_ref().filter(|policer| policer.present) else {
        return drops_without_queue(evidence, path.capacity.as_ref()?);
    };
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
            .advice(policed.map_or("pace below its rate".to_owned(), pacing)),
    )
}

fn pacing(policed: BitRate) -> String {
    format!(
        "pace each connection below it: {} in all (0.95 of its rate): `fq maxrate`, SO_MAX_PACING_RATE, or iperf3 \
            --fq-rate to try it",
        rate(policed * 0.95)
    )
}

/// Verdict where the search lost what exceeded the capacity, and no packet waited as long as a single one takes to send: no
/// link can do that, only a limit that counts bytes.
fn drops_without_queue(evidence: &TransferEvidence<'_>, capacity: &CapacityMeasurement) -> Option<DiagnosisVerdict> {
    let policed = BitRate::from_bits_per_second(capacity.bits_per_second);
    let packet = policed.time_to_send(ByteCount::new(capacity.packet_bytes))?;
    let waited = Duration::from_nanos(capacity.queueing_ns?);
    let varies = variation_at_rest(evidence)
        .filter(|spread| *spread <= packet.mul_f64(MAX_VARIATION))
        .filter(|_| evidence.used().is_some_and(|used| used >= MIN_USED_SHARE))
        .unwrap_or_default();
    let is_queueless = waited.saturating_sub(varies) < packet.mul_f64(MAX_WAIT)
        && capacity.loss.is_some_and(|loss| loss >= MIN_SURPLUS_LOSS);
    if capacity.at_least || capacity.shared != Some(false) || !is_queueless || evidence.limiting_queue().is_some() {
        return None;
    }
    // A fair queue at the share of one flow drops others' packets as well, and its packets wait for their turn, if no longer.
    let is_unsure = evidence.path().and_then(|path| path.policer.as_ref()).is_some_and(|policer| !policer.present);
    if is_unsure && waited >= packet.mul_f64(MAX_SHARED_WAIT) && super::is_path_shared(evidence) {
        return None;
    }
    let is_certain = waited < packet.mul_f64(MAX_WAIT);
    let text = format!(
        "A policer passes {} and drops the excess without queueing it: packets sent at a higher rate were lost, and none \
            of them waited{}.",
        rate(policed),
        if is_certain { "" } else { " longer than delays vary at rest" },
    );
    Some(
        verdict(Cause::Policer, if is_certain { Confidence::High } else { Confidence::Medium }, text)
            .figure("longest wait while more was sent than passed", Some(time(waited)))
            .figure("time that one packet takes at that rate", Some(time(packet)))
            .figure("retransmitted", evidence.retransmitted.map(percent))
            .advice(pacing(policed)),
    )
}

/// Spread of the one-way delays at rest, up to the 99th percentile.
fn variation_at_rest(evidence: &TransferEvidence<'_>) -> Option<Duration> {
    let delays = evidence.path()?.packets.as_ref()?.one_way_delay.as_ref()?;
    Some(delays.p99.saturating_sub(delays.min))
}
