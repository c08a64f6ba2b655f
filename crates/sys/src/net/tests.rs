use core::time::Duration;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::os::fd::AsFd;

use linerate_model::address_family::AddressFamily;
use linerate_units::{ByteCount, FlowLabel, Mss, Port, TypeOfService};

use super::*;
use crate::options;
use crate::poll::{PollInterest, Waker, wait_for};

fn loopback_listener() -> (std::net::TcpListener, SocketAddr) {
    let options = ListenOptions { address: Some(Ipv4Addr::LOCALHOST.into()), ..ListenOptions::default() };
    let listener = listen_tcp(&options).expect("loopback").listener;
    let address = listener.local_addr().expect("bound");
    (listener, address)
}

#[test]
fn names_and_addresses() {
    let port = Port::IPERF3;
    let found = resolve("127.0.0.1", port, None).expect("an address");
    assert_eq!(found, ["127.0.0.1:5201".parse().expect("address")]);
    assert_eq!(
        resolve("::1", port, Some(AddressFamily::Ipv6)).expect("an address"),
        ["[::1]:5201".parse().expect("address")]
    );
    assert_eq!(resolve("[::1]", port, None).expect("an address"), ["[::1]:5201".parse().expect("address")]);
    let error = resolve("[127.0.0.1]", port, None).expect_err("only IPv6 addresses are in brackets");
    assert!(error.to_string().starts_with("looking up the host \"[127.0.0.1]\": "), "{error}");
    let local = resolve("localhost", port, Some(AddressFamily::Ipv4)).expect("in /etc/hosts");
    assert!(local.iter().all(SocketAddr::is_ipv4) && !local.is_empty());
    let error = resolve("127.0.0.1", port, Some(AddressFamily::Ipv6)).expect_err("wrong family");
    assert_eq!(error.to_string(), "looking up the host \"127.0.0.1\": it has no IPv6 address");
}

#[test]
fn an_unknown_host_is_named() {
    let error = resolve("no such host", Port::IPERF3, None).expect_err("blanks are in no name");
    let text = error.to_string();
    assert!(text.starts_with("looking up the host \"no such host\": "), "{text}");
    assert!(!text.contains("failed to lookup"), "{text}");
}

#[test]
fn mapped_addresses_become_ipv4() {
    for (given, expected) in [
        ("[::ffff:192.0.2.1]:80", "192.0.2.1:80"),
        ("[2001:db8::1]:80", "[2001:db8::1]:80"),
        ("192.0.2.1:80", "192.0.2.1:80"),
        ("[::192.0.2.1]:80", "[::192.0.2.1]:80"),
    ] {
        let (given, expected): (SocketAddr, SocketAddr) =
            (given.parse().expect("address"), expected.parse().expect("address"));
        assert_eq!(canonical(given), expected);
    }
}

#[test]
fn a_listener_without_an_address_serves_both_families() {
    let listening = listen_tcp(&ListenOptions::default()).expect("any port");
    assert!(!listening.without_ipv6, "this host has IPv6");
    let port = listening.listener.local_addr().expect("bound").port();
    listening.listener.set_nonblocking(true).expect("socket");
    assert!(accept_nonblocking(&listening.listener).expect("no client yet").is_none());
    for host in ["127.0.0.1", "[::1]"] {
        let remote: SocketAddr = format!("{host}:{port}").parse().expect("address");
        let client = connect_tcp(&ConnectOptions::to(remote), None).expect("loopback");
        assert!(wait_for(&listening.listener, PollInterest::READ, Some(Duration::from_secs(5))).expect("poll"));
        let (server, address) = accept_nonblocking(&listening.listener).expect("socket").expect("a client came");
        assert_eq!(address, client.local_addr().expect("connected"), "never mapped");
        let error = (&server).read(&mut [0]).expect_err("nothing was sent");
        assert!(crate::poll::would_block(&error), "not in blocking mode: {error}");
    }
}

#[test]
fn a_listener_for_one_family_only() {
    let listening =
        listen_tcp(&ListenOptions { family: Some(AddressFamily::Ipv6), ..ListenOptions::default() }).expect("any port");
    let port = listening.listener.local_addr().expect("bound").port();
    let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let error = connect_tcp(&ConnectOptions::to(remote), None).expect_err("IPv6 only");
    assert_eq!(error.reason(), "Connection refused");
    assert!(error.to_string().contains("run `linerate serve`"), "{error}");
    let mismatch = ListenOptions {
        family: Some(AddressFamily::Ipv6),
        address: Some(Ipv4Addr::LOCALHOST.into()),
        ..ListenOptions::default()
    };
    assert!(listen_tcp(&mismatch).expect_err("wrong family").to_string().contains("not of the family"));
}

#[test]
fn a_port_in_use_is_reported() {
    let (_listener, address) = loopback_listener();
    let again =
        ListenOptions { address: Some(address.ip()), port: Port::new(address.port()), ..ListenOptions::default() };
    let error = listen_tcp(&again).expect_err("in use");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains("ss -lntup"), "{error}");
}

#[test]
fn settings_hold_from_the_first_packet_on() {
    let (listener, address) = loopback_listener();
    let mut options = ConnectOptions::to(address);
    options.bind = Some("127.0.0.2:0".parse().expect("address"));
    options.settings = SocketSettings {
        window: Some(ByteCount::from_kibibytes(40)),
        mss: Some(Mss::new(1200)),
        no_delay: true,
        type_of_service: Some(TypeOfService::new(0x20)),
        congestion: Some("reno".into()),
        flow_label: FlowLabel::new(7), // means nothing for IPv4
        ..SocketSettings::default()
    };
    let client = connect_tcp(&options, None).expect("loopback");
    let (server, from) = listener.accept().expect("a client came");
    assert_eq!(from.ip(), Ipv4Addr::new(127, 0, 0, 2));
    assert!(client.nodelay().expect("TCP"));
    assert_eq!(options::send_buffer(&client).expect("socket"), ByteCount::from_kibibytes(80));
    assert_eq!(options::congestion(&client).expect("TCP"), "reno");
    assert_eq!(options::type_of_service(&client).expect("socket"), TypeOfService::new(0x20));
    assert!(options::mss(&server).expect("TCP") <= Mss::new(1200), "announced in the SYN");
}

#[test]
fn accepted_connections_inherit_the_listeners_settings() {
    let settings = SocketSettings {
        window: Some(ByteCount::from_kibibytes(40)),
        mss: Some(Mss::new(1000)),
        congestion: Some("reno".into()),
        no_delay: true,
        ..SocketSettings::default()
    };
    let options = ListenOptions { address: Some(Ipv4Addr::LOCALHOST.into()), settings, ..ListenOptions::default() };
    let listener = listen_tcp(&options).expect("loopback").listener;
    let client = connect_tcp(&ConnectOptions::to(listener.local_addr().expect("bound")), None).expect("loopback");
    let (server, _) = listener.accept().expect("a client came");
    assert_eq!(options::receive_buffer(&server).expect("socket"), ByteCount::from_kibibytes(80));
    assert_eq!(options::congestion(&server).expect("TCP"), "reno");
    assert!(server.nodelay().expect("TCP"));
    assert!(options::mss(&client).expect("TCP") <= Mss::new(1000), "announced in the SYN-ACK");
}

#[test]
fn an_unknown_congestion_control_is_named() {
    let (_listener, address) = loopback_listener();
    let mut options = ConnectOptions::to(address);
    options.settings.congestion = Some("no-such".into());
    let error = connect_tcp(&options, None).expect_err("not there");
    assert_eq!(error.socket_option(), Some("TCP_CONGESTION"));
}

/// A listener whose queue is full, so that a further connection attempt gets no answer.
fn full_listener() -> (socket2::Socket, Vec<socket2::Socket>, SocketAddr) {
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("TCP");
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("loopback");
    listener.listen(0).expect("bound");
    let address = listener.local_addr().expect("bound").as_socket().expect("IPv4");
    let waiting = (0..4)
        .map(|_| {
            let client = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("TCP");
            client.set_nonblocking(true).expect("socket");
            let _ = client.connect(&address.into());
            client
        })
        .collect();
    (listener, waiting, address)
}

#[test]
fn an_attempt_without_an_answer_ends_in_time() {
    let (_listener, _waiting, address) = full_listener();
    let mut options = ConnectOptions::to(address);
    options.timeout = Some(Duration::from_millis(50));
    let start = clock::monotonic_now();
    let error = connect_tcp(&options, None).expect_err("no answer");
    assert_eq!(error.to_string(), format!("connecting to {address}: timed out after 50 ms"));
    assert!(clock::monotonic_now() - start < Duration::from_secs(2));
}

#[test]
fn an_attempt_can_be_cancelled() {
    let (_listener, _waiting, address) = full_listener();
    let waker = Waker::new().expect("eventfd");
    waker.wake();
    let error = connect_tcp(&ConnectOptions::to(address), Some(waker.as_fd())).expect_err("cancelled");
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
}

#[test]
fn families_cannot_be_mixed() {
    let mut options = ConnectOptions::to("127.0.0.1:9".parse().expect("address"));
    options.bind = Some("[::1]:0".parse().expect("address"));
    let error = connect_tcp(&options, None).expect_err("mixed");
    assert!(error.to_string().contains("different families"), "{error}");
}

#[test]
fn an_address_of_another_host_is_reported() {
    let mut options = ConnectOptions::to("127.0.0.1:9".parse().expect("address"));
    options.bind = Some("192.0.2.1:0".parse().expect("address"));
    let error = connect_tcp(&options, None).expect_err("not ours");
    assert!(error.to_string().starts_with("binding to 192.0.2.1:0: Cannot assign requested address ("), "{error}");
}

#[test]
fn multipath_serves_plain_clients_or_explains_why_not() {
    let options =
        ListenOptions { address: Some(Ipv4Addr::LOCALHOST.into()), multipath: true, ..ListenOptions::default() };
    match listen_tcp(&options) {
        Ok(listening) => {
            let address = listening.listener.local_addr().expect("bound");
            connect_tcp(&ConnectOptions::to(address), None).expect("plain TCP is served");
            connect_tcp(&ConnectOptions { multipath: true, ..ConnectOptions::to(address) }, None).expect("so is MPTCP");
        }
        Err(error) => assert!(error.to_string().contains("net.mptcp.enabled"), "{error}"),
    }
}

#[test]
fn an_orderly_end_waits_for_the_peer() {
    let (listener, address) = loopback_listener();
    let client = connect_tcp(&ConnectOptions::to(address), None).expect("loopback");
    let (mut server, _) = listener.accept().expect("a client came");
    let peer = std::thread::spawn(move || {
        let mut rest = Vec::new();
        server.read_to_end(&mut rest).expect("the client shuts writing down");
        server.write_all(b"still something").expect("the client listens");
        rest
    });
    (&client).write_all(b"the end").expect("buffer space");
    assert!(close_gracefully(client, Duration::from_secs(5)).expect("closed"));
    assert_eq!(peer.join().expect("no panic"), b"the end");
}

#[test]
fn a_silent_peer_does_not_hold_up_the_end() {
    let (listener, address) = loopback_listener();
    let client = connect_tcp(&ConnectOptions::to(address), None).expect("loopback");
    let _server = listener.accept().expect("a client came");
    assert!(!close_gracefully(client, Duration::from_millis(30)).expect("closed"));
}

#[test]
fn shutting_down_wakes_a_reader_and_may_be_repeated() {
    let both: fn(&TcpStream) -> Result<()> = |socket| shutdown_both(socket);
    let read: fn(&TcpStream) -> Result<()> = |socket| shutdown_read(socket);
    for shut in [both, read] {
        let (listener, address) = loopback_listener();
        let client = connect_tcp(&ConnectOptions::to(address), None).expect("loopback");
        let _server = listener.accept().expect("a client came");
        let mut reader = client.try_clone().expect("descriptors");
        let thread = std::thread::spawn(move || reader.read(&mut [0]));
        shut(&client).expect("connected");
        assert_eq!(thread.join().expect("no panic").expect("the end"), 0);
        shut(&client).expect("gone is fine");
        shutdown_write(&client).expect("gone is fine");
    }
}

#[test]
fn a_peer_may_go_on_sending_after_reading_has_ended() {
    let (listener, address) = loopback_listener();
    let client = connect_tcp(&ConnectOptions::to(address), None).expect("loopback");
    let mut server = listener.accept().expect("a client came").0;
    shutdown_read(&client).expect("connected");
    server.write_all(&[0; 1000]).expect("no reset");
    server.write_all(&[0; 1000]).expect("no reset");
}

#[test]
fn udp_to_a_dual_stack_socket_and_back() {
    let server = bind_udp(&UdpOptions { reuse_address: true, ..UdpOptions::default() }).expect("any port");
    let port = server.local_addr().expect("bound").port();
    let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let client = connect_udp(&UdpOptions::default(), remote).expect("loopback");
    client.send(b"hello").expect("sent");
    let mut buffer = [0; 16];
    let (length, from) = server.recv_from(&mut buffer).expect("received");
    assert_eq!(&buffer[..length], b"hello");
    assert_eq!(canonical(from), client.local_addr().expect("bound"));
    connect_bound_udp(&server, canonical(from)).expect("mapped back for the IPv6 socket");
    let next = UdpOptions { port: Port::new(port), reuse_address: true, ..UdpOptions::default() };
    bind_udp(&next).expect("the port can be shared with the connected socket");
    server.send(b"answer").expect("connected");
    assert_eq!(client.recv(&mut buffer).expect("received"), 6);
}

#[test]
#[ignore = "needs root and ip: three network namespaces with a router between them"]
fn link_local_addresses_are_bound_on_their_interface() {
    let chain = crate::test_network::NamespaceChain::new(1400);
    let within = || {
        let add = ["address", "add", "fe80::99/64", "dev", "near0", "nodad"];
        crate::command::run_checked("ip", &add, None, Duration::from_secs(10)).expect("ip");
        let address = Some("fe80::99".parse().expect("valid"));
        let index = options::interface_index("near0").expect("there");
        let error = bind_udp(&UdpOptions { address, ..UdpOptions::default() }).expect_err("no interface");
        assert!(error.to_string().contains("address%interface"), "{error}");
        let device = Some("near0".to_owned());
        for (scope, device) in [(NonZeroU32::new(index), None), (None, device)] {
            let udp = bind_udp(&UdpOptions { address, scope, device: device.clone(), ..UdpOptions::default() });
            let tcp = listen_tcp(&ListenOptions { address, scope, device, ..ListenOptions::default() });
            let bound = [
                udp.expect("bound").local_addr().expect("bound"),
                tcp.expect("bound").listener.local_addr().expect("bound"),
            ];
            assert_eq!(bound.map(scope_of), [NonZeroU32::new(index); 2]);
            assert_eq!(bound.map(|bound| Some(bound.ip())), [address; 2]);
        }
        // Other addresses have no scope.
        let address = Some("fd99:1::1".parse().expect("valid"));
        let udp = bind_udp(&UdpOptions { address, scope: NonZeroU32::new(index), ..UdpOptions::default() });
        assert_eq!(scope_of(udp.expect("bound").local_addr().expect("bound")), None);
    };
    chain.near.within(within).expect("entered");
}

#[test]
fn a_udp_client_has_its_own_port_and_settings() {
    let server =
        bind_udp(&UdpOptions { address: Some(Ipv4Addr::LOCALHOST.into()), ..UdpOptions::default() }).expect("loopback");
    let free = bind_udp(&UdpOptions { address: Some(Ipv4Addr::LOCALHOST.into()), ..UdpOptions::default() })
        .and_then(|socket| socket.local_addr().map_err(|cause| Error::system("test", cause)))
        .expect("loopback");
    let options = UdpOptions {
        port: Port::new(free.port()),
        settings: SocketSettings {
            window: Some(ByteCount::from_kibibytes(30)),
            dont_fragment: true,
            ..SocketSettings::default()
        },
        ..UdpOptions::default()
    };
    let client = connect_udp(&options, server.local_addr().expect("bound")).expect("loopback");
    assert_eq!(client.local_addr().expect("bound"), free);
    assert_eq!(options::send_buffer(&client).expect("socket"), ByteCount::from_kibibytes(60));
}

#[test]
fn a_flow_label_is_used_for_udp() {
    let server = bind_udp(&UdpOptions { family: Some(AddressFamily::Ipv6), ..UdpOptions::default() }).expect("IPv6");
    let port = server.local_addr().expect("bound").port();
    let settings = SocketSettings { flow_label: FlowLabel::new(0xabcde), ..SocketSettings::default() };
    let remote: SocketAddr = format!("[::1]:{port}").parse().expect("address");
    let client = connect_udp(&UdpOptions { settings, ..UdpOptions::default() }, remote).expect("loopback");
    let SocketAddr::V6(peer) = client.peer_addr().expect("connected") else { panic!("IPv6") };
    assert_eq!(u32::from_be(peer.flowinfo()), 0xabcde);
}

#[test]
fn both_ends_of_a_connection_have_plain_addresses() {
    let listening = listen_tcp(&ListenOptions::default()).expect("any port").listener;
    let port = listening.local_addr().expect("bound").port();
    let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let client = connect_tcp(&ConnectOptions::to(remote), None).expect("loopback");
    let (server, _) = listening.accept().expect("a client came");
    let local = client.local_addr().expect("connected");
    assert_eq!(addresses(&client).expect("connected"), (local, remote));
    assert_eq!(addresses(&server).expect("connected"), (remote, local), "not mapped into IPv6");
    assert!(peer_is_this_host(&client) && peer_is_this_host(&server));
    let error = addresses(&listening).expect_err("not connected");
    assert_eq!(error.kind(), io::ErrorKind::NotConnected);
    assert!(!peer_is_this_host(&listening));
}

#[test]
fn the_handshakes_time_is_measured() {
    let (_listener, remote) = loopback_listener();
    let before = clock::monotonic_now();
    let (stream, took) = connect_tcp_timed(&ConnectOptions::to(remote), None).expect("connected");
    assert!(!took.is_zero() && took <= clock::monotonic_now() - before, "{took:?}");
    assert_eq!(addresses(&stream).expect("connected").1, remote);
}
