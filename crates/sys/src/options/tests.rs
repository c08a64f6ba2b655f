use core::time::Duration;
use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};

use linerate_units::{BitRate, ByteCount, FlowLabel, Mss, TypeOfService};

use super::*;
use crate::sockopt::{SocketOption, get};

fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
    (client, listener.accept().expect("a client came").0)
}

fn datagram_socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").expect("loopback")
}

/// An option that the library only sets, read back.
fn read(socket: &impl std::os::fd::AsFd, level: libc::c_int, number: libc::c_int) -> libc::c_int {
    get(socket, SocketOption::new(level, number, "OPTION", "option under test")).expect("readable")
}

#[test]
fn congestion_control_by_name() {
    let (client, _server) = connected();
    set_congestion(&client, "reno").expect("every kernel has it");
    assert_eq!(congestion(&client).expect("TCP"), "reno");
    let error = set_congestion(&client, "no-such").expect_err("not there");
    assert_eq!(error.socket_option(), Some("TCP_CONGESTION"));
    assert_eq!(error.reason(), "No such file or directory");
    let start = "setting the congestion control algorithm to \"no-such\" (TCP_CONGESTION): No such file or directory";
    assert!(error.to_string().starts_with(start), "{error}");
    assert!(error.to_string().contains("tcp_available_congestion_control"), "{error}");
    assert_eq!(check_congestion("no-such").expect_err("not there").to_string(), error.to_string());
    check_congestion("reno").expect("every kernel has it");
    assert_eq!(congestion(&client).expect("TCP"), "reno", "unchanged");
}

#[test]
fn buffers_are_twice_what_was_set() {
    let (client, _server) = connected();
    set_send_buffer(&client, ByteCount::from_kibibytes(64)).expect("allowed");
    set_receive_buffer(&client, ByteCount::from_kibibytes(32)).expect("allowed");
    assert_eq!(send_buffer(&client).expect("socket"), ByteCount::from_kibibytes(128));
    assert_eq!(receive_buffer(&client).expect("socket"), ByteCount::from_kibibytes(64));
}

#[test]
fn buffers_beyond_the_limit_are_capped_without_an_error() {
    let socket = datagram_socket();
    let limit = std::fs::read_to_string("/proc/sys/net/core/wmem_max").expect("procfs");
    let limit = ByteCount::new(limit.trim().parse().expect("a number"));
    set_send_buffer(&socket, ByteCount::new(u64::MAX)).expect("capped");
    assert_eq!(send_buffer(&socket).expect("socket"), limit * 2);
}

#[test]
fn a_forced_buffer_is_at_least_what_a_plain_one_would_be() {
    let (plain, forced) = (datagram_socket(), datagram_socket());
    let size = ByteCount::from_mebibytes(8);
    set_receive_buffer(&plain, size).expect("capped");
    force_receive_buffer(&forced, size).expect("falls back");
    force_send_buffer(&forced, size).expect("falls back");
    assert!(receive_buffer(&forced).expect("socket") >= receive_buffer(&plain).expect("socket"));
}

#[test]
fn queues_are_counted() {
    let (mut client, server) = connected();
    client.write_all(&[0; 1000]).expect("buffer space");
    assert!(
        crate::poll::wait_for(&server, crate::poll::PollInterest::READ, Some(Duration::from_secs(5))).expect("poll")
    );
    assert_eq!(unread_bytes(&server).expect("socket"), ByteCount::new(1000));
    assert!(unacknowledged_bytes(&client).expect("socket") <= ByteCount::new(1000));
    assert_eq!(unread_bytes(&client).expect("socket"), ByteCount::ZERO);
}

#[test]
fn unread_data_stays_unacknowledged_only_beyond_the_window() {
    let (client, _server) = connected();
    client.set_nonblocking(true).expect("socket");
    let block = vec![0; 1 << 20];
    while (&client).write(&block).is_ok() {}
    assert!(unacknowledged_bytes(&client).expect("socket") > ByteCount::ZERO);
}

#[test]
fn the_segment_size_is_limited() {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("TCP");
    set_mss(&socket, Mss::new(1000)).expect("in range");
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    socket.connect(&listener.local_addr().expect("bound").into()).expect("loopback");
    // Timestamps take 12 bytes of each segment.
    assert!((900..=1000).contains(&mss(&socket).expect("TCP").get()), "{:?}", mss(&socket));
    let error = set_mss(&socket, Mss::new(40_000)).expect_err("too large");
    assert!(error.to_string().ends_with("(the kernel takes 88 to 32767 bytes)"), "{error}");
}

#[test]
fn switches_and_times_of_tcp() {
    let (client, _server) = connected();
    set_no_delay(&client, true).expect("TCP");
    assert_eq!(read(&client, libc::IPPROTO_TCP, libc::TCP_NODELAY), 1);
    set_user_timeout(&client, Duration::from_millis(1500)).expect("TCP");
    assert_eq!(read(&client, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT), 1500);
    let keepalive = KeepaliveSettings {
        idle: Some(Duration::from_millis(9500)),
        interval: Some(Duration::from_secs(3)),
        probes: Some(2),
    };
    set_keepalive(&client, keepalive).expect("TCP");
    assert_eq!(read(&client, libc::SOL_SOCKET, libc::SO_KEEPALIVE), 1);
    assert_eq!(read(&client, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE), 10, "rounded up");
    assert_eq!(read(&client, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL), 3);
    assert_eq!(read(&client, libc::IPPROTO_TCP, libc::TCP_KEEPCNT), 2);
    set_zero_copy(&client, true).expect("Linux 4.14");
    assert_eq!(read(&client, libc::SOL_SOCKET, libc::SO_ZEROCOPY), 1);
    set_receive_low_water(&client, ByteCount::new(4096)).expect("socket");
    assert_eq!(read(&client, libc::SOL_SOCKET, libc::SO_RCVLOWAT), 4096);
    set_reuse_address(&client, true).expect("socket");
    assert_eq!(read(&client, libc::SOL_SOCKET, libc::SO_REUSEADDR), 1);
}

#[test]
fn pacing_rates_beyond_32_bits() {
    const MAX_PACING_RATE: SocketOption =
        SocketOption::new(libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, "SO_MAX_PACING_RATE", "maximum pacing rate");
    let (client, _server) = connected();
    for (rate, bytes_per_second) in [(100e9, 12_500_000_000), (1e6, 125_000), (1.0, 1), (0.0, u64::MAX)] {
        set_max_pacing_rate(&client, BitRate::from_bits_per_second(rate)).expect("any rate");
        assert_eq!(get::<u64>(&client, MAX_PACING_RATE).expect("socket"), bytes_per_second);
    }
}

#[test]
fn timeouts_end_a_read() {
    let socket = datagram_socket();
    set_receive_timeout(&socket, Some(Duration::from_millis(20))).expect("socket");
    let error = socket.recv(&mut [0; 8]).expect_err("no sender");
    assert!(crate::poll::would_block(&error), "{error}");
    assert_eq!(set_send_timeout(&socket, Some(Duration::ZERO)).expect_err("no limit").errno(), Some(libc::EINVAL));
    set_send_timeout(&socket, Some(Duration::from_millis(1234))).expect("socket");
    assert_eq!(socket.write_timeout().expect("socket").map(|time| time.as_millis() / 10), Some(123));
    set_send_timeout(&socket, None).expect("socket");
    assert_eq!(socket.write_timeout().expect("socket"), None);
}

#[test]
fn packets_are_marked_in_both_families() {
    let ipv4 = datagram_socket();
    set_type_of_service(&ipv4, TypeOfService::new(0xb8)).expect("IPv4");
    assert_eq!(type_of_service(&ipv4).expect("IPv4"), TypeOfService::new(0xb8));
    let ipv6 = UdpSocket::bind("[::]:0").expect("IPv6");
    set_type_of_service(&ipv6, TypeOfService::new(0x28)).expect("IPv6");
    assert_eq!(type_of_service(&ipv6).expect("IPv6"), TypeOfService::new(0x28));
    assert_eq!(read(&ipv6, libc::IPPROTO_IP, libc::IP_TOS), 0x28, "for mapped IPv4 destinations");
    assert!(is_ipv6(&ipv6).expect("socket") && !is_ipv6(&ipv4).expect("socket"));
}

#[test]
fn a_flow_label_reaches_the_connection() {
    let listener = TcpListener::bind("[::1]:0").expect("IPv6 loopback");
    let SocketAddr::V6(remote) = listener.local_addr().expect("bound") else { panic!("IPv6") };
    let socket = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, None).expect("TCP");
    let label = FlowLabel::new(0x1_2345).expect("in range");
    let labelled = set_flow_label(&socket, remote, label).expect("needs no privilege");
    assert_eq!((labelled.ip(), labelled.port()), (remote.ip(), remote.port()));
    assert_eq!(u32::from_be(labelled.flowinfo()), 0x1_2345);
    socket.connect(&labelled.into()).expect("loopback");
    assert_eq!(read(&socket, libc::IPPROTO_IPV6, libc::IPV6_FLOWINFO_SEND), 1);
    let Some(peer) = socket.peer_addr().expect("connected").as_socket_ipv6() else { panic!("IPv6") };
    assert_eq!(u32::from_be(peer.flowinfo()), 0x1_2345, "the kernel kept it");
}

#[test]
fn datagrams_are_not_fragmented() {
    let socket = datagram_socket();
    set_dont_fragment(&socket).expect("IPv4");
    assert_eq!(read(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), libc::IP_PMTUDISC_DO);
    let socket = UdpSocket::bind("[::]:0").expect("IPv6");
    set_dont_fragment(&socket).expect("IPv6");
    assert_eq!(read(&socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER), libc::IPV6_PMTUDISC_DO);
    assert_eq!(read(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), libc::IP_PMTUDISC_DO);
}

#[test]
fn path_mtu_is_probed_in_both_families() {
    let socket = datagram_socket();
    set_path_mtu_probing(&socket).expect("IPv4");
    assert_eq!(read(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), libc::IP_PMTUDISC_PROBE);
    let error = path_mtu(&socket).expect_err("not connected");
    assert!(error.to_string().contains("connect it first"), "{error}");
    socket.connect("127.0.0.1:9").expect("UDP");
    assert!(path_mtu(&socket).expect("connected").get() >= 1280);
    for peer in ["[::ffff:127.0.0.1]:9", "[::1]:9"] {
        let socket = UdpSocket::bind("[::]:0").expect("IPv6");
        set_path_mtu_probing(&socket).expect("IPv6");
        assert_eq!(read(&socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER), libc::IPV6_PMTUDISC_PROBE);
        assert_eq!(read(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), libc::IP_PMTUDISC_PROBE);
        socket.connect(peer).expect("UDP");
        assert!(path_mtu(&socket).expect("connected").get() >= 1280);
        unset_path_mtu_probing(&socket).expect("IPv6");
        assert_eq!(read(&socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER), libc::IPV6_PMTUDISC_WANT);
        assert_eq!(read(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), libc::IP_PMTUDISC_WANT);
    }
}

#[test]
fn packet_metadata_is_enabled_in_both_families() {
    let socket = UdpSocket::bind("[::]:0").expect("IPv6");
    set_receive_hop_limit(&socket, true).expect("both");
    set_receive_type_of_service(&socket, true).expect("both");
    set_receive_destination(&socket, true).expect("IPv6");
    set_path_errors(&socket, true).expect("both");
    set_hop_limit(&socket, 9).expect("both");
    let ipv4 = [libc::IP_RECVTTL, libc::IP_RECVTOS, libc::IP_RECVERR];
    assert_eq!(ipv4.map(|option| read(&socket, libc::IPPROTO_IP, option)), [1; 3]);
    let ipv6 = [libc::IPV6_RECVHOPLIMIT, libc::IPV6_RECVTCLASS, libc::IPV6_RECVPKTINFO, libc::IPV6_RECVERR];
    assert_eq!(ipv6.map(|option| read(&socket, libc::IPPROTO_IPV6, option)), [1; 4]);
    assert_eq!(read(&socket, libc::IPPROTO_IP, libc::IP_TTL), 9);
    assert_eq!(read(&socket, libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS), 9);
}

#[test]
fn options_of_udp() {
    let socket = datagram_socket();
    set_udp_segment(&socket, 1448).expect("Linux 4.18");
    assert_eq!(read(&socket, libc::IPPROTO_UDP, 103), 1448);
    set_udp_gro(&socket, true).expect("Linux 5.0");
    assert_eq!(read(&socket, libc::IPPROTO_UDP, 104), 1);
    set_receive_queue_overflow_counter(&socket, true).expect("socket");
    assert_eq!(read(&socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL), 1);
    set_receive_timestamps(&socket, true).expect("socket");
    assert_eq!(read(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS), 1);
}

#[test]
fn busy_polling_is_set_or_the_remedy_is_given() {
    let socket = datagram_socket();
    match set_busy_poll(&socket, Duration::from_micros(50)) {
        Ok(()) => assert_eq!(read(&socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL), 50),
        Err(error) => assert!(error.to_string().contains("CAP_NET_ADMIN"), "{error}"),
    }
}

#[test]
fn interfaces() {
    let socket = datagram_socket();
    bind_to_device(&socket, "lo").expect("needs no privilege since Linux 5.7");
    assert_eq!(interface_index("lo").expect("every host has it"), 1);
    let error = interface_index("nosuch0").expect_err("not there");
    assert!(error.to_string().contains("ip link"), "{error}");
    let error = bind_to_device(&socket, "nosuch0").expect_err("not there");
    let text = "setting the interface to \"nosuch0\" (SO_BINDTODEVICE): No such device (`ip link` lists";
    assert!(error.to_string().starts_with(text), "{error}");
    for name in ["", ".", "..", "a/b", "a b", "a:1", "a\0", "1234567890123456"] {
        assert!(check_interface_name(name).is_err(), "{name:?}");
        assert!(bind_to_device(&socket, name).is_err(), "{name:?}");
    }
    for name in ["lo", "eth0.100", "123456789012345", "wg-home", "ens3@x"] {
        check_interface_name(name).expect(name);
    }
}

#[test]
fn a_listener_for_ipv6_alone() {
    let socket = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, None).expect("TCP");
    set_ipv6_only(&socket, true).expect("not bound yet");
    assert_eq!(read(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY), 1);
    socket.bind(&SocketAddrV6::new(Ipv6Addr::LOCALHOST, 0, 0, 0).into()).expect("IPv6 loopback");
}
