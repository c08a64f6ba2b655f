//! Results of a test: the document for the peer and the report of this end.

use core::time::Duration;
use std::sync::Arc;

use linerate_model::limit::LimitShares;
use linerate_model::parameters::{TestParameters, TestProtocol};
use linerate_model::report::{
    FarReport, FileReport, SideReport, StreamReport, TcpReport, TestReport, TestTermination, UdpReceived, UdpReport,
};
use linerate_model::stream::StreamRole;
use linerate_sys::options;
use linerate_units::{PacketCount, Ratio};
use linerate_wire::extension;
use linerate_wire::results::{StreamCounts, TestResults};

use crate::measurement::TestMeasurement;
use crate::stream::{TransferFile, utilization};
use crate::tracked::TrackedStream;

/// Data that the peer reported about the test.
#[derive(Debug, Default)]
pub(crate) struct PeerReport {
    /// Its results.
    pub(crate) results: Option<TestResults>,
    /// From a linerate: its intervals and closing figures.
    pub(crate) far: Option<FarReport>,
    /// From a linerate: final figures of each stream.
    pub(crate) end: Option<extension::End>,
}

/// This end's results document.
pub(crate) fn results(measurement: &TestMeasurement) -> TestResults {
    let sends = measurement.streams.iter().any(|tracked| tracked.stream.description.role == StreamRole::Sender);
    let is_tcp = measurement.parameters.protocol == TestProtocol::Tcp;
    let wall = measurement.wall_time(linerate_sys::clock::monotonic_now());
    TestResults {
        cpu: utilization(measurement.cpu(), wall).unwrap_or_default(),
        sender_has_retransmits: sends.then_some(is_tcp),
        congestion_used: congestion(measurement),
        server_output: None,
        streams: measurement.streams.iter().map(|tracked| stream_result(measurement, tracked)).collect(),
    }
}

fn stream_result(measurement: &TestMeasurement, tracked: &TrackedStream) -> StreamCounts {
    let role = tracked.stream.description.role;
    let mut result = StreamCounts {
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
        (TestProtocol::Tcp, StreamRole::Sender) => result.retransmits = tracked.retransmits(),
        (TestProtocol::Tcp, StreamRole::Receiver) => {}
        (TestProtocol::Udp, StreamRole::Sender) => {
            result.packets = tracked.omitted_packets() + tracked.packets();
            result.omitted_packets = Some(tracked.omitted_packets());
        }
        (TestProtocol::Udp, StreamRole::Receiver) => {
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
pub(crate) fn congestion(measurement: &TestMeasurement) -> Option<String> {
    let first = measurement.streams.first().filter(|_| measurement.parameters.protocol == TestProtocol::Tcp)?;
    options::congestion(&first.stream).ok()
}

/// Final message from one linerate to another.
pub(crate) fn far_end(measurement: &TestMeasurement, overlapping_tests: u64) -> extension::End {
    let elapsed = measurement.elapsed(linerate_sys::clock::monotonic_now());
    let is_udp = measurement.parameters.protocol == TestProtocol::Udp;
    let streams = measurement.streams.iter().map(|tracked| {
        let role = tracked.stream.description.role;
        let received = (is_udp && role == StreamRole::Receiver).then(|| tracked.udp_received());
        extension::StreamEnd {
            stream: tracked.stream.description.id,
            tcp_info: tracked.last_info().cloned(),
            limits: tracked.limits(elapsed).filter(|_| role == StreamRole::Sender),
            thread_cpu: tracked.thread_cpu(),
            thread_wait: tracked.thread_wait(),
            duplicates: received.and_then(|received| received.duplicates),
            out_of_order: received.and_then(|received| received.out_of_order),
            dropped_in_host: received.and_then(|received| received.dropped_in_host),
        }
    });
    let host = measurement.host_evidence().cloned().map(Box::new);
    extension::End { streams: streams.collect(), overlapping_tests, host }
}

/// This end's report, merged with the peer's data.
pub(crate) fn report(
    measurement: &TestMeasurement,
    peer: PeerReport,
    file: Option<&Arc<TransferFile>>,
    termination: TestTermination,
) -> TestReport {
    let wall = measurement.wall_time(linerate_sys::clock::monotonic_now());
    let remote = peer.results.as_ref();
    TestReport {
        streams: measurement.streams.iter().map(|tracked| stream_report(measurement, tracked, &peer)).collect(),
        local_cpu: utilization(measurement.cpu(), wall),
        remote_cpu: remote.map(|results| results.cpu),
        local_congestion: congestion(measurement),
        remote_congestion: remote.and_then(|results| results.congestion_used.clone()),
        // iperf3 3.12 sends it to all clients after one that asked for it.
        server_output: remote
            .filter(|_| measurement.parameters.get_server_output)
            .and_then(|results| results.server_output.clone()),
        file: file.and_then(|file| Some(FileReport { name: file.name.display().to_string(), size: file.size().ok()? })),
        overlapping_tests: None,
        far: peer.far,
        host: measurement.host_evidence().cloned(),
        termination,
    }
}

/// Report of a test that moved no data.
pub(crate) fn empty_report(termination: TestTermination) -> TestReport {
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

fn stream_report(measurement: &TestMeasurement, tracked: &TrackedStream, peer: &PeerReport) -> StreamReport {
    let description = tracked.stream.description.clone();
    let duration = measurement.stream_time(tracked);
    let local = SideReport { bytes: tracked.bytes(), duration };
    let results = peer.results.as_ref();
    let theirs = results.and_then(|results| results.streams.iter().find(|stream| stream.id == description.id));
    let remote = theirs.map(|stream| SideReport { bytes: stream.bytes, duration: stream.end.unwrap_or(duration) });
    let end = peer.end.as_ref().and_then(|end| end.streams.iter().find(|stream| stream.stream == description.id));
    let (sent, received) = match description.role {
        StreamRole::Sender => (Some(local), remote),
        StreamRole::Receiver => (remote, Some(local)),
    };
    let is_tcp = measurement.parameters.protocol == TestProtocol::Tcp;
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
    measurement: &TestMeasurement,
    tracked: &TrackedStream,
    theirs: Option<&StreamCounts>,
    end: Option<&extension::StreamEnd>,
) -> TcpReport {
    let elapsed = measurement.elapsed(linerate_sys::clock::monotonic_now());
    let mut report = tracked.tcp_report(elapsed);
    let share = |time: Option<Duration>| Ratio::of(time?.as_secs_f64(), elapsed.as_secs_f64());
    let far_cpu = share(end.and_then(|end| end.thread_cpu));
    let far_wait = share(end.and_then(|end| end.thread_wait).map(|wait| wait.min(elapsed)));
    report.far_info = end.and_then(|end| end.tcp_info.clone());
    match tracked.stream.description.role {
        StreamRole::Sender => {
            let limits = report.limits;
            report.limits =
                limits.map(|limits| LimitShares { receiver_cpu: far_cpu, receiver_wait: far_wait, ..limits });
        }
        StreamRole::Receiver => {
            report.retransmits = theirs.and_then(|stream| stream.retransmits);
            report.limits = end.and_then(|end| end.limits).map(|limits| LimitShares {
                // A far end of an earlier version puts the load of its whole host into its limits.
                sender_cpu: far_cpu,
                sender_wait: far_wait,
                receiver_cpu: tracked.thread_load(elapsed),
                receiver_wait: tracked.thread_wait_share(elapsed),
                ..limits
            });
        }
    }
    report
}

fn udp_report(
    parameters: &TestParameters,
    tracked: &TrackedStream,
    theirs: Option<&StreamCounts>,
    end: Option<&extension::StreamEnd>,
) -> UdpReport {
    match tracked.stream.description.role {
        StreamRole::Sender => UdpReport {
            sent: Some(tracked.packets()),
            received: theirs.map(|stream| far_received(parameters, stream, tracked.omitted_packets(), end)),
        },
        StreamRole::Receiver => UdpReport {
            sent: theirs.map(|stream| far_packets(stream, tracked.received().at_start.expected)),
            received: Some(tracked.udp_received()),
        },
    }
}

/// Packets of a far end's counted part. iperf3 before 3.16 does not report those of the omitted part, and subtracts
/// `omitted_here`, this end's number of them, from the other end's total.
fn far_packets(stream: &StreamCounts, omitted_here: PacketCount) -> PacketCount {
    stream.packets - stream.omitted_packets.unwrap_or(omitted_here)
}

fn far_received(
    parameters: &TestParameters,
    stream: &StreamCounts,
    omitted_here: PacketCount,
    end: Option<&extension::StreamEnd>,
) -> UdpReceived {
    // iperf3 before 3.16 does not report losses of the omitted part; without such a part, or any loss, there are none.
    let has_none = parameters.omit.is_zero() || stream.lost.is_zero();
    let omitted_lost = stream.omitted_lost.or_else(|| has_none.then_some(PacketCount::ZERO));
    UdpReceived {
        expected: far_packets(stream, omitted_here),
        lost: omitted_lost.map(|omitted| stream.lost - omitted),
        jitter: stream.jitter,
        out_of_order: end.and_then(|end| end.out_of_order),
        duplicates: end.and_then(|end| end.duplicates),
        dropped_in_host: end.and_then(|end| end.dropped_in_host),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::stream::StreamId;
    use linerate_units::ByteCount;

    use super::*;

    /// Counts of a peer that received.
    fn counts(packets: u64, lost: u64, omitted: Option<(u64, u64)>) -> StreamCounts {
        StreamCounts {
            id: StreamId::nth(0),
            bytes: ByteCount::new(1),
            retransmits: None,
            jitter: Duration::from_micros(7),
            lost: PacketCount::new(lost),
            omitted_lost: omitted.map(|(_, lost)| PacketCount::new(lost)),
            packets: PacketCount::new(packets),
            omitted_packets: omitted.map(|(packets, _)| PacketCount::new(packets)),
            start: None,
            end: None,
        }
    }

    #[test]
    fn the_omitted_part_of_a_far_receiver_is_subtracted_where_it_is_known() {
        let with_omit = TestParameters { omit: Duration::from_secs(1), ..TestParameters::default() };
        for (parameters, counts, expected, lost) in [
            (&with_omit, counts(1000, 50, Some((100, 20))), 900, Some(30)),
            // Older peers do not report the omitted part: its packets are those that this end has sent in it, and its losses are
            // unknown, unless there are none at all.
            (&with_omit, counts(1000, 50, None), 930, None),
            (&with_omit, counts(1000, 0, None), 930, Some(0)),
            // Counts that contradict each other are no negative number.
            (&with_omit, counts(10, 5, Some((100, 20))), 0, Some(0)),
        ] {
            let found = far_received(parameters, &counts, PacketCount::new(70), None);
            assert_eq!((found.expected.get(), found.lost.map(PacketCount::get)), (expected, lost), "{counts:?}");
            assert_eq!(found.jitter, Duration::from_micros(7));
            assert_eq!((found.duplicates, found.out_of_order, found.dropped_in_host), (None, None, None));
        }
        let without_omit = far_received(&TestParameters::default(), &counts(1000, 50, None), PacketCount::ZERO, None);
        assert_eq!((without_omit.expected.get(), without_omit.lost), (1000, Some(PacketCount::new(50))));
    }

    #[test]
    fn the_omitted_part_of_a_far_sender_is_subtracted() {
        for (omitted, packets) in [(None, 57), (Some((19, 0)), 58), (Some((100, 0)), 0)] {
            let found = far_packets(&counts(77, 0, omitted), PacketCount::new(20));
            assert_eq!(found, PacketCount::new(packets), "{omitted:?}");
        }
    }

    #[test]
    fn only_a_linerate_reports_duplicates_and_its_own_drops() {
        let end = extension::StreamEnd {
            stream: StreamId::nth(0),
            tcp_info: None,
            limits: None,
            thread_cpu: None,
            thread_wait: None,
            duplicates: Some(PacketCount::new(3)),
            out_of_order: Some(PacketCount::new(4)),
            dropped_in_host: Some(PacketCount::new(5)),
        };
        let found = far_received(&TestParameters::default(), &counts(10, 0, None), PacketCount::ZERO, Some(&end));
        let reported = [found.duplicates, found.out_of_order, found.dropped_in_host];
        assert_eq!(reported.map(|count| count.map(PacketCount::get)), [Some(3), Some(4), Some(5)]);
    }

    #[test]
    fn a_test_that_moved_nothing_has_an_empty_report() {
        let found = empty_report(TestTermination::PeerTerminated);
        assert!(found.streams.is_empty() && found.far.is_none() && found.local_cpu.is_none());
        assert_eq!(found.termination, TestTermination::PeerTerminated);
    }
}
