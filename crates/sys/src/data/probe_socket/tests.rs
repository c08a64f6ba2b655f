use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;
use crate::error_queue::PathErrorKind;
use crate::time_stamp::StampSource;

const LIMIT: Option<Duration> = Some(Duration::from_secs(5));
const EVERYTHING: ProbeOptions = ProbeOptions { transmissions: true, path_errors: true };

fn probe_socket(address: impl Into<IpAddr>, options: ProbeOptions) -> (ProbeSocket, SocketAddr) {
    let socket = UdpSocket::bind((address.into(), 0)).expect("bind");
    let local = socket.local_addr().expect("address");
    (ProbeSocket::new(socket, options).expect("UDP"), local)
}

/// Address of the receiver, of the sender, and the sender's as the receiver sees it.
fn address_triples() -> Vec<(IpAddr, IpAddr, IpAddr)> {
    let (four, six): (IpAddr, IpAddr) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
    let (any_four, any_six) = (Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into());
    vec![
        (four, any_four, four),
        (six, any_six, six),
        (any_six, any_six, four),
        (any_six, four, four),
        (four, any_six, four),
    ]
}

#[test]
fn a_datagram_arrives_with_all_its_metadata() {
    for (from, bind_to_source, to) in address_triples() {
        let (sender, local) = probe_socket(from, ProbeOptions::default());
        let (receiver, address) = probe_socket(bind_to_source, ProbeOptions::default());
        let how = OutgoingDatagram {
            to: Some(SocketAddr::new(to, address.port())),
            from: None,
            type_of_service: Some(TypeOfService::new(0xb8)),
            hop_limit: Some(7),
        };
        let before = sender.clocks().now();
        assert_eq!(sender.send(b"probe", &how).expect("sent"), SendNumber(0), "{from} {to}");
        assert_eq!(
            sender
                .send(b"second probe", &OutgoingDatagram { to: how.to, ..OutgoingDatagram::default() })
                .expect("sent"),
            SendNumber(1)
        );
        let mut buffer = [0; 8];
        let arrival = receiver.receive(&mut buffer, LIMIT).expect("no error").expect("arrived");
        assert_eq!((&buffer[..arrival.filled], arrival.size), (&b"probe"[..], ByteCount::new(5)));
        assert_eq!(arrival.source, SocketAddr::new(to, local.port()));
        assert_eq!((arrival.destination, arrival.hop_limit), (Some(to), Some(7)), "{bind_to_source:?}");
        assert_eq!(arrival.type_of_service, Some(TypeOfService::new(0xb8)));
        assert_eq!((arrival.arrived.source, arrival.dropped), (StampSource::Kernel, None));
        let after = receiver.clocks().now();
        // The two sockets compare the clocks on their own.
        let slack = Duration::from_millis(50);
        assert!(
            arrival.arrived.monotonic + slack >= before.monotonic
                && arrival.arrived.monotonic <= after.monotonic + slack
        );
        let second = receiver.receive(&mut buffer, LIMIT).expect("no error").expect("arrived");
        assert_eq!((second.filled, second.size), (8, ByteCount::new(12)));
        assert_eq!(second.type_of_service, Some(TypeOfService::new(0)));
        assert_ne!(second.hop_limit, Some(7));
        assert_eq!(receiver.try_receive(&mut buffer).expect("no error"), None);
        assert_eq!(receiver.receive(&mut buffer, Some(Duration::from_millis(5))).expect("no error"), None);
    }
}

#[test]
fn a_connected_socket_needs_no_address() {
    for (from, bind_to_source, to) in address_triples() {
        let (receiver, address) = probe_socket(bind_to_source, ProbeOptions::default());
        let socket = UdpSocket::bind((from, 0)).expect("bind");
        crate::net::connect_bound_udp(&socket, SocketAddr::new(to, address.port())).expect("connected");
        let sender = ProbeSocket::new(socket, EVERYTHING).expect("UDP");
        let how = OutgoingDatagram {
            hop_limit: Some(9),
            type_of_service: Some(TypeOfService::new(8)),
            ..OutgoingDatagram::default()
        };
        sender.send(b"x", &how).expect("sent");
        let arrival = receiver.receive(&mut [0; 1], LIMIT).expect("no error").expect("arrived");
        assert_eq!((arrival.hop_limit, arrival.type_of_service), (Some(9), Some(TypeOfService::new(8))));
    }
}

#[test]
fn a_datagram_leaves_from_the_address_that_is_asked_for() {
    let (sender, _) = probe_socket(Ipv4Addr::UNSPECIFIED, ProbeOptions::default());
    let (both, _) = probe_socket(Ipv6Addr::UNSPECIFIED, ProbeOptions::default());
    let (receiver, address) = probe_socket(Ipv4Addr::LOCALHOST, ProbeOptions::default());
    for sender in [sender, both] {
        let from = Some(Ipv4Addr::new(127, 0, 0, 5).into());
        sender.send(b"x", &OutgoingDatagram { to: Some(address), from, ..OutgoingDatagram::default() }).expect("sent");
        let arrival = receiver.receive(&mut [0; 1], LIMIT).expect("no error").expect("arrived");
        assert_eq!(Some(arrival.source.ip()), from);
    }
}

#[test]
fn the_kernel_reports_transmissions_and_refused_datagrams_are_not_counted() {
    let (sender, _) = probe_socket(Ipv4Addr::LOCALHOST, EVERYTHING);
    let (receiver, address) = probe_socket(Ipv4Addr::LOCALHOST, ProbeOptions::default());
    let how = OutgoingDatagram { to: Some(address), ..OutgoingDatagram::default() };
    let mut seen = Vec::new();
    for round in 0..3 {
        for number in 0..4 {
            assert_eq!(sender.send(b"x", &how).expect("sent"), SendNumber(round * 4 + number));
        }
        let too_large = sender.send(&vec![0; 66_000], &how).expect_err("no datagram is that large");
        assert_eq!(too_large.raw_os_error(), Some(libc::EMSGSIZE));
        seen.extend(sender.transmissions().expect("no error"));
    }
    seen.extend(sender.transmissions().expect("no error"));
    assert_eq!(seen.iter().map(|told| told.number.0).collect::<Vec<_>>(), (0..12).collect::<Vec<_>>());
    for told in &seen {
        let arrival = receiver.receive(&mut [0; 1], LIMIT).expect("no error").expect("arrived");
        assert_eq!(told.sent.source, StampSource::Kernel);
        // Loopback: the same clock stamps it when sent, then when received.
        assert!(told.sent.wall <= arrival.arrived.wall, "{told:?} {arrival:?}");
    }
}

#[test]
fn a_closed_port_is_an_event_and_the_socket_goes_on() {
    let (sender, _) = probe_socket(Ipv6Addr::UNSPECIFIED, EVERYTHING);
    let (receiver, open) = probe_socket(Ipv4Addr::LOCALHOST, ProbeOptions::default());
    let closed = UdpSocket::bind("127.0.0.1:0").expect("bind").local_addr().expect("address");
    for round in 0..3 {
        // The second send meets the error that the first one left on the socket.
        sender.send(b"closed", &OutgoingDatagram { to: Some(closed), ..OutgoingDatagram::default() }).expect("sent");
        let number =
            sender.send(b"open", &OutgoingDatagram { to: Some(open), ..OutgoingDatagram::default() }).expect("sent");
        assert_eq!(number, SendNumber(2 * round + 1));
        assert!(receiver.receive(&mut [0; 8], LIMIT).expect("no error").is_some());
        let event = sender.next_event(&mut [0; 8], LIMIT).expect("no error").expect("reported");
        let ProbeEvent::PathError(error) = event else { panic!("{event:?}") };
        assert_eq!(error.kind, PathErrorKind::PortUnreachable);
        assert_eq!((error.sent_to, error.reporter), (Some(closed), Some(closed.ip())));
        assert_eq!(error.quoted, b"closed");
        assert!(error.hop_limit.is_some());
        assert_eq!(sender.path_errors().expect("no error"), []);
        assert_eq!(sender.transmissions().expect("no error").len(), 2);
        assert_eq!(sender.next_event(&mut [0; 8], Some(Duration::from_millis(5))).expect("no error"), None);
    }
}

#[test]
fn the_kernels_numbers_wrap() {
    let numbers = SendNumbering { next: (1 << 33) + 5, first: 3 };
    for back in [1, 2, 5, 10, 1 << 20, 1 << 32] {
        let number = numbers.next - back;
        assert_eq!(numbers.of_kernels(low_half(number - numbers.first)), Some(SendNumber(number)), "{back}");
    }
    assert_eq!(SendNumbering { next: 7, first: 7 }.of_kernels(0), None, "nothing was sent since the count began");
    assert_eq!(SendNumbering { next: 9, first: 7 }.of_kernels(1), Some(SendNumber(8)));
    assert_eq!(SendNumbering { next: 9, first: 7 }.of_kernels(2), None, "of an earlier count");
}

#[test]
fn the_first_stamp_of_a_datagram_counts() {
    let clocks = ClockPair::new();
    let mut told = ErrorQueueBacklog::default();
    let kept = MAX_KEPT_ENTRIES as u64;
    let mut note = |number, sent| {
        told.note(TransmitTimestamp { number: SendNumber(number), sent });
        told.transmissions.drain(..).map(|told| told.sent).collect::<Vec<_>>()
    };
    let (first, second) = (clocks.now(), clocks.now());
    assert_ne!(first, second);
    assert_eq!(note(1, first), [first]);
    assert_eq!(note(0, first), [first], "queues may change the order");
    assert_eq!(note(0, second), []);
    assert_eq!(note(1, second), []);
    for number in 2..kept + 2 {
        assert_eq!(note(number, first), [first], "{number}");
    }
    assert_eq!(note(1, second), [], "forgotten, and older than all that are known");
    assert_eq!(note(kept + 1, second), []);
    assert_eq!(told.stamped.len(), MAX_KEPT_ENTRIES);
}

#[test]
fn drops_are_counted() {
    let (sender, _) = probe_socket(Ipv4Addr::LOCALHOST, ProbeOptions::default());
    let (receiver, address) = probe_socket(Ipv4Addr::LOCALHOST, ProbeOptions::default());
    options::set_receive_buffer(receiver.socket(), ByteCount::new(4096)).expect("SO_RCVBUF");
    let how = OutgoingDatagram { to: Some(address), ..OutgoingDatagram::default() };
    for _ in 0..100 {
        sender.send(&[0; 1000], &how).expect("sent");
    }
    let (mut arrived, mut buffer) = (0, [0; 1000]);
    while receiver.try_receive(&mut buffer).expect("no error").is_some() {
        arrived += 1;
    }
    sender.send(&[0; 1000], &how).expect("sent");
    let last = receiver.receive(&mut buffer, LIMIT).expect("no error").expect("arrived");
    assert_eq!(last.dropped, Some(PacketCount::new(100 - arrived)));
}

#[test]
#[ignore = "needs root and ip: three network namespaces with a router between them"]
fn hops_and_packet_sizes_are_found_from_router_reports() {
    let chain = crate::test_network::NamespaceChain::new(1400);
    let far = chain.far.within(|| probe_socket(Ipv6Addr::UNSPECIFIED, ProbeOptions::default())).expect("entered");
    let within = || {
        for (to, router, overhead) in [("10.99.2.2", "10.99.1.2", 28), ("fd99:2::2", "fd99:1::2", 48)] {
            let to = SocketAddr::new(to.parse().expect("valid"), far.1.port());
            let (near, _) = probe_socket(Ipv6Addr::UNSPECIFIED, EVERYTHING);
            options::set_path_mtu_probing(&near).expect("set");
            let send = |size: u32, hop_limit| {
                let bytes = vec![9; usize::try_from(size - overhead).expect("small")];
                near.send(&bytes, &OutgoingDatagram { to: Some(to), hop_limit, ..OutgoingDatagram::default() })
            };
            let report = || {
                let told = near.next_event(&mut [0; 1], LIMIT).expect("no error");
                near.transmissions().expect("no error");
                match told {
                    Some(ProbeEvent::PathError(error)) => error,
                    other => panic!("{other:?}"),
                }
            };
            send(100, Some(1)).expect("sent");
            // Wait without reading anything, so that the next call meets the error.
            assert!(poll::wait_for(&near, PollInterest::READ, LIMIT).expect("poll"));
            send(1400, None).expect("sent, in spite of the report on the one before");
            send(1401, None).expect("this host does not know better");
            let error = report();
            assert_eq!((error.kind, error.sent_to), (PathErrorKind::TimeExceeded, Some(to)));
            assert_eq!((error.reporter, error.hop_limit), (Some(router.parse().expect("valid")), Some(64)));
            let error = report();
            assert_eq!(error.kind, PathErrorKind::TooBig { mtu: Some(linerate_units::Mtu::new(1400)) });
            assert_eq!(error.reporter, Some(router.parse().expect("valid")));
            let refused = send(1501, None).expect_err("larger than the interface's MTU");
            assert_eq!(refused.raw_os_error(), Some(libc::EMSGSIZE));
            let error = report();
            assert_eq!(error.kind, PathErrorKind::TooBig { mtu: Some(linerate_units::Mtu::new(1500)) });
            assert_eq!((error.reporter, error.icmp), (None, None));
            assert_eq!(near.path_errors().expect("no error"), []);
            let arrival = far.0.receive(&mut [0; 1500], LIMIT).expect("no error").expect("arrived");
            assert_eq!((arrival.size.get(), arrival.hop_limit), (u64::from(1400 - overhead), Some(63)));
            assert_eq!(arrival.destination, Some(to.ip()));
        }
    };
    chain.near.within(within).expect("entered");
}
