//! Losses are rare, and the congestion control needs longer to come back from one than most transfers last.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, rate, time, verdict};

/// Longer than most transfers.
const LONG: Duration = Duration::from_secs(30);

/// Losses are rare, and the congestion control needs longer to come back from one than most transfers last.
pub(super) const RULE: Rule = Rule {
    id: "congestion-control",
    test: "Losses are rare, and the congestion control needs longer to come back from one than most transfers last.",
    citation: "RFC 5681 section 3.1: one segment per round trip; RFC 9438 section 1",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    if !evidence.uses("reno") || !evidence.loses_without_queue() {
        return None;
    }
    let (product, segment, base) = (evidence.product()?, evidence.segment?, evidence.base?);
    let recovery = base.mul_f64(product.as_f64() / f64::from(segment.get()) / 2.0);
    if recovery < LONG {
        return None;
    }
    let text = format!(
        "Reno needs {} to come back from a single loss on this path, one segment per round trip of {}.",
        time(recovery),
        time(base)
    );
    Some(
        verdict(Cause::CongestionControl, Confidence::High, text)
            .figure("segments sent again", evidence.retransmits.map(|count| count.get().to_string()))
            .figure("the path carries", evidence.capacity.map(rate))
            .advice("try CUBIC, and BBR where losses are not congestion: `linerate diagnose HOST -- -C cubic` (or bbr) shows what they reach"),
    )
}
