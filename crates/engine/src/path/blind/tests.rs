//! Streams of made-up packets, at the receiver and at the sender.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::path::PeerKind;
use linerate_model::report::Outcome;
use linerate_sys::data::probe_socket::DatagramArrival;
use linerate_sys::time_stamp::{StampSource, TimeStamp};
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Port, WallTime};
use linerate_wire::stamp::{ErrorEstimate, SenderPacket, SessionIdentifier, StampTimestamp, TimestampFormat};

use super::receiver::Reception;
use super::*;
use crate::path::{PathOptions, run};
use crate::probe::ProbeTarget;

const SENDER: &str = "192.0.2.7:40000";

fn at(millis: u64) -> WallTime {
    WallTime::from_unix(Duration::from_secs(1_800_000_000) + Duration::from_millis(millis))
}

fn packet(sequence: u32, session: u16, sent: WallTime) -> SenderPacket {
    SenderPacket {
        sequence,
        timestamp: StampTimestamp::from_wall(sent, TimestampFormat::Ntp),
        error_estimate: ErrorEstimate::unknown(TimestampFormat::Ntp),
        session: SessionIdentifier::new(session),
    }
}

fn arrival(source: &str, wall: WallTime) -> DatagramArrival {
    DatagramArrival {
        filled: 128,
        size: ByteCount::new(1222),
        source: source.parse::<SocketAddr>().expect("an address"),
        destination: None,
        arrived: TimeStamp { wall, monotonic: MonotonicTime::default(), source: StampSource::Kernel },
        hop_limit: None,
        type_of_service: None,
        dropped: None,
    }
}

/// A reception of these numbers, one each millisecond.
fn reception(numbers: &[u32], expected: Option<u64>) -> Reception {
    let first = packet(numbers[0], 7, at(0));
    let mut reception = Reception::new(&first, &arrival(SENDER, at(5)), expected.map(PacketCount::new));
    for (millis, number) in (0..).zip(numbers) {
        assert!(reception.take(&packet(*number, 7, at(millis)), &arrival(SENDER, at(millis + 5))), "{number}");
    }
    reception
}

fn counts(reception: &Reception) -> (u64, usize) {
    let stream = reception.stream();
    assert!(stream.arrivals.iter().all(|arrival| arrival.sequence < stream.sent.get()), "{stream:?}");
    (stream.sent.get(), stream.arrivals.len())
}

#[test]
fn losses_are_counted_up_to_the_last_arrival_or_the_expected_number() {
    assert_eq!(counts(&reception(&[0, 1, 4], None)), (5, 3));
    assert_eq!(counts(&reception(&[0, 1, 4], Some(10))), (10, 3));
    // Sent before this host received; a later packet may have overtaken the first.
    assert_eq!(counts(&reception(&[52, 51, 54], None)), (4, 3));
    assert_eq!(counts(&reception(&[51, 52, 54], Some(100))), (100, 3));
    // An expectation that is too low is ignored.
    assert_eq!(counts(&reception(&[0, 1, 4], Some(3))), (5, 3));
}

#[test]
fn only_the_stream_of_the_first_packet_counts() {
    let mut reception = reception(&[0, 1], None);
    for (sequence, session, source) in [(2, 8, SENDER), (2, 7, "192.0.2.7:40001"), (u32::MAX, 7, SENDER)] {
        assert!(!reception.take(&packet(sequence, session, at(2)), &arrival(source, at(7))), "{sequence} {source}");
    }
    let unknown = SenderPacket { timestamp: StampTimestamp::UNKNOWN, ..packet(2, 7, at(2)) };
    assert!(!reception.take(&unknown, &arrival(SENDER, at(7))));
    // A lead-in belongs to the stream, and is not counted.
    let lead_in = packet(0, 7, WallTime::from_unix(sender::LEAD_IN_TIME));
    assert!(reception.take(&lead_in, &arrival(SENDER, at(7))));
    assert_eq!(counts(&reception), (2, 2));
}

#[test]
fn rates_are_those_of_ip_packets_between_the_first_and_the_last() {
    let time = |millis: u64| MonotonicTime::from_nanos(millis * 1_000_000);
    let rate = rate_between(PacketCount::new(11), ByteCount::new(1250), Some((time(0), time(10))));
    assert_eq!(rate, Some(10e6));
    assert_eq!(rate_between(PacketCount::new(1), ByteCount::new(1250), Some((time(0), time(10)))), None);
    assert_eq!(rate_between(PacketCount::new(2), ByteCount::new(1250), Some((time(3), time(3)))), None);
    assert_eq!(rate_between(PacketCount::new(2), ByteCount::new(1250), None), None);
}

#[test]
fn a_stream_never_exceeds_its_rate_and_needs_no_receiver() {
    // A socket that reads nothing and answers nothing, as behind a path in one direction.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let port = Port::new(silent.local_addr().expect("bound").port()).expect("not 0");
    let (rate, count) = (BitRate::from_bits_per_second(4e6), PacketCount::new(200));
    let stream = BlindStream::Send { rate, packet: ByteCount::new(1250), count };
    let target = ProbeTarget::new("127.0.0.1", Port::IPERF3);
    let options = PathOptions { stamp_port: port, blind: Some(stream), ..PathOptions::new(target) };
    let outcome = run(&options, None, &mut |_| {});
    let document = outcome.document;
    assert_eq!((document.termination.outcome(), document.peer), (Outcome::Complete, PeerKind::Bare));
    let up = document.up.packets.expect("a stream");
    assert_eq!((up.sent, up.received, up.packet_bytes), (200, None, 1250));
    let sent = up.sent_bits_per_second.expect("sent");
    assert!(sent <= 4e6 * 1.01, "{sent}");
    assert_eq!(document.traffic_bytes, Some(200 * 1250), "and the packet before the stream");
    assert!(document.notes.iter().any(|note| note.contains("--receive")), "{:?}", document.notes);
    drop(silent);
}
