//! Threads of the data plane, each against a plain socket.

use core::time::Duration;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use linerate_model::parameters::{TestParameters, TestProtocol};
use linerate_model::stream::{StreamId, StreamRole};
use linerate_sys::clock::{self, CpuTime};
use linerate_sys::poll::{self, PollInterest, Waker};
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount};
use linerate_wire::udp::{CounterWidth, DatagramHeader};

use crate::client::setup::describe;
use crate::stream::{
    ByteLimits, ConnectedStream, SessionState, StreamFailure, StreamOptions, TestPhase, TransferFile, utilization,
};

use super::support::{PATIENCE, Scratch};

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    client.set_read_timeout(Some(PATIENCE)).expect("an option");
    (listener.accept().expect("a client").0, client)
}

fn udp_pair() -> (UdpSocket, UdpSocket) {
    let [one, other] = [0, 0].map(|_| UdpSocket::bind("127.0.0.1:0").expect("loopback"));
    one.connect(other.local_addr().expect("bound")).expect("loopback");
    other.connect(one.local_addr().expect("bound")).expect("loopback");
    other.set_read_timeout(Some(PATIENCE)).expect("an option");
    (one, other)
}

/// A stream on its thread, with the state that it shares with its driver.
struct Running {
    stream: ConnectedStream,
    shared: Arc<SessionState>,
}

impl Running {
    fn start(socket: impl Into<OwnedFd>, role: StreamRole, limit: Option<u64>, options: &StreamOptions) -> Self {
        Self::start_in(TestPhase::Counting, socket, role, limit, options)
    }

    fn start_in(
        phase: TestPhase,
        socket: impl Into<OwnedFd>,
        role: StreamRole,
        limit: Option<u64>,
        options: &StreamOptions,
    ) -> Self {
        let limit = limit.map(ByteCount::new);
        let mut stream = describe(socket.into(), StreamId::nth(0), role).expect("a connected socket");
        let waker = Arc::new(Waker::new().expect("eventfd"));
        let shared = Arc::new(SessionState::new(phase, ByteLimits { send: limit, receive: limit }, waker));
        stream.start(&shared, options).expect("a thread");
        Self { stream, shared }
    }

    /// Waits until the thread has ended by itself, or a receiver has all its bytes.
    fn wait(&mut self) -> Option<StreamFailure> {
        assert!(poll::wait_for(self.shared.waker(), PollInterest::READ, Some(PATIENCE)).expect("polls"), "it goes on");
        self.shared.stop();
        self.stream.join();
        assert!(self.stream.counters.finished_at().is_some());
        self.stream.counters.take_failure()
    }

    fn bytes(&self) -> u64 {
        self.stream.counters.bytes(TestPhase::Counting).get()
    }
}

fn blocks(size: u64) -> TestParameters {
    TestParameters { block_size: ByteCount::new(size), repeating_payload: true, ..TestParameters::default() }
}

fn pattern(length: usize, block: usize) -> Vec<u8> {
    (0..length).map(|index| b"0123456789"[index % block % 10]).collect()
}

#[test]
fn each_method_sends_the_same_bytes() {
    for (zero_copy, rate, block) in [
        (false, None, 1000),
        (true, None, 1000),
        (false, Some(400e6), 1000),
        (true, Some(400e6), 1000),
        (false, None, 131_072),
        (true, None, 131_072),
    ] {
        let rate = rate.map(BitRate::from_bits_per_second);
        let parameters = TestParameters { zero_copy, rate, ..blocks(block) };
        let (socket, mut reader) = tcp_pair();
        let total = 300_017;
        let mut running = Running::start(socket, StreamRole::Sender, Some(total), &StreamOptions::plain(parameters));
        let mut data = vec![0; ByteCount::new(total).to_usize()];
        reader.read_exact(&mut data).expect("all bytes");
        assert!(running.wait().is_none());
        assert_eq!(running.bytes(), total);
        let expected = pattern(data.len(), ByteCount::new(block).to_usize());
        assert!(data == expected, "zero copy {zero_copy}, rate {rate:?}, blocks of {block}");
    }
}

#[test]
fn a_file_is_sent_once_and_ends_the_stream() {
    let scratch = Scratch::new("streams");
    let content = pattern(70_001, 70_001);
    std::fs::write(scratch.file("source"), &content).expect("disk space");
    for zero_copy in [false, true] {
        let file = TransferFile::source(scratch.file("source")).expect("it exists");
        let parameters = TestParameters { zero_copy, ..blocks(8192) };
        let (socket, mut reader) = tcp_pair();
        let with_file = StreamOptions { file: Some(Arc::new(file)), ..StreamOptions::plain(parameters) };
        let mut running = Running::start(socket, StreamRole::Sender, None, &with_file);
        let mut data = vec![0; content.len()];
        reader.read_exact(&mut data).expect("all bytes");
        assert!(running.wait().is_none());
        assert!(data == content, "zero copy {zero_copy}");
        assert_eq!(running.bytes(), 70_001);
    }
}

#[test]
fn a_receiver_writes_what_it_receives() {
    let scratch = Scratch::new("sink");
    let content = pattern(50_000, 50_000);
    let file = Arc::new(TransferFile::sink(scratch.file("sink")).expect("a writable directory"));
    let (socket, mut writer) = tcp_pair();
    let with_file = StreamOptions { file: Some(Arc::clone(&file)), ..StreamOptions::plain(blocks(1000)) };
    let mut running = Running::start(socket, StreamRole::Receiver, Some(50_000), &with_file);
    writer.write_all(&content).expect("buffer space");
    assert!(running.wait().is_none());
    assert_eq!(std::fs::read(scratch.file("sink")).expect("written"), content);
    assert_eq!(file.size().ok(), Some(ByteCount::new(50_000)));
}

#[test]
fn a_closed_connection_is_a_failure_of_its_role() {
    let (socket, writer) = tcp_pair();
    let mut receiver = Running::start(socket, StreamRole::Receiver, None, &StreamOptions::plain(blocks(1000)));
    drop(writer);
    assert!(matches!(receiver.wait(), Some(StreamFailure::Closed)));
    let (socket, reader) = tcp_pair();
    let mut sender = Running::start(socket, StreamRole::Sender, None, &StreamOptions::plain(blocks(1000)));
    drop(reader);
    assert!(matches!(sender.wait(), Some(StreamFailure::Write(_))));
}

#[test]
fn a_stream_of_datagrams_to_an_unreachable_port_ends() {
    let (socket, gone) = udp_pair();
    drop(gone);
    let rate = Some(BitRate::from_bits_per_second(8e6));
    let parameters = TestParameters { protocol: TestProtocol::Udp, rate, ..blocks(1000) };
    let mut sender = Running::start(socket, StreamRole::Sender, None, &StreamOptions::plain(parameters));
    let failure = sender.wait();
    assert!(
        matches!(&failure, Some(StreamFailure::Write(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused),
        "{failure:?}"
    );
}

#[test]
fn a_stopped_stream_has_not_failed() {
    for role in [StreamRole::Sender, StreamRole::Receiver] {
        let (socket, _peer) = tcp_pair();
        // The peer neither reads nor writes.
        let mut running = Running::start(socket, role, None, &StreamOptions::plain(blocks(1000)));
        running.shared.stop();
        running.stream.close();
        assert!(running.stream.counters.finished_at().is_some());
        assert!(running.stream.counters.take_failure().is_none(), "{role:?}");
    }
}

#[test]
fn joining_a_receiver_ends_its_wait_for_data() {
    let (socket, _peer) = tcp_pair();
    let mut same = socket.try_clone().expect("descriptors");
    let mut running = Running::start(socket, StreamRole::Receiver, None, &StreamOptions::plain(blocks(1000)));
    running.shared.stop();
    running.stream.join();
    assert_eq!(same.read(&mut [0]).expect("no wait for data"), 0);
    assert!(running.stream.counters.take_failure().is_none());
}

#[test]
fn bytes_count_in_the_phase_in_which_they_arrive() {
    let (socket, mut writer) = tcp_pair();
    let parameters = StreamOptions::plain(blocks(1000));
    let mut running = Running::start_in(TestPhase::Omitted, socket, StreamRole::Receiver, Some(500), &parameters);
    writer.write_all(&[1; 3000]).expect("buffer space");
    let deadline = clock::monotonic_now() + PATIENCE;
    while running.stream.counters.bytes(TestPhase::Omitted) < ByteCount::new(3000) {
        assert!(clock::monotonic_now() < deadline, "the omitted bytes do not arrive");
        std::thread::yield_now();
    }
    assert_eq!(running.bytes(), 0, "the limit is that of the counted part");
    running.shared.start_counting(None);
    writer.write_all(&[1; 500]).expect("buffer space");
    assert!(running.wait().is_none());
    assert_eq!((running.bytes(), running.stream.counters.bytes(TestPhase::Omitted).get()), (500, 3000));
}

#[test]
fn datagrams_are_numbered_from_one_and_complete() {
    for (counters_64bit, width) in [(false, CounterWidth::Bits32), (true, CounterWidth::Bits64)] {
        let parameters = TestParameters {
            protocol: TestProtocol::Udp,
            udp_counters_64bit: counters_64bit,
            rate: Some(BitRate::from_bits_per_second(20e6)),
            ..blocks(100)
        };
        let (socket, reader) = udp_pair();
        // The last of the datagrams is complete, though the limit is not a multiple of its size.
        let mut running = Running::start(socket, StreamRole::Sender, Some(2950), &StreamOptions::plain(parameters));
        let mut buffer = [0; 2048];
        for number in 1..=30 {
            let length = reader.recv(&mut buffer).expect("a datagram");
            assert_eq!(length, 100);
            let header = DatagramHeader::decode(width, &buffer[..length]).expect("a header");
            assert_eq!(header.number, number);
        }
        assert!(running.wait().is_none());
        assert_eq!(running.stream.counters.packets(TestPhase::Counting), PacketCount::new(30));
        assert_eq!(running.bytes(), 3000);
    }
}

#[test]
fn a_udp_receiver_ends_at_its_limit_and_counts_what_it_got() {
    let (socket, writer) = udp_pair();
    let parameters = TestParameters { protocol: TestProtocol::Udp, ..blocks(100) };
    let mut running = Running::start(socket, StreamRole::Receiver, Some(500), &StreamOptions::plain(parameters));
    for number in [1, 2, 4, 3, 7] {
        let mut datagram = [0; 100];
        let header = DatagramHeader { sent_at: clock::monotonic_now(), number };
        header.encode(CounterWidth::Bits32, &mut datagram).expect("it fits");
        writer.send(&datagram).expect("loopback");
    }
    assert!(running.wait().is_none());
    let received = running.stream.counters.received();
    assert_eq!((received.total.expected, received.total.received), (PacketCount::new(7), PacketCount::new(5)));
    assert_eq!((received.total.lost(), received.total.out_of_order), (PacketCount::new(2), PacketCount::new(1)));
    assert_eq!(received.at_start.expected, PacketCount::ZERO);
    assert!(received.last_arrival.is_some_and(|last| last > MonotonicTime::from_nanos(0)));
}

#[test]
fn a_busy_processor_is_a_share_of_the_wall_time() {
    let cpu = CpuTime { user: Duration::from_millis(300), system: Duration::from_millis(450) };
    let found = utilization(cpu, Duration::from_secs(3)).expect("time passed");
    assert!((found.user.get() - 0.1).abs() < 1e-12 && (found.system.get() - 0.15).abs() < 1e-12);
    assert!((found.total.get() - 0.25).abs() < 1e-12);
    assert_eq!(utilization(cpu, Duration::ZERO), None);
}

#[test]
fn a_file_to_receive_into_begins_empty() {
    let scratch = Scratch::new("empty");
    std::fs::write(scratch.file("sink"), b"earlier content").expect("disk space");
    let file = TransferFile::sink(scratch.file("sink")).expect("writable");
    assert_eq!(file.size().ok(), Some(ByteCount::ZERO));
    assert!(TransferFile::source(scratch.file("none")).is_err());
    assert!(TransferFile::sink(scratch.file("none/sink")).is_err());
}
