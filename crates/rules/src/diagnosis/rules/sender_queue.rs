//! A rate limit in the sender's own queueing carries the transfer's rate, and packets wait there or are dropped.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::ByteCount;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::host_load::TransferEnd;
use super::super::kernel_events;
use super::super::own_queue::LimitingQueue;
use super::super::text::{VerdictBuilder, bit_rate, percent_of, printable, rate, size, verdict};

/// Share of the samples at which packets waited from which the queue was present for most of the time.
const MIN_CERTAIN_BACKLOG_SHARE: f64 = 0.5;

/// A rate limit in the sender's own queueing carries the transfer's rate, and packets wait there or are dropped.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "sender-queue",
    test: "A rate limit in the sender's own queueing carries the transfer's rate, and packets wait there or are dropped.",
    citation: "tc-tbf(8), tc-htb(8), tc-fq(8), tc-cake(8); rtnetlink(7), RTM_GETQDISC and RTM_GETTCLASS",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let limiting = evidence.limiting_queue()?;
    let LimitingQueue { queue, limit, payload, used } = limiting;
    let link = evidence.link(TransferEnd::Sender);
    let interface = link.map(|link| printable(&link.interface));
    let at = interface.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
    let what = if queue.is_class { "class" } else { "queueing discipline" };
    let packets = if limit.per_flow { "each flow" } else { "all packets" };
    let text = format!(
        "The sender's own {what} {} {}{at} limits {packets} to {}, {} of it payload.",
        queue.kind,
        printable(&queue.handle),
        rate(bit_rate(limit.bits_per_second)),
        rate(payload)
    );
    let waited = queue.backlog_share.is_some_and(|share| share >= MIN_CERTAIN_BACKLOG_SHARE);
    let sure = if waited || queue.dropped_packets > 0 { Confidence::High } else { Confidence::Medium };
    let device = interface.unwrap_or_else(|| "DEVICE".to_owned());
    let shown = if queue.is_class { "class" } else { "qdisc" };
    Some(
        verdict(Cause::SenderQueue, sure, text)
            .figure("share of that rate that was used", Some(percent_of(used)).filter(|_| !limit.per_flow))
            .figure("time with packets waiting there", queue.backlog_share.map(percent_of))
            .figure("most bytes waiting there", Some(size(ByteCount::new(queue.peak_backlog_bytes))))
            .figure("packets dropped there", Some(queue.dropped_packets.to_string()))
            .figure(
                "time of packets there",
                evidence.kernel_events(TransferEnd::Sender).and_then(kernel_events::sojourn),
            )
            .figure(
                "speed of the link",
                link.and_then(|link| link.speed_bits_per_second).map(|speed| rate(bit_rate(speed))),
            )
            .advice(format!(
                "on the sender, `tc -s {shown} show dev {device}` shows the limit; remove it if it is left over \
                (`linerate shape status` lists those that linerate set up), or raise its rate"
            ))
            .advice(
                "the path beyond it is unknown: every measurement from this host passes the same limit; measure again \
                without it",
            ),
    )
}
