//! The object `linerate`: figures for which iperf3 has no key. Unknown is `null`.
//!
//! Keys and units follow `linerate_documents::throughput`; within `"schema": 1` keys may be added, none changes.

use linerate_documents::throughput::{SCHEMA, SenderLimit};
use linerate_model::report::TestTermination;
use linerate_model::report::{StreamReport, TestReport, UdpReport};
use linerate_model::sample::IntervalReport;
use linerate_model::stream::{StreamId, StreamRole};
use linerate_model::summary::DurationDistribution;
use linerate_model::tcp_info::TcpInfo;
use linerate_units::PacketCount;
use linerate_units::serde::nanoseconds;
use serde::Serialize;

use super::value::OrderedValue;

/// All figures known at the end; without a report only the program's version.
pub(super) fn value(
    intervals: &[IntervalReport],
    far_intervals: &[IntervalReport],
    intervals_left_out: u64,
    report: Option<&TestReport>,
) -> OrderedValue {
    let far = report.and_then(|report| report.far.as_ref());
    let far_intervals = far.map_or(far_intervals, |far| &far.intervals);
    let extra = LinerateObject {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        peer_version: far.map(|far| far.version.as_str()).filter(|version| !version.is_empty()),
        termination: report.map(|report| report.termination.clone()),
        overlapping_tests: report.and_then(|report| report.overlapping_tests).or(far.map(|far| far.overlapping_tests)),
        streams: report.map_or_else(Vec::new, |report| report.streams.iter().map(LinerateStream::of).collect()),
        intervals,
        far_intervals: (!far_intervals.is_empty()).then_some(far_intervals),
        intervals_left_out: (intervals_left_out > 0).then_some(intervals_left_out),
    };
    OrderedValue::Text(serde_json::to_string(&extra).expect("plain data with string keys"))
}

#[derive(Serialize)]
struct LinerateObject<'a> {
    schema: u32,
    version: &'a str,
    peer_version: Option<&'a str>,
    termination: Option<TestTermination>,
    overlapping_tests: Option<u64>,
    streams: Vec<LinerateStream<'a>>,
    intervals: &'a [IntervalReport],
    far_intervals: Option<&'a [IntervalReport]>,
    /// Present when a server had no memory for all intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    intervals_left_out: Option<u64>,
}

#[derive(Serialize)]
struct LinerateStream<'a> {
    id: StreamId,
    socket: i32,
    role: StreamRole,
    rtt: Option<&'a DurationDistribution>,
    limit: Option<SenderLimit>,
    udp: Option<UdpCounts>,
    thread_cpu_ns: Option<u64>,
    tcp_info: Option<&'a TcpInfo>,
    far_tcp_info: Option<&'a TcpInfo>,
}

impl<'a> LinerateStream<'a> {
    fn of(stream: &'a StreamReport) -> Self {
        let tcp = stream.tcp.as_ref();
        Self {
            id: stream.description.id,
            socket: stream.description.socket,
            role: stream.description.role,
            rtt: tcp.and_then(|tcp| tcp.rtt_samples.as_ref()),
            limit: tcp.and_then(|tcp| tcp.limits).map(Into::into),
            udp: stream.udp.as_ref().map(UdpCounts::of),
            thread_cpu_ns: stream.thread_cpu.map(nanoseconds),
            tcp_info: tcp.and_then(|tcp| tcp.last_info.as_ref()),
            far_tcp_info: tcp.and_then(|tcp| tcp.far_info.as_ref()),
        }
    }
}

#[derive(Serialize)]
struct UdpCounts {
    sent_packets: Option<u64>,
    expected_packets: Option<u64>,
    lost_packets: Option<u64>,
    out_of_order_packets: Option<u64>,
    duplicate_packets: Option<u64>,
    dropped_in_host_packets: Option<u64>,
    jitter_ns: Option<u64>,
}

impl UdpCounts {
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
