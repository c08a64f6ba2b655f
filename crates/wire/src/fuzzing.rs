//! Bodies of the fuzz targets, shared with the short deterministic run in the tests.
//!
//! Each accepts any bytes and panics when an invariant is violated that must hold for every peer. The peer's messages
//! are fuzzed; this host responds as a correct program does.

use core::time::Duration;

use linerate_model::parameters::TestParameters;
use linerate_model::sample::IntervalReport;
use linerate_units::{BitRate, ByteCount, MonotonicTime, StreamCount};

use crate::client::{self, ClientMachine};
use crate::cookie::Cookie;
use crate::error::ErrorCode;
use crate::extension::{ExtensionMessage, ServerHello};
use crate::parameters::{self, ParametersExtra, ServerLimits};
use crate::results::{self, TestResults};
use crate::sequence::SequenceTracker;
use crate::server::{self, ServerMachine};
use crate::timer::ControlDeadlines;
use crate::udp::{CounterWidth, DatagramHeader, StreamRequest};

/// Fuzz target: accepts any bytes, and panics when an invariant is violated.
pub type FuzzTarget = fn(&[u8]);

/// Every target by name, as in `fuzz/fuzz_targets` and `fuzz/corpus`.
pub const TARGETS: &[(&str, FuzzTarget)] = &[
    ("control_client", control_client),
    ("control_server", control_server),
    ("parameters", parameters),
    ("results", results),
    ("udp_header", udp_header),
    ("auth_token", auth_token),
    ("stamp_sender", stamp_sender),
    ("stamp_reflector", stamp_reflector),
    ("probe_messages", probe_messages),
    ("probe_load", probe_load),
    ("rr_datagrams", rr_datagrams),
    ("quic_messages", quic_messages),
    ("hop_probe", hop_probe),
    ("icmp_extension", icmp_extension),
    ("dns_records", dns_records),
];

/// Delivery of an input's bytes, as selected by its first byte.
struct InputDelivery<'a> {
    flags: u8,
    pieces: core::slice::Chunks<'a, u8>,
    pause: Duration,
}

impl<'a> InputDelivery<'a> {
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

/// Hostile server against the client's machine.
pub fn control_client(data: &[u8]) {
    let Some(delivery) = InputDelivery::new(data) else { return };
    let mut machine = ClientMachine::new(
        MonotonicTime::default(),
        &delivery.cookie(),
        StreamCount::new(2),
        ControlDeadlines::default(),
    );
    let (ends_test, interrupts) = (delivery.flag(1), delivery.flag(2));
    let mut now = MonotonicTime::default();
    let mut received = 0;
    let mut over = false;
    for piece in delivery.pieces {
        received += piece.len();
        machine.handle(now, client::ClientEvent::Bytes(piece));
        while let Some(output) = machine.poll() {
            assert!(!over, "{output:?} after the end");
            over = matches!(output, client::ClientAction::Finished | client::ClientAction::Failed(_));
            match output {
                client::ClientAction::ParametersWanted { .. } => {
                    let document = parameters::encode(&TestParameters::default(), &ParametersExtra::default());
                    machine.handle(now, client::ClientEvent::Parameters(document));
                }
                client::ClientAction::OpenStreams => machine.handle(now, client::ClientEvent::StreamsOpen),
                client::ClientAction::Run if ends_test => machine.handle(now, client::ClientEvent::TestOver),
                client::ClientAction::ResultsWanted => {
                    machine.handle(now, client::ClientEvent::Results(TestResults::default()));
                }
                _ => {}
            }
        }
        assert_bounded(machine.buffered(), received);
        now = now + delivery.pause;
        machine.handle(now, client::ClientEvent::Tick);
    }
    machine.handle(now, if interrupts { client::ClientEvent::Interrupted } else { client::ClientEvent::Closed });
    assert!(machine.is_over() && machine.deadline().is_none());
}

/// Hostile client against the server's machine.
pub fn control_server(data: &[u8]) {
    let Some(delivery) = InputDelivery::new(data) else { return };
    let mut machine = ServerMachine::new(&delivery.cookie(), ServerLimits::default(), ControlDeadlines::default());
    let (admits_late, rejects) = (delivery.flag(1), delivery.flag(2));
    let mut now = MonotonicTime::default();
    let mut received = 0;
    let mut over = false;
    let admit = || server::ServerEvent::Admit { hello: Some(ServerHello::new(&["interval"])) };
    if !admits_late {
        machine.handle(now, admit());
    }
    for piece in delivery.pieces {
        received += piece.len();
        machine.handle(now, server::ServerEvent::Bytes(piece));
        machine.handle(now, admit());
        while let Some(output) = machine.poll() {
            assert!(!over, "{output:?} after the end");
            over = is_last(&output);
            answer_client(&mut machine, now, &output, rejects);
        }
        assert_bounded(machine.buffered(), received);
        now = now + delivery.pause;
        machine.handle(now, server::ServerEvent::Tick);
    }
    machine.handle(now, server::ServerEvent::Closed);
    assert!(machine.is_over() && machine.deadline().is_none());
}

fn is_last(output: &server::ServerAction) -> bool {
    matches!(
        output,
        server::ServerAction::Finished | server::ServerAction::ClientTerminated | server::ServerAction::Failed(_)
    )
}

fn answer_client(machine: &mut ServerMachine, now: MonotonicTime, output: &server::ServerAction, rejects: bool) {
    match output {
        server::ServerAction::Parameters(_) if rejects => {
            machine.handle(now, server::ServerEvent::Reject(ErrorCode::AUTHORIZATION));
        }
        server::ServerAction::Parameters(_) => {
            machine.handle(now, server::ServerEvent::Accept);
            machine.handle(now, server::ServerEvent::StreamsOpen);
        }
        server::ServerAction::Run => {
            let report = IntervalReport {
                start: Duration::ZERO,
                end: Duration::from_secs(1),
                omitted: false,
                streams: Vec::new(),
            };
            machine.handle(now, server::ServerEvent::Extension(ExtensionMessage::Interval(report)));
        }
        server::ServerAction::EndRequested => machine.handle(now, server::ServerEvent::StreamsStopped),
        server::ServerAction::ResultsWanted => {
            machine.handle(now, server::ServerEvent::Results(TestResults::default()));
        }
        _ => {}
    }
}

/// Asserts that memory for incomplete messages grows with the bytes received, not with those announced.
fn assert_bounded(held: ByteCount, received: usize) {
    assert!(held <= ByteCount::from_usize(2 * received + 64), "{} bytes held of {received}", held.get());
}

/// The parameters document: accepted parameters are within their ranges, and round-trip.
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

/// The results document: counts of accepted results round-trip.
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

/// Datagrams with any numbers: the totals stay consistent.
pub fn udp_header(data: &[u8]) {
    let Some((flags, datagrams)) = data.split_first() else { return };
    let width = CounterWidth::new(flags & 1 != 0);
    let mut tracker = SequenceTracker::new(width);
    let mut recorded = 0;
    for (index, datagram) in datagrams.chunks(width.header_length().to_usize()).enumerate() {
        let _ = StreamRequest::recognize(datagram, ByteCount::from_usize(datagram.len()), width);
        let Some(header) = DatagramHeader::decode(width, datagram) else { continue };
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

/// Authentication tokens: no invalid token is accepted.
#[cfg(feature = "auth")]
pub fn auth_token(data: &[u8]) {
    use crate::authentication::{Authenticator, DEFAULT_SKEW, RsaPadding};
    use linerate_units::WallTime;
    use std::sync::OnceLock;

    static SERVERS: OnceLock<[Authenticator; 2]> = OnceLock::new();
    let key = include_str!("../testdata/keys/private_pkcs8.pem");
    let make = |padding| Authenticator::new(key, "", padding, DEFAULT_SKEW).expect("the test key is good");
    let servers = SERVERS.get_or_init(|| [make(RsaPadding::Oaep), make(RsaPadding::Pkcs1)]);
    let Ok(token) = core::str::from_utf8(data) else { return };
    for server in servers {
        // The users file is empty.
        server.check(token, WallTime::default()).expect_err("no user is known");
    }
}

/// Not in this build.
#[cfg(not(feature = "auth"))]
pub fn auth_token(_data: &[u8]) {}

/// Packets from any sender to a reflector. In the first byte, bit 0 requires the key and seals the packet with it, bit
/// 1 only requires it, and bit 2 makes the reflector stateless.
pub fn stamp_sender(data: &[u8]) {
    use crate::stamp::reflector::{ReceivedDatagram, ReflectorClock, ReflectorOptions, StampReflector};
    use crate::stamp::tlv::{self, TimestampMethod};
    use crate::stamp::{AuthenticationMode, BASE_LENGTH, HmacKey, ReflectorPacket, options};
    use linerate_units::{TypeOfService, WallTime};

    let Some((flags, datagram)) = data.split_first() else { return };
    let mut datagram = datagram.to_vec();
    let key = HmacKey::new(&[7; 32]).ok().filter(|_| flags & 3 != 0);
    if let Some(key) = key
        .as_ref()
        .filter(|_| flags & 1 != 0 && datagram.len() >= AuthenticationMode::Authenticated.base_length().to_usize())
    {
        crate::stamp::seal(&mut datagram, key);
    }
    let mode = AuthenticationMode::of(key.as_ref());
    let keys: Vec<HmacKey> = key.clone().into_iter().collect();
    let reflector = ReflectorOptions { mode, keys, stateful: flags & 4 == 0, ..ReflectorOptions::default() };
    let mut reflector = StampReflector::new(reflector, ReflectorClock::default());
    let received = ReceivedDatagram {
        bytes: &datagram,
        source: ([192, 0, 2, 7], 4000).into(),
        destination: ([192, 0, 2, 1], 862).into(),
        at: WallTime::from_unix(Duration::from_secs(1_700_000_000)),
        method: TimestampMethod::Software,
        ttl: None,
        type_of_service: Some(TypeOfService::new(*flags)),
    };
    for count in 0..2 {
        let Ok(mut answer) = reflector.handle(MonotonicTime::default(), &received) else { return };
        let sent = reflector.finish(&mut answer, received.at);
        assert_eq!(sent.len(), datagram.len().max(BASE_LENGTH.to_usize()), "no amplification");
        let read = match &key {
            Some(key) => ReflectorPacket::decode_authenticated(sent, key),
            None => ReflectorPacket::decode(sent),
        };
        let read = read.expect("a reflected packet is valid");
        assert!(flags & 4 != 0 || read.sequence == count);
        assert_eq!(tlv::iterate(options(sent, mode)).count(), tlv::iterate(options(&datagram, mode)).count());
        let _ = tlv::read_answer_options(sent, mode, key.as_ref());
        // It must not loop between two reflectors.
        let back =
            ReceivedDatagram { bytes: sent, source: received.destination, destination: received.source, ..received };
        assert!(reflector.handle(MonotonicTime::default(), &back).is_err());
    }
}

/// Packets of a hostile reflector: each follows its length, one byte.
pub fn stamp_reflector(data: &[u8]) {
    use crate::stamp::tlv::{self, StampTlv};
    use crate::stamp::{AuthenticationMode, BASE_LENGTH, HmacKey, ReflectorPacket};

    let key = HmacKey::new(&[7; 32]).ok();
    let mut rest = data;
    while let Some((length, after)) = rest.split_first() {
        let (datagram, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        for key in [None, key.as_ref()] {
            let read = tlv::read_answer_options(datagram, AuthenticationMode::of(key), key);
            let most = datagram.len().saturating_sub(AuthenticationMode::of(key).base_length().to_usize()) / 4;
            assert!(read.options.len() + read.unrecognized.len() <= most);
            assert!(!read.integrity_failed || read.options.is_empty());
            for option in &read.options {
                let mut written = Vec::new();
                option.encode(&mut written);
                assert_eq!(StampTlv::decode(written[1], &written[4..]).as_ref(), Ok(option));
            }
        }
        let _ = tlv::first_padding(datagram);
        let Ok(answer) = ReflectorPacket::decode(datagram) else { continue };
        assert_eq!(ReflectorPacket::decode(&answer.encode(BASE_LENGTH)), Ok(answer));
    }
}

/// The control connection of a probe session, as either host reads it: accepted messages round-trip. In the first byte,
/// bit 0 selects bytes from a server, and bit 1 delivers them one by one.
pub fn probe_messages(data: &[u8]) {
    use crate::probe::{ProbeMessageDecoder, ProbeResponse, StreamRequest};

    let Some((flags, bytes)) = data.split_first() else { return };
    let from_server = flags & 1 != 0;
    let mut decoder = if from_server { ProbeMessageDecoder::of_answers() } else { ProbeMessageDecoder::of_requests() };
    for mut piece in bytes.chunks(if flags & 2 == 0 { bytes.len().max(1) } else { 1 }) {
        while !piece.is_empty() {
            let Ok(document) = decoder.feed(&mut piece) else { return };
            let Some(document) = document else { continue };
            if from_server {
                let Ok(Some(answer)) = ProbeResponse::decode(&document) else { continue };
                assert_eq!(ProbeResponse::decode(&answer.encode()[5..]), Ok(Some(answer)));
            } else {
                let Ok(Some(request)) = StreamRequest::decode(&document) else { continue };
                let again = StreamRequest::decode(&request.encode()[5..]);
                assert_eq!(again, Ok(Some(request)));
            }
        }
        assert_bounded(decoder.buffered(), bytes.len());
    }
}

/// A UDP flow of requests: an opening round-trips and is never taken for another, and each response has the number of its
/// request and of no neighbour. The first byte is the size of the response.
pub fn rr_datagrams(data: &[u8]) {
    use crate::probe::{RR_OPENING_LENGTH, RrOpening, answers, number_request, number_response};

    let Some((size, datagram)) = data.split_first() else { return };
    if let Some(opening) = RrOpening::decode(datagram) {
        assert_eq!(datagram.len(), RR_OPENING_LENGTH);
        assert_eq!(&opening.encode()[..], datagram);
    }
    let mut response = vec![0; usize::from(*size).max(1)];
    number_response(&mut response, datagram);
    assert!(answers(&response, datagram));
    let mut next = datagram.to_vec();
    if let Some(first) = datagram.first() {
        number_request(&mut next, u64::from(first.wrapping_add(1)));
        assert!(!answers(&response, &next));
    }
}

/// Messages within a QUIC connection: accepted ones are in range and round-trip. Bit 0 of the first byte selects bytes from
/// a server. The same bytes are also read as an identifier of a connection.
pub fn quic_messages(data: &[u8]) {
    use crate::frame::HEADER_LENGTH;
    use crate::quic::{ConnectionTag, MAX_SAMPLES, QuicReply, QuicRequest, QuicTransferOrder};

    let Some((flags, bytes)) = data.split_first() else { return };
    if let Some((tag, number)) = ConnectionTag::parse(bytes) {
        assert_eq!(&tag.identifier(number)[..], bytes);
    }
    if flags & 1 != 0 {
        let Ok(reply) = QuicReply::decode(bytes) else { return };
        assert_eq!(QuicReply::decode(&reply.encode()[HEADER_LENGTH..]), Ok(reply));
        return;
    }
    let Ok(request) = QuicRequest::decode(bytes) else { return };
    if let QuicRequest::Up(order) | QuicRequest::Down(order) = request {
        assert!((1..=QuicTransferOrder::MAX_STREAMS).contains(&order.streams));
        assert!(order.sample * MAX_SAMPLES >= order.time && order.total() <= QuicTransferOrder::MAX_TIME);
    }
    assert_eq!(QuicRequest::decode(&request.encode()[HEADER_LENGTH..]), Ok(request));
}

/// A load connection: every byte belongs to exactly one frame, in pieces of any size. The first byte is the size of the
/// pieces.
pub fn probe_load(data: &[u8]) {
    use crate::probe::load_frame::{HEADER_LENGTH, LoadFrame, LoadFrameParser, ParseStep};

    let Some((size, bytes)) = data.split_first() else { return };
    let read = |size: usize| {
        let (mut parser, mut frames, mut used) = (LoadFrameParser::default(), Vec::new(), 0);
        for mut piece in bytes.chunks(size.max(1)) {
            loop {
                match parser.next(&mut piece) {
                    Err(_) => return (frames, used, true),
                    Ok(ParseStep::Nothing) => break,
                    Ok(ParseStep::BulkBytes(count)) => used += count.to_usize(),
                    Ok(ParseStep::Frame(frame)) => {
                        let mut written = Vec::new();
                        frame.encode(&mut written);
                        used += if matches!(frame, LoadFrame::Bulk(_)) { HEADER_LENGTH } else { written.len() };
                        frames.push(frame);
                    }
                }
            }
            assert!(piece.is_empty());
        }
        (frames, used, false)
    };
    let whole = read(bytes.len());
    assert!(whole.1 <= bytes.len());
    assert_eq!(read(usize::from(*size)), whole);
}

/// Reads any bytes as the quote of a probe: an accepted one is written as it was quoted, its last octet apart.
///
/// # Panics
/// When an invariant is violated.
pub fn hop_probe(data: &[u8]) {
    use crate::hop_probe::HopProbe;
    let Some(probe) = HopProbe::parse(data) else { return };
    let last = HopProbe::LENGTH - 1;
    assert_eq!(probe.encode()[..last], data[..last]);
}

/// Reads any bytes as an ICMP extension structure: labels have their 20 bits, and come from its bytes.
///
/// # Panics
/// When an invariant is violated.
pub fn icmp_extension(data: &[u8]) {
    let Some(labels) = crate::icmp_extension::mpls_labels(data) else { return };
    assert!(labels.len() * 4 <= data.len());
    assert!(labels.iter().all(|label| label.label < 1 << 20 && label.traffic_class < 8));
}

/// Reads any bytes as an answer of a name server: its texts are no longer than the message, replacement characters apart.
///
/// # Panics
/// When an invariant is violated.
pub fn dns_records(data: &[u8]) {
    let Some((id, _)) = data.split_first_chunk() else { return };
    let Some(texts) = crate::dns::txt_records(data, u16::from_be_bytes(*id)) else { return };
    assert!(texts.iter().map(|text| text.chars().count()).sum::<usize>() <= data.len());
    for text in &texts {
        let _ = (crate::dns::origin(text), crate::dns::holder(text));
    }
}
