//! Document of `linerate rr --json`: transactions of a request and its response, their rate and their latency.

use core::time::Duration;

use linerate_analysis::latency_histogram::LatencyHistogram;
use linerate_model::path::UnknownValue;
use linerate_model::report::TestTermination;
use linerate_model::rr::RrMode;
use linerate_model::tls::TlsProperties;
use linerate_units::Ratio;
use linerate_units::serde::nanoseconds;
use serde::{Deserialize, Serialize};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Test of requests and responses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RrDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that measured.
    pub linerate_version: String,
    /// Host as given by the user.
    pub host: String,
    /// Port of the host.
    pub port: u16,
    /// Version of the server.
    pub peer_version: Option<String>,
    /// Start time in nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Outcome of the run.
    pub termination: TestTermination,
    /// Kind of transaction.
    pub mode: RrMode,
    /// Handshake of each transaction, as negotiated before the test; `None` for kinds without TLS, and when none succeeded.
    #[serde(default)]
    pub handshake: Option<TlsProperties>,
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Bytes of a response.
    pub response_bytes: u64,
    /// Number of concurrent flows: each has one transaction at a time.
    pub flows: u32,
    /// Times at which requests are sent.
    pub schedule: RrSchedule,
    /// Rate that the schedule asks for, of all flows together; `None` in a closed loop.
    pub scheduled_per_second: Option<f64>,
    /// Time from the start to the last transaction, in nanoseconds; of a test at a rate, to the end of its last interval.
    pub measured_ns: Option<u64>,
    /// Transactions completed.
    pub transactions: u64,
    /// Transactions completed per second of the measured time.
    pub transactions_per_second: Option<f64>,
    /// Transactions without a response within the time limit, and handshakes that failed; `None` for `tcp` and `connect`, where
    /// one ends its flow.
    pub lost: Option<u64>,
    /// Scheduled transactions that were not complete at the end. The latency has the time until then: they took longer.
    pub unfinished: u64,
    /// Time from the intended sending of a request, by the schedule, to its response. In a closed loop a request is
    /// intended when the previous transaction of its flow is complete.
    pub latency: Option<LatencySummary>,
    /// Time from the actual sending of a request to its response; `None` in a closed loop, where both are the same.
    pub service_time: Option<LatencySummary>,
    /// Latency by bounds of a 1-2-5 series.
    pub histogram: Vec<LatencyBucket>,
    /// Transactions second by second.
    pub intervals: Vec<RrInterval>,
    /// Processor time of the sending threads of this host for each transaction, in nanoseconds.
    pub near_processor_ns: Option<f64>,
    /// Processor time of the answering threads of the server for each transaction, in nanoseconds.
    pub far_processor_ns: Option<f64>,
    /// Reasons of flows that failed.
    #[serde(default)]
    pub failures: Vec<String>,
    /// Unknown values, each with its reason.
    #[serde(default)]
    pub unknown: Vec<UnknownValue>,
    /// Notes for the reader.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Times at which requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RrSchedule {
    /// The next request follows the previous response (closed loop).
    Closed,
    /// Equal intervals, independent of responses (open loop).
    Constant,
    /// Random intervals of a Poisson process, independent of responses (open loop).
    Poisson,
}

impl RrSchedule {
    /// Title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Closed => "closed loop",
            Self::Constant => "open loop, equal intervals",
            Self::Poisson => "open loop, random intervals",
        }
    }
}

/// Distribution of latencies. Percentiles are at most 0.1 % above the exact ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LatencySummary {
    /// Number of latencies.
    pub count: u64,
    /// Smallest, in nanoseconds.
    pub min_ns: u64,
    /// Mean, in nanoseconds.
    pub mean_ns: u64,
    /// Median, in nanoseconds.
    pub p50_ns: u64,
    /// 90th percentile, in nanoseconds.
    pub p90_ns: u64,
    /// 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// 99.9th percentile, in nanoseconds.
    pub p99_9_ns: u64,
    /// Largest, in nanoseconds.
    pub max_ns: u64,
}

impl LatencySummary {
    /// Summary of a histogram; `None` without values.
    #[must_use]
    pub fn of(histogram: &LatencyHistogram) -> Option<Self> {
        let percentile = |share| histogram.percentile(Ratio::new(share)?).map(nanoseconds);
        Some(Self {
            count: histogram.count(),
            min_ns: nanoseconds(histogram.min()?),
            mean_ns: nanoseconds(histogram.mean()?),
            p50_ns: percentile(0.5)?,
            p90_ns: percentile(0.9)?,
            p99_ns: percentile(0.99)?,
            p99_9_ns: percentile(0.999)?,
            max_ns: nanoseconds(histogram.max()?),
        })
    }

    /// Percentiles with their titles, in order.
    #[must_use]
    pub const fn percentiles(&self) -> [(&'static str, u64); 5] {
        [
            ("p50", self.p50_ns),
            ("p90", self.p90_ns),
            ("p99", self.p99_ns),
            ("p99.9", self.p99_9_ns),
            ("max", self.max_ns),
        ]
    }
}

/// Part of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LatencyBucket {
    /// Lower bound in nanoseconds, included.
    pub from_ns: u64,
    /// Upper bound in nanoseconds, excluded.
    pub below_ns: u64,
    /// Number of latencies.
    pub count: u64,
}

impl LatencyBucket {
    /// Buckets of a histogram, from the lowest to the highest.
    #[must_use]
    pub fn all(histogram: &LatencyHistogram) -> Vec<Self> {
        let bucket = |low: Duration, high: Duration, count| Self {
            from_ns: nanoseconds(low),
            below_ns: nanoseconds(high),
            count,
        };
        histogram.decades().into_iter().map(|one| bucket(one.low, one.high, one.count)).collect()
    }
}

/// Transactions completed within one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RrInterval {
    /// Start in nanoseconds since the measurement began.
    pub start_ns: u64,
    /// End in nanoseconds since the measurement began.
    pub end_ns: u64,
    /// Transactions completed.
    pub transactions: u64,
    /// Requests found lost.
    pub lost: u64,
    /// Mean latency in nanoseconds; `None` without transactions.
    pub mean_ns: Option<u64>,
    /// Largest latency in nanoseconds; `None` without transactions.
    pub max_ns: Option<u64>,
}
