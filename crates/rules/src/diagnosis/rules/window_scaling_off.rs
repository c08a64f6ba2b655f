//! The window scale option was not negotiated, and windows are limited to 65535 bytes.

use linerate_analysis::formulas::window_rate;
use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::ByteCount;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, rate, size, time, verdict};

const KEY: &str = "net.ipv4.tcp_window_scaling";

/// Window that is as large as one without the option can be: 65535 bytes, in whole segments.
pub(super) const MIN_UNSCALED_WINDOW: f64 = 64e3;
/// Share of the time that the sender waits for it.
const MIN_LIMITED_SHARE: f64 = 0.5;

/// The window scale option was not negotiated, and windows are limited to 65535 bytes.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "window-scaling-off",
    test: "The window scale option was not negotiated, and windows are limited to 65535 bytes.",
    citation: "RFC 7323 section 2",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let info = evidence.sender()?;
    info.timestamps?;
    if info.window_scale.is_some() || evidence.is_full() {
        return None;
    }
    let most = ByteCount::new(65_535);
    // A little more than the product is needed where round trips are longer under load: then the window shows it.
    let waits = evidence.shares.is_some_and(|shares| shares.receive_window.get() >= MIN_LIMITED_SHARE);
    let is_reached = waits && evidence.window.is_some_and(|window| window.as_f64() >= MIN_UNSCALED_WINDOW);
    if evidence.bandwidth_delay_product().is_some_and(|product| product <= most) && !is_reached {
        return None;
    }
    let bound = evidence.base.and_then(|base| window_rate(most, base));
    let local = [evidence.sender_setting(KEY), evidence.receiver_setting(KEY)];
    let off = |value: &Option<Vec<u64>>| value.as_deref() == Some(&[0]);
    let who = match (off(&local[0]), off(&local[1])) {
        (true, true) => "both hosts have it switched off",
        (true, false) => "the sender has it switched off",
        (false, true) => "the receiver has it switched off",
        (false, false) => "a device on the path removes the option",
    };
    let text = format!(
        "Window scaling is missing ({who}): at most 65535 bytes are in flight{}.",
        bound
            .map(|bound| format!(", {} over {}", rate(bound), time(evidence.base.unwrap_or_default())))
            .unwrap_or_default()
    );
    Some(
        verdict(Cause::WindowScalingOff, Confidence::High, text)
            .figure("largest advertised window", evidence.largest_window.map(size))
            .figure("bandwidth-delay product", evidence.bandwidth_delay_product().map(size))
            .advice(
                "net.ipv4.tcp_window_scaling = 1 where it is 0, corrected in the file that sets it (`linerate \
                audit --explain net.ipv4.tcp_window_scaling`)",
            ),
    )
}
