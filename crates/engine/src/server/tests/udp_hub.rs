//! The socket for the first datagram of each UDP stream, with real datagrams.

use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use linerate_model::address_family::AddressFamily;
use linerate_sys::clock;
use linerate_sys::poll::{self, PollInterest};
use linerate_units::{ByteCount, StreamCount};
use linerate_wire::udp::{self, CounterWidth};

use crate::resources::{SESSION_MEMORY, ServerResources};
use crate::server::gate::UdpOpening;
use crate::server::inbox::{SessionInbox, SessionMessage};
use crate::server::registry::SessionRegistry;
use crate::server::udp_hub::UdpHub;
use crate::server::{ServerObserver, ServerOptions, SessionObserver};
use crate::tests::support::PATIENCE;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const BLOCK: u64 = 1000;

#[derive(Default)]
struct Problems(Mutex<Vec<String>>);

impl ServerObserver for Problems {
    fn idle(&self, _: u64) {}

    fn session(&self, _: u64) -> Box<dyn SessionObserver> {
        unreachable!("no session begins")
    }

    fn problem(&self, text: &str) {
        self.0.lock().expect("no panic").push(text.to_owned());
    }
}

/// A hub with one session per host, each of which has its turn.
struct Bench {
    hub: UdpHub,
    registry: SessionRegistry,
    inboxes: Vec<Arc<SessionInbox>>,
    address: SocketAddr,
}

impl Bench {
    fn new(sessions: &[(IpAddr, u64)]) -> Self {
        let options =
            ServerOptions { address: Some(LOOPBACK), family: Some(AddressFamily::Ipv4), ..ServerOptions::default() };
        Self::reached_at(LOOPBACK, options, sessions)
    }

    /// A hub of a server that all clients have reached at `server`.
    fn reached_at(server: IpAddr, options: ServerOptions, sessions: &[(IpAddr, u64)]) -> Self {
        let probe = UdpSocket::bind((server, 0)).expect("loopback");
        let address = probe.local_addr().expect("bound");
        drop(probe);
        let registry = SessionRegistry::new(None, ServerResources::new(SESSION_MEMORY)).expect("a waker");
        let mut inboxes = Vec::new();
        for (session, (client, streams)) in (1..).zip(sessions) {
            let inbox = SessionInbox::new(*client, Some(address)).expect("a waker");
            registry.enter(session, Arc::clone(&inbox), *client, clock::monotonic_now());
            registry.request_turn(UdpOpening {
                session,
                client: *client,
                streams: StreamCount::new(*streams),
                block_size: ByteCount::new(BLOCK),
                sends: false,
                round_trip: None,
            });
            inboxes.push(inbox);
        }
        registry.advance_turns(clock::monotonic_now());
        for inbox in &inboxes {
            assert!(matches!(inbox.take(), Some(SessionMessage::Turn)));
        }
        let mut hub = UdpHub::new(Arc::new(options), address);
        hub.keep_bound_while(true, &Problems::default());
        Self { hub, registry, inboxes, address }
    }

    /// Serves until the session's inbox has a stream.
    fn stream(&mut self, session: usize) -> UdpSocket {
        let deadline = clock::monotonic_now() + PATIENCE;
        loop {
            match self.inboxes[session].take() {
                Some(SessionMessage::Udp(socket)) => return socket,
                Some(other) => panic!("{other:?}"),
                None => {}
            }
            assert!(clock::monotonic_now() < deadline, "no stream");
            self.serve_once();
        }
    }

    /// Waits for a request, or for the time of one that was kept, and serves it.
    fn serve_once(&mut self) {
        let now = clock::monotonic_now();
        let wait = self.hub.next_deadline().map_or(PATIENCE, |deadline| deadline.since(now));
        let socket = self.hub.socket().expect("bound");
        poll::wait_for(socket, PollInterest::READ, Some(wait)).expect("polls");
        self.hub.serve(&self.registry);
    }
}

fn client(address: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((LOOPBACK, 0)).expect("loopback");
    socket.set_read_timeout(Some(PATIENCE)).expect("an option");
    socket.connect(address).expect("loopback");
    socket
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let length = socket.recv(&mut buffer).expect("a datagram");
    buffer[..length].to_vec()
}

#[test]
fn each_form_of_request_has_its_answer() {
    let mut retry = vec![0; usize::try_from(BLOCK).expect("small")];
    udp::write_retry(CounterWidth::Bits32, &mut retry, clock::monotonic_now()).expect("it fits");
    let mut retry_64 = vec![0; usize::try_from(BLOCK).expect("small")];
    udp::write_retry(CounterWidth::Bits64, &mut retry_64, clock::monotonic_now()).expect("it fits");
    for (request, reply) in [
        (udp::REQUEST.to_vec(), udp::REPLY),
        (udp::LEGACY_REQUEST.to_vec(), udp::LEGACY_REPLY),
        (retry, udp::REPLY),
        (retry_64, udp::REPLY),
    ] {
        let mut bench = Bench::new(&[(LOOPBACK, 1)]);
        let client = client(bench.address);
        client.send(&request).expect("loopback");
        let stream = bench.stream(0);
        assert_eq!(receive(&client), reply);
        assert_eq!(stream.peer_addr().ok(), client.local_addr().ok());
        assert_eq!(stream.local_addr().ok(), Some(bench.address));
    }
}

#[test]
fn the_stream_is_the_clients_alone_and_others_are_served_by_a_new_socket() {
    let mut bench = Bench::new(&[(LOOPBACK, 2)]);
    let (first, second) = (client(bench.address), client(bench.address));
    first.send(&udp::REQUEST).expect("loopback");
    let one = bench.stream(0);
    receive(&first);
    second.send(&udp::REQUEST).expect("loopback");
    let other = bench.stream(0);
    receive(&second);
    for (socket, stream, text) in [(&first, &one, b"to one"), (&second, &other, b"to two")] {
        socket.send(text).expect("loopback");
        assert_eq!(receive(stream), text);
    }
}

#[test]
fn requests_that_arrived_together_are_each_served() {
    let mut bench = Bench::new(&[(LOOPBACK, 5)]);
    let clients: Vec<UdpSocket> = (0..5).map(|_| client(bench.address)).collect();
    for client in &clients {
        client.send(&udp::REQUEST).expect("loopback");
    }
    let streams: Vec<UdpSocket> = clients.iter().map(|_| bench.stream(0)).collect();
    for client in &clients {
        assert_eq!(receive(client), udp::REPLY);
    }
    let peers: std::collections::HashSet<_> = streams.iter().map(|stream| stream.peer_addr().ok()).collect();
    assert_eq!(peers, clients.iter().map(|client| client.local_addr().ok()).collect());
}

#[test]
fn a_repeated_request_of_the_same_client_opens_no_second_stream() {
    let mut bench = Bench::new(&[(LOOPBACK, 2)]);
    let client = client(bench.address);
    client.send(&udp::REQUEST).expect("loopback");
    client.send(&udp::REQUEST).expect("loopback");
    let stream = bench.stream(0);
    assert!(bench.inboxes[0].take().is_none(), "one stream");
    assert_eq!(receive(&client), udp::REPLY);
    assert_eq!(stream.peer_addr().ok(), client.local_addr().ok());
}

#[test]
fn garbage_and_repetitions_of_another_size_are_dropped() {
    let mut bench = Bench::new(&[(LOOPBACK, 1)]);
    let client = client(bench.address);
    for size in [BLOCK - 1, BLOCK + 1] {
        let mut retry = vec![0; usize::try_from(size).expect("small")];
        udp::write_retry(CounterWidth::Bits32, &mut retry, clock::monotonic_now()).expect("it fits");
        client.send(&retry).expect("loopback");
    }
    client.send(b"").expect("loopback");
    client.send(b"987").expect("loopback");
    client.send(b"98765").expect("loopback");
    bench.serve_once();
    assert!(bench.inboxes[0].take().is_none());
    client.send(&udp::REQUEST).expect("loopback");
    bench.stream(0);
    assert_eq!(receive(&client), udp::REPLY, "the first answer is that of the request");
}

#[test]
fn a_request_from_an_unknown_address_is_served_after_a_second() {
    // The only session is that of another host, behind a translator with several addresses.
    let mut bench = Bench::new(&[(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 1)]);
    let client = client(bench.address);
    let asked = clock::monotonic_now();
    client.send(&udp::REQUEST).expect("loopback");
    assert!(bench.hub.next_deadline().is_none());
    bench.serve_once();
    let due = bench.hub.next_deadline().expect("it is kept");
    assert!(due.since(asked) <= Duration::from_secs(1));
    bench.hub.serve(&bench.registry);
    let stream = bench.stream(0);
    assert!(clock::monotonic_now() >= due, "not before");
    assert_eq!(stream.peer_addr().ok(), client.local_addr().ok());
    assert!(bench.hub.next_deadline().is_none());
}

#[test]
fn at_most_64_requests_from_unknown_addresses_are_kept() {
    let mut bench = Bench::new(&[(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 100)]);
    let clients: Vec<UdpSocket> = (0..70).map(|_| client(bench.address)).collect();
    for client in &clients {
        client.send(&udp::REQUEST).expect("loopback");
        client.send(&udp::REQUEST).expect("loopback");
    }
    bench.serve_once();
    assert!(bench.hub.next_deadline().is_some());
    // Once the first is served, its address is known, and so are those of all on this host.
    let streams: Vec<UdpSocket> = (0..64).map(|_| bench.stream(0)).collect();
    assert!(bench.inboxes[0].take().is_none() && bench.hub.next_deadline().is_none());
    let expected: Vec<_> = clients[..64].iter().map(|client| client.local_addr().ok()).collect();
    assert_eq!(streams.iter().map(|stream| stream.peer_addr().ok()).collect::<Vec<_>>(), expected);
}

/// Loopback addresses are those of a host with several networks: the kernel sends from the first one.
#[test]
fn a_stream_has_the_address_at_which_its_client_reached_the_server() {
    let other = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    for (server, family) in [(other, Some(AddressFamily::Ipv4)), (other, None), (LOOPBACK, None)] {
        let options = ServerOptions { address: None, family, ..ServerOptions::default() };
        let mut bench = Bench::reached_at(server, options, &[(LOOPBACK, 2)]);
        for _ in 0..2 {
            let client = client(bench.address);
            client.send(&udp::REQUEST).expect("loopback");
            let stream = bench.stream(0);
            assert_eq!(receive(&client), udp::REPLY, "{server}, {family:?}");
            client.send(b"data").expect("loopback");
            assert_eq!(receive(&stream), b"data", "{server}, {family:?}");
        }
    }
}

#[test]
fn without_waiting_sessions_nothing_is_bound() {
    let mut bench = Bench::new(&[(LOOPBACK, 1)]);
    assert!(bench.hub.socket().is_some());
    bench.hub.keep_bound_while(false, &Problems::default());
    assert!(bench.hub.socket().is_none());
    UdpSocket::bind(bench.address).expect("the port is free");
}

#[test]
fn a_port_in_use_is_a_problem_reported_once_per_pause() {
    let foreign = UdpSocket::bind((LOOPBACK, 0)).expect("loopback");
    let address = foreign.local_addr().expect("bound");
    let options =
        ServerOptions { address: Some(LOOPBACK), family: Some(AddressFamily::Ipv4), ..ServerOptions::default() };
    let mut hub = UdpHub::new(Arc::new(options), address);
    let problems = Problems::default();
    let began = clock::monotonic_now();
    hub.keep_bound_while(true, &problems);
    hub.keep_bound_while(true, &problems);
    let pauses = clock::monotonic_now().since(began).as_millis() / 200;
    let reported = problems.0.lock().expect("no panic").clone();
    assert!(hub.socket().is_none());
    assert!((1..=1 + usize::try_from(pauses).expect("small")).contains(&reported.len()), "{reported:?}");
    assert!(reported[0].contains(&address.port().to_string()), "{reported:?}");
}
