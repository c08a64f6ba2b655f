//! Second half of a transfer, when slow start is over, and the rate at which data arrived in it.

use core::time::Duration;

use linerate_model::diagnosis::{ObservedConnection, SocketInterval, TransferObservation};
use linerate_units::{BitRate, ByteCount};

use super::bounds::DEFAULT_WINDOW_SHARE;

/// Returns the moments of the second half of a transfer; all, where there are only a few.
pub(super) fn steady_moments(moments: &[SocketInterval]) -> &[SocketInterval] {
    let end = moments.last().map_or(Duration::ZERO, |moment| moment.to);
    let from = moments.partition_point(|moment| moment.from < end / 2);
    if moments.len() - from >= 3 { &moments[from..] } else { moments }
}

/// Returns bits per second in the second half, by the receiver's count where known.
pub(super) fn steady_rate(observation: &TransferObservation) -> BitRate {
    sum_of(observation, |_, _| 0.0)
}

/// The rate at which data arrived: as far as the path carries it, unless the whole transfer refutes its capacity. Without
/// one, what waited at the middle, unread or behind a loss, is taken off: it had arrived before.
pub(super) fn arrival_rate(observation: &TransferObservation, capacity: Option<BitRate>) -> BitRate {
    let measured = observation.path.as_ref().and_then(|path| path.with_data.capacity.as_ref());
    let is_exact = measured.is_some_and(|found| !found.at_least && found.shared == Some(false));
    match capacity.filter(|_| is_exact) {
        Some(most) => steady_rate(observation).min(most.max(observation.goodput())),
        None => sum_of(observation, |before, last| (waiting(before) - waiting(last)).max(0.0)),
    }
}

/// Sum of the rates of the connections, each less what `earlier` takes off; it knows the moments before the second half
/// and at its end.
fn sum_of(observation: &TransferObservation, earlier: fn(&SocketInterval, &SocketInterval) -> f64) -> BitRate {
    let rates = observation.connections.iter().map(|connection| of_connection(connection, earlier).bits_per_second());
    let sum: f64 = rates.sum();
    if sum > 0.0 { BitRate::from_bits_per_second(sum) } else { observation.goodput() }
}

fn of_connection(connection: &ObservedConnection, earlier: fn(&SocketInterval, &SocketInterval) -> f64) -> BitRate {
    let is_received = !connection.receiver.is_empty();
    let all = if is_received { &connection.receiver } else { &connection.sender };
    let moments = steady_moments(all);
    let before = (all.len() - moments.len()).checked_sub(1).and_then(|index| all.get(index));
    // The last one also holds what follows the data: the repair of the last segments, and the end of the test.
    let moments = if moments.len() > 3 { &moments[..moments.len() - 1] } else { moments };
    let bytes: ByteCount = moments.iter().map(|moment| moment.bytes).sum();
    let time = moments.last().zip(moments.first()).map(|(last, first)| last.to.saturating_sub(first.from));
    let ends = before.zip(moments.last()).filter(|_| is_received);
    let earlier = ends.map_or(0.0, |(before, last)| earlier(before, last));
    ByteCount::from_f64((bytes.as_f64() - earlier).max(0.0)).rate_over(time.unwrap_or_default())
}

/// Payload in the receive buffer, which counts the kernel's structures as well.
fn waiting(moment: &SocketInterval) -> f64 {
    moment.socket.memory.map_or(0.0, |memory| memory.receive_allocated.as_f64() * DEFAULT_WINDOW_SHARE)
}

#[cfg(test)]
mod tests {
    use linerate_model::sample::SocketSample;
    use linerate_model::socket::SocketMemory;

    use super::*;

    fn moment(second: u64, bytes: u64, allocated: u64) -> SocketInterval {
        let memory = SocketMemory { receive_allocated: ByteCount::new(allocated), ..SocketMemory::default() };
        SocketInterval {
            from: Duration::from_secs(second),
            to: Duration::from_secs(second + 1),
            bytes: ByteCount::new(bytes),
            socket: SocketSample { memory: Some(memory), ..SocketSample::default() },
        }
    }

    fn rate(receiver: Vec<SocketInterval>) -> f64 {
        let connections = vec![ObservedConnection { receiver, ..ObservedConnection::default() }];
        let observation = TransferObservation { connections, ..TransferObservation::default() };
        arrival_rate(&observation, None).bits_per_second()
    }

    #[test]
    fn what_waited_behind_a_loss_arrived_before() {
        let even: Vec<SocketInterval> = (0..10).map(|second| moment(second, 1000, 0)).collect();
        assert!((rate(even.clone()) - 8000.0).abs() < 1e-9);
        let mut late = even.clone();
        // Nothing is delivered for two seconds, then all at once.
        (late[3], late[4]) = (moment(3, 0, 1613), moment(4, 0, 3226));
        late[5] = moment(5, 3000, 0);
        assert!((rate(late) - 8000.0).abs() < 2.0);
        // A reader that falls behind delivers less.
        let slow = (0..10).map(|second| moment(second, 500, 1000 * second)).collect();
        assert!((rate(slow) - 4000.0).abs() < 1e-9);
    }
}
