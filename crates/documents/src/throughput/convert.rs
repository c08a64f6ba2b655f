//! Conversion of the domain types to the document.

use linerate_model::direction::Direction;
use linerate_units::{BitRate, ByteCount, SegmentCount};

use super::{IntervalResult, SCHEMA, SenderLimit, StreamResult, ThroughputDocument, ThroughputTest};
use crate::nanoseconds;
use linerate_model::event::TestStart;
use linerate_model::limit::LimitShares;
use linerate_model::report::StreamReport;
use linerate_model::sample::IntervalReport;
use linerate_model::throughput::{LoadedRtt, rtt_samples};
use linerate_model::throughput::{ThroughputResult, ThroughputRun};

impl ThroughputDocument {
    /// Creates the document of `result`, measured by that version of linerate.
    #[must_use]
    pub fn new(linerate_version: &str, result: &ThroughputResult) -> Self {
        let far_version = |run: &ThroughputRun| run.report.far.as_ref().map(|far| far.version.clone());
        Self {
            schema: SCHEMA,
            linerate_version: linerate_version.to_owned(),
            host: result.host.clone(),
            port: result.port.get(),
            peer_is_linerate: result.peer_is_linerate,
            peer_version: result.runs.iter().find_map(far_version),
            idle_rtt: result.idle_rtt,
            runs: result.runs.iter().map(Into::into).collect(),
            quic: result.quic.clone(),
        }
    }
}

impl From<&ThroughputRun> for ThroughputTest {
    fn from(run: &ThroughputRun) -> Self {
        let report = &run.report;
        let rate = run.rate();
        let (client, server) = (report.local_congestion.clone(), report.remote_congestion.clone());
        let (sender, receiver) = if run.direction == Direction::Up { (client, server) } else { (server, client) };
        Self {
            direction: run.direction,
            streams: run.streams.get(),
            started_at_unix_ns: run.start.as_ref().map(|start| nanoseconds(start.at.since_unix_epoch())),
            termination: report.termination.clone(),
            bits_per_second: rate.map(|measured| measured.rate.bits_per_second()),
            measured_at: rate.map(|measured| measured.at),
            duration_ns: rate.map(|measured| nanoseconds(measured.duration)),
            sent_bytes: run.sent().map(ByteCount::get),
            received_bytes: run.received().map(ByteCount::get),
            retransmitted_segments: run.retransmits().map(SegmentCount::get),
            loaded_rtt: run.loaded_rtt(),
            client_cpu_percent: report.local_cpu.map(|cpu| cpu.total.percent()),
            server_cpu_percent: report.remote_cpu.map(|cpu| cpu.total.percent()),
            receive_method: run.start.as_ref().and_then(TestStart::receive_method),
            tls_data: run.start.as_ref().and_then(|start| start.tls_data.clone()),
            sender_congestion_control: sender,
            receiver_congestion_control: receiver,
            limit: run.limits().map(Into::into),
            diagnosis: run.diagnosis.clone(),
            overlapping_tests: run.overlapping_tests(),
            stream_results: report.streams.iter().map(Into::into).collect(),
            intervals: run.intervals.iter().map(Into::into).collect(),
            server_intervals: report.far.as_ref().map(|far| far.intervals.iter().map(Into::into).collect()),
        }
    }
}

impl From<&StreamReport> for StreamResult {
    fn from(stream: &StreamReport) -> Self {
        let tcp = stream.tcp.as_ref();
        let measured = stream.received.or(stream.sent);
        Self {
            id: stream.description.id.0,
            bits_per_second: measured.map(|side| side.bytes.rate_over(side.duration).bits_per_second()),
            sent_bytes: stream.sent.map(|side| side.bytes.get()),
            received_bytes: stream.received.map(|side| side.bytes.get()),
            retransmitted_segments: tcp.and_then(|tcp| tcp.retransmits).map(SegmentCount::get),
            rtt: tcp.and_then(|tcp| tcp.rtt_samples),
            limit: tcp.and_then(|tcp| tcp.limits).map(Into::into),
            client_thread_cpu_ns: stream.thread_cpu.map(nanoseconds),
            client_tcp_info: tcp.and_then(|tcp| tcp.last_info.clone()),
            server_tcp_info: tcp.and_then(|tcp| tcp.far_info.clone()),
        }
    }
}

impl From<&IntervalReport> for IntervalResult {
    fn from(interval: &IntervalReport) -> Self {
        let bytes: ByteCount = interval.streams.iter().map(|stream| stream.bytes).sum();
        let rate: BitRate = bytes.rate_over(interval.length());
        let retransmits: Vec<_> =
            interval.streams.iter().filter_map(|stream| stream.tcp.as_ref()?.retransmits).collect();
        Self {
            start_ns: nanoseconds(interval.start),
            end_ns: nanoseconds(interval.end),
            omitted: interval.omitted,
            bytes: bytes.get(),
            bits_per_second: rate.bits_per_second(),
            retransmitted_segments: (!retransmits.is_empty())
                .then(|| retransmits.iter().copied().sum::<SegmentCount>().get()),
            rtt: LoadedRtt::of(rtt_samples(interval)),
        }
    }
}

impl From<LimitShares> for SenderLimit {
    fn from(shares: LimitShares) -> Self {
        Self { verdict: shares.verdict(), shares }
    }
}
