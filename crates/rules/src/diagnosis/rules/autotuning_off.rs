//! The receiving kernel does not grow receive buffers, and the window that follows from this one is full.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::ByteCount;

use super::super::DiagnosisRule;
use super::super::bounds::kernel_window;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, percent, rate, size, verdict};
use super::socket_buffer::{MIN_LIMITED_SHARE, locked_receive_buffer};
use super::window_scaling_off::MIN_UNSCALED_WINDOW;

/// The receiving kernel does not grow receive buffers, and the window that follows from this one is full.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "autotuning-off",
    test: "The receiving kernel does not grow receive buffers, and the window that follows from this one is full.",
    citation: "Documentation/networking/ip-sysctl.rst (tcp_moderate_rcvbuf)",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    if !is_off(evidence) {
        return None;
    }
    if sets_receive_buffer(evidence) {
        return behind_a_set_buffer(evidence);
    }
    // Without window scaling, a larger buffer offers no larger window.
    let is_unscaled = evidence.sender().is_some_and(|info| info.timestamps.is_some() && info.window_scale.is_none());
    if is_unscaled && evidence.largest_window.is_some_and(|window| window.as_f64() >= MIN_UNSCALED_WINDOW) {
        return None;
    }
    let shares = evidence.shares?;
    let (buffer, changed) = evidence.receive_buffer?;
    let waits = shares.receive_window.get() >= MIN_LIMITED_SHARE || evidence.is_window_per_rtt();
    let unread = evidence.is_buffer_unread();
    // A buffer at its largest size would not grow in any case, and one whose largest size is too small not enough.
    let most = evidence.receiver_setting("net.ipv4.tcp_rmem").and_then(|values| values.get(2).copied());
    let needed = evidence.bandwidth_delay_product().map(|product| ByteCount::new(product.get().saturating_mul(2)));
    let at_the_end = most
        .map(ByteCount::new)
        .is_some_and(|most| buffer.as_f64() >= 0.9 * most.as_f64() || needed.is_some_and(|needed| most < needed));
    if changed || unread || at_the_end || !waits || evidence.fills_path_despite(shares.receive_window) {
        return None;
    }
    let text = format!(
        "The receiver's kernel does not grow receive buffers (net.ipv4.tcp_moderate_rcvbuf = 0): this one stayed at {}.",
        size(buffer)
    );
    let initial = evidence.receiver_setting("net.ipv4.tcp_rmem").and_then(|values| values.get(1).copied());
    let is_initial = initial.is_none_or(|initial| initial == buffer.get());
    let sure = if is_initial { Confidence::High } else { Confidence::Medium };
    Some(
        verdict(Cause::AutotuningOff, sure, text)
            .figure("time limited by the receiver's window", Some(percent(shares.receive_window)))
            .figure("advertised window", evidence.window.map(size))
            .figure("net.ipv4.tcp_rmem, initial", initial.map(|initial| size(ByteCount::new(initial))))
            .figure("buffer needed by the path", needed.map(size))
            .advice("on the receiver: `sysctl -w net.ipv4.tcp_moderate_rcvbuf=1`, the kernel's default"),
    )
}

/// The kernel's own buffer, which a program's setting hides: it allows less than the path carries.
fn behind_a_set_buffer(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let shares = evidence.shares?;
    let waits = shares.receive_window.get() >= MIN_LIMITED_SHARE || evidence.is_window_per_rtt();
    let initial = *evidence.receiver_setting("net.ipv4.tcp_rmem")?.get(1)?;
    let allowed = kernel_window(evidence, false)?;
    if !waits || evidence.is_buffer_unread() || evidence.fills_path_despite(shares.receive_window) {
        return None;
    }
    if evidence.capacity.is_none_or(|capacity| allowed >= capacity) {
        return None;
    }
    let text = format!(
        "The receiver's kernel does not grow receive buffers (net.ipv4.tcp_moderate_rcvbuf = 0): without the program's setting \
            they stay at {}, which allows {}.",
        size(ByteCount::new(initial)),
        rate(allowed)
    );
    let verdict = verdict(Cause::AutotuningOff, Confidence::Medium, text);
    Some(verdict.advice("on the receiver: `sysctl -w net.ipv4.tcp_moderate_rcvbuf=1`, the kernel's default"))
}

/// True when a program set the receive buffer, as far as that is known.
pub(in super::super) fn sets_receive_buffer(evidence: &TransferEvidence<'_>) -> bool {
    evidence.observation.asked.buffer.is_some() || locked_receive_buffer(evidence) == Some(true)
}

/// True when the receiver's kernel leaves receive buffers as they are.
pub(in super::super) fn is_off(evidence: &TransferEvidence<'_>) -> bool {
    evidence.receiver_setting("net.ipv4.tcp_moderate_rcvbuf").is_some_and(|value| value == [0])
}
