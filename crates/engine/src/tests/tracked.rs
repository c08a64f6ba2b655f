//! A stream as its driver sees it: intervals, totals, and the end of an exact test.

use core::time::Duration;
use std::io::Read;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;

use linerate_model::parameters::{EndCondition, TestParameters, TestProtocol};
use linerate_model::stream::{StreamId, StreamRole};
use linerate_sys::clock;
use linerate_sys::poll::Waker;
use linerate_units::{BlockCount, ByteCount, MonotonicTime, PacketCount, StreamCount};
use linerate_wire::sequence::DatagramCounts;

use crate::client::setup::describe;
use crate::reservoir::CLIENT_SAMPLES;
use crate::stream::{ByteLimits, ConnectedStream, ReceivedPackets, SessionState, StreamOptions, TestPhase};
use crate::tracked::TrackedStream;

use super::support::PATIENCE;

fn tcp(role: StreamRole) -> (ConnectedStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    client.set_read_timeout(Some(PATIENCE)).expect("an option");
    let socket = listener.accept().expect("a client").0;
    (describe(socket.into(), StreamId::nth(0), role).expect("connected"), client)
}

fn udp(role: StreamRole) -> ConnectedStream {
    let [one, other] = [0, 0].map(|_| UdpSocket::bind("127.0.0.1:0").expect("loopback"));
    one.connect(other.local_addr().expect("bound")).expect("loopback");
    describe(one.into(), StreamId::nth(0), role).expect("connected")
}

#[test]
fn a_connection_that_is_denied_its_information_is_no_udp_stream() {
    let mut tracked = TrackedStream::new(udp(StreamRole::Receiver), false, CLIENT_SAMPLES);
    let description = tracked.stream.description.clone();
    assert!(tracked.close_interval().udp.is_some());
    // Like a TCP connection in a sandbox: a stream socket without `TCP_INFO`.
    let (socket, _peer) = std::os::unix::net::UnixStream::pair().expect("descriptors");
    let mut tracked = TrackedStream::new(ConnectedStream::new(description, socket.into()), false, CLIENT_SAMPLES);
    let interval = tracked.close_interval();
    assert!(interval.udp.is_none() && interval.tcp.is_none(), "{interval:?}");
}

/// Counts of a receiver that got these of the expected packets, some of them late.
fn counts(expected: u64, received: u64, out_of_order: u64) -> DatagramCounts {
    DatagramCounts {
        expected: PacketCount::new(expected),
        received: PacketCount::new(received),
        skipped: PacketCount::new(expected - received + out_of_order),
        out_of_order: PacketCount::new(out_of_order),
        ..DatagramCounts::default()
    }
}

#[test]
fn intervals_are_differences_and_begin_anew_with_the_counted_part() {
    let mut tracked = TrackedStream::new(udp(StreamRole::Sender), false, CLIENT_SAMPLES);
    let counters = Arc::clone(&tracked.stream.counters);
    let mut interval = |phase, bytes: usize, packets: u64| {
        counters.add_bytes(phase, bytes);
        counters.add_packets(phase, PacketCount::new(packets));
        let report = tracked.close_interval();
        (report.bytes.get(), report.udp.expect("a UDP stream").packets.get(), report.tcp.is_some())
    };
    assert_eq!(interval(TestPhase::Omitted, 1000, 10), (1000, 10, false));
    assert_eq!(interval(TestPhase::Omitted, 300, 3), (300, 3, false));
    tracked.start_counting();
    let mut interval = |bytes: usize, packets: u64| {
        counters.add_bytes(TestPhase::Counting, bytes);
        counters.add_packets(TestPhase::Counting, PacketCount::new(packets));
        let report = tracked.close_interval();
        (report.bytes.get(), report.udp.expect("a UDP stream").packets.get())
    };
    assert_eq!(interval(500, 5), (500, 5));
    assert_eq!(interval(0, 0), (0, 0));
    assert_eq!(interval(200, 2), (200, 2));
    assert_eq!((tracked.bytes().get(), tracked.packets().get()), (700, 7));
    assert_eq!((tracked.omitted_packets().get(), tracked.bytes_moved().get()), (13, 2000));
}

#[test]
fn a_frozen_stream_keeps_its_figures_whatever_still_moves() {
    let mut tracked = TrackedStream::new(udp(StreamRole::Receiver), false, CLIENT_SAMPLES);
    tracked.start_counting();
    tracked.stream.counters.add_bytes(TestPhase::Counting, 1000);
    tracked.freeze();
    tracked.stream.counters.add_bytes(TestPhase::Counting, 77);
    assert_eq!(tracked.bytes(), ByteCount::new(1000));
    assert_eq!(tracked.close_interval().bytes, ByteCount::new(1000));
    assert_eq!(tracked.moved_in_interval(), ByteCount::ZERO);
    assert_eq!(tracked.bytes_moved(), ByteCount::new(1077), "except the bytes that moved");
}

#[test]
fn a_receivers_figures_are_without_the_omitted_part() {
    let tracked = TrackedStream::new(udp(StreamRole::Receiver), false, CLIENT_SAMPLES);
    tracked.stream.counters.set_received(ReceivedPackets {
        total: counts(1000, 950, 7),
        at_start: counts(100, 98, 2),
        dropped: Some(PacketCount::new(30)),
        dropped_at_start: Some(PacketCount::new(4)),
        last_arrival: None,
    });
    let found = tracked.udp_received();
    assert_eq!((found.expected, found.lost), (PacketCount::new(900), Some(PacketCount::new(48))));
    assert_eq!((found.out_of_order, found.dropped_in_host), (Some(PacketCount::new(5)), Some(PacketCount::new(26))));
}

#[test]
fn an_interval_of_a_receiver_has_the_packets_since_the_last_one() {
    let mut tracked = TrackedStream::new(udp(StreamRole::Receiver), false, CLIENT_SAMPLES);
    tracked.start_counting();
    let set = |tracked: &TrackedStream, total, dropped: Option<u64>| {
        let dropped = dropped.map(PacketCount::new);
        tracked.stream.counters.set_received(ReceivedPackets { total, dropped, ..ReceivedPackets::default() });
    };
    for (total, dropped, expected) in [
        (counts(100, 100, 0), None, (100, 0, 0, 0)),
        (counts(250, 240, 3), Some(6), (150, 10, 3, 6)),
        (counts(250, 240, 3), Some(6), (0, 0, 0, 0)),
        (counts(260, 241, 3), Some(7), (10, 9, 0, 1)),
    ] {
        set(&tracked, total, dropped);
        let udp = tracked.close_interval().udp.expect("a UDP stream");
        let figures = [udp.lost, udp.out_of_order, udp.dropped_in_host].map(|count| count.expect("known").get());
        assert_eq!((udp.packets.get(), figures[0], figures[1], figures[2]), expected);
    }
}

#[test]
fn an_exact_receiver_waits_for_late_datagrams_and_not_for_lost_ones() {
    let now = clock::monotonic_now();
    let long_ago = MonotonicTime::from_nanos(now.as_nanos() - 10_000_000_000);
    let later = now + Duration::from_secs(3600);
    let bytes = |bytes| EndCondition::Bytes(ByteCount::new(bytes));
    let blocks = |count| EndCondition::Blocks(BlockCount::new(count));
    let forever = EndCondition::Time(Duration::ZERO);
    for (end, parallel, expected, last, complete) in [
        // 1000 datagrams of 100 bytes: nine tenths have arrived, and no more since long.
        (bytes(100_000), 1, 900, Some(long_ago), true),
        (bytes(100_000), 1, 899, Some(long_ago), false),
        (bytes(99_901), 1, 900, Some(long_ago), true),
        (bytes(100_000), 1, 900, Some(later), false),
        (bytes(100_000), 1, 1000, None, false),
        (blocks(1000), 1, 900, Some(long_ago), true),
        (blocks(1000), 4, 225, Some(long_ago), true),
        (blocks(1000), 4, 224, Some(long_ago), false),
        (forever, 1, 1000, Some(long_ago), false),
        // Numbers are the peer's.
        (blocks(u64::MAX), 1, u64::MAX, Some(long_ago), true),
    ] {
        let tracked = TrackedStream::new(udp(StreamRole::Receiver), false, CLIENT_SAMPLES);
        let total = counts(expected, expected, 0);
        tracked.stream.counters.set_received(ReceivedPackets {
            total,
            last_arrival: last,
            ..ReceivedPackets::default()
        });
        let parameters = TestParameters {
            protocol: TestProtocol::Udp,
            block_size: ByteCount::new(100),
            parallel: StreamCount::new(parallel),
            end,
            ..TestParameters::default()
        };
        assert_eq!(tracked.is_complete(&parameters), complete, "{end:?} × {parallel}: {expected}");
        let sender = TrackedStream::new(udp(StreamRole::Sender), false, CLIENT_SAMPLES);
        assert!(!sender.is_complete(&parameters), "a sender is complete when its thread has ended");
    }
}

#[test]
fn a_sender_reports_what_the_kernel_measured() {
    let (stream, mut reader) = tcp(StreamRole::Sender);
    let mut tracked = TrackedStream::new(stream, true, CLIENT_SAMPLES);
    tracked.start_counting();
    let parameters = TestParameters { block_size: ByteCount::new(1000), ..TestParameters::default() };
    let options = StreamOptions::plain(parameters);
    let limits = ByteLimits { send: Some(ByteCount::new(200_000)), receive: None };
    let shared = Arc::new(SessionState::new(TestPhase::Counting, limits, Arc::new(Waker::new().expect("eventfd"))));
    tracked.stream.start(&shared, &options).expect("a thread");
    reader.read_exact(&mut vec![0; 200_000]).expect("all bytes");
    tracked.stream.join();
    let interval = tracked.close_interval();
    assert_eq!(interval.bytes, ByteCount::new(200_000));
    let tcp = interval.tcp.expect("a TCP sender");
    assert!(tcp.rtt.is_some() && tcp.congestion_window.is_some() && tcp.retransmits.is_some());
    assert_eq!(tcp.rtt_samples.map(|samples| samples.count), Some(2), "at the start, and at the end of the interval");
    assert!(interval.socket.is_some_and(|socket| socket.info.bytes_sent.is_some()), "details were requested");
    let report = tracked.tcp_report(Duration::from_secs(1));
    assert_eq!(report.max_congestion_window, tcp.congestion_window);
    assert_eq!(report.interval_rtt.map(|range| (Some(range.min), Some(range.max))), Some((tcp.rtt, tcp.rtt)));
    assert_eq!(report.rtt_samples.map(|samples| samples.count), Some(1), "the counted part alone");
    assert!(tracked.thread_cpu().is_some() && tracked.thread_load(Duration::from_secs(1)).is_some());
    tracked.freeze();
    assert_eq!(tracked.bytes(), ByteCount::new(200_000));
}

#[test]
fn a_receiver_has_no_figures_of_a_sender() {
    let (stream, _writer) = tcp(StreamRole::Receiver);
    let mut tracked = TrackedStream::new(stream, false, CLIENT_SAMPLES);
    tracked.start_counting();
    let interval = tracked.close_interval();
    assert!(interval.tcp.is_none() && interval.udp.is_none() && interval.socket.is_none());
    let report = tracked.tcp_report(Duration::from_secs(1));
    assert_eq!((report.retransmits, report.limits, report.interval_rtt), (None, None, None));
    assert!(report.last_info.is_some());
    assert_eq!(tracked.thread_cpu(), None, "its thread has not ended");
}
