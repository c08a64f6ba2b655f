//! A stock iperf3 server: its own tests tell what arrives, beside what every host tells.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::event::Event;
use linerate_model::parameters::{Direction as TestDirection, EndCondition, Protocol, TestParameters};
use linerate_model::report::{StreamReport, TestReport, UdpReceived};
use linerate_model::schema::nanoseconds;
use linerate_model::schema::path::{Capacity, PacketMetrics, Peer};
use linerate_model::schema::throughput::Direction;
use linerate_model::statistics::clopper_pearson;
use linerate_sys::net;
use linerate_units::{BitRate, ByteCount, PacketCount, Ratio, StreamCount};

use super::linerate::{BOTH, name};
use super::record::Record;
use super::{PathEvent, PathPhase, bare, convert, hops, idle};
use crate::client::{self, Acquaintance, ClientOptions};
use crate::course::Halt;
use crate::probe::ProbeError;

/// Each test takes this long.
const TIME: Duration = Duration::from_secs(3);

/// Connections of the throughput tests: together they fill what one alone may not.
const STREAMS: StreamCount = StreamCount::new(4);

/// Rate of the test whose losses are counted, unless TCP is slower: enough packets, hardly a load.
const PROBE_RATE: f64 = 2e6;

/// UDP payload of its packets: the least that iperf3 numbers with 64 bits, padded.
const PROBE_SIZE: ByteCount = ByteCount::new(200);

pub(super) fn measure(record: &mut Record<'_>) -> Result<(), Halt> {
    record.document.peer = Peer::Iperf3;
    let target = &record.options.target;
    let addresses = net::resolve(&target.host, target.port, target.family)
        .map_err(|error| Halt::Failed(ProbeError::Unreachable(error.to_string())))?;
    let Some(peer) = addresses.into_iter().next() else {
        return Err(Halt::Failed(ProbeError::Unreachable("the host has no address".to_owned())));
    };
    record.document.address = Some(peer.ip().to_string());
    record.phase(PathPhase::Idle, Duration::from_secs(3));
    bare::echoes(record, peer)?;
    idle::choose_best(record);
    let round_trip = record
        .document
        .rtt
        .best
        .as_ref()
        .map_or(Duration::from_millis(300), |best| Duration::from_nanos(best.median_ns));
    record.phase(PathPhase::PathMtu, round_trip * 6);
    bare::path_mtu(record, peer, round_trip)?;
    record.phase(PathPhase::Hops, Duration::from_secs(2));
    hops::measure(record, peer, None)?;
    let mut handshakes = Vec::new();
    if record.options.capacity {
        capacities(record, peer, &mut handshakes)?;
    } else {
        record.unknown_both_ways("capacity", "switched off (--no-capacity)");
    }
    for direction in BOTH {
        record.check()?;
        losses(record, peer, direction, &mut handshakes)?;
    }
    record.document.rtt.handshake = convert::distribution(&handshakes);
    idle::choose_best(record);
    Ok(())
}

fn capacities(record: &mut Record<'_>, peer: SocketAddr, handshakes: &mut Vec<Duration>) -> Result<(), Halt> {
    record.tell(&PathEvent::Note(
        "An iperf3 server allows throughput tests only: what they reach is a lower bound of the capacity.".to_owned(),
    ));
    for (direction, phase) in BOTH.into_iter().zip([PathPhase::CapacityUp, PathPhase::CapacityDown]) {
        record.check()?;
        record.phase(phase, TIME);
        let parameters = TestParameters {
            direction: test_direction(direction),
            end: EndCondition::Time(TIME),
            parallel: STREAMS,
            ..TestParameters::default()
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

/// What the receiver counted, with the headers that its segments had.
fn throughput(report: &TestReport, peer: SocketAddr) -> Option<Capacity> {
    let received: Vec<_> = report.streams.iter().filter_map(|stream| stream.received).collect();
    let bytes: ByteCount = received.iter().map(|side| side.bytes).sum();
    let time = received.iter().map(|side| side.duration).max().filter(|time| !time.is_zero())?;
    let mss = report.streams.iter().find_map(segment);
    let headers = if peer.is_ipv6() { 40 + 32 } else { 20 + 32 };
    let whole = mss.map_or(1.0, |mss| (mss + f64::from(headers)) / mss);
    let rate = bytes.rate_over(time) * whole;
    Some(Capacity {
        bits_per_second: rate.bits_per_second(),
        low_bits_per_second: None,
        high_bits_per_second: None,
        at_least: true,
        limited_by: Some("TCP, whose senders back off".to_owned()),
        shared: None,
        packet_bytes: mss.map_or(0, |mss| ByteCount::from_f64(mss + f64::from(headers)).get()),
        loss: None,
        queueing_ns: None,
        sent_bytes: ByteCount::from_f64(bytes.as_f64() * whole).get(),
        duration_ns: nanoseconds(time),
        method: "tcp".to_owned(),
    })
}

fn segment(stream: &StreamReport) -> Option<f64> {
    let info = stream.tcp.as_ref()?.last_info.as_ref()?;
    info.send_mss.or(info.receive_mss).map(|mss| f64::from(mss.get()))
}

/// Losses of a slow stream of datagrams.
fn losses(
    record: &mut Record<'_>,
    peer: SocketAddr,
    direction: Direction,
    handshakes: &mut Vec<Duration>,
) -> Result<(), Halt> {
    let known = record.direction(direction).capacity.as_ref().map(|capacity| capacity.bits_per_second * 0.1);
    let rate = BitRate::from_bits_per_second(known.unwrap_or(PROBE_RATE).min(PROBE_RATE));
    let parameters = TestParameters {
        protocol: Protocol::Udp,
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

/// Runs one test; the reason why it could not be done is no end of the measurement.
fn run(
    record: &mut Record<'_>,
    parameters: TestParameters,
    handshakes: &mut Vec<Duration>,
) -> Result<Result<TestReport, String>, Halt> {
    let target = &record.options.target;
    let direction = match parameters.direction {
        TestDirection::Reverse => Direction::Down,
        _ => Direction::Up,
    };
    let block_size_given = parameters.protocol == Protocol::Udp;
    let interval = Some(Duration::from_millis(200));
    let options = ClientOptions { block_size_given, ..ClientOptions::new(target, parameters, interval) };
    let stop = record.stop;
    let (error, (report, times)) = client::when_free(Acquaintance::Known, stop, || {
        let mut report = None;
        let outcome = client::run(&options, stop.as_ref(), &mut |event| match event {
            Event::Finished(finished) => report = Some((**finished).clone()),
            Event::Interval(interval) => {
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
