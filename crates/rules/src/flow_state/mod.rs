//! Limit of one flow in one interval, from two samples of its socket at one end.
//!
//! This is the view of `linerate watch`: one flow, one interval, this host. The limit of a whole transfer and its
//! remedy need both ends and more time.

use core::time::Duration;

use linerate_analysis::formulas::window_rate;
use linerate_model::flow::{BufferOrigin, BufferSettings, FlowChange, FlowLimit, FlowState};
use linerate_model::socket::{SocketMemory, SocketSnapshot, TcpState, TimerKind};
use linerate_model::tcp_info::TcpInfo;
use linerate_units::{BitRate, ByteCount, Ratio, SegmentCount};

/// Share of the busy time from which a buffer or window limits: less is an occasional short wait.
const MIN_LIMITED_SHARE: f64 = 0.2;
/// Share of the time without data to send from which the application limits.
const MIN_IDLE_SHARE: f64 = 0.1;
/// Largest relative difference between a rate and the window per round trip that still counts as equal.
const MAX_WINDOW_RATE_ERROR: f64 = 0.1;
/// Retransmitted share below which losses are not the limit.
const MAX_NEGLIGIBLE_LOSS: f64 = 0.001;
/// Share of the maximum pacing rate from which pacing is the limit.
const MIN_PACED_SHARE: f64 = 0.9;
/// Queueing delay, as a share of the smallest round trip, up to which the queue is negligible.
const MAX_NEGLIGIBLE_QUEUE_SHARE: f64 = 0.3;
/// Filled share of the receive buffer from which the application reads too slowly.
const MIN_UNREAD_SHARE: f64 = 0.5;
/// Number of successive retransmission timeouts after which a flow counts as stalled.
const MIN_STALL_TIMEOUTS: u8 = 2;
/// Ratio of receive to send rate from which a flow counts as receiving.
const MIN_RECEIVE_RATIO: f64 = 4.0;

/// Returns the state of a flow from its two latest samples and the changes between them.
#[must_use]
pub fn flow_state(
    first: &SocketSnapshot,
    last: &SocketSnapshot,
    change: &FlowChange,
    settings: &BufferSettings,
) -> FlowState {
    let buffers = |of: fn(&SocketSnapshot) -> Option<ByteCount>| of(first).zip(of(last));
    let send = buffers(|sample| sample.memory.map(|memory| memory.send_buffer));
    let receive = buffers(|sample| sample.memory.map(|memory| memory.receive_buffer));
    let sends = change.acknowledged.is_some_and(|bytes| !bytes.is_zero());
    let receives = change.received.is_some_and(|bytes| !bytes.is_zero());
    FlowState {
        limit: flow_limit(last, change),
        send_buffer: origin(send, settings.send, sends),
        receive_buffer: origin(receive, settings.receive, receives),
    }
}

/// Returns the origin of a buffer's size. It is only known for a flow that moves data in that direction, as auto-tuning
/// would have adapted its buffer.
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

/// True for sizes set by an application: the kernel doubles the request (socket(7)), and requests are round numbers,
/// multiples of 1024 or 1000. The kernel's own choices are multiples of a segment's memory.
fn is_twice_a_round_number(size: ByteCount) -> bool {
    let half = size.get() / 2;
    size.get().is_multiple_of(2) && half > 0 && (half.is_multiple_of(1024) || half.is_multiple_of(1000))
}

fn flow_limit(last: &SocketSnapshot, change: &FlowChange) -> FlowLimit {
    if last.state == TcpState::Listen {
        return FlowLimit::Accepting { waiting: last.receive_queue.get(), room: last.send_queue.get() };
    }
    if matches!(last.state, TcpState::SynSent | TcpState::SynReceived | TcpState::NewSynReceived) {
        return FlowLimit::Handshake;
    }
    let Some(info) = &last.info else { return FlowLimit::Unknown };
    if let Some(stopped) = stalled_limit(last, info, change) {
        return stopped;
    }
    let queued = !last.send_queue.is_zero() || change.in_flight.is_some_and(|bytes| !bytes.is_zero());
    if !change.has_moved_data() && !queued {
        return if last.receive_queue.is_zero() {
            FlowLimit::Idle
        } else {
            receiver_limit(info, last.memory.as_ref(), change.receive_rate)
        };
    }
    let sent = change.send_rate.map_or(0.0, BitRate::bits_per_second);
    let received = change.receive_rate.map_or(0.0, BitRate::bits_per_second);
    if received > sent * MIN_RECEIVE_RATIO {
        receiver_limit(info, last.memory.as_ref(), change.receive_rate)
    } else {
        sender_limit(last, info, change)
    }
}

/// Returns the limit of a stalled flow: missing acknowledgements, or a window that does not open.
fn stalled_limit(last: &SocketSnapshot, info: &TcpInfo, change: &FlowChange) -> Option<FlowLimit> {
    let waits = !last.send_queue.is_zero();
    let stalled = change.acknowledged.is_some_and(ByteCount::is_zero);
    let probing = last.timer.is_some_and(|timer| timer.kind == TimerKind::Probe);
    if waits && stalled && (probing || info.send_window == Some(ByteCount::ZERO)) {
        return Some(FlowLimit::ZeroWindow { probes: last.moment.probes });
    }
    let backoff = info.backoff?;
    if !waits || !stalled || backoff < MIN_STALL_TIMEOUTS {
        return None;
    }
    // The handshake and small segments passed; only segments of the assumed path MTU are lost.
    let one_segment = last.moment.congestion_window.is_some_and(|window| window.get() <= 1);
    let full = info.send_mss.is_some_and(|segment| last.send_queue >= segment.byte_count());
    let black_hole = one_segment && full && info.rtt.is_some();
    Some(FlowLimit::NotMoving { backoff, silent: last.moment.since_data_sent, black_hole })
}

/// Returns the limit of a receiving flow, as far as the receiver knows it: from its socket, and the rate that it receives.
#[must_use]
pub fn receiver_limit(info: &TcpInfo, memory: Option<&SocketMemory>, rate: Option<BitRate>) -> FlowLimit {
    let fill = memory.and_then(|memory| Ratio::of(memory.receive_allocated.as_f64(), memory.receive_buffer.as_f64()));
    if let Some(fill) = fill.filter(|fill| fill.get() >= MIN_UNREAD_SHARE) {
        return FlowLimit::SlowReader { fill };
    }
    // The window starts at the data that the application has read: it is the most that one round trip can carry.
    let window = info.receive_window.filter(|window| !window.is_zero());
    let bound = window.zip(info.receive_rtt.or(info.rtt)).and_then(|(window, rtt)| window_rate(window, rtt));
    match (window, bound, rate) {
        (Some(window), Some(bound), Some(rate)) if rate >= bound * (1.0 - MAX_WINDOW_RATE_ERROR) => {
            FlowLimit::OwnWindow { window }
        }
        _ => FlowLimit::FarEnd,
    }
}

/// Returns the limit of a sending flow.
fn sender_limit(last: &SocketSnapshot, info: &TcpInfo, change: &FlowChange) -> FlowLimit {
    let Some(limits) = change.limits else { return loss_limit(change) };
    let busy = limits.send_buffer.get() + limits.receive_window.get() + limits.network.get();
    let of_busy = |share: Ratio| Ratio::of(share.get(), busy).unwrap_or_default();
    let (buffer, window) = (of_busy(limits.send_buffer), of_busy(limits.receive_window));
    if buffer.get() >= MIN_LIMITED_SHARE && buffer >= window {
        return FlowLimit::SendBuffer { share: Some(buffer), buffer: last.memory.map(|memory| memory.send_buffer) };
    }
    if window.get() >= MIN_LIMITED_SHARE {
        return FlowLimit::ReceiveWindow { share: Some(window), window: info.send_window };
    }
    // A full buffer without unsent data: the kernel's chronograph does not count it when writes are large.
    let nothing_left = info.not_sent.is_some_and(ByteCount::is_zero);
    if let Some(memory) = last.memory.filter(|memory| nothing_left && memory.send_queued >= memory.send_buffer) {
        return FlowLimit::SendBuffer { share: None, buffer: Some(memory.send_buffer) };
    }
    if let Some(rate) = info.max_pacing_rate.filter(|most| change.send_rate >= Some(*most * MIN_PACED_SHARE)) {
        return FlowLimit::Pacing { rate };
    }
    if limits.application.get() >= MIN_IDLE_SHARE {
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
    loss_limit(change)
}

/// True when less than a third of the congestion window is used, so that it cannot be the limit. BBR alone leaves half
/// of it unused.
fn is_far_below_its_window(change: &FlowChange) -> bool {
    let used = change.in_flight.zip(change.congestion_window);
    used.is_some_and(|(in_flight, window)| in_flight.as_f64() * 3.0 < window.as_f64())
}

/// True when `|rate − window / RTT| ≤ 10 %`, with a congestion window that would allow more, and almost no loss.
fn is_a_window_per_round_trip(info: &TcpInfo, change: &FlowChange) -> bool {
    let bound = info.send_window.zip(change.rtt).and_then(|(window, rtt)| window_rate(window, rtt));
    let Some((bound, rate)) = bound.zip(change.send_rate) else { return false };
    let difference = (rate.bits_per_second() - bound.bits_per_second()).abs();
    let lossless = change.retransmission_share.is_none_or(|share| share.get() < MAX_NEGLIGIBLE_LOSS);
    let is_larger =
        info.congestion_window.zip(info.send_window).is_some_and(|(congestion, window)| congestion >= window);
    lossless && is_larger && difference <= rate.bits_per_second() * MAX_WINDOW_RATE_ERROR
}

/// Returns the limit by the congestion window: losses without a queue, or the path's capacity.
fn loss_limit(change: &FlowChange) -> FlowLimit {
    let lost = change.retransmitted.is_some_and(|count| count > SegmentCount::ZERO);
    if lost && !has_queue(change) {
        return FlowLimit::Loss { share: change.retransmission_share };
    }
    FlowLimit::CongestionWindow { window: change.congestion_window }
}

fn has_queue(change: &FlowChange) -> bool {
    let Some((rtt, queueing)) = change.rtt.zip(change.queueing) else { return false };
    let least = rtt.saturating_sub(queueing);
    queueing > least.mul_f64(MAX_NEGLIGIBLE_QUEUE_SHARE).max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests;
