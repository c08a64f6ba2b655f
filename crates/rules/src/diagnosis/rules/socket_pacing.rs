//! The socket has a maximum pacing rate, and the transfer reaches it.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::SegmentCount;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, rate, verdict};

/// Share of the pacing rate that counts as reached: headers and retransmissions take the remainder.
const KEPT: f64 = 0.85;

/// Share of the path's capacity above which a pacing rate limits nothing.
const MAX_CAPACITY_SHARE: f64 = 1.05;

/// Share of the pacing rate below which a window that is always full limits, not the pacing, which leaves it open.
const KEPT_BY_PACING: f64 = 0.95;

/// The socket has a maximum pacing rate, and the transfer reaches it.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "socket-pacing",
    test: "The socket has a maximum pacing rate, and the transfer reaches it.",
    citation: "socket(7), SO_MAX_PACING_RATE; tcpi_max_pacing_rate",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let each = evidence.sender()?.max_pacing_rate?;
    let connections = SegmentCount::new(evidence.observation.connections.len() as u64).as_f64();
    let allowed = each * connections;
    let kept = if evidence.is_window_per_rtt() { KEPT_BY_PACING } else { KEPT };
    let is_above_path = evidence.capacity.is_some_and(|capacity| allowed > capacity * MAX_CAPACITY_SHARE);
    if evidence.steady.bits_per_second() < allowed.bits_per_second() * kept || is_above_path {
        return None;
    }
    let text = format!(
        "The program limits the pacing rate of its connections to {} in total, and the transfer reaches {}.",
        rate(allowed),
        rate(evidence.steady)
    );
    Some(
        verdict(Cause::SocketPacing, Confidence::High, text)
            .figure("pacing rate per connection", Some(rate(each)))
            .figure("path capacity", evidence.capacity.map(rate))
            .advice(
                "set a higher rate in the program (SO_MAX_PACING_RATE; iperf3 --fq-rate), if the path and its \
                policers allow",
            ),
    )
}
