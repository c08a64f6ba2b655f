//! Upper bounds on the rate by each resource: the lowest one is the limit, the one above it comes next.

use linerate_analysis::formulas::{
    SEND_MEMORY_FACTOR, SEND_MEMORY_FACTOR_BBR, loss_limited_rate, usable_window, window_rate,
};
use linerate_model::diagnosis::{BoundKind, ThroughputBound};
use linerate_units::{BitRate, ByteCount, CompactSort, Ratio, SegmentCount};

use super::TransferEvidence;
use super::text::{percent_of, rate, size, time};

/// Window share of the receive buffer on Linux at an MTU of 1500 (`scaling_ratio`), where no full window was observed.
pub(super) const DEFAULT_WINDOW_SHARE: f64 = 0.62;

/// Largest window without the window scale option (RFC 7323 section 2).
const UNSCALED: ByteCount = ByteCount::new(65_535);

/// Share of the measured rate below which the measurement refutes a bound.
pub(super) const MIN_BOUND_SHARE: f64 = 0.95;

/// Returns the bounds that can be computed and that the measurement does not refute, lowest first; and those that it
/// refutes.
pub(super) fn bounds(evidence: &TransferEvidence<'_>) -> (Vec<ThroughputBound>, Vec<ThroughputBound>) {
    let all = [path(evidence), receive_window(evidence), send_buffer(evidence), loss(evidence), pacing(evidence)];
    let mut bounds: Vec<ThroughputBound> = all.into_iter().chain([application(evidence)]).flatten().collect();
    bounds.sort_compactly_by(|one, other| one.rate.bits_per_second().total_cmp(&other.rate.bits_per_second()));
    let measured = evidence.steady.bits_per_second();
    bounds.into_iter().partition(|one| one.rate.bits_per_second() >= MIN_BOUND_SHARE * measured)
}

/// Returns the lowest bound that stays without the cause of these bounds.
pub(super) fn next(bounds: &[ThroughputBound], own: &[BoundKind]) -> Option<ThroughputBound> {
    bounds.iter().find(|one| !own.contains(&one.kind)).cloned()
}

/// Number of connections, each of which has a bound of its own.
fn connections(evidence: &TransferEvidence<'_>) -> f64 {
    SegmentCount::new(evidence.observation.connections.len() as u64).as_f64()
}

/// Text for a bound of each of several connections.
fn for_each(evidence: &TransferEvidence<'_>) -> String {
    let count = evidence.observation.connections.len();
    if count > 1 { format!(", for each of {count} connections") } else { String::new() }
}

fn path(evidence: &TransferEvidence<'_>) -> Option<ThroughputBound> {
    let whole = evidence.path()?.capacity.as_ref()?;
    let capacity = evidence.capacity?;
    let measured = BitRate::from_bits_per_second(whole.bits_per_second);
    let text = format!("{} of IP packets, less headers", rate(measured));
    // A capacity that is only a lower limit is no bound.
    (!whole.at_least).then_some(ThroughputBound { kind: BoundKind::Path, rate: capacity, arithmetic: text })
}

/// Rate that the receive window allows where no program sets the buffer: of the largest buffer where the kernel grows it, else
/// of the initial one.
pub(super) fn kernel_window(evidence: &TransferEvidence<'_>, grows: bool) -> Option<BitRate> {
    let values = evidence.receiver_setting("net.ipv4.tcp_rmem")?;
    let buffer = ByteCount::new(*values.get(if grows { 2 } else { 1 })?);
    let window = usable_window(buffer, window_share(evidence)?);
    Some(window_rate(window, evidence.base?)? * connections(evidence))
}

/// Part of the receive buffer that is offered as the window.
fn window_share(evidence: &TransferEvidence<'_>) -> Option<Ratio> {
    let (buffer, _) = evidence.receive_buffer?;
    let seen = evidence.full_window().and_then(|window| window / buffer).map(Ratio::get);
    Ratio::new(seen.filter(|share| (0.2..=0.97).contains(share)).unwrap_or(DEFAULT_WINDOW_SHARE))
}

fn receive_window(evidence: &TransferEvidence<'_>) -> Option<ThroughputBound> {
    let most = ByteCount::new(*evidence.receiver_setting("net.ipv4.tcp_rmem")?.get(2)?);
    let (buffer, changed) = evidence.receive_buffer?;
    // A buffer that a program has set does not grow.
    let is_tuned = evidence.receiver_setting("net.ipv4.tcp_moderate_rcvbuf").is_none_or(|value| value != [0]);
    let grows = changed || is_tuned && evidence.observation.asked.buffer.is_none();
    let most = if grows { most.max(buffer) } else { buffer };
    let share = window_share(evidence)?;
    let base = evidence.base?;
    let is_scaled = evidence.sender().is_none_or(|info| info.window_scale.is_some() || info.timestamps.is_none());
    let window = usable_window(most, share);
    let is_scaled = is_scaled || window <= UNSCALED;
    let window = if is_scaled { window } else { UNSCALED };
    let origin = if is_scaled {
        format!("{} of a buffer of {}", percent_of(share.get()), size(most))
    } else {
        "without window scaling".to_owned()
    };
    let text = format!("window {} ({origin}) per {}{}", size(window), time(base), for_each(evidence));
    let rate = window_rate(window, base)? * connections(evidence);
    Some(ThroughputBound { kind: BoundKind::ReceiveWindow, rate, arithmetic: text })
}

fn send_buffer(evidence: &TransferEvidence<'_>) -> Option<ThroughputBound> {
    let most = ByteCount::new(*evidence.sender_setting("net.ipv4.tcp_wmem")?.get(2)?);
    let factor = if evidence.uses("bbr") { SEND_MEMORY_FACTOR_BBR } else { SEND_MEMORY_FACTOR };
    let base = evidence.base?;
    if let Some((write, rate)) = evidence.overfilling_write() {
        let text = format!(
            "writes of {}, each at the path's rate and with a pause of {}{}",
            size(write),
            time(base),
            for_each(evidence)
        );
        return Some(ThroughputBound { kind: BoundKind::SendBuffer, rate, arithmetic: text });
    }
    // The part of a full buffer that is not in flight waits; the kernel reserves space for a second window (a third
    // with BBR).
    let window = ByteCount::from_f64(most.as_f64() / SegmentCount::new(factor).as_f64() * 1.25);
    // More was in flight where the kernel counts its structures differently.
    let window = evidence.largest_in_flight.map_or(window, |flight| window.max(flight));
    let in_flight = if window > most {
        format!("{} in flight with a buffer of {}", size(window), size(most))
    } else {
        format!("buffer {}, of which some {} can be in flight", size(most), size(window))
    };
    let text = format!("{in_flight}, per {}{}", time(base), for_each(evidence));
    let rate = window_rate(window, base)? * connections(evidence);
    Some(ThroughputBound { kind: BoundKind::SendBuffer, rate, arithmetic: text })
}

fn loss(evidence: &TransferEvidence<'_>) -> Option<ThroughputBound> {
    let control = evidence.observation.congestion_control.as_deref()?;
    let loss = evidence.retransmitted.filter(|loss| loss.get() > 0.0)?;
    // Losses at a full queue are caused by the window itself; where the capacity is unknown, the queue decides.
    if evidence.is_full() || evidence.capacity.is_none() && !evidence.loses_without_queue() {
        return None;
    }
    let (segment, base) = (evidence.segment?, evidence.base?);
    let allowed = loss_limited_rate(control, segment, base, loss)? * connections(evidence);
    let text = format!(
        "{control} with a loss of {:.4} %, segments of {} B, {}{}",
        loss.percent(),
        segment.get(),
        time(base),
        for_each(evidence)
    );
    Some(ThroughputBound { kind: BoundKind::Loss, rate: allowed, arithmetic: text })
}

fn pacing(evidence: &TransferEvidence<'_>) -> Option<ThroughputBound> {
    let each = evidence.sender()?.max_pacing_rate?;
    let text = format!("{} for each connection", rate(each));
    Some(ThroughputBound { kind: BoundKind::Pacing, rate: each * connections(evidence), arithmetic: text })
}

fn application(evidence: &TransferEvidence<'_>) -> Option<ThroughputBound> {
    let each = evidence.observation.asked.rate?;
    let all = each * connections(evidence);
    let text = format!("{} for each connection", rate(each));
    // A program that is behind its rate makes up for it, and blocks are whole: it bounds the mean, not the second half.
    let makes_up = evidence.goodput * MIN_BOUND_SHARE <= all && evidence.steady * MIN_BOUND_SHARE > all;
    (!makes_up).then_some(ThroughputBound { kind: BoundKind::Application, rate: all, arithmetic: text })
}
