//! The sender waited for the receiver's window, or sends one window per round trip without losses, and the path is not
//! full.

use linerate_analysis::formulas::window_rate;
use linerate_model::diagnosis::{Cause, DiagnosisVerdict};
use linerate_units::{BitRate, ByteCount};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::full_path::FULL;
use super::super::text::{VerdictBuilder, percent, rate, size, third_number_advice, time, verdict};
use crate::tuning::{SocketBuffer, measured_buffer_need};

/// Share of the busy time from which the window limits: it never reaches 1, as the clock stops with each send.
const MIN_LIMITED_SHARE: f64 = 0.2;

/// Measured rates, as shares of what the usual window allows, at which that window explains them.
const FITTING_SHARES: core::ops::RangeInclusive<f64> = 0.75..=1.05;

/// Share of the capacity from which a window is large enough for the path.
const MIN_FILLING_SHARE: f64 = 1.3;

/// Share of the capacity from which a window holds nothing back where the path is nearly full.
const MIN_ALLOWED_SHARE: f64 = 1.1;

/// The sender waited for the receiver's window, or sends one window per round trip without losses, and the path is not
/// full.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "receive-window",
    test: "The sender waited for the receiver's window, or sends one window per round trip without losses, and the \
        path is not full.",
    citation: "tcpi_rwnd_limited (net/ipv4/tcp_output.c, tcp_chrono_start); RFC 9293 section 3.8.6; rate = window / \
        round trip",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let shares = evidence.shares?;
    let waits = shares.receive_window.get() >= MIN_LIMITED_SHARE;
    if evidence.fills_path_despite(shares.receive_window) || !(waits || evidence.is_window_per_rtt()) {
        return None;
    }
    if is_behind_a_loss(evidence) || allows_capacity(evidence) {
        return None;
    }
    // Neither of its advices helps: a program set the buffer, and the kernel would not grow its own.
    if super::autotuning_off::is_off(evidence) && super::autotuning_off::sets_receive_buffer(evidence) {
        return None;
    }
    let most =
        evidence.receiver_setting("net.ipv4.tcp_rmem").and_then(|values| values.get(2).copied()).map(ByteCount::new);
    let needed = measured_buffer_need(evidence.observation, SocketBuffer::Receive);
    let text = format!(
        "The receive window is the limit{}: {} per {} round trip{}.",
        if fits(evidence) { String::new() } else { format!(" for {} of the time", percent(shares.receive_window)) },
        evidence.window.map_or("a window".to_owned(), size),
        evidence.loaded.map_or_else(|| evidence.base.map_or("each".to_owned(), time), |(median, _)| time(median)),
        allowed_rate(evidence)
            .filter(|_| fits(evidence))
            .map_or_else(String::new, |allowed| format!(" allows {}", rate(allowed))),
    );
    let sure = evidence.confidence_in_a_window(waits && evidence.is_window_per_rtt());
    let verdict = verdict(Cause::ReceiveWindow, sure, text)
        .figure("time limited by the receiver's window", Some(percent(shares.receive_window)))
        .figure("receive buffer", evidence.receive_buffer.map(|(buffer, _)| size(buffer)))
        .figure("net.ipv4.tcp_rmem, largest", most.map(size))
        .figure("bandwidth-delay product", evidence.bandwidth_delay_product().map(size))
        .advice(third_number_advice(("receiver", "net.ipv4.tcp_rmem"), most, needed, holder(evidence)));
    let verdict = if super::autotuning_off::is_off(evidence) {
        verdict.advice("on the receiver: `sysctl -w net.ipv4.tcp_moderate_rcvbuf=1` as well: its kernel leaves buffers as they are")
    } else {
        verdict
    };
    if evidence.unread.is_some() {
        return Some(verdict);
    }
    Some(verdict.advice(
        "only the receiving host can distinguish a small buffer from a program that reads too slowly: `linerate watch` \
            there",
    ))
}

/// True when the path is nearly full, and the window allows all of it: the kernel's clock also counts the time in which a
/// full window is on its way. A larger window than the path holds waits in its queue, unless it is of fewer than two segments:
/// then the path is idle until the receiver has opened it again.
fn allows_capacity(evidence: &TransferEvidence<'_>) -> bool {
    let waits = !evidence.has_window_below_two_segments()
        && evidence
            .window
            .zip(evidence.bandwidth_delay_product())
            .is_some_and(|(window, product)| window >= product * 2);
    evidence.used().is_some_and(|used| used >= FULL) && (waits || allows(evidence, MIN_ALLOWED_SHARE))
}

/// Rate that the usual window allows in the usual round trips.
fn allowed_rate(evidence: &TransferEvidence<'_>) -> Option<BitRate> {
    evidence.window.zip(evidence.loaded).and_then(|(window, (median, _))| window_rate(window, median))
}

/// True when the usual window and round trip give the measured rate: both vary where it limits only at times.
fn fits(evidence: &TransferEvidence<'_>) -> bool {
    let share = allowed_rate(evidence).map(|allowed| evidence.steady.bits_per_second() / allowed.bits_per_second());
    share.is_some_and(|share| FITTING_SHARES.contains(&share))
}

/// Limit that keeps a receive buffer small although the kernel may let it grow.
fn holder(evidence: &TransferEvidence<'_>) -> &'static str {
    let is_unscaled = evidence.sender().is_some_and(|info| info.timestamps.is_some() && info.window_scale.is_none());
    if super::autotuning_off::is_off(evidence) {
        "its kernel, which leaves buffers as they are"
    } else if super::autotuning_off::sets_receive_buffer(evidence) {
        "a program that sets it"
    } else if is_unscaled {
        "a window without scaling, which has at most 65535 bytes"
    } else if !super::slow_reader::RULE.is_silent(evidence) {
        "a program that reads too slowly for it to grow"
    } else {
        "a program that sets it or net.ipv4.tcp_mem"
    }
}

/// True when the window allows this multiple of the path's capacity.
fn allows(evidence: &TransferEvidence<'_>, share: f64) -> bool {
    allowed_rate(evidence).zip(evidence.capacity).is_some_and(|(allowed, capacity)| allowed >= capacity * share)
}

/// True when the window fills the path, so that only data behind a loss can fill it. One of fewer than two segments carries one at
/// a time, whatever it allows.
pub(in super::super) fn is_behind_a_loss(evidence: &TransferEvidence<'_>) -> bool {
    !evidence.has_window_below_two_segments()
        && allows(evidence, MIN_FILLING_SHARE)
        && evidence.retransmits.is_some_and(|count| !count.is_zero())
}
