//! Document of a test while it is filled, and its observer.

use core::time::Duration;

use linerate_analysis::latency_histogram::LatencyHistogram;
use linerate_documents::rr::{LatencyBucket, LatencySummary, RrDocument, RrInterval, RrSchedule, SCHEMA};
use linerate_documents::run::{ChartPanel, FigureUnit, SampleSeries};
use linerate_model::path::UnknownValue;
use linerate_model::rr::RrMode;
use linerate_model::tls::TlsProperties;
use linerate_sys::clock;
use linerate_sys::signals::InterruptSignals;
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, MonotonicTime};
use linerate_wire::probe::RrReport;

use super::flow::{FlowRecord, SecondTally};
use super::{RrEvent, RrOptions, RrOutcome};
use crate::phases::{self, AbortReason};
use crate::probe::messages::FarFacts;

/// Headers of a segment or datagram over Ethernet with IPv6 and options, at most.
const HEADERS: u64 = 94;

/// Packets of a transaction on a connection of its own, in each direction, with the closing.
const PACKETS_PER_CONNECTION: u64 = 4;

/// Bytes of a full handshake in one direction, at most, with a chain of certificates and the padding of QUIC.
const HANDSHAKE: u64 = 8 << 10;

/// Share of unfinished transactions from which the schedule was too fast.
const MAX_UNFINISHED_SHARE: f64 = 0.01;

pub(super) struct RrRecord<'a> {
    pub(super) options: &'a RrOptions,
    pub(super) stop: Option<InterruptSignals>,
    observer: &'a mut dyn FnMut(&RrEvent),
    started: MonotonicTime,
    started_at: u64,
    pub(super) peer_version: Option<String>,
    pub(super) far: Option<FarFacts>,
    handshake: Option<TlsProperties>,
    flows: FlowSum,
    far_processor: Option<Duration>,
    unknown: Vec<UnknownValue>,
    notes: Vec<String>,
}

/// Sum of all flows.
#[derive(Default)]
struct FlowSum {
    latency: LatencyHistogram,
    service: LatencyHistogram,
    seconds: Vec<SecondTally>,
    transactions: u64,
    lost: u64,
    unfinished: u64,
    measured: Duration,
    processor: Duration,
    failures: Vec<String>,
    losses: Vec<String>,
}

impl FlowSum {
    fn add(&mut self, flow: &FlowRecord) {
        self.latency.merge(&flow.latency);
        self.service.merge(&flow.service);
        self.seconds.resize(self.seconds.len().max(flow.seconds.len()), SecondTally::default());
        for (sum, second) in self.seconds.iter_mut().zip(&flow.seconds) {
            sum.transactions += second.transactions;
            sum.lost += second.lost;
            sum.sum += second.sum;
            sum.max = sum.max.max(second.max);
        }
        self.transactions += flow.transactions;
        self.lost += flow.lost;
        self.unfinished += flow.unfinished;
        self.measured = self.measured.max(flow.measured);
        self.processor += flow.processor;
        if let Some(failure) = &flow.failure {
            phases::add_note(&mut self.failures, failure);
        }
        if let Some(loss) = &flow.loss {
            phases::add_note(&mut self.losses, loss);
        }
    }

    fn intervals(&self) -> Vec<RrInterval> {
        (0_u64..).zip(&self.seconds).map(|(number, second)| interval(number, second, self.measured)).collect()
    }
}

fn interval(number: u64, second: &SecondTally, measured: Duration) -> RrInterval {
    let known = (second.transactions > 0).then_some(());
    let mean = u64::try_from(second.sum.as_nanos() / u128::from(second.transactions.max(1))).unwrap_or(u64::MAX);
    let (start, end) = (Duration::from_secs(number), Duration::from_secs(number + 1));
    RrInterval {
        start_ns: nanoseconds(start),
        end_ns: nanoseconds(end.min(measured.max(start))),
        transactions: second.transactions,
        lost: second.lost,
        mean_ns: known.map(|()| mean),
        max_ns: known.map(|()| nanoseconds(second.max)),
    }
}

/// `count` in `time`, per second; 0 for no time.
#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 transactions")]
pub(super) fn per_second(count: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

#[expect(clippy::cast_precision_loss, reason = "times of a measurement stay below 2^53 ns")]
fn per_transaction(time: Duration, transactions: u64) -> Option<f64> {
    (transactions > 0).then(|| time.as_nanos() as f64 / transactions as f64)
}

impl<'a> RrRecord<'a> {
    pub(super) fn new(
        options: &'a RrOptions,
        stop: Option<InterruptSignals>,
        observer: &'a mut dyn FnMut(&RrEvent),
    ) -> Self {
        Self {
            options,
            stop,
            observer,
            started: clock::monotonic_now(),
            started_at: nanoseconds(clock::realtime_now().since_unix_epoch()),
            peer_version: None,
            far: None,
            handshake: None,
            flows: FlowSum::default(),
            far_processor: None,
            unknown: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn tell(&mut self, event: &RrEvent) {
        (self.observer)(event);
    }

    pub(super) fn unknown(&mut self, key: &str, reason: impl Into<String>) {
        phases::add_unknown(&mut self.unknown, key, reason);
    }

    fn note(&mut self, text: String) {
        if phases::add_note(&mut self.notes, &text) {
            self.tell(&RrEvent::Note(text));
        }
    }

    /// Takes the properties of the handshakes, of which QUIC's library reports a part.
    pub(super) fn take_handshake(&mut self, handshake: Option<TlsProperties>) {
        let Some(properties) = &handshake else { return };
        let values = [
            ("handshake.key_algorithm", &properties.key_algorithm),
            ("handshake.cipher_suite", &properties.cipher_suite),
            ("handshake.key_exchange", &properties.key_exchange),
        ];
        for (key, _) in values.into_iter().filter(|(_, value)| value.is_none()) {
            self.unknown(key, "the library does not report it");
        }
        self.handshake = handshake;
    }

    pub(super) fn take_flows(&mut self, flows: &[FlowRecord]) {
        for flow in flows {
            self.flows.add(flow);
        }
        let failed = flows.iter().filter(|flow| flow.failure.is_some()).count();
        if let Some(first) = self.flows.failures.first().filter(|_| failed < flows.len()) {
            let text = format!("{failed} of {} flows failed: {first}", flows.len());
            self.note(text);
        }
        if let Some(first) = self.flows.losses.first() {
            let text = format!("{} transactions failed, the first: {first}", self.flows.lost);
            self.note(text);
        }
        let all = self.flows.latency.count();
        #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 transactions")]
        let share = if all == 0 { 0.0 } else { self.flows.unfinished as f64 / all as f64 };
        if self.options.rate.is_some() && share > MAX_UNFINISHED_SHARE && self.flows.failures.is_empty() {
            self.note(format!(
                "{} scheduled transactions were not complete at the end: the rate is above what {} concurrent flows reach here (-P, --rate)",
                self.flows.unfinished, self.options.flows
            ));
        }
    }

    pub(super) fn take_far(&mut self, report: RrReport) {
        self.far_processor = report.processor;
        if report.processor.is_none() {
            let reason = match self.options.mode {
                RrMode::Quic => "the thread of the server's QUIC port serves other clients, too (--quic-port there)",
                _ => "the server does not report it",
            };
            self.unknown("far_processor_ns", reason);
        }
    }

    /// Bytes of all transactions in one direction, with headers, at most.
    fn traffic(&self, message: ByteCount) -> ByteCount {
        let (packets, handshake) = match self.options.mode {
            RrMode::Tls | RrMode::Quic => (2 * PACKETS_PER_CONNECTION, HANDSHAKE),
            RrMode::Connect => (PACKETS_PER_CONNECTION, 0),
            RrMode::Tcp | RrMode::Udp => (1, 0),
        };
        let packets = packets + (message.get() + handshake) / 500;
        let transactions = self.flows.transactions + self.flows.lost;
        ByteCount::new(transactions.saturating_mul(message.get() + handshake + packets * HEADERS))
    }

    fn explain_missing(&mut self) {
        if self.flows.latency.count() == 0 {
            self.unknown("latency", "no transaction was completed");
            self.unknown("transactions_per_second", "no transaction was completed");
        }
    }

    pub(super) fn finish(mut self, result: Result<(), AbortReason>) -> RrOutcome {
        let (termination, error) = phases::termination_of(result, self.stop);
        self.explain_missing();
        let (options, flows) = (self.options, &self.flows);
        let is_open = options.rate.is_some();
        let intervals = flows.intervals();
        let series = series(&intervals);
        let (sent, received) = (self.traffic(options.request), self.traffic(options.response));
        let known = flows.transactions > 0;
        let document = RrDocument {
            schema: SCHEMA,
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: options.target.host.clone(),
            port: options.target.port.get(),
            peer_version: self.peer_version,
            started_at_unix_ns: self.started_at,
            duration_ns: nanoseconds(clock::monotonic_now().since(self.started)),
            termination,
            mode: options.mode,
            handshake: self.handshake.clone(),
            request_bytes: options.request.get(),
            response_bytes: options.response.get(),
            flows: options.flows,
            schedule: match (options.rate, options.poisson) {
                (None, _) => RrSchedule::Closed,
                (Some(_), None) => RrSchedule::Constant,
                (Some(_), Some(_)) => RrSchedule::Poisson,
            },
            scheduled_per_second: options.rate,
            measured_ns: known.then(|| nanoseconds(flows.measured)),
            transactions: flows.transactions,
            transactions_per_second: known.then(|| per_second(flows.transactions, flows.measured)),
            lost: options.mode.counts_losses().then_some(flows.lost),
            unfinished: flows.unfinished,
            latency: LatencySummary::of(&flows.latency),
            service_time: is_open.then(|| LatencySummary::of(&flows.service)).flatten(),
            histogram: LatencyBucket::all(&flows.latency),
            intervals,
            near_processor_ns: per_transaction(flows.processor, flows.transactions),
            far_processor_ns: self.far_processor.and_then(|time| per_transaction(time, flows.transactions)),
            failures: flows.failures.clone(),
            unknown: self.unknown,
            notes: self.notes,
        };
        RrOutcome { document, series, far: self.far, sent, received, error }
    }
}

/// Latency over time.
fn series(intervals: &[RrInterval]) -> Vec<SampleSeries> {
    let of = |name: &str, value: fn(&RrInterval) -> Option<u64>| SampleSeries {
        panel: ChartPanel::Latency,
        name: name.to_owned(),
        direction: None,
        stream: None,
        unit: FigureUnit::Nanoseconds,
        times_ns: intervals.iter().map(|interval| interval.end_ns).collect(),
        #[expect(clippy::cast_precision_loss, reason = "times of a measurement stay below 2^53 ns")]
        values: intervals.iter().map(|interval| value(interval).map(|value| value as f64)).collect(),
    };
    vec![of("mean of 1 s", |one| one.mean_ns), of("largest of 1 s", |one| one.max_ns)]
}
