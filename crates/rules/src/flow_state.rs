//! What limits one flow at one moment, from two readings of its socket at one end.
//!
//! This is the glance of `linerate watch`: one flow, one interval, this host's view. What a transfer as a whole is limited
//! by, and what to do about it, needs both ends and longer.

use core::time::Duration;

use linerate_model::flow::{BufferOrigin, BufferSettings, FlowChange, FlowLimit, FlowState};
use linerate_model::formulas::window_rate;
use linerate_model::socket::{SocketReading, TcpState, TimerKind};
use linerate_model::tcp_info::TcpInfo;
use linerate_units::{BitRate, ByteCount, Ratio, SegmentCount};

/// From this share of the busy time on, a buffer or window limits: less is a short wait now and then.
const LIMITS: f64 = 0.2;
/// Time without anything to send from which on the application limits.
const APPLICATION_IDLE: f64 = 0.1;
/// A rate is that of a window per round trip when it differs by no more than this share.
const NEAR_THE_WINDOW: f64 = 0.1;
/// Share of what is sent again up to which losses explain nothing.
const NO_LOSS: f64 = 0.001;
/// A rate from this share of its limit on is at the limit.
const AT_THE_PACE: f64 = 0.9;
/// Waiting of up to this share of the smallest round trip is no queue to speak of.
const NO_QUEUE: f64 = 0.3;
/// A receive buffer as full as this belongs to an application that reads too slowly.
const FULL_OF_UNREAD: f64 = 0.5;
/// Retransmission timeouts in a row after which nothing moves.
const NOT_MOVING: u8 = 2;
/// A flow whose other direction has so many times the rate is one that receives.
const RECEIVES: f64 = 4.0;

/// What can be said of a flow, given its two latest readings and what lies between them.
#[must_use]
pub fn flow_state(
    first: &SocketReading,
    last: &SocketReading,
    change: &FlowChange,
    settings: &BufferSettings,
) -> FlowState {
    let buffers = |of: fn(&SocketReading) -> Option<ByteCount>| of(first).zip(of(last));
    let send = buffers(|reading| reading.memory.map(|memory| memory.send_buffer));
    let receive = buffers(|reading| reading.memory.map(|memory| memory.receive_buffer));
    let sends = change.acknowledged.is_some_and(|bytes| !bytes.is_zero());
    let receives = change.received.is_some_and(|bytes| !bytes.is_zero());
    FlowState {
        limit: limit(last, change),
        send_buffer: origin(send, settings.send, sends),
        receive_buffer: origin(receive, settings.receive, receives),
    }
}

/// Who chose a buffer's size: only a flow that moves in that direction shows it, as its buffer would have been adapted.
fn origin(
    sizes: Option<(ByteCount, ByteCount)>,
    setting: Option<(ByteCount, ByteCount)>,
    moves: bool,
) -> Option<BufferOrigin> {
    let ((before, after), (initial, largest)) = (sizes?, setting?);
    if after == initial {
        Some(BufferOrigin::Initial)
    } else if after == largest {
        Some(BufferOrigin::Largest)
    } else if before != after {
        Some(BufferOrigin::Adapted)
    } else if after > largest || is_twice_a_round_number(after) {
        moves.then_some(BufferOrigin::SetByApplication)
    } else {
        None
    }
}

/// The kernel doubles what an application asks for (socket(7)), and people ask for round numbers: multiples of 1024 or
/// of 1000. What the kernel itself chooses are multiples of what a segment takes.
fn is_twice_a_round_number(size: ByteCount) -> bool {
    let half = size.get() / 2;
    size.get().is_multiple_of(2) && half > 0 && (half.is_multiple_of(1024) || half.is_multiple_of(1000))
}

fn limit(last: &SocketReading, change: &FlowChange) -> FlowLimit {
    if last.state == TcpState::Listen {
        return FlowLimit::Accepting { waiting: last.receive_queue.get(), room: last.send_queue.get() };
    }
    if matches!(last.state, TcpState::SynSent | TcpState::SynReceived | TcpState::NewSynReceived) {
        return FlowLimit::Handshake;
    }
    let Some(info) = &last.info else { return FlowLimit::Unknown };
    if let Some(stopped) = not_moving(last, info, change) {
        return stopped;
    }
    let queued = !last.send_queue.is_zero() || change.in_flight.is_some_and(|bytes| !bytes.is_zero());
    if !change.moved() && !queued {
        return if last.receive_queue.is_zero() { FlowLimit::Idle } else { receiver(last, info, change) };
    }
    let sent = change.send_rate.map_or(0.0, BitRate::bits_per_second);
    let received = change.receive_rate.map_or(0.0, BitRate::bits_per_second);
    if received > sent * RECEIVES { receiver(last, info, change) } else { sender(last, info, change) }
}

/// Data waits for an acknowledgement that does not come, or for a window that does not open.
fn not_moving(last: &SocketReading, info: &TcpInfo, change: &FlowChange) -> Option<FlowLimit> {
    let waits = !last.send_queue.is_zero();
    let stands = change.acknowledged.is_some_and(ByteCount::is_zero);
    let probing = last.timer.is_some_and(|timer| timer.kind == TimerKind::Probe);
    if waits && stands && (probing || info.send_window == Some(ByteCount::ZERO)) {
        return Some(FlowLimit::ZeroWindow { probes: last.moment.probes });
    }
    let backoff = info.backoff?;
    if !waits || !stands || backoff < NOT_MOVING {
        return None;
    }
    // The handshake went through, and so did anything small; what does not is as large as the path is thought to carry.
    let one_segment = last.moment.congestion_window.is_some_and(|window| window.get() <= 1);
    let full = info.send_mss.is_some_and(|segment| last.send_queue >= segment.byte_count());
    let black_hole = one_segment && full && info.rtt.is_some();
    Some(FlowLimit::NotMoving { backoff, silent: last.moment.since_data_sent, black_hole })
}

/// What holds a receiving flow back, as far as the receiver sees.
fn receiver(last: &SocketReading, info: &TcpInfo, change: &FlowChange) -> FlowLimit {
    let fill =
        last.memory.and_then(|memory| Ratio::of(memory.receive_allocated.as_f64(), memory.receive_buffer.as_f64()));
    if let Some(fill) = fill.filter(|fill| fill.get() >= FULL_OF_UNREAD) {
        return FlowLimit::SlowReader { fill };
    }
    // The window is counted from what the application has read: it is as large as the receiver lets a round trip be.
    let window = info.receive_window.filter(|window| !window.is_zero());
    let rate = window.zip(info.receive_rtt.or(info.rtt)).and_then(|(window, rtt)| window_rate(window, rtt));
    match (window, rate, change.receive_rate) {
        (Some(window), Some(bound), Some(rate)) if rate >= bound * (1.0 - NEAR_THE_WINDOW) => {
            FlowLimit::OwnWindow { window }
        }
        _ => FlowLimit::FarEnd,
    }
}

/// What holds a sending flow back.
fn sender(last: &SocketReading, info: &TcpInfo, change: &FlowChange) -> FlowLimit {
    let Some(limits) = change.limits else { return by_loss(change) };
    let busy = limits.send_buffer.get() + limits.receive_window.get() + limits.network.get();
    let of_busy = |share: Ratio| Ratio::of(share.get(), busy).unwrap_or_default();
    let (buffer, window) = (of_busy(limits.send_buffer), of_busy(limits.receive_window));
    if buffer.get() >= LIMITS && buffer >= window {
        return FlowLimit::SendBuffer { share: Some(buffer), buffer: last.memory.map(|memory| memory.send_buffer) };
    }
    if window.get() >= LIMITS {
        return FlowLimit::ReceiveWindow { share: Some(window), window: info.send_window };
    }
    // A full buffer of which nothing is left to send: the kernel's stop-watch does not see it when writes are large.
    let nothing_left = info.not_sent.is_some_and(ByteCount::is_zero);
    if let Some(memory) = last.memory.filter(|memory| nothing_left && memory.send_queued >= memory.send_buffer) {
        return FlowLimit::SendBuffer { share: None, buffer: Some(memory.send_buffer) };
    }
    if let Some(rate) = info.max_pacing_rate.filter(|most| change.send_rate >= Some(*most * AT_THE_PACE)) {
        return FlowLimit::Pacing { rate };
    }
    if limits.application.get() >= APPLICATION_IDLE {
        return FlowLimit::Application { share: Some(limits.application) };
    }
    if info.delivery_rate_application_limited == Some(true) && nothing_left {
        return FlowLimit::Application { share: None };
    }
    if is_far_below_its_window(change) {
        return FlowLimit::Application { share: None };
    }
    if is_a_window_per_round_trip(info, change) {
        return FlowLimit::ReceiveWindow { share: None, window: info.send_window };
    }
    by_loss(change)
}

/// Less than a third of the congestion window is used: it cannot be what limits. BBR alone leaves half of it unused.
fn is_far_below_its_window(change: &FlowChange) -> bool {
    let used = change.in_flight.zip(change.congestion_window);
    used.is_some_and(|(in_flight, window)| in_flight.as_f64() * 3.0 < window.as_f64())
}

/// `|rate − window / RTT| ≤ 10 %`, with a congestion window that would allow more, and next to no loss.
fn is_a_window_per_round_trip(info: &TcpInfo, change: &FlowChange) -> bool {
    let bound = info.send_window.zip(change.rtt).and_then(|(window, rtt)| window_rate(window, rtt));
    let Some((bound, rate)) = bound.zip(change.send_rate) else { return false };
    let difference = (rate.bits_per_second() - bound.bits_per_second()).abs();
    let lossless = change.retransmission_share.is_none_or(|share| share.get() < NO_LOSS);
    let roomy = info.congestion_window.zip(info.send_window).is_some_and(|(congestion, window)| congestion >= window);
    lossless && roomy && difference <= rate.bits_per_second() * NEAR_THE_WINDOW
}

/// The congestion window limits: by losses without a queue, or by what the path carries.
fn by_loss(change: &FlowChange) -> FlowLimit {
    let lost = change.retransmitted.is_some_and(|count| count > SegmentCount::ZERO);
    if lost && !has_queue(change) {
        return FlowLimit::Loss { share: change.retransmission_share };
    }
    FlowLimit::CongestionWindow { window: change.congestion_window }
}

fn has_queue(change: &FlowChange) -> bool {
    let Some((rtt, queueing)) = change.rtt.zip(change.queueing) else { return false };
    let least = rtt.saturating_sub(queueing);
    queueing > least.mul_f64(NO_QUEUE).max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests;
