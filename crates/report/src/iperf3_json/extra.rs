//! The object `linerate`: what iperf3's keys have no room for. Unknown is `null`.
//!
//! Keys and units follow `linerate_model::schema::throughput`; within `"schema": 1` keys may be added, none changes.

use core::time::Duration;

use linerate_model::report::{StreamReport, TestReport, UdpReport};
use linerate_model::sample::{IntervalReport, StreamInterval, TcpInterval, UdpInterval};
use linerate_model::schema::throughput::{Limit, Role, SCHEMA, TcpInfo, Termination, TimeDistribution};
use linerate_units::{ByteCount, PacketCount, SegmentCount};
use serde::Serialize;

use super::value::Value;

/// Everything that is known at the end; without a report only the program's version.
pub(super) fn value(
    intervals: &[IntervalReport],
    far_intervals: &[IntervalReport],
    report: Option<&TestReport>,
) -> Value {
    let far = report.and_then(|report| report.far.as_ref());
    let far_intervals = far.map_or(far_intervals, |far| &far.intervals);
    let extra = Extra {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        peer_version: far.map(|far| far.version.as_str()).filter(|version| !version.is_empty()),
        termination: report.map(|report| (&report.termination).into()),
        overlapping_tests: report.and_then(|report| report.overlapping_tests).or(far.map(|far| far.overlapping_tests)),
        streams: report.map_or_else(Vec::new, |report| report.streams.iter().map(Stream::of).collect()),
        intervals: intervals.iter().map(Interval::of).collect(),
        far_intervals: (!far_intervals.is_empty()).then(|| far_intervals.iter().map(Interval::of).collect()),
    };
    let text = serde_json::to_string(&extra).expect("plain data with string keys");
    Value::parse(&text).expect("just printed")
}

#[derive(Serialize)]
struct Extra<'a> {
    schema: u32,
    version: &'a str,
    peer_version: Option<&'a str>,
    termination: Option<Termination>,
    overlapping_tests: Option<u64>,
    streams: Vec<Stream>,
    intervals: Vec<Interval>,
    far_intervals: Option<Vec<Interval>>,
}

#[derive(Serialize)]
struct Stream {
    id: u32,
    socket: i32,
    role: Role,
    rtt: Option<TimeDistribution>,
    limit: Option<Limit>,
    udp: Option<Udp>,
    thread_cpu_ns: Option<u64>,
    tcp_info: Option<TcpInfo>,
    far_tcp_info: Option<TcpInfo>,
}

impl Stream {
    fn of(stream: &StreamReport) -> Self {
        let tcp = stream.tcp.as_ref();
        Self {
            id: stream.description.id.0,
            socket: stream.description.socket,
            role: stream.description.role.into(),
            rtt: tcp.and_then(|tcp| tcp.rtt_samples.as_ref()).map(Into::into),
            limit: tcp.and_then(|tcp| tcp.limits).map(Into::into),
            udp: stream.udp.as_ref().map(Udp::of),
            thread_cpu_ns: stream.thread_cpu.map(nanoseconds),
            tcp_info: tcp.and_then(|tcp| tcp.last_info.as_ref()).map(Into::into),
            far_tcp_info: tcp.and_then(|tcp| tcp.far_info.as_ref()).map(Into::into),
        }
    }
}

#[derive(Serialize)]
struct Udp {
    sent_packets: Option<u64>,
    expected_packets: Option<u64>,
    lost_packets: Option<u64>,
    out_of_order_packets: Option<u64>,
    duplicate_packets: Option<u64>,
    dropped_in_host_packets: Option<u64>,
    jitter_ns: Option<u64>,
}

impl Udp {
    fn of(udp: &UdpReport) -> Self {
        let received = udp.received;
        let count = |field: fn(linerate_model::report::UdpReceived) -> Option<PacketCount>| {
            received.and_then(field).map(PacketCount::get)
        };
        Self {
            sent_packets: udp.sent.map(PacketCount::get),
            expected_packets: count(|received| Some(received.expected)),
            lost_packets: count(|received| received.lost),
            out_of_order_packets: count(|received| received.out_of_order),
            duplicate_packets: count(|received| received.duplicates),
            dropped_in_host_packets: count(|received| received.dropped_in_host),
            jitter_ns: received.map(|received| nanoseconds(received.jitter)),
        }
    }
}

#[derive(Serialize)]
struct Interval {
    start_ns: u64,
    end_ns: u64,
    omitted: bool,
    streams: Vec<IntervalStream>,
}

impl Interval {
    fn of(interval: &IntervalReport) -> Self {
        Self {
            start_ns: nanoseconds(interval.start),
            end_ns: nanoseconds(interval.end),
            omitted: interval.omitted,
            streams: interval.streams.iter().map(IntervalStream::of).collect(),
        }
    }
}

#[derive(Serialize)]
struct IntervalStream {
    id: u32,
    role: Role,
    bytes: u64,
    tcp: Option<IntervalTcp>,
    udp: Option<IntervalUdp>,
}

impl IntervalStream {
    fn of(stream: &StreamInterval) -> Self {
        Self {
            id: stream.stream.0,
            role: stream.role.into(),
            bytes: stream.bytes.get(),
            tcp: stream.tcp.as_ref().map(IntervalTcp::of),
            udp: stream.udp.as_ref().map(IntervalUdp::of),
        }
    }
}

#[derive(Serialize)]
struct IntervalTcp {
    retransmitted_segments: Option<u64>,
    congestion_window_bytes: Option<u64>,
    send_window_bytes: Option<u64>,
    smoothed_rtt_ns: Option<u64>,
    rtt: Option<TimeDistribution>,
}

impl IntervalTcp {
    fn of(tcp: &TcpInterval) -> Self {
        Self {
            retransmitted_segments: tcp.retransmits.map(SegmentCount::get),
            congestion_window_bytes: tcp.congestion_window.map(ByteCount::get),
            send_window_bytes: tcp.send_window.map(ByteCount::get),
            smoothed_rtt_ns: tcp.rtt.map(nanoseconds),
            rtt: tcp.rtt_samples.as_ref().map(Into::into),
        }
    }
}

#[derive(Serialize)]
struct IntervalUdp {
    packets: u64,
    lost_packets: Option<u64>,
    out_of_order_packets: Option<u64>,
    duplicate_packets: Option<u64>,
    dropped_in_host_packets: Option<u64>,
    jitter_ns: Option<u64>,
}

impl IntervalUdp {
    fn of(udp: &UdpInterval) -> Self {
        Self {
            packets: udp.packets.get(),
            lost_packets: udp.lost.map(PacketCount::get),
            out_of_order_packets: udp.out_of_order.map(PacketCount::get),
            duplicate_packets: udp.duplicates.map(PacketCount::get),
            dropped_in_host_packets: udp.dropped_in_host.map(PacketCount::get),
            jitter_ns: udp.jitter.map(nanoseconds),
        }
    }
}

/// Nanoseconds; times beyond 584 years saturate.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
