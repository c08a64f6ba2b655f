//! Slow start ended without a loss far below the bandwidth-delay product, and the window has hardly grown since.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict, SenderState};

use super::super::DiagnosisRule;
use super::super::counterfactual::time_in;
use super::super::evidence::TransferEvidence;
use super::super::states;
use super::super::text::{VerdictBuilder, size, time, verdict};

/// Share of the bandwidth-delay product up to which a window is far below it.
const MAX_WINDOW_SHARE: f64 = 0.5;

/// Share of the time without acknowledgements up to which the window is the limit.
const MAX_STALLED_SHARE: f64 = 0.2;

/// Largest retransmitted share of a transfer that counts as one without a loss.
const MAX_LOSS: f64 = 1e-4;

/// Slow start ended without a loss far below the bandwidth-delay product, and the window has hardly grown since.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "slow-start-exit",
    test: "Slow start ended without a loss far below the bandwidth-delay product, and the window has hardly grown \
        since.",
    citation: "RFC 9406 (HyStart++); net/ipv4/tcp_cubic.c, hystart_update()",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let stalled = time_in(&states::shares(evidence), &[SenderState::Stalled]);
    let loses = evidence.retransmitted?.get() > MAX_LOSS && !evidence.retransmits_needlessly();
    if evidence.is_full() || loses || stalled > MAX_STALLED_SHARE {
        return None;
    }
    let (product, segment) = (evidence.bandwidth_delay_product()?, evidence.segment?);
    let exits = evidence.sender_counter("TcpExtTCPHystartTrainDetect")?
        + evidence.sender_counter("TcpExtTCPHystartDelayDetect")?;
    // Without a loss since, the threshold is still the window at which slow start ended.
    let window = segment.byte_count() * evidence.sender()?.slow_start_threshold?.get();
    if exits == 0 || window.as_f64() > product.as_f64() * MAX_WINDOW_SHARE {
        return None;
    }
    let text = format!(
        "Slow start ended at a delay increase without a queue: at a window of {} for a bandwidth-delay product of {}, \
            without a loss.",
        size(window),
        size(product)
    );
    Some(
        verdict(Cause::SlowStartExit, Confidence::High, text)
            .figure("HyStart exits by delay or ACK trains", Some(exits.to_string()))
            .figure(
                "delay at rest",
                evidence
                    .observation
                    .path
                    .as_ref()
                    .and_then(|path| path.usual_round_trip)
                    .map(|(median, high)| format!("{} (95 %: {})", time(median), time(high))),
            )
            .advice(
                "BBR starts without this test; or `echo 0 > /sys/module/tcp_cubic/parameters/hystart` on the \
                sender, as a trial",
            ),
    )
}
