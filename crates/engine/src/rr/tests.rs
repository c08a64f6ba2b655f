//! Tests of requests over the loopback device: against a served session, and against a server that stalls.

use core::time::Duration;
use std::sync::Arc;

use linerate_documents::rr::RrDocument;
use linerate_model::report::TestTermination;
use linerate_model::rr::RrMode;
use linerate_sys::clock;
use linerate_units::{ByteCount, MonotonicTime, Port, Ratio};
use linerate_wire::parameters::ServerLimits;
use linerate_wire::probe::RrReport;

use super::flow::{FlowRecord, FlowThread, FlowWatch};
use super::mode::{TransactionFailure, Transactor};
use super::schedule::RequestSchedule;
use super::{RrOptions, RrOutcome, judge, run};
use crate::probe::{ProbeError, ProbeTarget};
use crate::server::ServerOptions;
use crate::tests::support::TestServer;

fn options(server: &TestServer, mode: RrMode) -> RrOptions {
    let target = ProbeTarget::new(server.address.ip().to_string(), Port::new(server.address.port()).expect("a port"));
    RrOptions { time: Duration::from_secs(1), ..RrOptions::new(target, mode) }
}

fn measure(options: &RrOptions) -> RrOutcome {
    run(options, None, &mut |_| {})
}

fn complete(options: &RrOptions) -> RrDocument {
    let outcome = measure(options);
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.document.termination, TestTermination::Complete);
    outcome.document
}

#[test]
fn all_kinds_count_their_transactions() {
    let server = TestServer::start(ServerOptions::default());
    // QUIC is a service of the process, which the tests of `quic` have.
    for mode in RrMode::ALL.into_iter().filter(|mode| *mode != RrMode::Quic) {
        for (request, response, flows) in [(1, 1, 1), (100, 3000, 3), (3000, 100, 2)] {
            let [request, response] = [request, response].map(ByteCount::new);
            let time = Duration::from_millis(300);
            let document = complete(&RrOptions { request, response, flows, time, ..options(&server, mode) });
            let latency = document.latency.expect("latencies");
            // On a busy host, a handshake takes hundreds of milliseconds.
            assert!(document.transactions > 0, "{mode:?}: {document:#?}");
            assert_eq!((latency.count, document.unfinished), (document.transactions, 0), "{mode:?}");
            assert_eq!(document.intervals.iter().map(|one| one.transactions).sum::<u64>(), document.transactions);
            assert_eq!(document.histogram.iter().map(|one| one.count).sum::<u64>(), document.transactions);
            assert_eq!((document.lost, document.service_time), (mode.counts_losses().then_some(0), None));
            assert!(document.failures.is_empty() && document.notes.is_empty(), "{mode:?}: {document:#?}");
            assert!(latency.min_ns <= latency.p50_ns && latency.p99_9_ns <= latency.max_ns && latency.min_ns > 1000);
            let handshake = document.handshake.as_ref().map(linerate_model::tls::TlsProperties::text);
            assert_eq!(handshake.is_some(), mode.has_handshake());
            assert!(handshake.is_none_or(|text| text.starts_with("TLS 1.3, raw public key (Ed25519), X25519")));
            for processor in [document.near_processor_ns, document.far_processor_ns] {
                assert!(processor.is_some_and(|time| (100.0..1e7).contains(&time)), "{mode:?}: {processor:?}");
            }
        }
    }
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let server = TestServer::start(ServerOptions::default());
    for poisson in [None, Some(3)] {
        let document = complete(&RrOptions { rate: Some(500.0), poisson, flows: 2, ..options(&server, RrMode::Tcp) });
        // Poisson: the standard deviation of the number is its root.
        let spread = if poisson.is_some() { 100 } else { 0 };
        assert!((500 - spread..=500 + spread).contains(&document.transactions), "{document:#?}");
        let (latency, service) = (document.latency.expect("latencies"), document.service_time.expect("service times"));
        assert_eq!(latency.count, service.count);
        // The last interval counts, too: without it, the rate of few transactions is too high.
        assert!(document.measured_ns.is_some_and(|measured| measured >= 1_000_000_000), "{document:#?}");
        assert!(service.p50_ns <= latency.p50_ns + latency.p50_ns / 1000, "{latency:?} {service:?}");
    }
}

#[test]
fn a_server_without_time_left_names_its_limit() {
    let limits = ServerLimits { max_duration: Some(Duration::from_millis(500)), ..ServerLimits::default() };
    let server = TestServer::start(ServerOptions { limits, ..ServerOptions::default() });
    for mode in [RrMode::Tcp, RrMode::Connect, RrMode::Tls] {
        let outcome = measure(&RrOptions { time: Duration::from_secs(20), ..options(&server, mode) });
        let error = outcome.error.expect("an error").to_string();
        assert!(error.contains("--server-max-duration") && error.contains("500 ms"), "{mode:?}: {error}");
        assert!(outcome.document.transactions > 0);
    }
}

#[test]
fn a_build_without_quic_is_named() {
    let server = TestServer::start(ServerOptions::default());
    let error = measure(&options(&server, RrMode::Quic)).error.expect("an error").to_string();
    assert!(error.contains("built with QUIC"), "{error}");
}

#[test]
fn responses_share_the_rate_of_the_server() {
    let max_total_rate = Some(linerate_units::BitRate::from_bits_per_second(8e6));
    let limits = ServerLimits { max_total_rate, ..ServerLimits::default() };
    let server = TestServer::start(ServerOptions { limits, ..ServerOptions::default() });
    for mode in [RrMode::Tcp, RrMode::Udp] {
        let response = ByteCount::new(10_000);
        let document = complete(&RrOptions { response, ..options(&server, mode) });
        let rate = document.transactions_per_second.expect("a rate") * 80_008.0;
        assert!(rate < 9.6e6 && rate > 1e6, "{mode:?}: {rate} bit/s");
    }
}

/// A made-up server that answers at once, and stalls for `stall` at the beginning of each second.
struct StallingServer {
    start: MonotonicTime,
    stall: Duration,
}

impl Transactor for StallingServer {
    fn transact(&mut self, _: MonotonicTime, _: &FlowWatch) -> Result<bool, TransactionFailure> {
        let now = clock::monotonic_now();
        let second = now.since(self.start).as_secs();
        let resumes = self.start + Duration::from_secs(second) + self.stall;
        if now < resumes {
            clock::sleep_until(resumes);
        }
        Ok(true)
    }
}

fn stalled(rate: Option<f64>) -> FlowRecord {
    let target = ProbeTarget::new("made up", Port::IPERF3);
    let options = RrOptions { rate, ..RrOptions::new(target, RrMode::Tcp) };
    let start = clock::monotonic_now() + Duration::from_millis(10);
    let server = Box::new(StallingServer { start, stall: Duration::from_millis(100) });
    let watch = Arc::new(FlowWatch::new(Duration::from_secs(10)));
    let schedule = RequestSchedule::new(&options, 0, start);
    FlowThread::start(server, schedule, watch, start, Duration::from_secs(2)).expect("a thread").join()
}

/// Requests of the first 100 ms of each second wait, the first for 100 ms: a tenth of all, evenly
/// distributed. The share 1 - x has therefore a latency of (1 - 10 x) · 100 ms at least.
#[test]
fn a_stall_shows_in_an_open_loop_and_hides_in_a_closed_one() {
    let open = stalled(Some(1000.0));
    let percentile = |histogram: &linerate_analysis::latency_histogram::LatencyHistogram, share| {
        histogram.percentile(Ratio::new(share).expect("a share")).expect("latencies")
    };
    // The formula's value less 2 ms.
    for (share, least) in [(0.99, 88), (0.95, 48), (0.92, 18)] {
        let found = percentile(&open.latency, share);
        assert!(found >= Duration::from_millis(least), "{share}: {found:?}");
    }
    assert_eq!(open.transactions, 2000);
    assert!(percentile(&open.service, 0.99) < Duration::from_millis(50), "the service time hides the wait");
    let closed = stalled(None);
    assert!(closed.transactions > 10_000, "{}", closed.transactions);
    assert!(percentile(&closed.latency, 0.99) < Duration::from_millis(50), "the closed loop omits the wait");
    assert!(closed.latency.max().is_some_and(|max| max >= Duration::from_millis(95)));
}

/// A made-up server that answers at once, and stops the flow after this number of transactions.
struct StoppingServer {
    left: u32,
}

impl Transactor for StoppingServer {
    fn transact(&mut self, _: MonotonicTime, watch: &FlowWatch) -> Result<bool, TransactionFailure> {
        self.left -= 1;
        if self.left == 0 {
            watch.stop();
        }
        Ok(true)
    }
}

fn run_against(server: StoppingServer, rate: Option<f64>, time: Duration) -> FlowRecord {
    let options = RrOptions { rate, ..RrOptions::new(ProbeTarget::new("made up", Port::IPERF3), RrMode::Tcp) };
    let (start, watch) = (clock::monotonic_now(), Arc::new(FlowWatch::new(Duration::from_secs(10))));
    let schedule = RequestSchedule::new(&options, 0, start);
    FlowThread::start(Box::new(server), schedule, watch, start, time).expect("a thread").join()
}

#[test]
fn each_transaction_of_a_paced_flow_has_its_interval() {
    let never = || StoppingServer { left: u32::MAX };
    let tenth = Duration::from_millis(100);
    // One request, whose interval is the whole test; and two of 50 ms each.
    for (rate, transactions) in [(10.0, 1), (20.0, 2)] {
        let record = run_against(never(), Some(rate), tenth);
        assert_eq!(record.transactions, transactions, "{rate}/s");
        assert!(record.measured >= tenth, "{rate}/s: {:?}", record.measured);
    }
    // Stopped after the second of five: at the next intended request, two intervals are over.
    let stopped = run_against(StoppingServer { left: 2 }, Some(50.0), tenth);
    assert_eq!(stopped.transactions, 2);
    assert!(stopped.measured >= Duration::from_millis(40), "{:?}", stopped.measured);
    // A closed loop has no intervals: its time ends with its last transaction.
    let closed = run_against(StoppingServer { left: 1 }, None, Duration::from_secs(600));
    assert_eq!(closed.transactions, 1);
    assert!(closed.measured < Duration::from_secs(600), "{:?}", closed.measured);
}

/// A server that never answers.
struct SilentServer;

impl Transactor for SilentServer {
    fn transact(&mut self, _: MonotonicTime, watch: &FlowWatch) -> Result<bool, TransactionFailure> {
        while !watch.is_stopping() {
            clock::sleep_until(clock::monotonic_now() + Duration::from_millis(1));
        }
        Err(TransactionFailure::Stopped)
    }
}

#[test]
fn a_request_without_a_response_counts_with_the_time_it_waited() {
    let target = ProbeTarget::new("made up", Port::IPERF3);
    let options = RrOptions { rate: Some(100.0), ..RrOptions::new(target, RrMode::Tcp) };
    let (start, watch) = (clock::monotonic_now(), Arc::new(FlowWatch::new(Duration::from_secs(10))));
    let schedule = RequestSchedule::new(&options, 0, start);
    let flow = FlowThread::start(Box::new(SilentServer), schedule, Arc::clone(&watch), start, Duration::from_secs(5));
    clock::sleep_until(start + Duration::from_millis(200));
    watch.stop();
    let record = flow.expect("a thread").join();
    assert_eq!((record.transactions, record.unfinished), (0, 1));
    assert!(record.latency.max().is_some_and(|max| max >= Duration::from_millis(199)), "{:?}", record.latency.max());
}

#[test]
fn a_test_whose_server_is_gone_has_failed() {
    let flows = [run_against(StoppingServer { left: 1 }, None, Duration::from_secs(600))];
    let gone = ProbeError::Lost("made up".to_owned());
    let silent = ProbeError::TimedOut { request: "rr-stop".to_owned(), after: Duration::from_secs(1) };
    let refused = ProbeError::Refused { request: "rr-stop".to_owned(), reason: "made up".to_owned() };
    let report = RrReport { transactions: 1, processor: None, ended_by_limit: None };
    for (far, is_failed) in [(Ok(report), false), (Err(gone), true), (Err(silent), true), (Err(refused), false)] {
        assert_eq!(judge(&flows, &far).is_err(), is_failed, "{far:?}");
    }
}
