//! The sender had nothing to send, or was never ahead of the kernel, while no buffer was full.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::{BitRate, Ratio, SegmentCount};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::host_load::TransferEnd;
use super::super::text::{VerdictBuilder, percent, rate, size, verdict};

/// Share of the time without data to send from which the application is the limit.
const MIN_IDLE_SHARE: f64 = 0.1;

/// The sender had nothing to send, or was never ahead of the kernel, while no buffer was full.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "application",
    test: "The sender had nothing to send, or was never ahead of the kernel, while no buffer was full.",
    citation: "RFC 9438 section 5.8 (application-limited flows); tcpi_delivery_rate_app_limited; \
        net/ipv4/tcp_output.c, tcp_chrono_set",
    check,
};

/// Share of the rate that the program was asked for that counts as reached.
const MIN_REACHED_SHARE: f64 = 0.9;
/// The same from which it is the limit, although the kernel has data to send.
pub(super) const MIN_KEPT_SHARE: f64 = 0.98;
/// Share of the samples that the kernel marks as limited by the application from which it always is.
const MIN_MARKED_SHARE: f64 = 0.5;

/// True when the program sends at the rate that it was asked for, in the second half or in the mean of the whole transfer, where
/// it makes up for a slow start: its pauses are how it keeps the rate.
pub(super) fn is_at_asked_rate(evidence: &TransferEvidence<'_>, least: f64) -> bool {
    let connections = evidence.observation.connections.len();
    evidence.observation.asked.rate.is_some_and(|each| {
        let all = each * SegmentCount::new(connections as u64).as_f64();
        let is_near = |rate: BitRate| (least..=1.0 / least).contains(&(rate.bits_per_second() / all.bits_per_second()));
        is_near(evidence.steady) || is_near(evidence.goodput)
    })
}

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let shares = evidence.shares?;
    let idle = shares.application.get();
    let limited = evidence.application_limited.map_or(0.0, Ratio::get);
    let held = shares.send_buffer.get() >= 0.05 || shares.receive_window.get() >= 0.05;
    let ahead = !evidence.is_all_sent() || evidence.is_send_buffer_full() || !evidence.has_free_window();
    // A program that waits for the kernel's memory writes no sooner.
    // Nor does one whose buffer is full of data behind a loss.
    let waits = !super::kernel_memory::RULE.is_silent(evidence) || evidence.is_buffer_full_behind_losses();
    // A program that keeps the rate it was asked for limits, whatever is lost and repaired meanwhile.
    let keeps = is_at_asked_rate(evidence, MIN_KEPT_SHARE);
    // One that never sleeps writes as much as its processor allows.
    let computes = evidence.never_slept(TransferEnd::Sender) && !keeps;
    // A queue shows that the path is full, but not that it would carry no more than that rate.
    let is_full = evidence.is_full() && !(keeps && evidence.used().is_none());
    if (held && !keeps) || computes || waits || is_full || (idle < MIN_IDLE_SHARE && ahead && !keeps) {
        return None;
    }
    let asked = evidence.observation.asked.rate;
    // A program that keeps its rate by bursts is ahead of the kernel while one is sent.
    let is_even = is_at_asked_rate(evidence, MIN_REACHED_SHARE) && limited >= MIN_MARKED_SHARE;
    let (cause, text) = if idle >= MIN_IDLE_SHARE && !is_even {
        (
            Cause::Application,
            format!("The sending program had nothing to send for {} of the time.", percent(shares.application)),
        )
    } else {
        let (steady, waits) = (rate(evidence.steady), held || ahead);
        let text = if keeps && waits {
            format!("The sending program keeps the rate that it was asked for, {steady}.")
        } else {
            format!("The sending program writes at a steady {steady}, and the kernel sends all of it at once.")
        };
        (Cause::ApplicationPacing, text)
    };
    // Why a program that was asked for no rate writes no sooner is not known.
    let is_known = cause == Cause::Application || asked.is_some();
    let sure = if is_known && limited >= MIN_MARKED_SHARE { Confidence::High } else { Confidence::Medium };
    Some(
        verdict(cause, sure, text)
            .figure("samples limited by the application", evidence.application_limited.map(percent))
            .figure("written but not sent", evidence.not_sent.map(size))
            .figure("rate requested by the program", asked.map(rate))
            .figure("path capacity", evidence.capacity.map(rate))
            .advice(
                "check the program: its disk, its cipher, the size of its writes; `linerate baseline` measures \
                this host's disk and ciphers",
            ),
    )
}
