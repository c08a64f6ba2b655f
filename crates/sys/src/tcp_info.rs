//! Reading the kernel's view of a TCP connection (`getsockopt(TCP_INFO)`).

use core::mem::offset_of;
use core::time::Duration;
use std::os::fd::AsFd;

use linerate_model::socket::{InstantTcpState, RecoveryState};
use linerate_model::tcp_info::{NegotiatedWindowScale, TcpInfo};
use linerate_units::{BitRate, ByteCount, Mss, Mtu, PacketCount, SegmentCount};

use crate::error::Result;
use crate::sockopt::{self, SocketOption};

/// Linux 6.18's `struct tcp_info` (`include/uapi/linux/tcp.h`). It only ever grows at its end, so its offsets hold for
/// every kernel; how much of it a kernel fills is the length that it returns.
#[repr(C)]
#[allow(dead_code, reason = "a layout: fields are read by offset, and the unread ones keep the others in place")]
struct KernelTcpInfo {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    window_scales: u8,
    delivery_flags: u8,
    rto: u32,
    ato: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent: u32,
    last_ack_sent: u32,
    last_data_recv: u32,
    last_ack_recv: u32,
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooopack: u32,
    snd_wnd: u32,
    rcv_wnd: u32,
    rehash: u32,
    total_rto: u16,
    total_rto_recoveries: u16,
    total_rto_time: u32,
    received_ce: u32,
    delivered_e1_bytes: u32,
    delivered_e0_bytes: u32,
    delivered_ce_bytes: u32,
    received_e1_bytes: u32,
    received_e0_bytes: u32,
    received_ce_bytes: u32,
    accurate_ecn: u32,
}

const _: () = {
    assert!(offset_of!(KernelTcpInfo, rto) == 8);
    assert!(offset_of!(KernelTcpInfo, pmtu) == 60);
    assert!(offset_of!(KernelTcpInfo, rtt) == 68);
    assert!(offset_of!(KernelTcpInfo, snd_cwnd) == 80);
    assert!(offset_of!(KernelTcpInfo, total_retrans) == 100);
    assert!(offset_of!(KernelTcpInfo, pacing_rate) == 104);
    assert!(offset_of!(KernelTcpInfo, bytes_acked) == 120);
    assert!(offset_of!(KernelTcpInfo, min_rtt) == 148);
    assert!(offset_of!(KernelTcpInfo, delivery_rate) == 160);
    assert!(offset_of!(KernelTcpInfo, busy_time) == 168);
    assert!(offset_of!(KernelTcpInfo, sndbuf_limited) == 184);
    assert!(offset_of!(KernelTcpInfo, bytes_sent) == 200);
    assert!(offset_of!(KernelTcpInfo, reord_seen) == 220);
    assert!(offset_of!(KernelTcpInfo, snd_wnd) == 228);
    assert!(offset_of!(KernelTcpInfo, rcv_wnd) == 232);
    assert!(offset_of!(KernelTcpInfo, total_rto_time) == 244);
    assert!(size_of::<KernelTcpInfo>() == 280);
};

// `tcpi_options` (`enum` in include/uapi/linux/tcp.h).
const OPTION_TIMESTAMPS: u8 = 1;
const OPTION_SACK: u8 = 2;
const OPTION_WINDOW_SCALE: u8 = 4;
const OPTION_ECN: u8 = 8;
const OPTION_ECN_SEEN: u8 = 16;

/// `TCP_INFINITE_SSTHRESH` of the kernel: still in the first slow start.
const INFINITE_THRESHOLD: u32 = 0x7fff_ffff;

const TCP_INFO: SocketOption =
    SocketOption::new(libc::IPPROTO_TCP, libc::TCP_INFO, "TCP_INFO", "state of the connection");

/// The kernel's current view of the connection. Fields that this kernel does not have are `None`.
pub fn read(connection: &impl AsFd) -> Result<TcpInfo> {
    let mut buffer = [0_u8; size_of::<KernelTcpInfo>()];
    sockopt::get_bytes(connection, TCP_INFO, &mut buffer).map(parse)
}

/// The field of `KernelTcpInfo` with this name and type, out of as many bytes as the kernel returned.
macro_rules! field {
    ($bytes:expr, $name:ident: $type:ty) => {{
        // A wrong type would not compile: the offset's field is compared with it.
        const _: fn(&KernelTcpInfo) -> $type = |layout| layout.$name;
        const START: usize = offset_of!(KernelTcpInfo, $name);
        $bytes
            .get(START..START + size_of::<$type>())
            .and_then(|bytes| bytes.try_into().ok())
            .map(<$type>::from_ne_bytes)
    }};
}

/// Parses the bytes that the kernel returned, however many they are.
#[must_use]
pub fn parse(bytes: &[u8]) -> TcpInfo {
    let mut info = TcpInfo::default();
    parse_options(bytes, &mut info);
    parse_times(bytes, &mut info);
    parse_windows(bytes, &mut info);
    parse_segments(bytes, &mut info);
    parse_bytes_and_rates(bytes, &mut info);
    info
}

/// Parses those fields of the same bytes that only have a meaning at the moment of reading.
#[must_use]
pub fn parse_moment(bytes: &[u8]) -> InstantTcpState {
    let since = |milliseconds: u32| Duration::from_millis(milliseconds.into());
    InstantTcpState {
        recovery: field!(bytes, ca_state: u8).and_then(RecoveryState::from_kernel),
        probes: field!(bytes, probes: u8),
        selectively_acknowledged: field!(bytes, sacked: u32).map(segments),
        retransmitted: field!(bytes, retrans: u32).map(segments),
        congestion_window: field!(bytes, snd_cwnd: u32).map(segments),
        since_data_sent: field!(bytes, last_data_sent: u32).map(since),
        since_data_received: field!(bytes, last_data_recv: u32).map(since),
        segments_sent: field!(bytes, segs_out: u32).map(segments),
        segments_received: field!(bytes, segs_in: u32).map(segments),
    }
}

fn parse_options(bytes: &[u8], info: &mut TcpInfo) {
    let Some(options) = field!(bytes, options: u8) else { return };
    info.timestamps = Some(options & OPTION_TIMESTAMPS != 0);
    info.selective_acknowledgements = Some(options & OPTION_SACK != 0);
    info.explicit_congestion_notification = Some(options & OPTION_ECN != 0);
    info.accurate_ecn = accurate_ecn(bytes, options & OPTION_ECN != 0);
    info.congestion_notification_seen = Some(options & OPTION_ECN_SEEN != 0);
    if options & OPTION_WINDOW_SCALE != 0 {
        info.window_scale = field!(bytes, window_scales: u8).map(window_scale);
    }
}

/// `tcpi_ecn_mode : 2`. Linux 6.18 and 6.19 have Accurate ECN, and do not report the mode, which is then zero; kernels
/// that do not count its bytes do not have it.
fn accurate_ecn(bytes: &[u8], agreed: bool) -> Option<bool> {
    const CLASSIC: u8 = 1;
    const ACCURATE: u8 = 2;
    if !agreed || field!(bytes, received_ce: u32).is_none() {
        return Some(false);
    }
    let [first, ..] = field!(bytes, accurate_ecn: u32)?.to_ne_bytes();
    match if cfg!(target_endian = "little") { first & 3 } else { first >> 6 } {
        CLASSIC => Some(false),
        ACCURATE => Some(true),
        _ => None,
    }
}

/// `tcpi_snd_wscale : 4, tcpi_rcv_wscale : 4`: bit fields begin at the end that the byte order defines.
const fn window_scale(both: u8) -> NegotiatedWindowScale {
    let (low, high) = (both & 0xf, both >> 4);
    if cfg!(target_endian = "little") {
        NegotiatedWindowScale { send: low, receive: high }
    } else {
        NegotiatedWindowScale { send: high, receive: low }
    }
}

fn parse_times(bytes: &[u8], info: &mut TcpInfo) {
    info.rtt = field!(bytes, rtt: u32).and_then(known_microseconds);
    // Before the first sample the deviation is the kernel's initial guess, not a measurement.
    info.rttvar = info.rtt.and(field!(bytes, rttvar: u32)).map(microseconds);
    info.min_rtt = field!(bytes, min_rtt: u32).filter(|time| *time != u32::MAX).and_then(known_microseconds);
    info.retransmission_timeout = field!(bytes, rto: u32).and_then(known_microseconds);
    info.receive_rtt = field!(bytes, rcv_rtt: u32).and_then(known_microseconds);
    info.busy_time = field!(bytes, busy_time: u64).map(Duration::from_micros);
    info.receive_window_limited = field!(bytes, rwnd_limited: u64).map(Duration::from_micros);
    info.send_buffer_limited = field!(bytes, sndbuf_limited: u64).map(Duration::from_micros);
}

fn parse_windows(bytes: &[u8], info: &mut TcpInfo) {
    let known = |size: &u32| *size != 0;
    info.send_mss = field!(bytes, snd_mss: u32).filter(known).map(Mss::new);
    info.receive_mss = field!(bytes, rcv_mss: u32).filter(known).map(Mss::new);
    info.advertised_mss = field!(bytes, advmss: u32).filter(known).map(Mss::new);
    info.path_mtu = field!(bytes, pmtu: u32).filter(known).map(Mtu::new);
    info.congestion_window = field!(bytes, snd_cwnd: u32)
        .zip(info.send_mss)
        .map(|(segments, segment)| segment.byte_count() * u64::from(segments));
    info.slow_start_threshold =
        field!(bytes, snd_ssthresh: u32).filter(|threshold| *threshold < INFINITE_THRESHOLD).map(segments);
    info.send_window = field!(bytes, snd_wnd: u32).map(byte_count);
    info.receive_window = field!(bytes, rcv_wnd: u32).map(byte_count);
    info.receive_space = field!(bytes, rcv_space: u32).map(byte_count);
}

fn parse_segments(bytes: &[u8], info: &mut TcpInfo) {
    info.backoff = field!(bytes, backoff: u8);
    info.data_segments_sent = field!(bytes, data_segs_out: u32).map(segments);
    info.retransmits = field!(bytes, total_retrans: u32).map(segments);
    info.lost = field!(bytes, lost: u32).map(segments);
    info.unacknowledged = field!(bytes, unacked: u32).map(segments);
    info.reordering = field!(bytes, reordering: u32).map(segments);
    info.reordering_seen = field!(bytes, reord_seen: u32).map(segments);
    info.duplicate_sacks = field!(bytes, dsack_dups: u32).map(segments);
    info.out_of_order_received = field!(bytes, rcv_ooopack: u32).map(|count| PacketCount::new(count.into()));
    info.delivered_with_congestion_mark = field!(bytes, delivered_ce: u32).map(segments);
}

fn parse_bytes_and_rates(bytes: &[u8], info: &mut TcpInfo) {
    info.bytes_acknowledged = field!(bytes, bytes_acked: u64).map(ByteCount::new);
    info.bytes_received = field!(bytes, bytes_received: u64).map(ByteCount::new);
    info.bytes_sent = field!(bytes, bytes_sent: u64).map(ByteCount::new);
    info.bytes_retransmitted = field!(bytes, bytes_retrans: u64).map(ByteCount::new);
    info.not_sent = field!(bytes, notsent_bytes: u32).map(byte_count);
    info.pacing_rate = field!(bytes, pacing_rate: u64).filter(|rate| *rate != u64::MAX).map(rate);
    info.max_pacing_rate = field!(bytes, max_pacing_rate: u64).filter(|rate| *rate != u64::MAX).map(rate);
    let delivery_rate = field!(bytes, delivery_rate: u64);
    // The kernel reports 0 until it has a sample.
    info.delivery_rate = delivery_rate.filter(|rate| *rate != 0).map(rate);
    info.delivery_rate_application_limited =
        delivery_rate.and(field!(bytes, delivery_flags: u8)).map(|flags| flags & FIRST_BIT != 0);
}

/// Mask of the first one-bit field of a byte.
const FIRST_BIT: u8 = if cfg!(target_endian = "little") { 0x01 } else { 0x80 };

fn microseconds(time: u32) -> Duration {
    Duration::from_micros(time.into())
}

fn known_microseconds(time: u32) -> Option<Duration> {
    (time != 0).then(|| microseconds(time))
}

fn segments(count: u32) -> SegmentCount {
    SegmentCount::new(count.into())
}

fn byte_count(bytes: u32) -> ByteCount {
    ByteCount::new(bytes.into())
}

fn rate(bytes_per_second: u64) -> BitRate {
    ByteCount::new(bytes_per_second).rate_over(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// A kernel's answer with these fields set.
    fn answer(fields: &[(usize, &[u8])]) -> [u8; size_of::<KernelTcpInfo>()] {
        let mut bytes = [0; size_of::<KernelTcpInfo>()];
        for (offset, value) in fields {
            bytes[*offset..*offset + value.len()].copy_from_slice(value);
        }
        bytes
    }

    #[test]
    fn no_bytes_yield_no_values() {
        assert_eq!(parse(&[]), TcpInfo::default());
    }

    #[test]
    fn a_fresh_connection_has_no_samples_yet() {
        let bytes = answer(&[
            (offset_of!(KernelTcpInfo, rttvar), &250_000_u32.to_ne_bytes()),
            (offset_of!(KernelTcpInfo, snd_ssthresh), &INFINITE_THRESHOLD.to_ne_bytes()),
            (offset_of!(KernelTcpInfo, min_rtt), &u32::MAX.to_ne_bytes()),
            (offset_of!(KernelTcpInfo, pacing_rate), &u64::MAX.to_ne_bytes()),
        ]);
        let info = parse(&bytes);
        assert_eq!((info.rtt, info.rttvar, info.min_rtt), (None, None, None));
        assert_eq!(info.slow_start_threshold, None);
        assert_eq!((info.pacing_rate, info.delivery_rate), (None, None));
        assert_eq!(info.retransmits, Some(SegmentCount::ZERO), "a counter's zero is a value");
        assert_eq!(info.window_scale, None, "not agreed");
        assert_eq!(info.busy_time, Some(Duration::ZERO));
    }

    #[test]
    fn every_field_has_its_unit() {
        let bytes = answer(&[
            (offset_of!(KernelTcpInfo, options), &[OPTION_TIMESTAMPS | OPTION_WINDOW_SCALE]),
            (offset_of!(KernelTcpInfo, window_scales), &[if cfg!(target_endian = "little") { 0xa7 } else { 0x7a }]),
            (offset_of!(KernelTcpInfo, delivery_flags), &[FIRST_BIT]),
            (offset_of!(KernelTcpInfo, rto), &201_000_u32.to_ne_bytes()),
            (offset_of!(KernelTcpInfo, snd_mss), &1448_u32.to_ne_bytes()),
            (offset_of!(KernelTcpInfo, snd_cwnd), &10_u32.to_ne_bytes()),
            (offset_of!(KernelTcpInfo, snd_ssthresh), &7_u32.to_ne_bytes()),
            (offset_of!(KernelTcpInfo, rtt), &117_000_u32.to_ne_bytes()),
            (offset_of!(KernelTcpInfo, rttvar), &500_u32.to_ne_bytes()),
            (offset_of!(KernelTcpInfo, pacing_rate), &1_250_000_000_u64.to_ne_bytes()),
            (offset_of!(KernelTcpInfo, delivery_rate), &1_000_u64.to_ne_bytes()),
            (offset_of!(KernelTcpInfo, rwnd_limited), &1_500_000_u64.to_ne_bytes()),
            (offset_of!(KernelTcpInfo, rcv_wnd), &65_536_u32.to_ne_bytes()),
        ]);
        let info = parse(&bytes);
        assert_eq!(info.window_scale, Some(NegotiatedWindowScale { send: 7, receive: 10 }));
        assert_eq!((info.timestamps, info.selective_acknowledgements), (Some(true), Some(false)));
        assert_eq!(info.retransmission_timeout, Some(Duration::from_millis(201)));
        assert_eq!(info.congestion_window, Some(ByteCount::new(14_480)));
        assert_eq!(info.slow_start_threshold, Some(SegmentCount::new(7)));
        assert_eq!(info.rtt, Some(Duration::from_millis(117)));
        assert_eq!(info.rttvar, Some(Duration::from_micros(500)));
        assert_eq!(info.pacing_rate, Some(BitRate::from_bits_per_second(10e9)));
        assert_eq!(info.delivery_rate, Some(BitRate::from_bits_per_second(8e3)));
        assert_eq!(info.delivery_rate_application_limited, Some(true));
        assert_eq!(info.receive_window_limited, Some(Duration::from_millis(1500)));
        assert_eq!(info.receive_window, Some(ByteCount::new(65_536)));
    }

    #[test]
    fn an_older_kernel_leaves_its_unknown_fields_out() {
        let bytes = answer(&[(offset_of!(KernelTcpInfo, rtt), &1_u32.to_ne_bytes())]);
        let linux_4_2 = parse(&bytes[..offset_of!(KernelTcpInfo, notsent_bytes)]);
        assert_eq!(linux_4_2.rtt, Some(Duration::from_micros(1)));
        assert_eq!(linux_4_2.bytes_received, Some(ByteCount::ZERO));
        assert_eq!((linux_4_2.not_sent, linux_4_2.busy_time, linux_4_2.send_window), (None, None, None));
        assert_eq!(linux_4_2.delivery_rate_application_limited, None);
    }

    #[test]
    fn modes_of_ecn() {
        let of = |options: u8, mode: u8| {
            let mode = if cfg!(target_endian = "little") { mode } else { mode << 6 };
            answer(&[
                (offset_of!(KernelTcpInfo, options), &[options]),
                (offset_of!(KernelTcpInfo, accurate_ecn), &[mode]),
            ])
        };
        let modes = [(0, Some(false)), (1, Some(false)), (2, Some(false))];
        for (mode, expected) in modes {
            assert_eq!(parse(&of(0, mode)).accurate_ecn, expected, "not agreed");
        }
        for (mode, expected) in [(0, None), (1, Some(false)), (2, Some(true)), (3, None)] {
            let bytes = of(OPTION_ECN, mode);
            assert_eq!(parse(&bytes).accurate_ecn, expected, "{mode}");
            let linux_6_12 = &bytes[..offset_of!(KernelTcpInfo, received_ce)];
            assert_eq!(parse(linux_6_12).accurate_ecn, Some(false));
            assert_eq!(parse(&bytes[..offset_of!(KernelTcpInfo, accurate_ecn)]).accurate_ecn, None);
        }
    }

    #[test]
    fn a_field_cut_in_two_is_not_a_field() {
        let bytes = answer(&[(offset_of!(KernelTcpInfo, rtt), &0x0101_0101_u32.to_ne_bytes())]);
        for cut in 0..4 {
            assert_eq!(parse(&bytes[..offset_of!(KernelTcpInfo, rtt) + cut]).rtt, None);
        }
        assert!(parse(&bytes[..offset_of!(KernelTcpInfo, rtt) + 4]).rtt.is_some());
    }

    #[test]
    fn a_real_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let mut client = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
        let (mut server, _) = listener.accept().expect("a client came");
        let mut payload = vec![7; 100_000];
        client.write_all(&payload).expect("sent");
        server.read_exact(&mut payload).expect("received");
        server.write_all(b"y").expect("sent");
        client.read_exact(&mut payload[..1]).expect("received");

        let (sender, receiver) = (read(&client).expect("TCP"), read(&server).expect("TCP"));
        assert_eq!(receiver.bytes_received, Some(ByteCount::new(100_000)));
        assert_eq!(sender.bytes_acknowledged.map(|bytes| bytes >= ByteCount::new(100_000)), Some(true));
        assert!(sender.rtt.is_some_and(|rtt| rtt < Duration::from_secs(1)), "{:?}", sender.rtt);
        assert!(sender.send_mss.is_some_and(|mss| mss >= Mss::new(500)), "{:?}", sender.send_mss);
        assert!(sender.congestion_window.is_some_and(|window| window >= ByteCount::new(500)));
        assert!(sender.send_window.is_some_and(|window| !window.is_zero()));
    }

    #[test]
    fn not_a_tcp_socket() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let error = read(&socket).expect_err("UDP has no TCP_INFO");
        assert_eq!(error.socket_option(), Some("TCP_INFO"));
        assert_eq!(error.to_string(), "reading the state of the connection (TCP_INFO): Operation not supported");
    }
}
