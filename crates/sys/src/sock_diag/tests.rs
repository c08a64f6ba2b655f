use core::time::Duration;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, TcpListener, TcpStream};

use linerate_model::fact::ReadObstacle;
use linerate_model::socket::{CongestionState, SocketInode, SocketMemory, TcpState, TimerKind};
use linerate_units::{BitRate, ByteCount, Port, SegmentCount, TypeOfService};
use proptest::prelude::*;

use super::*;
use crate::netlink;
use crate::{options, tcp_info};

fn connection(address: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((address, 0)).expect("loopback");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
    (client, listener.accept().expect("a client came").0)
}

fn readings(filter: &SocketFilter) -> Vec<SocketSnapshot> {
    let mut found = Vec::new();
    SocketReader::new().expect("sock_diag").read(filter, |reading| found.push(reading)).expect("listed");
    found
}

fn port_of(stream: &TcpStream) -> Port {
    Port::new(stream.local_addr().expect("bound").port()).expect("not 0")
}

#[test]
fn both_ends_of_a_connection_are_listed_as_their_options_report() {
    for address in ["127.0.0.1", "::1"] {
        let (mut client, mut server) = connection(address);
        options::set_type_of_service(&client, TypeOfService::new(0x48)).expect("set");
        let mut payload = vec![7; 100_000];
        client.write_all(&payload).expect("sent");
        server.read_exact(&mut payload[..60_000]).expect("received");
        let filter = SocketFilter { port: Some(port_of(&client)), ..SocketFilter::in_states(SocketStates::flows()) };
        let found = readings(&filter);
        assert_eq!(found.len(), 2, "{found:?}");
        let local = client.local_addr().expect("bound");
        let [ours, theirs] = [true, false]
            .map(|ours| found.iter().find(|reading| (reading.key.local == local) == ours).expect("both are listed"));
        assert_eq!(ours.key.remote, theirs.key.local);
        assert_eq!((ours.state, theirs.state), (TcpState::Established, TcpState::Established));
        assert_ne!(ours.key.cookie, theirs.key.cookie);
        assert_eq!(theirs.receive_queue, ByteCount::new(40_000));
        assert_eq!(ours.type_of_service, Some(TypeOfService::new(0x48)));
        let own = tcp_info::read(&client).expect("TCP");
        let told = ours.info.as_ref().expect("connected");
        assert_eq!(
            (told.bytes_sent, told.send_mss, told.window_scale),
            (own.bytes_sent, own.send_mss, own.window_scale)
        );
        // Only the socket's own program reads the locks of its buffers.
        let memory = crate::socket_memory(&client).expect("Linux 4.12");
        assert_eq!(ours.memory, Some(SocketMemory { locked: None, ..memory }));
        assert_eq!(ours.in_flight(), Some(ByteCount::ZERO));
        let name = ours.congestion_control.expect("known");
        assert_eq!(name.as_str(), options::congestion(&client).expect("TCP"));
    }
}

#[test]
fn the_kernel_filters_by_port_address_and_state() {
    let (client, _server) = connection("127.0.0.1");
    let (other, _other_server) = connection("::1");
    let port = port_of(&client);
    let single = AddressPrefix::single;
    let with = |port, remote| SocketFilter { port, remote, ..SocketFilter::in_states(SocketStates::flows()) };
    let has = |found: &[SocketSnapshot], stream: &TcpStream| {
        found.iter().any(|reading| reading.key.local == stream.local_addr().expect("bound"))
    };
    let all = readings(&SocketFilter::in_states(SocketStates::ALL));
    assert!(has(&all, &client) && has(&all, &other));
    let one = readings(&with(Some(port), None));
    assert!(has(&one, &client) && !has(&one, &other) && one.len() == 2);
    let ipv4 = readings(&with(None, AddressPrefix::new(IpAddr::from([127, 0, 0, 0]), 8)));
    assert!(has(&ipv4, &client) && !has(&ipv4, &other));
    let ipv6 = readings(&with(None, Some(single(Ipv6Addr::LOCALHOST.into()))));
    assert!(!has(&ipv6, &client) && has(&ipv6, &other));
    assert!(readings(&with(Some(port), Some(single(IpAddr::from([127, 0, 0, 99]))))).is_empty());
    assert_eq!(readings(&with(Some(port), Some(single(IpAddr::from([127, 0, 0, 1]))))).len(), 2);
    let closing = SocketStates::of(&[TcpState::CloseWait]);
    assert!(!has(&readings(&SocketFilter::in_states(closing)), &client));
}

#[test]
fn listeners_report_waiting_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    let _clients: Vec<_> = (0..3).map(|_| TcpStream::connect(address).expect("loopback")).collect();
    let filter = SocketFilter {
        port: Port::new(address.port()),
        ..SocketFilter::in_states(SocketStates::of(&[TcpState::Listen]))
    };
    let found = readings(&filter);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].receive_queue, found[0].send_queue), (ByteCount::new(3), ByteCount::new(128)));
    assert_eq!((found[0].state, &found[0].info), (TcpState::Listen, &None));
}

#[test]
fn our_own_sockets_are_ours() {
    let (client, _server) = connection("127.0.0.1");
    let filter = SocketFilter { port: Some(port_of(&client)), ..SocketFilter::in_states(SocketStates::flows()) };
    let found = readings(&filter);
    let mut owners = SocketOwners::new();
    assert_eq!(owners.owner(found[0].inode).unread().map(|unread| unread.obstacle), Some(ReadObstacle::NotRead));
    owners.refresh(found.iter().filter_map(|reading| reading.inode));
    for reading in &found {
        let owner = owners.owner(reading.inode).known().expect("found");
        assert_eq!(owner.process.0, std::process::id());
        assert!(!owner.name.is_empty());
    }
    assert_eq!(owners.owner(None).unread().map(|unread| unread.obstacle), Some(ReadObstacle::Absent));
    // This one has no owner. It is not searched at once: a search has just been.
    let nobodys = SocketInode(u64::MAX);
    owners.refresh(core::iter::once(nobodys));
    assert!(owners.owner(Some(nobodys)).known().is_none());
    assert!(owners.owner(found[0].inode).known().is_none(), "sockets that are gone are forgotten");
}

/// `inet_diag_msg` of an IPv4 connection, as a little-endian kernel sends it, with these attributes behind it.
fn captured(attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![2, 1, 1, 3, 0x14, 0x51, 0xc3, 0x50];
    for address in [[10, 99, 1, 1], [10, 99, 2, 2]] {
        bytes.extend(address);
        bytes.extend([0; 12]);
    }
    for word in [0_u32, 0x1234, 0x5, 204, 0, 14_480, 1000, 777] {
        bytes.extend(word.to_ne_bytes());
    }
    for (kind, content) in attributes {
        netlink::append_attribute(&mut bytes, *kind, content).expect("short");
    }
    bytes
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn every_field_has_its_meaning() {
    let bbr = words(&[125_000_000, 0, 20_100, 320, 512]);
    let memory = words(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let message = captured(&[(4, b"bbr\0"), (5, &[0xb8]), (7, &memory), (15, &words(&[7])), (16, &bbr), (99, &[1])]);
    let reading = parse(&message).expect("whole");
    assert_eq!(reading.key.local.to_string(), "10.99.1.1:5201");
    assert_eq!(reading.key.remote.to_string(), "10.99.2.2:50000");
    assert_eq!(reading.key.cookie.0, 0x5_0000_1234);
    assert_eq!((reading.user.0, reading.inode), (1000, Some(SocketInode(777))));
    assert_eq!(reading.send_queue, ByteCount::new(14_480));
    let timer = reading.timer.expect("runs");
    assert_eq!((timer.kind, timer.due_in), (TimerKind::Retransmission, Duration::from_millis(204)));
    assert_eq!(timer.repeats, SegmentCount::new(3));
    assert_eq!(reading.memory.expect("there").backlog, ByteCount::new(8));
    assert_eq!(reading.type_of_service, Some(TypeOfService::new(0xb8)));
    assert_eq!(reading.mark.map(|mark| mark.0), Some(7));
    let expected = CongestionState::Bbr {
        bandwidth: BitRate::from_bits_per_second(1e9),
        min_rtt: Some(Duration::from_micros(20_100)),
        pacing_gain: 1.25,
        window_gain: 2.0,
    };
    assert_eq!(reading.congestion_state, Some(expected));
    assert_eq!((reading.info, reading.control_group), (None, None));
}

#[test]
fn delays_that_were_not_measured_are_unknown() {
    let message = captured(&[(3, &words(&[1, 0, 0x7fff_ffff, 0]))]);
    let expected = CongestionState::Vegas { enabled: true, rtt: None, min_rtt: None };
    assert_eq!(parse(&message).expect("whole").congestion_state, Some(expected));
    let message = captured(&[(9, &words(&[1, 512, 0, 0]))]);
    let Some(CongestionState::Dctcp { marked, .. }) = parse(&message).expect("whole").congestion_state else {
        panic!("DCTCP's attribute")
    };
    assert!((marked.get() - 0.5).abs() < 1e-9);
}

#[test]
fn truncated_messages_yield_no_false_values() {
    let memory = words(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let whole = captured(&[(7, &memory)]);
    for length in 0..whole.len() {
        let reading = parse(&whole[..length]);
        assert_eq!(reading.is_some(), length >= 72, "{length}");
        assert!(reading.is_none_or(|reading| reading.memory.is_none()), "{length}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = parse(&bytes);
        for message in netlink::messages(&bytes) {
            let _ = parse(message.body);
        }
    }

    #[test]
    fn any_attributes_are_read_without_harm(
        attributes in proptest::collection::vec((0_u16..24, proptest::collection::vec(any::<u8>(), 0..300)), 0..8),
    ) {
        let attributes: Vec<_> = attributes.iter().map(|(kind, content)| (*kind, content.as_slice())).collect();
        prop_assert!(parse(&captured(&attributes)).is_some());
    }
}
