//! Sender states, as shares of the transfer's time.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_model::diagnosis::{SenderState, SocketInterval, StateShare};
use linerate_model::limit::LimitShares;
use linerate_units::{CompactSort, Ratio};

use super::TransferEvidence;
use super::stalls;

/// Excess of the smoothed round trip over the smallest one, as a share, that counts as a queue; at least
/// [`MIN_QUEUE_DELAY`].
const QUEUED: f64 = 0.1;
const MIN_QUEUE_DELAY: Duration = Duration::from_micros(300);

/// Returns the shares, largest first; empty where the senders were not sampled twice.
pub(super) fn shares(evidence: &TransferEvidence<'_>) -> Vec<StateShare> {
    let mut times: BTreeMap<SenderState, f64> = BTreeMap::new();
    for connection in &evidence.observation.connections {
        for (index, now) in connection.sender.iter().enumerate().skip(1) {
            let before = &connection.sender[..index];
            add(evidence, before, now, &mut times);
        }
    }
    let whole: f64 = times.values().sum();
    let mut shares: Vec<StateShare> = times
        .into_iter()
        .filter_map(|(state, time)| Some(StateShare { state, share: Ratio::of(time, whole)? }))
        .collect();
    shares.sort_compactly_by(|one, other| other.share.get().total_cmp(&one.share.get()));
    shares.retain(|one| one.share.get() >= 0.001);
    shares
}

fn add(
    evidence: &TransferEvidence<'_>,
    earlier: &[SocketInterval],
    now: &SocketInterval,
    times: &mut BTreeMap<SenderState, f64>,
) {
    let Some(before) = earlier.last() else { return };
    let length = now.to.saturating_sub(before.to);
    let Some(limits) = LimitShares::between(&before.socket.info, &now.socket.info, length) else { return };
    let seconds = length.as_secs_f64();
    let mut count = |state: SenderState, share: f64| *times.entry(state).or_default() += share * seconds;
    let idle = limits.application.get();
    count(SenderState::Application, idle);
    if is_stalled(earlier, now) {
        // The kernel's chronograph goes on for the limit that the last send met.
        count(SenderState::Stalled, 1.0 - idle);
        return;
    }
    count(SenderState::SendBuffer, limits.send_buffer.get());
    count(SenderState::ReceiveWindow, limits.receive_window.get());
    count(network_state(evidence, before, now), limits.network.get());
}

/// True when data is in flight within an open window, and nothing was acknowledged since the last sample and for a round trip.
fn is_stalled(earlier: &[SocketInterval], now: &SocketInterval) -> bool {
    let info = &now.socket.info;
    let begin = now.to.saturating_sub(info.rtt.unwrap_or_default());
    let Some(last) = earlier.iter().rev().find(|moment| moment.to <= begin) else { return false };
    stalls::waits_for_path(info) && info.bytes_acknowledged == last.socket.info.bytes_acknowledged
}

/// Returns the state of a sender that the network limits, and that is not stalled.
fn network_state(evidence: &TransferEvidence<'_>, before: &SocketInterval, now: &SocketInterval) -> SenderState {
    let (earlier, info) = (&before.socket.info, &now.socket.info);
    let queue = info.rtt.zip(evidence.base).map(|(rtt, base)| (rtt.saturating_sub(base), base));
    if info.retransmits > earlier.retransmits {
        SenderState::Recovery
    } else if info.slow_start_threshold.is_none() {
        SenderState::SlowStart
    } else if queue.is_some_and(|(queue, base)| queue > MIN_QUEUE_DELAY && queue > base.mul_f64(QUEUED)) {
        SenderState::Queueing
    } else {
        SenderState::CongestionWindow
    }
}
