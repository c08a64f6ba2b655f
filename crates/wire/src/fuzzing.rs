//! The bodies of the fuzz targets, shared with the short deterministic run among the tests.
//!
//! Each takes any bytes and panics when something does not hold that must hold for every peer. What a peer sends is
//! fuzzed; this end answers as a well-behaved program does.

use core::time::Duration;

use linerate_model::parameters::TestParameters;
use linerate_model::sample::IntervalReport;
use linerate_units::{BitRate, ByteCount, MonotonicTime, StreamCount};

use crate::client::{self, ClientMachine};
use crate::cookie::Cookie;
use crate::error::ErrorCode;
use crate::extension::{Hello, Message};
use crate::parameters::{self, ParametersExtra, ServerLimits};
use crate::results::{self, Results};
use crate::sequence::Tracker;
use crate::server::{self, ServerMachine};
use crate::timer::Deadlines;
use crate::udp::{CounterWidth, Header, Request};

/// Takes any bytes; panics when something does not hold.
pub type Target = fn(&[u8]);

/// Every target by name, as in `fuzz/fuzz_targets` and `fuzz/corpus`.
pub const TARGETS: &[(&str, Target)] = &[
    ("control_client", control_client),
    ("control_server", control_server),
    ("parameters", parameters),
    ("results", results),
    ("udp_header", udp_header),
    ("auth_token", auth_token),
];

/// How the first byte of an input has the rest delivered.
struct Delivery<'a> {
    flags: u8,
    pieces: core::slice::Chunks<'a, u8>,
    pause: Duration,
}

impl<'a> Delivery<'a> {
    fn new(data: &'a [u8]) -> Option<Self> {
        let (flags, bytes) = data.split_first()?;
        let size = [usize::MAX, 1, 2, 7][usize::from(flags >> 6)];
        let pause = if flags & 0x20 == 0 { Duration::from_millis(1) } else { Duration::from_secs(9) };
        Some(Self { flags: *flags, pieces: bytes.chunks(size.min(bytes.len().max(1))), pause })
    }

    fn flag(&self, bit: u8) -> bool {
        self.flags & (1 << bit) != 0
    }

    fn cookie(&self) -> Cookie {
        if self.flag(0) { Cookie::linerate([7; 36]) } else { Cookie::random([7; 36]) }
    }
}

/// A hostile server against the client's machine.
pub fn control_client(data: &[u8]) {
    let Some(delivery) = Delivery::new(data) else { return };
    let mut machine = ClientMachine::new(&delivery.cookie(), StreamCount::new(2), Deadlines::default());
    let (ends_test, interrupts) = (delivery.flag(1), delivery.flag(2));
    let mut now = MonotonicTime::default();
    let mut received = 0;
    let mut over = false;
    for piece in delivery.pieces {
        received += piece.len();
        machine.handle(now, client::Input::Bytes(piece));
        while let Some(output) = machine.poll() {
            assert!(!over, "{output:?} after the end");
            over = matches!(output, client::Output::Finished | client::Output::Failed(_));
            match output {
                client::Output::ParametersWanted { .. } => {
                    let document = parameters::encode(&TestParameters::default(), &ParametersExtra::default());
                    machine.handle(now, client::Input::Parameters(document));
                }
                client::Output::OpenStreams => machine.handle(now, client::Input::StreamsOpen),
                client::Output::Run if ends_test => machine.handle(now, client::Input::TestOver),
                client::Output::ResultsWanted => machine.handle(now, client::Input::Results(Results::default())),
                _ => {}
            }
        }
        assert_bounded(machine.buffered(), received);
        now = now + delivery.pause;
        machine.handle(now, client::Input::Tick);
    }
    machine.handle(now, if interrupts { client::Input::Interrupted } else { client::Input::Closed });
    assert!(machine.is_over() && machine.deadline().is_none());
}

/// A hostile client against the server's machine.
pub fn control_server(data: &[u8]) {
    let Some(delivery) = Delivery::new(data) else { return };
    let mut machine = ServerMachine::new(&delivery.cookie(), ServerLimits::default(), Deadlines::default());
    let (admits_late, rejects) = (delivery.flag(1), delivery.flag(2));
    let mut now = MonotonicTime::default();
    let mut received = 0;
    let mut over = false;
    let admit = || server::Input::Admit { hello: Some(Hello::new(&["interval"])) };
    if !admits_late {
        machine.handle(now, admit());
    }
    for piece in delivery.pieces {
        received += piece.len();
        machine.handle(now, server::Input::Bytes(piece));
        machine.handle(now, admit());
        while let Some(output) = machine.poll() {
            assert!(!over, "{output:?} after the end");
            over = is_last(&output);
            answer_client(&mut machine, now, &output, rejects);
        }
        assert_bounded(machine.buffered(), received);
        now = now + delivery.pause;
        machine.handle(now, server::Input::Tick);
    }
    machine.handle(now, server::Input::Closed);
    assert!(machine.is_over() && machine.deadline().is_none());
}

fn is_last(output: &server::Output) -> bool {
    matches!(output, server::Output::Finished | server::Output::ClientTerminated | server::Output::Failed(_))
}

fn answer_client(machine: &mut ServerMachine, now: MonotonicTime, output: &server::Output, rejects: bool) {
    match output {
        server::Output::Parameters(_) if rejects => {
            machine.handle(now, server::Input::Reject(ErrorCode::AUTHORIZATION));
        }
        server::Output::Parameters(_) => {
            machine.handle(now, server::Input::Accept);
            machine.handle(now, server::Input::StreamsOpen);
        }
        server::Output::Run => {
            let report = IntervalReport {
                start: Duration::ZERO,
                end: Duration::from_secs(1),
                omitted: false,
                streams: Vec::new(),
            };
            machine.handle(now, server::Input::Extension(Message::Interval(report)));
        }
        server::Output::EndRequested => machine.handle(now, server::Input::StreamsStopped),
        server::Output::ResultsWanted => machine.handle(now, server::Input::Results(Results::default())),
        _ => {}
    }
}

/// Memory for unfinished messages grows with what has come, not with what was announced.
fn assert_bounded(held: ByteCount, received: usize) {
    assert!(held <= ByteCount::from_usize(2 * received + 64), "{} bytes held of {received}", held.get());
}

/// The parameters document: what is accepted is within its ranges, and says the same when written again.
pub fn parameters(data: &[u8]) {
    let limits = ServerLimits {
        max_duration: Some(Duration::from_secs(60)),
        max_total_rate: Some(BitRate::from_bits_per_second(1e9)),
        ..ServerLimits::default()
    };
    let strict = parameters::decode(data, &limits);
    let Ok(received) = parameters::decode(data, &ServerLimits::default()) else {
        assert!(strict.is_err(), "a limit makes nothing acceptable");
        return;
    };
    let asked = received.parameters;
    assert!((1..=128).contains(&asked.parallel.get()) && !asked.block_size.is_zero());
    // Beyond 2^53 a rate is not exact.
    let exact = |rate: Option<BitRate>| rate.is_none_or(|rate| rate.bits_per_second() < 9e15);
    if exact(asked.rate) && exact(asked.fq_rate) {
        let document = parameters::encode(&asked, &ParametersExtra::default());
        let again = parameters::decode(document.as_bytes(), &ServerLimits::default());
        assert_eq!(again.map(|again| again.parameters), Ok(asked));
    }
}

/// The results document: what is accepted keeps its counts when written again.
pub fn results(data: &[u8]) {
    let Some((streams, document)) = data.split_first() else { return };
    let streams = StreamCount::new(u64::from(*streams % 8));
    let Ok(received) = results::decode(document, streams) else { return };
    assert!(received.streams.len() <= streams.to_usize());
    let again = results::decode(results::encode(&received).as_bytes(), streams).expect("as good as before");
    assert_eq!(again.streams.len(), received.streams.len());
    for (again, before) in again.streams.iter().zip(&received.streams) {
        assert_eq!((again.id, again.bytes, again.retransmits), (before.id, before.bytes, before.retransmits));
        assert_eq!((again.lost, again.packets), (before.lost, before.packets));
        assert_eq!((again.omitted_lost, again.omitted_packets), (before.omitted_lost, before.omitted_packets));
    }
}

/// Datagrams of any numbers: the totals stay consistent.
pub fn udp_header(data: &[u8]) {
    let Some((flags, datagrams)) = data.split_first() else { return };
    let width = CounterWidth::new(flags & 1 != 0);
    let mut tracker = Tracker::new(width);
    let mut recorded = 0;
    for (index, datagram) in datagrams.chunks(width.header_length().to_usize()).enumerate() {
        let _ = Request::recognize(datagram, ByteCount::from_usize(datagram.len()), width);
        let Some(header) = Header::decode(width, datagram) else { continue };
        let mut written = datagram.to_vec();
        header.encode(width, &mut written).expect("as long as before");
        let arrived_at = MonotonicTime::from_nanos(index as u64 * 1000);
        tracker.record(header.number, header.sent_at, arrived_at);
        recorded += 1;
    }
    let counts = tracker.snapshot();
    assert_eq!(counts.received.get() + counts.strays.get(), recorded);
    assert!(counts.out_of_order <= counts.skipped);
    if counts.skipped.get() < 1 << 62 {
        let in_sequence = counts.received - counts.out_of_order - counts.duplicates - counts.too_late;
        assert_eq!(in_sequence + counts.skipped, counts.expected);
    }
}

/// A token: nothing but a good one is good.
#[cfg(feature = "auth")]
pub fn auth_token(data: &[u8]) {
    use crate::authentication::{Authenticator, DEFAULT_SKEW, Padding};
    use linerate_units::WallTime;
    use std::sync::OnceLock;

    static SERVERS: OnceLock<[Authenticator; 2]> = OnceLock::new();
    let key = include_str!("../testdata/keys/private_pkcs8.pem");
    let make = |padding| Authenticator::new(key, "", padding, DEFAULT_SKEW).expect("the test key is good");
    let servers = SERVERS.get_or_init(|| [make(Padding::Oaep), make(Padding::Pkcs1)]);
    let Ok(token) = core::str::from_utf8(data) else { return };
    for server in servers {
        // Nobody is in its users file.
        server.check(token, WallTime::default()).expect_err("no user is known");
    }
}

/// Not in this build.
#[cfg(not(feature = "auth"))]
pub fn auth_token(_data: &[u8]) {}
