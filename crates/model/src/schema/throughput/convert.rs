//! From the domain types to the document.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio, SegmentCount};

use super::figures::{LoadedRtt, rtt_samples};
use super::{
    Diagnosis, Direction, Interval, Limit, Outcome, Role, RttUnderLoad, Run, SCHEMA, StreamResult, TcpInfo,
    Termination, ThroughputDocument, TimeDistribution, Verdict,
};
use crate::diagnosis;
use crate::limit::{self, LimitShares};
use crate::report::{self, StreamReport};
use crate::sample::IntervalReport;
use crate::schema::{diagnose, nanoseconds};
use crate::statistics::Summary;
use crate::stream;
use crate::summary::Distribution;
use crate::throughput::{Flow, ThroughputResult, ThroughputRun};

impl ThroughputDocument {
    /// The document of `result`, measured by the linerate of that version.
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
            idle_rtt: result.idle_rtt.as_ref().map(Into::into),
            runs: result.runs.iter().map(Into::into).collect(),
        }
    }
}

impl From<&ThroughputRun> for Run {
    fn from(run: &ThroughputRun) -> Self {
        let report = &run.report;
        let rate = run.rate();
        let (client, server) = (report.local_congestion.clone(), report.remote_congestion.clone());
        let (sender, receiver) = if run.flow == Flow::Up { (client, server) } else { (server, client) };
        Self {
            direction: run.flow.into(),
            streams: run.streams.get(),
            started_at_unix_ns: run.start.as_ref().map(|start| nanoseconds(start.at.since_unix_epoch())),
            termination: (&report.termination).into(),
            bits_per_second: rate.map(|measured| measured.rate.bits_per_second()),
            measured_at: rate.map(|measured| measured.at.into()),
            duration_ns: rate.map(|measured| nanoseconds(measured.duration)),
            sent_bytes: run.sent().map(ByteCount::get),
            received_bytes: run.received().map(ByteCount::get),
            retransmitted_segments: run.retransmits().map(SegmentCount::get),
            loaded_rtt: run.loaded_rtt().map(Into::into),
            client_cpu_percent: report.local_cpu.map(|cpu| cpu.total.percent()),
            server_cpu_percent: report.remote_cpu.map(|cpu| cpu.total.percent()),
            sender_congestion_control: sender,
            receiver_congestion_control: receiver,
            limit: run.limits().map(Into::into),
            diagnosis: run.diagnosis.as_ref().map(Into::into),
            overlapping_tests: run.overlapping_tests(),
            stream_results: report.streams.iter().map(Into::into).collect(),
            intervals: run.intervals.iter().map(Into::into).collect(),
            server_intervals: report.far.as_ref().map(|far| far.intervals.iter().map(Into::into).collect()),
        }
    }
}

impl From<&diagnosis::Diagnosis> for Diagnosis {
    fn from(diagnosis: &diagnosis::Diagnosis) -> Self {
        Self {
            verdicts: diagnosis.verdicts.iter().map(diagnose::Verdict::from).collect(),
            states: diagnose::StateShare::all(diagnosis),
            bounds: diagnosis.bounds.iter().map(diagnose::Bound::from).collect(),
            next: diagnosis.next.as_ref().map(diagnose::Bound::from),
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
            rtt: tcp.and_then(|tcp| tcp.rtt_samples.as_ref()).map(Into::into),
            limit: tcp.and_then(|tcp| tcp.limits).map(Into::into),
            client_thread_cpu_ns: stream.thread_cpu.map(nanoseconds),
            client_tcp_info: tcp.and_then(|tcp| tcp.last_info.as_ref()).map(TcpInfo::from),
            server_tcp_info: tcp.and_then(|tcp| tcp.far_info.as_ref()).map(TcpInfo::from),
        }
    }
}

impl From<&IntervalReport> for Interval {
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
            rtt: LoadedRtt::of(rtt_samples(interval)).map(Into::into),
        }
    }
}

impl From<&report::Termination> for Termination {
    fn from(termination: &report::Termination) -> Self {
        let (outcome, signal, message) = match termination {
            report::Termination::Complete => (Outcome::Complete, None, None),
            report::Termination::Interrupted { signal } => (Outcome::Interrupted, Some(signal.clone()), None),
            report::Termination::PeerTerminated => (Outcome::PeerTerminated, None, None),
            report::Termination::Failed { message } => (Outcome::Failed, None, Some(message.clone())),
        };
        Self { outcome, signal, message }
    }
}

impl From<LimitShares> for Limit {
    fn from(shares: LimitShares) -> Self {
        Self {
            verdict: shares.verdict().into(),
            application: shares.application.get(),
            send_buffer: shares.send_buffer.get(),
            receive_window: shares.receive_window.get(),
            network: shares.network.get(),
            sender_cpu: shares.sender_cpu.map(Ratio::get),
            receiver_cpu: shares.receiver_cpu.map(Ratio::get),
        }
    }
}

impl From<limit::Limit> for Verdict {
    fn from(limit: limit::Limit) -> Self {
        match limit {
            limit::Limit::Application => Self::Application,
            limit::Limit::Sender => Self::Sender,
            limit::Limit::Receiver => Self::Receiver,
            limit::Limit::Network => Self::Network,
        }
    }
}

impl From<Flow> for Direction {
    fn from(flow: Flow) -> Self {
        match flow {
            Flow::Up => Self::Up,
            Flow::Down => Self::Down,
        }
    }
}

impl From<stream::Role> for Role {
    fn from(role: stream::Role) -> Self {
        match role {
            stream::Role::Sender => Self::Sender,
            stream::Role::Receiver => Self::Receiver,
        }
    }
}

impl From<LoadedRtt> for RttUnderLoad {
    fn from(rtt: LoadedRtt) -> Self {
        Self { median_ns: nanoseconds(rtt.median), p95_ns: nanoseconds(rtt.p95) }
    }
}

impl From<&Distribution> for TimeDistribution {
    fn from(distribution: &Distribution) -> Self {
        Self {
            count: distribution.count,
            min_ns: nanoseconds(distribution.min),
            median_ns: nanoseconds(distribution.median),
            mean_ns: nanoseconds(distribution.mean),
            p95_ns: nanoseconds(distribution.p95),
            p99_ns: nanoseconds(distribution.p99),
            max_ns: nanoseconds(distribution.max),
        }
    }
}

impl From<&Summary<Duration>> for TimeDistribution {
    fn from(summary: &Summary<Duration>) -> Self {
        Self {
            count: summary.count,
            min_ns: nanoseconds(summary.min),
            median_ns: nanoseconds(summary.median),
            mean_ns: nanoseconds(summary.mean),
            p95_ns: nanoseconds(summary.p95),
            p99_ns: nanoseconds(summary.p99),
            max_ns: nanoseconds(summary.max),
        }
    }
}
