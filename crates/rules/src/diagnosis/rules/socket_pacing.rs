//! The socket has a largest pacing rate, and the transfer keeps to it.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};
use linerate_units::SegmentCount;

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, rate, verdict};

/// Headers and repairs take the rest.
const KEPT: f64 = 0.85;

/// The socket has a largest pacing rate, and the transfer keeps to it.
pub(super) const RULE: Rule = Rule {
    id: "socket-pacing",
    test: "The socket has a largest pacing rate, and the transfer keeps to it.",
    citation: "socket(7), SO_MAX_PACING_RATE; tcpi_max_pacing_rate",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let each = evidence.sender()?.max_pacing_rate?;
    let connections = SegmentCount::new(evidence.observation.connections.len() as u64).as_f64();
    let allowed = each * connections;
    if evidence.steady.bits_per_second() < allowed.bits_per_second() * KEPT {
        return None;
    }
    let text = format!(
        "The program had the kernel pace its connections at {} in all, and gets {}.",
        rate(allowed),
        rate(evidence.steady)
    );
    Some(
        verdict(Cause::SocketPacing, Confidence::High, text)
            .figure("pacing of each connection", Some(rate(each)))
            .figure("the path carries", evidence.capacity.map(rate))
            .advice("set a higher rate in the program (SO_MAX_PACING_RATE; iperf3 --fq-rate), if the path and its policers allow"),
    )
}
