//! Times in which nothing of a connection was acknowledged, and the end of a transfer whose path died.

use core::time::Duration;

use linerate_model::diagnosis::{ObservedConnection, SocketInterval};
use linerate_model::report::Outcome;
use linerate_model::tcp_info::TcpInfo;
use linerate_units::ByteCount;

use super::TransferEvidence;

/// Shortest stall that no single loss causes, whose retransmission timeout is at least 200 ms.
const MIN_STALL: Duration = Duration::from_secs(1);

/// Unread share of a receive buffer from which its program reads nothing.
const MIN_UNREAD_SHARE: f64 = 0.4;

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

/// Time up to the last sample of the sender in which nothing was acknowledged while data was in flight.
fn at_the_end(connection: &ObservedConnection) -> Duration {
    stalls(connection).last().filter(|stall| !stall.ended).map_or(Duration::ZERO, |stall| stall.time)
}

/// Time up to the last sample of the receiver in which nothing arrived, the program had read all, and no report of the sender
/// arrived either.
fn unreported(connection: &ObservedConnection) -> Duration {
    let receiver = &connection.receiver;
    let arrived = receiver.iter().rposition(|moment| !moment.bytes.is_zero()).map_or(0, |index| index + 1);
    let Some((first, last)) = receiver[arrived..].first().zip(receiver.last()) else { return Duration::ZERO };
    let is_reported = connection.sender.iter().any(|moment| moment.from >= first.from);
    if is_reported || is_unread(last) { Duration::ZERO } else { last.to.saturating_sub(first.from) }
}

fn is_unread(moment: &SocketInterval) -> bool {
    let memory = moment.socket.memory.as_ref();
    let share = memory.and_then(|memory| memory.receive_allocated / memory.receive_buffer);
    share.is_some_and(|share| share.get() >= MIN_UNREAD_SHARE)
}

impl TransferEvidence<'_> {
    /// True when the test ended with an error.
    pub(super) fn has_failed(&self) -> bool {
        self.observation.outcome == Some(Outcome::Failed)
    }

    /// Returns the time up to the end in which nothing arrived on any connection although data was in flight; `None` where it is
    /// no longer than a loss explains. Of a test that failed, the receiver shows it as well: reports of the sender take the same
    /// path.
    pub(super) fn silence(&self) -> Option<Duration> {
        let of = |connection| {
            let received = if self.has_failed() { unreported(connection) } else { Duration::ZERO };
            at_the_end(connection).max(received)
        };
        self.observation.connections.iter().map(of).min().filter(|time| *time >= MIN_STALL)
    }
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
