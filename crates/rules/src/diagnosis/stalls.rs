//! Times in which nothing of a connection was acknowledged.

use core::time::Duration;

use linerate_model::diagnosis::ObservedConnection;
use linerate_model::tcp_info::TcpInfo;
use linerate_units::ByteCount;

/// Shortest stall that no single loss causes, whose retransmission timeout is at least 200 ms.
const MIN_STALL: Duration = Duration::from_secs(1);

/// Time without acknowledgements while data was in flight.
struct Stall {
    time: Duration,
    /// True when data went on afterwards.
    ended: bool,
}

/// Returns the longest stall.
pub(super) fn longest(connection: &ObservedConnection) -> Duration {
    stalls(connection).iter().map(|stall| stall.time).max().unwrap_or_default()
}

/// Number of long stalls after which data went on.
pub(super) fn ended(connection: &ObservedConnection) -> usize {
    stalls(connection).iter().filter(|stall| stall.ended && stall.time >= MIN_STALL).count()
}

/// True when data is in flight within an open window. A receiver drops what arrives beyond a closed one, and is there.
pub(super) fn waits_for_path(info: &TcpInfo) -> bool {
    info.unacknowledged.is_some_and(|segments| !segments.is_zero()) && info.send_window != Some(ByteCount::ZERO)
}

fn stalls(connection: &ObservedConnection) -> Vec<Stall> {
    let (mut stalls, mut since): (Vec<Stall>, Option<Duration>) = (Vec::new(), None);
    for pair in connection.sender.windows(2) {
        let (before, now) = (&pair[0].socket.info, &pair[1].socket.info);
        let is_stalled = before.bytes_acknowledged == now.bytes_acknowledged && waits_for_path(now);
        if !is_stalled {
            if let Some(stall) = stalls.last_mut() {
                stall.ended = true;
            }
            since = None;
            continue;
        }
        if since.is_none() {
            stalls.push(Stall { time: Duration::ZERO, ended: false });
        }
        let from = *since.get_or_insert(pair[1].from);
        if let Some(stall) = stalls.last_mut() {
            stall.time = pair[1].to.saturating_sub(from);
        }
    }
    stalls
}
