//! Slow start ended without a loss far below what the path holds, and the window has hardly grown since.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, size, time, verdict};

/// A window of this part of the product is far below it.
const FAR_BELOW: f64 = 0.5;

/// Slow start ended without a loss far below what the path holds, and the window has hardly grown since.
pub(super) const RULE: Rule = Rule {
    id: "slow-start-exit",
    test: "Slow start ended without a loss far below what the path holds, and the window has hardly grown since.",
    citation: "RFC 9406 (HyStart++); net/ipv4/tcp_cubic.c, hystart_update()",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    if evidence.is_full() || evidence.retransmitted?.get() > 1e-4 {
        return None;
    }
    let (product, segment) = (evidence.product()?, evidence.segment?);
    let exits = evidence.sender_counter("TcpExtTCPHystartTrainDetect")?
        + evidence.sender_counter("TcpExtTCPHystartDelayDetect")?;
    // Without a loss since, the threshold is still the window at which slow start ended.
    let window = segment.byte_count() * evidence.sender()?.slow_start_threshold?.get();
    if exits == 0 || window.as_f64() > product.as_f64() * FAR_BELOW {
        return None;
    }
    let text = format!(
        "Slow start ended at a delay that was no queue: at a window of {} where the path holds {}, without a loss.",
        size(window),
        size(product)
    );
    Some(
        verdict(Cause::SlowStartExit, Confidence::High, text)
            .figure("exits of slow start by delay or packet trains", Some(exits.to_string()))
            .figure("delay at rest", evidence.observation.path.as_ref().and_then(|path| path.usual_round_trip).map(|(median, high)| format!("{} (95 %: {})", time(median), time(high))))
            .advice("BBR starts without this test; or `echo 0 > /sys/module/tcp_cubic/parameters/hystart` on the sender, as a trial"),
    )
}
