//! The receiver's thread, or its whole host, had no processor time left.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, of_whole, percent, verdict};

/// The rest is scheduling.
const BUSY: f64 = 0.95;

/// The receiver's thread, or its whole host, had no processor time left.
pub(super) const RULE: Rule = Rule {
    id: "receiver-processor",
    test: "The receiver's thread, or its whole host, had no processor time left.",
    citation: "getrusage(2), RUSAGE_THREAD; proc(5), /proc/stat",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let load = evidence.shares?.receiver_cpu?;
    let busy = evidence.observation.receiver.as_ref().and_then(|host| host.busy).unwrap_or(0.0);
    if load.get() < BUSY && busy < BUSY || evidence.is_full() {
        return None;
    }
    let text = format!("The receiver's processor is full: its thread used {} of one.", percent(load));
    Some(
        verdict(Cause::ReceiverProcessor, Confidence::High, text)
            .figure("all processors of the host", Some(of_whole(busy)))
            .advice("check the offloads of the interface (`linerate audit`), and try several connections: they use several processors"),
    )
}
