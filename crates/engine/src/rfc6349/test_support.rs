//! Made-up paths and transfers for the tests of the procedure.

use core::time::Duration;

use linerate_documents::rfc6349::{LoadedDirections, TcpTest};
use linerate_model::direction::Direction;
use linerate_model::path::{CapacityMeasurement, CapacityMethod, PathDocument, PathMtu};
use linerate_model::report::{SideReport, StreamReport, TcpReport, TestReport, TestTermination};
use linerate_model::sample::{IntervalReport, StreamInterval, TcpInterval};
use linerate_model::stream::{StreamDescription, StreamId, StreamRole};
use linerate_model::summary::DurationDistribution;
use linerate_model::tcp_info::TcpInfo;
use linerate_units::{ByteCount, Port};

use super::record::Rfc6349Record;
use super::transfer::TransferResult;
use super::{Rfc6349Event, Rfc6349Options, Rfc6349Outcome};
use crate::path::PathOptions;
use crate::probe::ProbeTarget;

pub(super) fn options() -> Rfc6349Options {
    Rfc6349Options::new(PathOptions::new(ProbeTarget::new("192.0.2.1", Port::IPERF3)))
}

/// Runs `work` on a new record; returns its result, the finished procedure and the events.
pub(super) fn recorded<T>(
    options: &Rfc6349Options,
    work: impl FnOnce(&mut Rfc6349Record<'_>) -> T,
) -> (T, Rfc6349Outcome, Vec<Rfc6349Event>) {
    let mut events = Vec::new();
    let mut observer = |event: &Rfc6349Event| events.push(event.clone());
    let mut record = Rfc6349Record::new(options, None, &mut observer);
    let result = work(&mut record);
    let outcome = record.finish(Ok(()));
    (result, outcome, events)
}

/// A path of which nothing is known.
pub(super) fn unknown_path() -> PathDocument {
    recorded(&options(), |_| ()).1.document.path
}

pub(super) fn capacity(megabits: f64) -> CapacityMeasurement {
    CapacityMeasurement {
        bits_per_second: megabits * 1e6,
        low_bits_per_second: None,
        high_bits_per_second: None,
        at_least: false,
        shared: None,
        limited_by: None,
        packet_bytes: 1500,
        loss: None,
        loss_below: None,
        packets_below: None,
        queueing_ns: None,
        sent_bytes: 0,
        duration_ns: 0,
        method: CapacityMethod::UdpSearch,
    }
}

pub(super) fn mtu(bytes: u64) -> PathMtu {
    PathMtu { bytes, black_hole_bytes: None, icmp_bytes: None, interface_bytes: None, limited_by_interface: false }
}

/// Round trips of this many milliseconds.
pub(super) fn round_trips(milliseconds: u64) -> DurationDistribution {
    let time = Duration::from_millis(milliseconds);
    let above = |nanos| time + Duration::from_nanos(nanos);
    DurationDistribution {
        count: 9,
        min: time,
        median: above(1),
        mean: above(2),
        p95: above(3),
        p99: above(4),
        max: above(5),
    }
}

/// A path of 30 Mbit/s up and 150 Mbit/s down, with an MTU of 1500 bytes and 20 ms of round trip.
pub(super) fn path() -> PathDocument {
    let mut path = unknown_path();
    path.address = Some("192.0.2.1".to_owned());
    (path.up.capacity, path.down.capacity) = (Some(capacity(30.0)), Some(capacity(150.0)));
    (path.up.mtu, path.down.mtu) = (Some(mtu(1500)), Some(mtu(1500)));
    path.rtt.best = Some(round_trips(20));
    path
}

/// A record that knows [`path`].
pub(super) fn with_path<T>(
    options: &Rfc6349Options,
    work: impl FnOnce(&mut Rfc6349Record<'_>) -> T,
) -> (T, Rfc6349Outcome, Vec<Rfc6349Event>) {
    recorded(options, |record| {
        record.path = Some(path());
        record.baseline.rtt_ns = Some(20_000_000);
        work(record)
    })
}

/// A stream that moved these bytes in this time.
pub(super) fn stream(role: StreamRole, bytes: u64, milliseconds: u64) -> StreamReport {
    let address = "127.0.0.1:1".parse().expect("an address");
    let side = SideReport { bytes: ByteCount::new(bytes), duration: Duration::from_millis(milliseconds) };
    StreamReport {
        description: StreamDescription { id: StreamId::nth(0), socket: 3, local: address, remote: address, role },
        sent: Some(side),
        received: Some(side),
        tcp: Some(TcpReport::default()),
        udp: None,
        thread_cpu: None,
    }
}

pub(super) fn report(streams: Vec<StreamReport>) -> TestReport {
    TestReport { streams, ..crate::outcome::empty_report(TestTermination::Complete) }
}

pub(super) fn sent(bytes: u64, retransmitted: u64) -> TcpInfo {
    TcpInfo {
        bytes_sent: Some(ByteCount::new(bytes)),
        bytes_retransmitted: Some(ByteCount::new(retransmitted)),
        ..TcpInfo::default()
    }
}

/// A second of a test, with the streams' roles, bytes and round trips.
pub(super) fn second(number: u64, omitted: bool, streams: &[(StreamRole, u64, Option<u64>)]) -> IntervalReport {
    let stream = |(role, bytes, rtt): &(StreamRole, u64, Option<u64>)| StreamInterval {
        stream: StreamId::nth(0),
        role: *role,
        bytes: ByteCount::new(*bytes),
        tcp: Some(TcpInterval { rtt: rtt.map(Duration::from_millis), ..TcpInterval::default() }),
        udp: None,
        socket: None,
    };
    IntervalReport {
        start: Duration::from_secs(number),
        end: Duration::from_secs(number + 1),
        omitted,
        streams: streams.iter().map(stream).collect(),
    }
}

pub(super) fn transfer(streams: Vec<StreamReport>, intervals: Vec<IntervalReport>) -> TransferResult {
    TransferResult { report: report(streams), intervals }
}

/// A finished transfer of the procedure.
pub(super) fn tcp_test(direction: Direction, efficiency: Option<f64>, buffer_delay: Option<f64>) -> TcpTest {
    TcpTest {
        flows: if direction == Direction::Up { LoadedDirections::Up } else { LoadedDirections::Down },
        direction,
        connections: 1,
        goodput_bits_per_second: None,
        share_of_achievable: None,
        transfer_time_ratio: None,
        efficiency,
        buffer_delay,
        mean_rtt_ns: None,
        bytes: None,
        duration_ns: None,
        meaning: String::new(),
        problem: None,
    }
}
