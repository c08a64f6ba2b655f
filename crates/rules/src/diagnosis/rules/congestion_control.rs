//! Congestion control that takes long to recover from losses.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::early_loss::EarlyLoss;
use super::super::evidence::TransferEvidence;
use super::super::path_loss::OwnLoss;
use super::super::text::{VerdictBuilder, percent, percent_of, rate, size, time, verdict};

/// Recovery time that exceeds most transfers.
const MIN_RECOVERY_TIME: Duration = Duration::from_secs(30);

/// Retransmitted share from which a sender keeps more in flight than the path holds.
const MIN_EXCESS_SHARE: f64 = 0.05;

/// Losses are rare, and the congestion control needs longer to recover from one than most transfers last; or one ended slow
/// start early, and the window has grown slowly since; or BBR keeps more in flight than the path and its buffer hold.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "congestion-control",
    test: "Losses are rare, and the congestion control needs longer to recover from one than most transfers last; or one \
        ended slow start early, and the window has grown slowly since; or BBR keeps more in flight than the path and its \
        buffer hold.",
    citation: "RFC 5681 section 3.1: one segment per round trip; RFC 9438 sections 1 and 4.2; RFC 8289 section 4.2; \
        net/ipv4/tcp_bbr.c (bbr_cwnd_gain, bbr_cwnd_min_target)",
    check,
};

/// Interval of `CoDel` in which a queue may stay, where none is set (RFC 8289 section 4.2).
const USUAL_INTERVAL: Duration = Duration::from_millis(100);

const EARLY_DROPS: &str = "a queue that drops early (CAKE, CoDel, FQ-CoDel, PIE) needs an interval of the round trip at long \
    ones: `tc qdisc change … cake rtt 200ms`";

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    by_recovery_time(evidence)
        .or_else(|| overfills_buffer(evidence).then(|| above_the_buffer(evidence)))
        .or_else(|| evidence.early_loss().map(|found| after_early_loss(evidence, &found)))
        .or_else(|| drops_early(evidence).then(|| below_the_queue(evidence)))
        .or_else(|| grows_after_overflow(evidence).then(|| after_overflow(evidence)))
}

/// True when BBR, which has two bandwidth-delay products in flight and four segments at least, loses much at a buffer that holds
/// a product: another congestion control fits into it.
pub(in super::super) fn overfills_buffer(evidence: &TransferEvidence<'_>) -> bool {
    let loses = evidence.retransmitted.is_some_and(|share| share.get() >= MIN_EXCESS_SHARE);
    // The search filled the same queue: a longer wait is elsewhere.
    let searched = evidence.path().and_then(|path| path.capacity.as_ref()?.queueing_ns).map(Duration::from_nanos);
    let longest = evidence.queueing().map(|(_, high)| searched.map_or(high, |searched| searched.min(high)));
    let queue = longest.zip(evidence.capacity).map(|(longest, capacity)| capacity * longest);
    let holds = queue.zip(evidence.bandwidth_delay_product()).is_some_and(|(queue, product)| queue >= product);
    evidence.uses("bbr") && loses && holds && !evidence.is_full()
}

fn above_the_buffer(evidence: &TransferEvidence<'_>) -> DiagnosisVerdict {
    let text = format!(
        "BBR keeps more in flight than the path and its buffer hold, two bandwidth-delay products and four segments at \
            least: {} of the bytes were retransmitted.",
        evidence.retransmitted.map_or("some".to_owned(), percent)
    );
    verdict(Cause::CongestionControl, Confidence::Medium, text)
        .figure("bandwidth-delay product", evidence.bandwidth_delay_product().map(size))
        .figure("queueing, 95 %", evidence.queueing().map(|(_, high)| time(high)))
        .figure("path capacity", evidence.capacity.map(rate))
        .advice("CUBIC leaves less in flight after a loss: `linerate diagnose HOST -- -C cubic` shows what it reaches")
}

/// True when the bottleneck drops long before its queue is full: the search for the capacity made as much wait as one flow
/// needs to fill the path, beyond what delays vary by, and this transfer, which lost packets, never met half of that. A queue
/// that is managed does so; of a few packets, none says what it holds.
pub(in super::super) fn drops_early(evidence: &TransferEvidence<'_>) -> bool {
    let queue = evidence.queue_of_search();
    let longest = evidence.longest_queueing().zip(evidence.capacity).map(|(longest, capacity)| capacity * longest);
    let is_large =
        evidence.searched_queue_suffices() && queue.zip(longest).is_some_and(|(queue, longest)| queue > longest * 2);
    // Packets that others overtake wait longer as well.
    let is_other = evidence.reorders() || super::is_path_shared(evidence);
    is_large && !is_other && super::buffer_too_small::loses_to_a_queue(evidence)
}

/// True when slow start overflowed a queue that holds what one flow needs, and nothing was lost since: the window has grown slowly.
pub(in super::super) fn grows_after_overflow(evidence: &TransferEvidence<'_>) -> bool {
    let is_other = evidence.reorders() || super::is_path_shared(evidence) || evidence.is_full();
    // BBR lets its window follow the rate that it measures.
    let is_slowed = evidence.observation.congestion_control.as_deref().is_none_or(|name| !name.starts_with("bbr"));
    evidence.loses_only_in_slow_start()
        && evidence.loses_without_queue()
        && evidence.searched_queue_suffices()
        && !evidence.retransmits_needlessly()
        && is_slowed
        && !is_other
}

fn after_overflow(evidence: &TransferEvidence<'_>) -> DiagnosisVerdict {
    let control = evidence.observation.congestion_control.as_deref().unwrap_or("the congestion control");
    let text = format!(
        "Slow start overflowed a queue that holds {}; nothing was lost since, and {control} has let its window grow to {}, of \
            {} that the path holds.",
        evidence.queue_of_search().map_or("enough".to_owned(), size),
        evidence.congestion_window.map_or("less".to_owned(), size),
        evidence.bandwidth_delay_product().map_or("those".to_owned(), size),
    );
    verdict(Cause::CongestionControl, Confidence::Medium, text)
        .figure("retransmitted segments", evidence.retransmits.map(|count| count.get().to_string()))
        .figure("path utilisation", evidence.used().map(percent_of))
        .advice("BBR does not take a loss for a full path: `linerate diagnose HOST -- -C bbr` shows what it reaches")
}

fn below_the_queue(evidence: &TransferEvidence<'_>) -> DiagnosisVerdict {
    let control = evidence.observation.congestion_control.as_deref().unwrap_or("the congestion control");
    let product = evidence.bandwidth_delay_product();
    let below = evidence.congestion_window.zip(product).filter(|(window, product)| window < product);
    let response = below.map_or_else(
        || format!("{control} takes each drop for a full path"),
        |(_, product)| format!("{control} then keeps its window below the {} that the path holds", size(product)),
    );
    let text = format!(
        "The bottleneck drops packets early, at a queue of {} where {} fit, and {response}.",
        evidence.longest_queueing().map_or("little".to_owned(), time),
        evidence.queue_of_search().map_or("more".to_owned(), size),
    );
    let found = verdict(Cause::CongestionControl, Confidence::Medium, text)
        .figure("retransmitted segments", evidence.retransmits.map(|count| count.get().to_string()))
        .figure("path utilisation", evidence.used().map(percent_of))
        .advice(
            "BBR does not take each loss for a full path: `linerate diagnose HOST -- -C bbr` shows what it reaches",
        );
    with_interval_advice(found, evidence)
}

/// Adds the advice on the interval of a queue that drops early, where round trips are longer than the usual one.
fn with_interval_advice(found: DiagnosisVerdict, evidence: &TransferEvidence<'_>) -> DiagnosisVerdict {
    let is_long = evidence.base.is_some_and(|base| base > USUAL_INTERVAL);
    if is_long { found.advice(EARLY_DROPS) } else { found }
}

fn by_recovery_time(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    if !evidence.uses("reno") || !evidence.loses_without_queue() {
        return None;
    }
    let (product, segment, base) = (evidence.bandwidth_delay_product()?, evidence.segment?, evidence.base?);
    let recovery = base.mul_f64(product.as_f64() / f64::from(segment.get()) / 2.0);
    if recovery < MIN_RECOVERY_TIME {
        return None;
    }
    let text = format!(
        "Reno needs {} to recover from a single loss on this path, one segment per round trip of {}.",
        time(recovery),
        time(base)
    );
    Some(
        verdict(Cause::CongestionControl, Confidence::High, text)
            .figure("retransmitted segments", evidence.retransmits.map(|count| count.get().to_string()))
            .figure("path capacity", evidence.capacity.map(rate))
            .advice(
                "try CUBIC, and BBR where losses are not congestion: `linerate diagnose HOST -- -C cubic` (or bbr) \
                shows what they reach",
            ),
    )
}

fn after_early_loss(evidence: &TransferEvidence<'_>, found: &EarlyLoss) -> DiagnosisVerdict {
    let control = evidence.observation.congestion_control.as_deref().unwrap_or("the congestion control");
    let text = format!(
        "A loss ended slow start at a window of {}, of {} that the path holds; nothing was lost in the next {}, in which \
            {control} let it grow to {}.",
        size(found.window),
        evidence.bandwidth_delay_product().map_or("those".to_owned(), size),
        time(found.to.saturating_sub(found.from)),
        size(found.grown),
    );
    let found = verdict(Cause::CongestionControl, Confidence::Medium, text)
        .figure("segments lost then", Some(found.lost.to_string()))
        .figure("window left by the response", Some(size(found.left)))
        .figure("path capacity", evidence.capacity.map(rate))
        .advice(
            "BBR does not take a single loss for a full path: `linerate diagnose HOST -- -C bbr` shows what it reaches",
        );
    let found = with_interval_advice(found, evidence);
    if evidence.own_loss() == OwnLoss::Refuted {
        return found;
    }
    found.advice("a second run distinguishes the causes: a loss by chance falls at another moment, one of a queue in slow start again")
}
