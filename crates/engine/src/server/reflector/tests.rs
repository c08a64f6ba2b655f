use std::net::UdpSocket;
use std::sync::mpsc;

use linerate_units::{Dscp, PacketCount};
use linerate_wire::stamp::tlv::{ClassOfService, StampTlv, read_answer_options};
use linerate_wire::stamp::{
    AuthenticationMode, BASE_LENGTH, HmacKey, ReflectorPacket, SenderPacket, SessionIdentifier, StampTimestamp,
};

use super::*;
use crate::server::SessionObserver;

/// Longer than any operation on a busy host.
const PATIENCE: Duration = Duration::from_secs(10);
/// Wait for an answer that must not arrive; a real one takes less on a host that is not overloaded.
const SILENCE: Duration = Duration::from_millis(200);

#[derive(Default)]
struct RecordedNotes(Mutex<Vec<String>>);

impl ServerObserver for RecordedNotes {
    fn idle(&self, _next_session: u64) {}

    fn session(&self, _number: u64) -> Box<dyn SessionObserver> {
        unreachable!("the reflector has no test sessions")
    }

    fn problem(&self, text: &str) {
        self.note(text);
    }

    fn note(&self, text: &str) {
        self.0.lock().expect("not poisoned").push(text.to_owned());
    }
}

fn loopback() -> ListenParameters {
    ListenParameters { address: Some(Ipv4Addr::LOCALHOST.into()), family: None, device: None, server: 0 }
}

/// A free port: the kernel's choice for a socket that is closed again.
fn free_port() -> Port {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    Port::new(socket.local_addr().expect("bound").port()).expect("not zero")
}

fn bound(reflector: ReflectorOptions, place: &ListenParameters) -> BoundReflector {
    let options = StampOptions { port: Some(free_port()), reflector };
    BoundReflector::bind(&options, place).expect("a free port").expect("asked for")
}

/// Runs `test` against a reflector, with a connected socket on loopback. Returns the notes.
fn reflecting(options: ReflectorOptions, test: impl FnOnce(&UdpSocket, &ReflectorHandle)) -> Vec<String> {
    let reflector = bound(options, &loopback());
    let notes = RecordedNotes::default();
    let sender = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    sender.connect(("127.0.0.1", reflector.handle().port().get())).expect("loopback");
    std::thread::scope(|scope| {
        let _running = reflector.start(scope, &notes, None).expect("a thread");
        test(&sender, reflector.handle());
    });
    notes.0.into_inner().expect("not poisoned")
}

fn ask(sender: &UdpSocket, packet: &[u8]) -> Vec<u8> {
    sender.set_read_timeout(Some(PATIENCE)).expect("an option");
    sender.send(packet).expect("loopback");
    receive(sender).expect("an answer")
}

fn receive(sender: &UdpSocket) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 65536];
    let length = sender.recv(&mut buffer).ok()?;
    buffer.truncate(length);
    Some(buffer)
}

fn expect_no_answer(sender: &UdpSocket, packet: &[u8]) {
    sender.set_read_timeout(Some(SILENCE)).expect("an option");
    sender.send(packet).expect("loopback");
    assert_eq!(receive(sender), None);
}

/// A sender's packet of 44 bytes as another implementation builds it, byte by byte.
fn foreign(sequence: u8) -> [u8; 44] {
    let mut packet = [0; 44];
    packet[3] = sequence;
    packet[4..12].copy_from_slice(&[0xE9, 0x21, 0x43, 0x65, 0x80, 0, 0, sequence]);
    packet[12..16].copy_from_slice(&[0x8A, 0x01, 0x12, 0x34]);
    packet
}

#[test]
fn a_foreign_sender_is_answered() {
    let notes = reflecting(ReflectorOptions::default(), |sender, handle| {
        for sequence in 7..10 {
            let before = clock::realtime_now();
            let answer = ask(sender, &foreign(sequence));
            let after = clock::realtime_now();
            assert_eq!(answer.len(), 44);
            assert_eq!(answer[..4], [0, 0, 0, sequence - 7], "its own count");
            assert_eq!(answer[14..16], [0x12, 0x34], "the session's name");
            assert_eq!(answer[24..38], foreign(sequence)[..14], "number, time and error estimate of the sender");
            assert_eq!(answer[40], 64, "time to live on loopback");
            assert_eq!(answer[41..], [0; 3]);
            let read = ReflectorPacket::decode(&answer).expect("an answer");
            let (received, left) =
                (read.received_at.to_wall(TimestampFormat::Ntp), read.timestamp.to_wall(TimestampFormat::Ntp));
            assert!(Some(before) <= received && received <= left && left <= Some(after), "{received:?} {left:?}");
        }
        let other = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        other.connect(("127.0.0.1", handle.port().get())).expect("loopback");
        assert_eq!(ask(&other, &foreign(99))[..4], [0; 4], "another port is another session");
        assert_eq!(ask(sender, &foreign(10))[..4], [0, 0, 0, 3]);
    });
    assert_eq!(notes, [""; 0]);
}

#[test]
fn sizes_are_kept() {
    reflecting(ReflectorOptions::default(), |sender, _| {
        for size in [44, 45, 48, 1472, 9000, 65507] {
            let packet = SenderPacket::default().encode(ByteCount::new(size));
            assert_eq!(ask(sender, &packet).len(), packet.len());
        }
        // TWAMP Light, without and with padding.
        for size in [14, 27, 41, 43] {
            let answer = ask(sender, &foreign(1)[..size]);
            assert_eq!((answer.len(), &answer[24..38]), (44, &foreign(1)[..14]));
        }
        let mut padded = foreign(1).to_vec();
        padded[14..].fill(0xA5);
        padded.resize(200, 0x5A);
        assert_eq!(ask(sender, &padded)[44..], padded[44..]);
    });
}

#[test]
fn garbage_is_not_answered() {
    reflecting(ReflectorOptions::default(), |sender, handle| {
        for garbage in [&b""[..], b"9876", &[0xFF; 13]] {
            expect_no_answer(sender, garbage);
        }
        let answer = ask(sender, &foreign(1));
        expect_no_answer(sender, &answer);
        // A packet from its own socket, as a forger would send it, is not seen on loopback; another reflector is.
        let other = bound(ReflectorOptions::default(), &loopback());
        other.socket.socket().send_to(&answer, ("127.0.0.1", handle.port().get())).expect("loopback");
        assert_eq!(ask(sender, &foreign(2))[..4], [0, 0, 0, 1], "and goes on");
    });
}

#[test]
fn classes_of_service_come_back() {
    reflecting(ReflectorOptions::default(), |sender, _| {
        let socket = ProbeSocket::new(sender.try_clone().expect("a descriptor"), ProbeOptions::default());
        let socket = socket.expect("a socket");
        let class_of_answer = |packet: &[u8], codepoint: u8| {
            let octet = Dscp::new(codepoint).expect("below 64").type_of_service();
            let how = OutgoingDatagram { type_of_service: Some(octet), ..OutgoingDatagram::default() };
            socket.send(packet, &how).expect("loopback");
            let mut buffer = [0; 1500];
            let arrival = socket.receive(&mut buffer, Some(PATIENCE)).expect("no error").expect("an answer");
            (arrival.type_of_service.map(|octet| octet.dscp().get()), buffer[..arrival.filled].to_vec())
        };
        for codepoint in [0, 8, 46] {
            assert_eq!(class_of_answer(&foreign(1), codepoint).0, Some(codepoint), "mirrored");
        }
        let wanted = Dscp::new(10).expect("below 64");
        let asked = StampTlv::ClassOfService(ClassOfService { requested: wanted, ..ClassOfService::default() });
        let packet = SenderPacket::default().encode_with(&[asked], ByteCount::ZERO, None);
        let (codepoint, answer) = class_of_answer(&packet, 46);
        assert_eq!(codepoint, Some(10), "as asked");
        let told = ClassOfService {
            requested: wanted,
            received: Dscp::new(46).expect("below 64"),
            ..ClassOfService::default()
        };
        assert_eq!(
            read_answer_options(&answer, AuthenticationMode::Unauthenticated, None).options,
            [StampTlv::ClassOfService(told)]
        );
    });
}

#[test]
fn with_a_key_only_authenticated_senders_are_answered() {
    let key = HmacKey::new(&[9; 32]).expect("a key");
    let options = ReflectorOptions {
        mode: AuthenticationMode::Authenticated,
        keys: vec![key.clone()],
        ..ReflectorOptions::default()
    };
    let notes = reflecting(options, |sender, _| {
        let packet = SenderPacket {
            sequence: 5,
            timestamp: StampTimestamp::from_wall(clock::realtime_now(), TimestampFormat::Ntp),
            error_estimate: ErrorEstimate::default(),
            session: SessionIdentifier::new(3),
        };
        for count in 0..2 {
            let answer = ask(sender, &packet.encode_with(&[], ByteCount::new(150), Some(&key)));
            let read = ReflectorPacket::decode_authenticated(&answer, &key).expect("authentic");
            assert_eq!((read.sequence, read.sender_sequence, answer.len()), (count, 5, 150));
        }
        let other = HmacKey::new(&[8; 32]).expect("a key");
        expect_no_answer(sender, &packet.encode_with(&[], ByteCount::ZERO, Some(&other)));
        expect_no_answer(sender, &packet.encode(BASE_LENGTH));
        expect_no_answer(sender, &packet.encode(ByteCount::new(200)));
    });
    assert_eq!(notes.len(), 1, "once, not for each packet: {notes:?}");
    assert!(notes[0].contains("127.0.0.1") && notes[0].contains("--stamp-key-file"), "{notes:?}");
}

#[test]
fn a_source_is_limited_to_its_share() {
    let options = ReflectorOptions { rate_per_source: PacketCount::new(3), ..ReflectorOptions::default() };
    let notes = reflecting(options, |sender, _| {
        for _ in 0..20 {
            sender.send(&foreign(1)).expect("loopback");
        }
        sender.set_read_timeout(Some(SILENCE)).expect("an option");
        let answers = std::iter::from_fn(|| receive(sender)).count();
        // There are more if sending takes longer than a second.
        assert!((3..20).contains(&answers), "{answers}");
    });
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn a_session_learns_its_clients_address() {
    reflecting(ReflectorOptions::default(), |sender, handle| {
        let (found, notices) = mpsc::channel();
        let token = [7; 16];
        handle.expect(token, move |met| found.send(met).expect("the test is there"));
        let option = StampTlv::ExtraPadding([token.to_vec(), vec![1, 2, 3]].concat());
        let with_token = SenderPacket::default().encode_with(&[option], ByteCount::new(100), None);
        expect_no_answer(sender, &with_token);
        let met = notices.recv_timeout(PATIENCE).expect("a notice");
        let (source, destination) = (sender.local_addr().expect("bound"), Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(met, TokenArrival { source, destination, length: 100 });
        // Other senders are answered meanwhile, also those with another token.
        let another = StampTlv::ExtraPadding(vec![8; 16]);
        let packet = SenderPacket::default().encode_with(&[another], ByteCount::ZERO, None);
        assert_eq!(ask(sender, &packet).len(), 64);
        handle.forget(&token);
        assert_eq!(ask(sender, &with_token).len(), 100);
        assert!(notices.recv().is_err(), "the notice is gone, and was called once");
    });
}

#[test]
fn a_session_may_have_a_socket_of_its_own_on_the_port() {
    reflecting(ReflectorOptions::default(), |sender, handle| {
        let own = net::bind_udp(&UdpOptions {
            address: Some(Ipv4Addr::LOCALHOST.into()),
            port: Some(handle.port()),
            reuse_address: true,
            ..UdpOptions::default()
        });
        let own = own.expect("the port is shared");
        net::connect_bound_udp(&own, sender.local_addr().expect("bound")).expect("loopback");
        own.set_read_timeout(Some(PATIENCE)).expect("an option");
        sender.send(&foreign(1)).expect("loopback");
        assert_eq!(receive(&own).as_deref(), Some(&foreign(1)[..]), "the client's datagrams go to its session");
        let other = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        other.connect(("127.0.0.1", handle.port().get())).expect("loopback");
        assert_eq!(ask(&other, &foreign(1)).len(), 44, "others' to the reflector");
    });
}

#[test]
fn both_families_are_served_by_one_socket() {
    let place = ListenParameters { address: None, family: None, device: None, server: 0 };
    let reflector = bound(ReflectorOptions::default(), &place);
    let port = reflector.handle().port().get();
    let notes = RecordedNotes::default();
    std::thread::scope(|scope| {
        let _running = reflector.start(scope, &notes, None).expect("a thread");
        for (own, to) in [("127.0.0.1:0", "127.0.0.1"), ("127.0.0.1:0", "127.0.0.2"), ("[::1]:0", "::1")] {
            let to: IpAddr = to.parse().expect("an address");
            let Ok(sender) = UdpSocket::bind(own) else {
                assert!(to.is_ipv6(), "only IPv6 may be missing");
                continue;
            };
            // Connected: an answer from another address would not be received.
            sender.connect((to, port)).expect("loopback");
            assert_eq!(ask(&sender, &foreign(1)).len(), 44, "{to}");
        }
    });
    assert_eq!(notes.0.into_inner().expect("not poisoned"), [""; 0]);
}

#[test]
fn a_port_in_use_is_not_shared_with_other_programs() {
    let first = bound(ReflectorOptions::default(), &loopback());
    let options = StampOptions { port: Some(first.handle().port()), ..StampOptions::default() };
    let error = BoundReflector::bind(&options, &loopback()).expect_err("in use");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse, "{error}");
}

#[test]
fn without_port_862_the_next_one_is_used_with_a_note() {
    // With privileges, the test occupies the port; without them, it is refused anyway.
    let holder = bind_exclusive(&loopback(), Port::STAMP);
    let free = free_port().get();
    let place = ListenParameters { server: free - 1, ..loopback() };
    let reflector = BoundReflector::bind(&StampOptions::default(), &place).expect("no port was chosen");
    let reflector = reflector.expect("a free port");
    assert_eq!(reflector.handle().port().get(), free);
    let note = reflector.note.as_deref().expect("not the usual port");
    assert!(note.contains("862") && note.contains("--stamp-port") && note.contains(&free.to_string()), "{note}");
    // The next port is occupied now, too.
    let neither = BoundReflector::bind(&StampOptions::default(), &place).expect("no port was chosen");
    assert!(neither.is_err_and(|note| note.contains("no STAMP reflector")));
    drop(holder);
}
