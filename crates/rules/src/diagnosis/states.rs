//! What the senders were doing, as shares of the transfer's time.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_model::diagnosis::{Moment, State};
use linerate_model::limit::LimitShares;
use linerate_units::{Ratio, SegmentCount};

use super::Evidence;

/// A queue stands when the smoothed round trip is this much above the least one, and by at least [`NOTICEABLE`].
const QUEUED: f64 = 0.1;
const NOTICEABLE: Duration = Duration::from_micros(300);

/// The shares, largest first; empty where the senders were not seen at two moments.
pub(super) fn shares(evidence: &Evidence<'_>) -> Vec<(State, Ratio)> {
    let mut times: BTreeMap<State, f64> = BTreeMap::new();
    for connection in &evidence.observation.connections {
        for pair in connection.sender.windows(2) {
            add(evidence, &pair[0], &pair[1], &mut times);
        }
    }
    let whole: f64 = times.values().sum();
    let mut shares: Vec<(State, Ratio)> =
        times.into_iter().filter_map(|(state, time)| Some((state, Ratio::of(time, whole)?))).collect();
    shares.sort_by(|one, other| other.1.get().total_cmp(&one.1.get()));
    shares.retain(|(_, share)| share.get() >= 0.001);
    shares
}

fn add(evidence: &Evidence<'_>, before: &Moment, now: &Moment, times: &mut BTreeMap<State, f64>) {
    let length = now.to.saturating_sub(before.to);
    let Some(limits) = LimitShares::between(&before.socket.info, &now.socket.info, length) else { return };
    let seconds = length.as_secs_f64();
    let mut count = |state: State, share: Ratio| *times.entry(state).or_default() += share.get() * seconds;
    count(State::Application, limits.application);
    count(State::SendBuffer, limits.send_buffer);
    count(State::ReceiveWindow, limits.receive_window);
    count(network_state(evidence, before, now), limits.network);
}

/// What the congestion window was doing.
fn network_state(evidence: &Evidence<'_>, before: &Moment, now: &Moment) -> State {
    let (earlier, info) = (&before.socket.info, &now.socket.info);
    let under_way = info.unacknowledged.is_some_and(|segments| segments > SegmentCount::ZERO);
    let queue = info.rtt.zip(evidence.base).map(|(rtt, base)| (rtt.saturating_sub(base), base));
    if under_way && info.bytes_acknowledged == earlier.bytes_acknowledged {
        State::Stalled
    } else if info.retransmits > earlier.retransmits {
        State::Recovery
    } else if info.slow_start_threshold.is_none() {
        State::SlowStart
    } else if queue.is_some_and(|(queue, base)| queue > NOTICEABLE && queue > base.mul_f64(QUEUED)) {
        State::Queueing
    } else {
        State::CongestionWindow
    }
}
