//! What came out: the document for the peer and the report for this end.

use core::time::Duration;
use std::sync::Arc;

use linerate_model::limit::LimitShares;
use linerate_model::parameters::{Protocol, TestParameters};
use linerate_model::report::{
    FarReport, FileReport, SideReport, StreamReport, TcpReport, Termination, TestReport, UdpReceived, UdpReport,
};
use linerate_model::stream::Role;
use linerate_sys::options;
use linerate_units::{PacketCount, Ratio};
use linerate_wire::extension;
use linerate_wire::results::{Results, StreamResult};

use crate::measurement::Measurement;
use crate::stream::{FileUse, utilization};
use crate::tracked::Tracked;

/// What the peer has told of the test.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// Its results.
    pub(crate) results: Option<Results>,
    /// From a linerate: its intervals and closing figures.
    pub(crate) far: Option<FarReport>,
    /// From a linerate: what it knows of each stream at the end.
    pub(crate) end: Option<extension::End>,
}

/// This end's results document.
pub(crate) fn results(measurement: &Measurement) -> Results {
    let sends = measurement.streams.iter().any(|tracked| tracked.stream.description.role == Role::Sender);
    let is_tcp = measurement.parameters.protocol == Protocol::Tcp;
    let wall = measurement.wall_time(linerate_sys::clock::monotonic_now());
    Results {
        cpu: utilization(measurement.cpu(), wall).unwrap_or_default(),
        sender_has_retransmits: sends.then_some(is_tcp),
        congestion_used: congestion(measurement),
        server_output: None,
        streams: measurement.streams.iter().map(|tracked| stream_result(measurement, tracked)).collect(),
    }
}

fn stream_result(measurement: &Measurement, tracked: &Tracked) -> StreamResult {
    let role = tracked.stream.description.role;
    let mut result = StreamResult {
        id: tracked.stream.description.id,
        bytes: tracked.bytes(),
        retransmits: None,
        jitter: Duration::ZERO,
        lost: PacketCount::ZERO,
        omitted_lost: Some(PacketCount::ZERO),
        packets: PacketCount::ZERO,
        omitted_packets: Some(PacketCount::ZERO),
        start: Some(Duration::ZERO),
        end: Some(measurement.stream_time(tracked)),
    };
    match (measurement.parameters.protocol, role) {
        (Protocol::Tcp, Role::Sender) => result.retransmits = tracked.retransmits(),
        (Protocol::Tcp, Role::Receiver) => {}
        (Protocol::Udp, Role::Sender) => {
            result.packets = tracked.omitted_packets() + tracked.packets();
            result.omitted_packets = Some(tracked.omitted_packets());
        }
        (Protocol::Udp, Role::Receiver) => {
            let received = tracked.received();
            result.jitter = received.total.jitter;
            result.lost = received.total.lost();
            result.omitted_lost = Some(received.at_start.lost());
            result.packets = received.total.expected;
            result.omitted_packets = Some(received.at_start.expected);
        }
    }
    result
}

/// Congestion control of the first stream.
pub(crate) fn congestion(measurement: &Measurement) -> Option<String> {
    let first = measurement.streams.first().filter(|_| measurement.parameters.protocol == Protocol::Tcp)?;
    options::congestion(&first.stream).ok()
}

/// What a linerate tells the other at the end.
pub(crate) fn far_end(measurement: &Measurement, overlapping_tests: u64) -> extension::End {
    let elapsed = measurement.elapsed(linerate_sys::clock::monotonic_now());
    let is_udp = measurement.parameters.protocol == Protocol::Udp;
    let streams = measurement.streams.iter().map(|tracked| {
        let role = tracked.stream.description.role;
        let received = (is_udp && role == Role::Receiver).then(|| tracked.udp_received());
        extension::StreamEnd {
            stream: tracked.stream.description.id,
            tcp_info: tracked.last_info().cloned(),
            limits: tracked.limits(elapsed, measurement.host_busy).filter(|_| role == Role::Sender),
            thread_cpu: tracked.thread_cpu(),
            duplicates: received.and_then(|received| received.duplicates),
            out_of_order: received.and_then(|received| received.out_of_order),
            dropped_in_host: received.and_then(|received| received.dropped_in_host),
        }
    });
    extension::End { streams: streams.collect(), overlapping_tests, host: measurement.host_evidence().cloned() }
}

/// This end's report, with all that the peer has told.
pub(crate) fn report(
    measurement: &Measurement,
    peer: Peer,
    file: Option<&Arc<FileUse>>,
    termination: Termination,
) -> TestReport {
    let wall = measurement.wall_time(linerate_sys::clock::monotonic_now());
    let remote = peer.results.as_ref();
    TestReport {
        streams: measurement.streams.iter().map(|tracked| stream_report(measurement, tracked, &peer)).collect(),
        local_cpu: utilization(measurement.cpu(), wall),
        remote_cpu: remote.map(|results| results.cpu),
        local_congestion: congestion(measurement),
        remote_congestion: remote.and_then(|results| results.congestion_used.clone()),
        server_output: remote.and_then(|results| results.server_output.clone()),
        file: file.and_then(|file| Some(FileReport { name: file.name.display().to_string(), size: file.size().ok()? })),
        overlapping_tests: None,
        far: peer.far,
        host: measurement.host_evidence().cloned(),
        termination,
    }
}

/// A report of a test that never got to move data.
pub(crate) fn empty_report(termination: Termination) -> TestReport {
    TestReport {
        streams: Vec::new(),
        local_cpu: None,
        remote_cpu: None,
        local_congestion: None,
        remote_congestion: None,
        server_output: None,
        file: None,
        overlapping_tests: None,
        far: None,
        host: None,
        termination,
    }
}

fn stream_report(measurement: &Measurement, tracked: &Tracked, peer: &Peer) -> StreamReport {
    let description = tracked.stream.description.clone();
    let duration = measurement.stream_time(tracked);
    let local = SideReport { bytes: tracked.bytes(), duration };
    let results = peer.results.as_ref();
    let theirs = results.and_then(|results| results.streams.iter().find(|stream| stream.id == description.id));
    let remote = theirs.map(|stream| SideReport { bytes: stream.bytes, duration: stream.end.unwrap_or(duration) });
    let end = peer.end.as_ref().and_then(|end| end.streams.iter().find(|stream| stream.stream == description.id));
    let (sent, received) = match description.role {
        Role::Sender => (Some(local), remote),
        Role::Receiver => (remote, Some(local)),
    };
    let is_tcp = measurement.parameters.protocol == Protocol::Tcp;
    let counts_retransmits = results.and_then(|results| results.sender_has_retransmits) == Some(true);
    StreamReport {
        tcp: is_tcp.then(|| tcp_report(measurement, tracked, theirs.filter(|_| counts_retransmits), end)),
        udp: (!is_tcp).then(|| udp_report(&measurement.parameters, tracked, theirs, end)),
        description,
        sent,
        received,
        thread_cpu: tracked.thread_cpu(),
    }
}

fn tcp_report(
    measurement: &Measurement,
    tracked: &Tracked,
    theirs: Option<&StreamResult>,
    end: Option<&extension::StreamEnd>,
) -> TcpReport {
    let elapsed = measurement.elapsed(linerate_sys::clock::monotonic_now());
    let mut report = tracked.tcp_report(elapsed, measurement.host_busy);
    let far_load = end.and_then(|end| Ratio::of(end.thread_cpu?.as_secs_f64(), elapsed.as_secs_f64()));
    report.far_info = end.and_then(|end| end.tcp_info.clone());
    match tracked.stream.description.role {
        Role::Sender => {
            report.limits = report.limits.map(|limits| LimitShares { receiver_cpu: far_load, ..limits });
        }
        Role::Receiver => {
            report.retransmits = theirs.and_then(|stream| stream.retransmits);
            report.limits = end.and_then(|end| end.limits).map(|limits| LimitShares {
                sender_cpu: limits.sender_cpu.max(far_load),
                receiver_cpu: tracked.thread_load(elapsed).max(measurement.host_busy),
                ..limits
            });
        }
    }
    report
}

fn udp_report(
    parameters: &TestParameters,
    tracked: &Tracked,
    theirs: Option<&StreamResult>,
    end: Option<&extension::StreamEnd>,
) -> UdpReport {
    match tracked.stream.description.role {
        Role::Sender => UdpReport {
            sent: Some(tracked.packets()),
            received: theirs.map(|stream| far_received(parameters, stream, end)),
        },
        Role::Receiver => UdpReport {
            sent: theirs.map(|stream| stream.packets - stream.omitted_packets.unwrap_or_default()),
            received: Some(tracked.udp_received()),
        },
    }
}

fn far_received(parameters: &TestParameters, stream: &StreamResult, end: Option<&extension::StreamEnd>) -> UdpReceived {
    // iperf3 before 3.16 does not tell what it lost during the omitted part; without one there is nothing to tell.
    let omitted_lost = stream.omitted_lost.or_else(|| parameters.omit.is_zero().then_some(PacketCount::ZERO));
    UdpReceived {
        expected: stream.packets - stream.omitted_packets.unwrap_or_default(),
        lost: omitted_lost.map(|omitted| stream.lost - omitted),
        jitter: stream.jitter,
        out_of_order: end.and_then(|end| end.out_of_order),
        duplicates: end.and_then(|end| end.duplicates),
        dropped_in_host: end.and_then(|end| end.dropped_in_host),
    }
}
