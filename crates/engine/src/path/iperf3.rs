//! A stock iperf3 server: its own tests measure what arrives, in addition to the measurements that every host allows.

use core::time::Duration;
use linerate_model::direction::Direction;
use std::net::SocketAddr;

use linerate_analysis::statistics::clopper_pearson;
use linerate_model::event::TestEvent;
use linerate_model::parameters::{EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_model::path::{CapacityLimiter, CapacityMeasurement, CapacityMethod, PacketMetrics, PeerKind};
use linerate_model::report::{StreamReport, TestReport, UdpReceived};
use linerate_sys::net;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, PacketCount, Ratio, StreamCount};

use super::linerate::{BOTH_DIRECTIONS, name};
use super::record::PathRecord;
use super::{PathEvent, PathPhase, bare, convert, hops, idle};
use crate::client::{self, ClientOptions, PriorContact};
use crate::phases::AbortReason;
use crate::probe::ProbeError;

/// Duration of each test.
const TIME: Duration = Duration::from_secs(3);

/// Connections of the throughput tests: together they fill a path that one alone may not.
const TEST_STREAMS: StreamCount = StreamCount::new(4);

/// Rate of the test whose losses are counted, unless TCP is slower: enough packets, almost no load.
const PROBE_RATE: f64 = 2e6;

/// UDP payload of its packets: the smallest that iperf3 numbers with 64 bits, padded.
const PROBE_SIZE: ByteCount = ByteCount::new(200);

pub(super) fn measure(record: &mut PathRecord<'_>) -> Result<(), AbortReason> {
    record.document.peer = PeerKind::Iperf3;
    let target = &record.options.target;
    let addresses = net::resolve(target.address(), target.port, target.family)
        .map_err(|error| AbortReason::Failed(ProbeError::Unreachable(error.to_string())))?;
    let Some(peer) = addresses.into_iter().next() else {
        return Err(AbortReason::Failed(ProbeError::Unreachable("the host has no address".to_owned())));
    };
    record.document.address = Some(peer.ip().to_string());
    record.phase(PathPhase::Idle, Duration::from_secs(3));
    bare::echoes(record, peer)?;
    idle::choose_best(record);
    let round_trip = record.document.rtt.best.as_ref().map_or(Duration::from_millis(300), |best| best.median);
    record.phase(PathPhase::PathMtu, round_trip * 6);
    bare::path_mtu(record, peer, round_trip)?;
    record.phase(PathPhase::Hops, Duration::from_secs(2));
    hops::measure(record, peer, None)?;
    let mut handshakes = Vec::new();
    if record.options.capacity {
        capacities(record, peer, &mut handshakes)?;
    } else {
        record.add_unknown_both("capacity", "switched off (--no-capacity)");
    }
    for direction in BOTH_DIRECTIONS {
        record.check()?;
        losses(record, peer, direction, &mut handshakes)?;
    }
    record.document.rtt.handshake = convert::distribution(&handshakes);
    idle::choose_best(record);
    Ok(())
}

fn capacities(
    record: &mut PathRecord<'_>,
    peer: SocketAddr,
    handshakes: &mut Vec<Duration>,
) -> Result<(), AbortReason> {
    record.tell(&PathEvent::Note(
        "An iperf3 server allows throughput tests only: their result is a lower bound of the capacity.".to_owned(),
    ));
    for (direction, phase) in BOTH_DIRECTIONS.into_iter().zip([PathPhase::CapacityUp, PathPhase::CapacityDown]) {
        record.check()?;
        record.phase(phase, TIME);
        let parameters = TestParameters {
            direction: test_direction(direction),
            end: EndCondition::Time(TIME),
            parallel: TEST_STREAMS,
            ..TestParameters::discarding()
        };
        match run(record, parameters, handshakes)? {
            Ok(report) => {
                let capacity = throughput(&report, peer);
                if let Some(capacity) = &capacity {
                    record.count_traffic(direction, ByteCount::new(capacity.sent_bytes));
                } else {
                    record.unknown(&format!("{}.capacity", name(direction)), "nothing arrived in the test");
                }
                record.direction(direction).capacity = capacity;
            }
            Err(reason) => record.unknown(&format!("{}.capacity", name(direction)), reason),
        }
    }
    Ok(())
}

const fn test_direction(direction: Direction) -> TestDirection {
    match direction {
        Direction::Up => TestDirection::Forward,
        Direction::Down => TestDirection::Reverse,
    }
}

/// Throughput by the receiver's count, with the headers of its segments.
fn throughput(report: &TestReport, peer: SocketAddr) -> Option<CapacityMeasurement> {
    let received: Vec<_> = report.streams.iter().filter_map(|stream| stream.received).collect();
    let bytes: ByteCount = received.iter().map(|side| side.bytes).sum();
    let time = received.iter().map(|side| side.duration).max().filter(|time| !time.is_zero())?;
    let mss = report.streams.iter().find_map(segment);
    let headers = if peer.is_ipv6() { 40 + 32 } else { 20 + 32 };
    let whole = mss.map_or(1.0, |mss| (mss + f64::from(headers)) / mss);
    let rate = bytes.rate_over(time) * whole;
    Some(CapacityMeasurement {
        bits_per_second: rate.bits_per_second(),
        low_bits_per_second: None,
        high_bits_per_second: None,
        at_least: true,
        limited_by: Some(CapacityLimiter::CongestionControl),
        shared: None,
        packet_bytes: mss.map_or(0, |mss| ByteCount::from_f64(mss + f64::from(headers)).get()),
        loss: None,
        loss_below: None,
        packets_below: None,
        queueing_ns: None,
        sent_bytes: ByteCount::from_f64(bytes.as_f64() * whole).get(),
        duration_ns: nanoseconds(time),
        method: CapacityMethod::Tcp,
    })
}

fn segment(stream: &StreamReport) -> Option<f64> {
    let info = stream.tcp.as_ref()?.last_info.as_ref()?;
    info.send_mss.or(info.receive_mss).map(|mss| f64::from(mss.get()))
}

/// Losses of a slow datagram stream.
fn losses(
    record: &mut PathRecord<'_>,
    peer: SocketAddr,
    direction: Direction,
    handshakes: &mut Vec<Duration>,
) -> Result<(), AbortReason> {
    let known = record.direction(direction).capacity.as_ref().map(|capacity| capacity.bits_per_second * 0.1);
    let rate = BitRate::from_bits_per_second(known.unwrap_or(PROBE_RATE).min(PROBE_RATE));
    let parameters = TestParameters {
        protocol: TestProtocol::Udp,
        direction: test_direction(direction),
        end: EndCondition::Time(TIME),
        block_size: PROBE_SIZE,
        rate: Some(rate),
        ..TestParameters::default()
    };
    let key = format!("{}.packets", name(direction));
    match run(record, parameters, handshakes)? {
        Ok(report) => {
            let received = report.streams.iter().find_map(|stream| stream.udp.as_ref()?.received);
            let interval = rate.time_to_send(PROBE_SIZE).unwrap_or_default();
            match received.filter(|received| !received.expected.is_zero()) {
                Some(received) => {
                    let packet = PROBE_SIZE + convert::headers(peer);
                    record.count_traffic(direction, ByteCount::new(packet.get() * received.expected.get()));
                    record.direction(direction).packets = Some(metrics(&received, packet, interval));
                }
                None => record.unknown(&key, "no datagram arrived in the test"),
            }
        }
        Err(reason) => record.unknown(&key, reason),
    }
    Ok(())
}

fn metrics(received: &UdpReceived, packet: ByteCount, interval: Duration) -> PacketMetrics {
    let (sent, lost) = (received.expected, received.lost);
    let bounds = lost.zip(Ratio::new(0.95)).and_then(|(lost, confidence)| clopper_pearson(lost, sent, confidence));
    let arrived = lost.map(|lost| sent - lost);
    let share =
        |part: Option<PacketCount>, of: Option<PacketCount>| Ratio::of(part?.as_f64(), of?.as_f64()).map(Ratio::get);
    PacketMetrics {
        sent: sent.get(),
        received: arrived.map(PacketCount::get),
        loss: share(lost, Some(sent)),
        loss_low: bounds.as_ref().map(|bounds| bounds.low.get()),
        loss_high: bounds.as_ref().map(|bounds| bounds.high.get()),
        duplicates: received.duplicates.map(PacketCount::get),
        duplication: share(received.duplicates, arrived),
        reordered: received.out_of_order.map(PacketCount::get),
        reordering: share(received.out_of_order, arrived),
        rfc3550_jitter_ns: Some(nanoseconds(received.jitter)),
        packet_bytes: packet.get(),
        interval_ns: nanoseconds(interval),
        ..PacketMetrics::default()
    }
}

/// Runs one test; a failed test does not end the measurement.
fn run(
    record: &mut PathRecord<'_>,
    parameters: TestParameters,
    handshakes: &mut Vec<Duration>,
) -> Result<Result<TestReport, String>, AbortReason> {
    let target = &record.options.target;
    let direction = match parameters.direction {
        TestDirection::Reverse => Direction::Down,
        _ => Direction::Up,
    };
    let block_size_given = parameters.protocol == TestProtocol::Udp;
    let interval = Some(Duration::from_millis(200));
    let options = ClientOptions { block_size_given, ..ClientOptions::new(target, parameters, interval) };
    let stop = record.stop;
    let (error, (report, times)) = client::retry_while_busy(PriorContact::Known, stop, || {
        let mut report = None;
        let outcome = client::run(&options, stop.as_ref(), &mut |event| match event {
            TestEvent::Finished(finished) => report = Some((**finished).clone()),
            TestEvent::Interval(interval) => {
                let moved: ByteCount = interval.streams.iter().map(|stream| stream.bytes).sum();
                record.tell(&PathEvent::Rate(direction, moved.rate_over(interval.length())));
            }
            _ => {}
        });
        (outcome.error, (report, outcome.handshake_rtts))
    });
    handshakes.extend(times);
    record.check()?;
    Ok(match (error, report) {
        (None, Some(report)) => Ok(report),
        (None, None) => Err("the test ended without a result".to_owned()),
        (Some(error), _) => Err(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::report::{SideReport, TcpReport, TestTermination};
    use linerate_model::stream::{StreamDescription, StreamId, StreamRole};
    use linerate_model::tcp_info::TcpInfo;
    use linerate_units::Mss;

    use super::*;

    fn peer(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    fn stream(received: Option<(u64, u64)>, mss: Option<u32>) -> StreamReport {
        let address = peer("127.0.0.1:1");
        let role = StreamRole::Sender;
        StreamReport {
            description: StreamDescription { id: StreamId::nth(0), socket: 3, local: address, remote: address, role },
            sent: None,
            received: received.map(|(bytes, milliseconds)| SideReport {
                bytes: ByteCount::new(bytes),
                duration: Duration::from_millis(milliseconds),
            }),
            tcp: Some(TcpReport {
                last_info: mss.map(|mss| TcpInfo { send_mss: Some(Mss::new(mss)), ..TcpInfo::default() }),
                ..TcpReport::default()
            }),
            udp: None,
            thread_cpu: None,
        }
    }

    fn report(streams: Vec<StreamReport>) -> TestReport {
        TestReport { streams, ..crate::outcome::empty_report(TestTermination::Complete) }
    }

    #[test]
    fn throughput_counts_the_headers_of_the_segments() {
        // 1448 bytes of payload in packets of 1500 bytes, or 1520 with IPv6.
        for (address, packet) in [("192.0.2.1:1", 1500), ("[2001:db8::1]:1", 1520)] {
            let streams = vec![stream(Some((1_448_000, 900)), Some(1448)), stream(Some((1_448_000, 1000)), None)];
            let found = throughput(&report(streams), peer(address)).expect("bytes arrived");
            let bytes = 2000 * packet;
            assert!((found.bits_per_second - ByteCount::new(bytes * 8).as_f64()).abs() < 1e-3, "{found:?}");
            assert_eq!((found.packet_bytes, found.sent_bytes, found.duration_ns), (packet, bytes, 1_000_000_000));
            assert!(found.at_least, "TCP may not fill the path");
        }
    }

    #[test]
    fn without_a_segment_size_only_the_payload_is_known() {
        let found = throughput(&report(vec![stream(Some((1000, 1000)), None)]), peer("192.0.2.1:1")).expect("arrived");
        assert_eq!((found.bits_per_second, found.packet_bytes, found.sent_bytes), (8000.0, 0, 1000));
    }

    #[test]
    fn without_a_receiver_or_time_there_is_no_throughput() {
        for streams in [Vec::new(), vec![stream(None, Some(1448))], vec![stream(Some((1000, 0)), Some(1448))]] {
            assert_eq!(throughput(&report(streams), peer("192.0.2.1:1")), None);
        }
    }
}
