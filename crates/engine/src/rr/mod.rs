//! Requests and responses against a linerate: rate and latency of transactions.
//!
//! | part | purpose |
//! |---|---|
//! | `mode` | one file for each kind of transaction, behind one trait |
//! | `schedule` | intended times of the requests of a flow |
//! | `flow` | the thread of a flow: sends, waits, records |
//! | `record` | the document |
//! | `open` | connections with requests that overlap, for `load` |
//!
//! Each flow has a thread that blocks until its response: latency is measured in the thread that sends, without the
//! wake-up of another one and with the fewest system calls. One thread can serve more flows with `epoll` only at the price
//! of one more call for each transaction, so that the number of flows is bounded instead ([`MAX_FLOWS`]).

mod flow;
mod mode;
mod open;
mod record;
mod schedule;
#[cfg(test)]
mod tests;

use core::time::Duration;
use std::sync::Arc;

use linerate_documents::rr::RrDocument;
use linerate_documents::run::SampleSeries;
use linerate_model::rr::RrMode;
use linerate_sys::clock;
use linerate_sys::signals::InterruptSignals;
use linerate_units::{ByteCount, MonotonicTime};
use linerate_wire::probe::{MAX_RR_FLOWS, RrOrder, RrReport};

use crate::phases::{self, AbortReason};
use crate::probe::messages::FarFacts;
use crate::probe::{ProbeError, ProbeSession, ProbeTarget};
use flow::{FlowRecord, FlowThread, FlowWatch};
use mode::{FlowSource, Transactor};
pub use mode::{QuicTransactionFailure, QuicTransactionTarget, QuicTransactions, QuicTransactor};
pub(crate) use open::open;
pub use open::{RequestConnection, ResponseSink};
use record::RrRecord;
use schedule::RequestSchedule;

/// Most concurrent flows.
pub const MAX_FLOWS: u32 = MAX_RR_FLOWS;

/// Time between the last preparation and the first request: all threads wait by then.
const START_DELAY: Duration = Duration::from_millis(20);

/// Interval of progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Options of a test.
#[derive(Clone, Debug)]
pub struct RrOptions {
    /// Server.
    pub target: ProbeTarget,
    /// Kind of transaction.
    pub mode: RrMode,
    /// Size of a request.
    pub request: ByteCount,
    /// Size of a response.
    pub response: ByteCount,
    /// Concurrent flows, at most [`MAX_FLOWS`].
    pub flows: u32,
    /// Time in which requests are sent.
    pub time: Duration,
    /// Transactions per second of all flows together (open loop); `None` for as many as possible (closed loop).
    pub rate: Option<f64>,
    /// Seed of random intervals; `None` for equal ones.
    pub poisson: Option<u64>,
    /// Time limit of a response; after it, a TCP flow has failed, and the transaction of another one is lost.
    pub timeout: Duration,
    /// QUIC of this process; `None` is none.
    pub quic: Option<Arc<dyn QuicTransactions>>,
}

impl RrOptions {
    /// A closed loop of one flow for 10 s, with requests and responses of one byte, as netperf.
    #[must_use]
    pub fn new(target: ProbeTarget, mode: RrMode) -> Self {
        let timeout = Duration::from_secs(if mode == RrMode::Udp { 1 } else { 10 });
        let one = ByteCount::new(1);
        let time = Duration::from_secs(10);
        Self {
            target,
            mode,
            request: one,
            response: one,
            flows: 1,
            time,
            rate: None,
            poisson: None,
            timeout,
            quic: None,
        }
    }
}

/// Progress of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum RrEvent {
    /// Requests begin, for this time.
    Started(Duration),
    /// Transactions since the last report.
    Progress {
        /// Transactions per second since the last report.
        transactions_per_second: f64,
        /// Time left.
        left: Duration,
    },
    /// Note for the user.
    Note(String),
}

/// A finished test.
#[derive(Clone, Debug)]
pub struct RrOutcome {
    /// All figures.
    pub document: RrDocument,
    /// Samples over time.
    pub series: Vec<SampleSeries>,
    /// Facts about its host that the server reports.
    pub far: Option<FarFacts>,
    /// Bytes sent, with headers, at most.
    pub sent: ByteCount,
    /// Bytes received, with headers, at most.
    pub received: ByteCount,
    /// Reason of a missing or partial result; `None` after an interrupt.
    pub error: Option<ProbeError>,
}

/// Runs a test and reports its events to `observer`. `stop` ends it early with a partial result.
pub fn run(options: &RrOptions, stop: Option<InterruptSignals>, observer: &mut dyn FnMut(&RrEvent)) -> RrOutcome {
    let mut record = RrRecord::new(options, stop, observer);
    let result = measure(&mut record);
    record.finish(result)
}

fn measure(record: &mut RrRecord<'_>) -> Result<(), AbortReason> {
    let (options, stop) = (record.options, record.stop);
    let session = ProbeSession::open(&options.target, stop)?;
    record.peer_version = Some(session.server_version().to_owned());
    record.far = session.facts().ok();
    let RrOptions { mode, request, response, flows, .. } = *options;
    let order = RrOrder { mode, request, response, flows, keeps_open: false };
    let (source, handshake) = FlowSource::prepare(&session, options, session.far_rr(order)?)?;
    record.take_handshake(handshake);
    let watch = Arc::new(FlowWatch::new(options.timeout));
    let transactors: Vec<Box<dyn Transactor>> =
        (0..options.flows).map(|_| source.open(&session, options)).collect::<Result<_, _>>()?;
    let start = clock::monotonic_now() + START_DELAY;
    let flows: Vec<FlowThread> = (0..options.flows)
        .zip(transactors)
        .map(|(number, transactor)| {
            let schedule = RequestSchedule::new(options, number, start);
            FlowThread::start(transactor, schedule, Arc::clone(&watch), start, options.time)
        })
        .collect::<Result<_, _>>()?;
    record.tell(&RrEvent::Started(options.time));
    let waited = follow(record, &flows, start);
    if waited.is_err() {
        watch.stop();
    }
    let flows: Vec<FlowRecord> = flows.into_iter().map(FlowThread::join).collect();
    let far = session.far_rr_stop();
    conclude(record, &flows, &far);
    waited?;
    judge(&flows, &far)
}

/// Waits until all flows have ended, and reports the progress.
fn follow(record: &mut RrRecord<'_>, flows: &[FlowThread], start: MonotonicTime) -> Result<(), AbortReason> {
    let end = start + record.options.time;
    let (mut last, mut counted) = (start, 0);
    loop {
        let next = last + PROGRESS_INTERVAL;
        while clock::monotonic_now() < next {
            if flows.iter().all(FlowThread::is_over) {
                return Ok(());
            }
            phases::wait_until(record.stop, next.min(clock::monotonic_now() + Duration::from_millis(50)))?;
        }
        let now = clock::monotonic_now();
        let count: u64 = flows.iter().map(FlowThread::transactions).sum();
        let transactions_per_second = record::per_second(count - counted, now.since(last));
        (last, counted) = (now, count);
        record.tell(&RrEvent::Progress { transactions_per_second, left: end.since(now) });
    }
}

fn conclude(record: &mut RrRecord<'_>, flows: &[FlowRecord], far: &Result<RrReport, ProbeError>) {
    record.take_flows(flows);
    match far {
        Ok(report) => record.take_far(*report),
        Err(error) => record.unknown("far_processor_ns", format!("the server did not report: {error}")),
    }
}

/// A test of which all flows or all transactions failed has failed, and one whose server is gone; the server may know why.
fn judge(flows: &[FlowRecord], far: &Result<RrReport, ProbeError>) -> Result<(), AbortReason> {
    let has_loss = flows.iter().any(|flow| flow.failure.is_some() || flow.loss.is_some());
    if let Ok(RrReport { ended_by_limit: Some(limit), .. }) = far
        && has_loss
    {
        let reason =
            format!("this server lets a session cause traffic for at most {} (--server-max-duration)", display(*limit));
        return Err(ProbeError::Refused { request: "rr".to_owned(), reason }.into());
    }
    let is_empty = flows.iter().all(|flow| flow.transactions == 0);
    let failure = |flow: &FlowRecord| flow.failure.clone().or_else(|| flow.loss.clone().filter(|_| is_empty));
    let failures: Vec<String> = flows.iter().filter_map(failure).collect();
    if let Some(first) = failures.first()
        && failures.len() == flows.len()
    {
        return Err(ProbeError::System(first.clone()).into());
    }
    // Datagrams to a server that is gone are only lost.
    match far {
        Err(error @ (ProbeError::Lost(_) | ProbeError::TimedOut { .. })) => Err(error.clone().into()),
        _ => Ok(()),
    }
}

fn display(time: Duration) -> String {
    linerate_units::display::duration(time)
}
