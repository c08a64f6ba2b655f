use super::*;
use crate::error_queue::PathErrorKind;
use crate::namespace::{self, NetworkNamespace};
use crate::time_stamp::StampSource;

const LIMIT: Option<Duration> = Some(Duration::from_secs(5));

fn remote(text: &str) -> SocketAddr {
    SocketAddr::new(text.parse().expect("an address"), 0)
}

fn raw_echo_socket(text: &str) -> EchoSocket {
    let (to, options) = (remote(text), EchoOptions::default());
    let socket = bind_to_source(open(to.is_ipv6(), Type::RAW).expect("root"), to, &options, false).expect("bound");
    keep_replies_only(&socket, to.is_ipv6()).expect("filtered");
    let socket = UdpSocket::from(std::os::fd::OwnedFd::from(socket));
    let socket = ProbeSocket::new(socket, ProbeOptions { transmissions: true, path_errors: true }).expect("raw");
    let identifier = random_identifier().expect("random");
    let types = types(to.is_ipv6(), options.timestamps);
    EchoSocket { socket, to, access: EchoAccess::RawSocket, types, identifier, next: 0, outstanding: BTreeMap::new() }
}

fn next_reply(echo: &mut EchoSocket) -> EchoReply {
    match echo.next_event(LIMIT).expect("no error") {
        Some(EchoEvent::Reply(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

fn answers_come_in_order_with_stamps(echo: &mut EchoSocket) {
    for number in 0..20 {
        let payload = vec![7; usize::try_from(number).expect("small") * 3];
        assert_eq!(echo.send(&payload).expect("sent"), number);
    }
    assert_eq!(echo.outstanding(), 20);
    for number in 0..20 {
        let reply = next_reply(echo);
        assert_eq!((reply.number, reply.size), (number, ByteCount::new(number * 3)));
        assert_eq!(reply.source, echo.to.ip());
        assert!(reply.hop_limit.is_some() && reply.type_of_service.is_some(), "{reply:?}");
        assert_eq!(
            (reply.arrived.source, reply.sent.map(|sent| sent.source)),
            (StampSource::Kernel, Some(StampSource::Kernel))
        );
        assert!(reply.round_trip().is_some_and(|time| time < Duration::from_secs(5)), "{reply:?}");
    }
    assert_eq!(echo.outstanding(), 0);
    assert_eq!(echo.next_event(Some(Duration::from_millis(5))).expect("no error"), None);
}

#[test]
fn this_host_answers_itself_where_permitted() {
    for address in ["127.0.0.1", "::1"] {
        let options = EchoOptions { type_of_service: Some(TypeOfService::new(0x28)), ..EchoOptions::default() };
        match EchoSocket::open(remote(address), &options) {
            Ok(mut echo) => answers_come_in_order_with_stamps(&mut echo),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("ping_group_range") && text.contains("CAP_NET_RAW"), "{text}");
            }
        }
    }
}

#[test]
#[ignore = "needs root: raw sockets, and ping sockets in a network namespace that allows them"]
fn both_kinds_of_sockets_get_answers() {
    for address in ["127.0.0.1", "::1"] {
        answers_come_in_order_with_stamps(&mut raw_echo_socket(address));
    }
    let within = || {
        namespace::take_loopback_up().expect("up");
        std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647").expect("this namespace's");
        for address in ["127.0.0.1", "::1"] {
            let mut echo = EchoSocket::open(remote(address), &EchoOptions::default()).expect("allowed");
            assert_eq!(echo.access(), EchoAccess::PingSocket);
            answers_come_in_order_with_stamps(&mut echo);
        }
    };
    NetworkNamespace::create().expect("root").within(within).expect("entered");
}

#[test]
#[ignore = "needs root and ip: three network namespaces with a router between them"]
fn routers_report_requests_whose_hops_are_used_up() {
    let chain = crate::test_network::NamespaceChain::new(1400);
    let within = || {
        std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647").expect("this namespace's");
        for (far, router) in [("10.99.2.2", "10.99.1.2"), ("fd99:2::2", "fd99:1::2")] {
            let options = EchoOptions { dont_fragment: true, ..EchoOptions::default() };
            let ping = EchoSocket::open(remote(far), &options).expect("allowed");
            let mut raw = raw_echo_socket(far);
            options::set_path_mtu_probing(&raw).expect("set");
            assert_eq!(ping.access(), EchoAccess::PingSocket);
            for echo in [&mut { ping }, &mut raw] {
                echo.set_hop_limit(1).expect("set");
                let number = echo.send(b"how far").expect("sent");
                let event = echo.next_event(LIMIT).expect("no error").expect("reported");
                let EchoEvent::PathError { number: told, sent, error } = event else { panic!("{event:?}") };
                assert_eq!((told, sent.is_some()), (Some(number), true));
                assert_eq!(
                    (error.kind, error.reporter),
                    (PathErrorKind::TimeExceeded, Some(router.parse().expect("valid")))
                );
                echo.set_hop_limit(64).expect("set");
                let number = echo.send(b"that far").expect("sent");
                let reply = next_reply(echo);
                assert_eq!((reply.number, reply.hop_limit), (number, Some(63)));
                let number = echo.send(&[0; 1450]).expect("fits the first link");
                let event = echo.next_event(LIMIT).expect("no error").expect("reported");
                let EchoEvent::PathError { number: told, error, .. } = event else { panic!("{event:?}") };
                let expected = PathErrorKind::TooBig { mtu: Some(linerate_units::Mtu::new(1400)) };
                assert_eq!((told, error.kind), (Some(number), expected));
            }
        }
    };
    chain.near.within(within).expect("entered");
}

#[test]
fn sequence_numbers_wrap() {
    assert_eq!(number_of(0, 1), Some(0));
    assert_eq!(number_of(65_535, 65_536), Some(65_535));
    assert_eq!(number_of(65_535, 65_537), Some(65_535));
    assert_eq!(number_of(0, 65_537), Some(65_536));
    assert_eq!(number_of(5, 3), None, "never sent");
    assert_eq!(number_of(3, 3), None, "not sent yet");
    assert_eq!(number_of(3, 65_539), Some(3));
}

#[test]
fn checksums() {
    // RFC 1071 §3: the sum of these is ddf2.
    assert_eq!(internet_checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    assert_eq!(internet_checksum(&[]), 0xffff);
    assert_eq!(internet_checksum(&[0xff; 4]), 0);
    assert_eq!(internet_checksum(&[1]), !0x0100);
    let mut message = vec![8, 0, 0, 0, 1, 2, 3, 4, 5];
    let checksum = internet_checksum(&message);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(internet_checksum(&message), 0, "a message with its checksum sums up to zero");
}

#[test]
fn headers() {
    let message = [0, 0, 9, 9, 1, 2, 3, 4, 5];
    assert_eq!(echo_header(&message, ECHO_REPLY), Some((0x0102, 0x0304)));
    assert_eq!(echo_header(&message, ECHO_REQUEST), None);
    assert_eq!(echo_header(&message[..7], ECHO_REPLY), None);
    assert_eq!(without_ipv4_header(&[0x46; 30]).map(<[u8]>::len), Some(6));
    assert_eq!(without_ipv4_header(&[0x45; 19]), None);
    assert_eq!(without_ipv4_header(&[]), None);
}

#[test]
fn timestamps_are_read_within_a_day() {
    let mut message = vec![TIMESTAMP_REPLY, 0, 0, 0, 0, 1, 0, 2];
    message.extend([0; 4]);
    message.extend(86_399_999_u32.to_be_bytes());
    message.extend([0; 4]);
    assert_eq!(receive_time(&message), Some(Duration::from_millis(86_399_999)));
    // A clock that does not count from midnight, and a value beyond the day.
    for odd in [0x8000_0001_u32, 86_400_000] {
        message[12..16].copy_from_slice(&odd.to_be_bytes());
        assert_eq!(receive_time(&message), None);
    }
    assert_eq!(receive_time(&message[..15]), None);
}

#[test]
#[ignore = "needs root: a raw socket"]
fn the_kernel_answers_timestamp_requests() {
    let options = EchoOptions { timestamps: true, ..EchoOptions::default() };
    let mut socket = EchoSocket::open((Ipv4Addr::LOCALHOST, 0).into(), &options).expect("root");
    for number in 0..3 {
        assert_eq!(socket.send(&[]).expect("sent"), number);
        let event = socket.next_event(Some(Duration::from_secs(10))).expect("read").expect("answered");
        let EchoEvent::Reply(reply) = event else { panic!("{event:?}") };
        assert_eq!(reply.number, number);
        // One clock, in whole milliseconds, and a busy host.
        let up = reply.up_ns().expect("a time");
        assert!((-2_000_000..2_000_000_000).contains(&up), "{up}");
    }
    assert!(EchoSocket::open((Ipv6Addr::LOCALHOST, 0).into(), &options).is_err());
}
