//! Control connections that stall, end or send unexpected messages.

use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::support::pairing::LIMIT;
use crate::support::process::eventually;
use crate::support::{Process, Program};

use super::wire::{
    self, Client, Control, Holdings, PeerMessage, REPLY_TIMEOUT, TCP, UDP, connection, framed, state, with,
};
use super::{PROMPT, Target};

/// Silence that costs a client its slot when another one needs it.
const MAX_SILENCE: Duration = Duration::from_secs(1);

/// Connected client, and its expected end.
struct Held {
    what: String,
    control: Control,
    /// Bytes that are sent one at a time.
    drip: Vec<u8>,
    end: PeerMessage,
    /// Before its connection.
    since: Instant,
    /// Expected end in seconds after that: a time limit of the server, or later on a busy host, and before the next one.
    due: std::ops::Range<u64>,
    _rest: Option<Client>,
}

impl Held {
    fn new(
        what: impl Into<String>,
        connect: impl FnOnce() -> Control,
        end: PeerMessage,
        due: std::ops::Range<u64>,
    ) -> Self {
        let since = Instant::now();
        Self { what: what.into(), control: connect(), drip: Vec::new(), end, since, due, _rest: None }
    }

    fn client(what: &str, reach: impl FnOnce() -> Client, end: PeerMessage, due: std::ops::Range<u64>) -> Self {
        let mut client = None;
        let connect = || Control(client.insert(reach()).control.0.try_clone().expect("a descriptor"));
        let held = Self::new(what, connect, end, due);
        Self { _rest: client, ..held }
    }

    fn dripping(self, bytes: impl Into<Vec<u8>>) -> Self {
        Self { drip: bytes.into(), ..self }
    }
}

/// Clients that stop in the middle, or send a byte per second.
fn stalling_clients(port: u16) -> Vec<Held> {
    const NO_STREAMS: PeerMessage = PeerMessage::Error(204);
    let mut held: Vec<Held> = (0..wire::COOKIE)
        .map(|length| {
            let connect = || {
                let mut control = Control(connection(port));
                control.send(&wire::cookie()[..length]);
                control
            };
            Held::new(format!("{length} bytes of a cookie"), connect, PeerMessage::Closed, 10..15)
        })
        .collect();
    held.push(
        Held::new("a cookie a byte a second", || Control(connection(port)), PeerMessage::Closed, 10..15)
            .dripping([b'a'; 37]),
    );
    for (what, piece) in [
        ("silence after the cookie", &[][..]),
        ("three of four bytes of a length", &[0, 0, 0]),
        ("a length", &[0, 0, 0, 100]),
        ("half of the parameters", &framed(TCP)[..60]),
    ] {
        let reach = || {
            let mut client = Client::admitted(port);
            client.control.send(piece);
            client
        };
        held.push(Held::client(what, reach, PeerMessage::Error(114), 5..10));
    }
    let dripping = || Client::admitted(port);
    held.push(
        Held::client("parameters a byte a second", dripping, PeerMessage::Error(114), 15..30).dripping(framed(TCP)),
    );
    let half = || {
        let mut client = Client::accepted(port, &with(TCP, "parallel", "2"));
        client.open_stream();
        client
    };
    held.push(Held::client("no stream", || Client::accepted(port, TCP), NO_STREAMS, 30..60));
    held.push(Held::client("one stream of two", half, NO_STREAMS, 30..60));
    held.push(Held::client("no UDP stream", || Client::accepted(port, UDP), NO_STREAMS, 30..60));
    held.push(Held::client("no results", || Client::ended(port, TCP), PeerMessage::Error(117), 5..10));
    held
}

#[test]
fn a_stalled_client_is_ended_in_time_and_delays_no_other() {
    let target = Target::start(&[]);
    let mut held = stalling_clients(target.port);
    let start = Instant::now();
    target.serves_at_once();
    let (ticks, from) = (wire::processor_ticks(target.id()), Instant::now());
    let mut watched = false;
    let mut dripped = 0;
    while !held.is_empty() && start.elapsed() < Duration::from_secs(90) {
        if !watched && from.elapsed() > Duration::from_secs(1) {
            let used = Duration::from_millis(10 * (wire::processor_ticks(target.id()) - ticks));
            assert!(used < from.elapsed() * 3 / 10, "waiting for silent clients took {used:?} of processor time");
            watched = true;
        }
        let seconds = usize::try_from(start.elapsed().as_secs()).expect("few");
        held.retain_mut(|held| {
            if let Some(byte) = held.drip.get(dripped).filter(|_| seconds > dripped) {
                held.control.send([*byte]);
            }
            let said = held.control.next_message_within(Duration::from_millis(1));
            if said == PeerMessage::Nothing {
                return true;
            }
            assert_eq!(said, held.end, "{}", held.what);
            assert!(
                held.due.contains(&held.since.elapsed().as_secs()),
                "{}: after {:?}",
                held.what,
                held.since.elapsed()
            );
            false
        });
        if seconds > dripped && seconds % 7 == 0 {
            target.serves_at_once();
        }
        dripped = seconds;
    }
    let left: Vec<_> = held.iter().map(|held| &held.what).collect();
    assert!(left.is_empty(), "still held: {left:?}");
    drop(held);
    target.must_be_unharmed();
}

#[test]
fn any_37_bytes_are_a_cookie_and_print_safely() {
    let target = Target::start(&["-V"]);
    for byte in [0, 0x1b, b'%', 0x80, 0xff] {
        let mut client = Client::connect_with(target.port, [byte; wire::COOKIE]);
        client.expect(state::PARAM_EXCHANGE);
        client.control.send_document(TCP);
        client.expect(state::CREATE_STREAMS);
        client.open_stream();
        client.expect_start();
        client.end();
    }
    let shown = eventually(REPLY_TIMEOUT, || target.server.process.stdout().contains(r"Cookie: \x1b\x1b"));
    assert!(shown, "{}", target.server.process.stdout());
    target.must_be_unharmed();
}

/// Expected message of the server's state, path of a client to it, and error for any other message.
type State = (&'static str, fn(u16) -> Client, i32);

fn at_every_state() -> [State; 6] {
    [
        ("parameters", |port| Client::admitted(port), 114),
        ("streams", |port| Client::accepted(port, TCP), 110),
        ("UDP streams", |port| Client::accepted(port, UDP), 110),
        ("the end of the test", |port| Client::running(port, TCP, 1), 110),
        ("results", |port| Client::ended(port, TCP), 117),
        ("the last byte", |port| Client::displaying(port, TCP), 110),
    ]
}

#[test]
fn every_byte_at_every_state() {
    let target = Target::start(&[]);
    for (awaited, reach, code) in at_every_state() {
        let document = code != 110;
        for byte in 0..=u8::MAX {
            // One after another over UDP: each waits for its turn.
            if awaited == "UDP streams" && !matches!(byte, 0..=17 | b'L' | 0xFE | 0xFF) {
                continue;
            }
            let mut client = reach(target.port);
            client.control.send(if document { vec![byte; 4] } else { vec![byte] });
            let end = byte == state::TEST_END;
            let expected = match byte {
                // A client of iperf3 that fails sends the latter.
                state::CLIENT_TERMINATE | state::IPERF_DONE => PeerMessage::Closed,
                _ if end && awaited == "the end of the test" => PeerMessage::State(state::EXCHANGE_RESULTS),
                // This byte is ignored, as by iperf3; the reply is to the next one.
                state::TEST_START if !document => {
                    client.control.send([state::TEST_START, 0]);
                    PeerMessage::Error(code)
                }
                _ => PeerMessage::Error(code),
            };
            assert_eq!(client.control.next_message(), expected, "{byte:#04x} instead of {awaited}");
        }
        target.serves_at_once();
    }
    target.must_be_unharmed();
}

#[test]
fn the_end_of_a_connection_at_every_state() {
    // With one session at a time, the next client is served only when the last one has released everything.
    let target = Target::start(&["--max-sessions", "1"]);
    for (awaited, reach, _) in at_every_state() {
        for how in ["closed", "half closed", "cut", "reset"] {
            assert!(target.is_idle(), "{:?}", Holdings::of(target.id()));
            let mut client = reach(target.port);
            match how {
                "half closed" => client.control.0.shutdown(Shutdown::Write).expect("connected"),
                "cut" => client.control.send([0]),
                _ => {}
            }
            match how {
                // An unread error makes it a reset.
                "reset" => {
                    client.control.send([0xAA; 4]);
                    client.control.reset();
                }
                "half closed" => assert!(client.control.closed_within(REPLY_TIMEOUT), "{awaited}"),
                _ => drop(client),
            }
            let waited = target.time_to_serve();
            assert!(waited < PROMPT, "{how} instead of {awaited}: {waited:?}");
        }
        target.serves_at_once();
    }
    target.must_be_unharmed();
}

#[test]
fn a_linerate_that_sends_out_of_turn() {
    let target = Target::start(&[]);
    let admitted = || {
        let mut client = Client::connect_with(target.port, wire::linerate_cookie());
        client.expect(state::EXTENSION);
        assert!(client.control.document().starts_with(r#"{"hello":"#));
        client
    };
    for bytes in
        [&b"L\0\0\0\0"[..], b"L\xff\xff\xff\xff", b"L\0\0\0\x0c{\"hello\":{}}", b"\0\0\0\0", b"\xff\xff\xff\xff"]
    {
        let mut client = admitted();
        client.control.send(bytes);
        assert_eq!(client.control.next_message(), PeerMessage::Error(114), "{bytes:?}");
    }
    for bytes in [&b"L\0\0\0\x02{}"[..], b"\x09", b"\xfe\0\0\0\x01\0\0\0\0"] {
        let mut client = admitted();
        client.control.send_document(TCP);
        client.expect(state::CREATE_STREAMS);
        client.control.send(bytes);
        assert_eq!(client.control.next_message(), PeerMessage::Error(110), "{bytes:?}");
    }
    // Unknown or invalid extensions.
    for letter in [b'd', b'z', b'A', b'2', 0, 0xff] {
        let mut cookie = wire::linerate_cookie();
        cookie[8] = letter;
        Client::connect_with(target.port, cookie).expect(state::PARAM_EXCHANGE);
    }
    target.must_be_unharmed();
}

#[test]
fn an_invalid_probe_session() {
    let cookie = |letter| {
        let mut cookie = wire::linerate_cookie();
        cookie[8] = letter;
        cookie
    };
    let target = Target::start(&[]);
    let order = r#"{"send":{"stream":1000,"size":1472,"rate":1000000,"spacing":"periodic","limit":{},"type_of_service":0,"dont_fragment":false}}"#;
    let message = |document: &str| [b"L".as_slice(), &framed(document)].concat();
    let (garbage, unproven) = ([b'x'; 4096].to_vec(), message(order));
    let bottomless = message(&format!("{{\"new\":{}", "[".repeat(10_000)));
    let too_many = (0..10_000).flat_map(|_| message(r#"{"open":{}}"#)).collect::<Vec<u8>>();
    for bytes in [&garbage[..], b"L\0\0\0\0", b"L\xff\xff\xff\xff", &bottomless, &unproven, &too_many] {
        let mut client = Client::connect_with(target.port, cookie(b'b'));
        client.expect(state::EXTENSION);
        assert!(client.control.document().contains(r#""probe""#));
        client.control.send(bytes);
        drop(client);
        target.serves_at_once();
    }
    // Load connection of an unknown session.
    let mut client = Client::connect_with(target.port, cookie(b'c'));
    assert!(client.control.closed_within(REPLY_TIMEOUT));
    target.must_be_unharmed();
}

#[test]
fn a_silent_client_does_not_hold_a_slot() {
    let target = Target::start(&["--max-sessions", "1"]);
    let mut silent = None;
    let refused = eventually(REPLY_TIMEOUT, || {
        let since = Instant::now();
        silent = Some(Client::admitted(target.port));
        let answer = Client::connect(target.port).control.next_message();
        // On a busy host, the second client may be too late.
        assert!(answer == PeerMessage::State(state::ACCESS_DENIED) || since.elapsed() >= MAX_SILENCE, "{answer:?}");
        answer == PeerMessage::State(state::ACCESS_DENIED)
    });
    assert!(refused, "each client had the slot");
    let mut silent = silent.expect("at least one attempt");
    let admitted = || Client::connect(target.port).control.next_message() == PeerMessage::State(state::PARAM_EXCHANGE);
    assert!(eventually(REPLY_TIMEOUT, admitted), "silent for longer than any round trip");
    assert_eq!(silent.control.next_message(), PeerMessage::Error(121));
    assert!(silent.control.closed_within(REPLY_TIMEOUT));
    assert!(target.is_idle(), "{:?}", Holdings::of(target.id()));
    // Its control connection is silent for just as long, but its test runs.
    let running = Process::start(target.server.client(Program::Linerate, &["-t", "30", "-i", "0.1", "-b", "1M"]));
    running.wait_for_interval(1.2, LIMIT);
    Client::connect(target.port).expect(state::ACCESS_DENIED);
    drop(running);
    target.must_be_unharmed();
}

#[test]
fn a_burst_of_connections() {
    const BURST: usize = 5000;
    linerate_sys::process::raise_open_file_limit().expect("a higher limit");
    let mut target = Target::start(&[]);
    target.memory_limit = 64 << 10;
    let silent: Vec<TcpStream> = (0..BURST).map(|_| connection(target.port)).collect();
    target.serves_at_once();
    let held = Holdings::of(target.id()).descriptors;
    assert!(held < 1100, "{held} descriptors for silent connections");
    drop(silent);
    let clients: Vec<Client> = (0..BURST).map(|_| Client::connect(target.port)).collect();
    // Sessions that gave way end when their threads run, on a busy host a while later.
    let is_bounded = |held: &Holdings| held.threads < 1300 && held.descriptors < 4200;
    assert!(eventually(REPLY_TIMEOUT, || is_bounded(&Holdings::of(target.id()))), "{:?}", Holdings::of(target.id()));
    target.serves_at_once();
    drop(clients);
    target.must_be_unharmed();
}

/// Sets the number of files that a process may have open.
fn limit_descriptors(process: u32, limit: &str) {
    let mut command = std::process::Command::new("prlimit");
    command.args(["--pid", &process.to_string(), &format!("--nofile={limit}")]);
    assert!(command.status().expect("util-linux").success());
}

#[test]
fn a_server_without_descriptors_waits_without_work_and_serves_again() {
    let target = Target::start(&[]);
    target.serves_at_once();
    assert!(target.is_idle());
    limit_descriptors(target.id(), &format!("{}:20000", target.idle.descriptors));
    // They wait in the backlog of the listener.
    let mut waiting: Vec<Client> = (0..20).map(|_| Client::connect(target.port)).collect();
    let reported = || target.server.process.stderr().contains("Too many open files");
    assert!(eventually(REPLY_TIMEOUT, reported), "{}", target.server.process.stderr());
    limit_descriptors(target.id(), "20000:20000");
    for client in &mut waiting {
        assert_eq!(client.control.next_message(), PeerMessage::State(state::PARAM_EXCHANGE));
    }
    drop(waiting);
    assert!(target.is_idle());
    let (start, before) = (Instant::now(), wire::processor_ticks(target.id()));
    assert!(!eventually(Duration::from_secs(2), || wire::processor_ticks(target.id()) > before + 100), "it spins");
    assert!(start.elapsed() >= Duration::from_secs(2));
    target.must_be_unharmed();
}
