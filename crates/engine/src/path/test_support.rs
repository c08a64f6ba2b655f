//! Records, sessions and made-up streams for the tests of path measurements.

use core::time::Duration;

use linerate_analysis::capacity::{CapacityBound, CapacityEstimate};
use linerate_analysis::ippm::{PacketArrival, PacketStream};
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Port};

use super::linerate::PathKnowledge;
use super::record::PathRecord;
use super::{PathEvent, PathOptions, PathOutcome};
use crate::probe::{ProbeSession, ProbeTarget};
use crate::server::ServerOptions;
use crate::tests::support::{TestServer, target};

pub(super) fn options() -> PathOptions {
    PathOptions::new(ProbeTarget::new("192.0.2.1", Port::IPERF3))
}

/// Runs `work` on a new record; returns its result, the finished measurement and the events.
pub(super) fn recorded<T>(
    options: &PathOptions,
    work: impl FnOnce(&mut PathRecord<'_>) -> T,
) -> (T, PathOutcome, Vec<PathEvent>) {
    let mut events = Vec::new();
    let mut observer = |event: &PathEvent| events.push(event.clone());
    let mut record = PathRecord::new(options, None, &mut observer);
    let result = work(&mut record);
    let outcome = record.finish(Ok(()));
    (result, outcome, events)
}

/// A session with a server on loopback.
pub(super) fn session() -> ProbeSession {
    let server = TestServer::start(ServerOptions::default());
    ProbeSession::open(&target(server.address), None).expect("a probe service")
}

/// A path over IPv4 with 20 ms of round trip, of which these bursts arrived.
pub(super) fn way(session: &ProbeSession, megabits: [Option<f64>; 2]) -> PathKnowledge<'_> {
    PathKnowledge {
        session,
        headers: ByteCount::new(28),
        round_trip: Duration::from_millis(20),
        train_rate: megabits.map(|rate| rate.map(|rate| BitRate::from_bits_per_second(rate * 1e6))),
        routers: None,
    }
}

/// Packets sent every millisecond, by their numbers and additional delays in microseconds, in the order of arrival.
pub(super) fn stream(sent: u64, arrivals: &[(u64, u64)]) -> PacketStream {
    let arrival = |&(sequence, extra): &(u64, u64)| PacketArrival {
        sequence,
        sent: MonotonicTime::from_nanos(sequence * 1_000_000),
        received: MonotonicTime::from_nanos(sequence * 1_000_000 + 10_000_000 + extra * 1000),
        ttl: None,
        type_of_service: None,
    };
    PacketStream { sent: PacketCount::new(sent), arrivals: arrivals.iter().map(arrival).collect() }
}

/// A search that found this capacity, limited by the path.
pub(super) fn found(megabits: Option<f64>) -> CapacityEstimate {
    CapacityEstimate {
        capacity: megabits.map(|rate| BitRate::from_bits_per_second(rate * 1e6)),
        highest: None,
        bound: CapacityBound::Path,
        sub_interval: Duration::from_millis(500),
        sent_rate: None,
        loss: None,
        loss_below_capacity: None,
        shared: false,
        delay_growth: None,
        duplicates: PacketCount::ZERO,
        reordered: PacketCount::ZERO,
        receiver_dropped: None,
        sender_kept_up: true,
        asked_for: ByteCount::ZERO,
        elapsed: Duration::from_secs(2),
        readings: Vec::new(),
    }
}
