//! Connections of the load, and the probes.

use core::time::Duration;

use linerate_model::direction::Direction;
use linerate_units::ByteCount;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::super::load::{LoadConnection, LoadMeter, generate};
use super::super::probe::{self, TestEvent};
use super::*;

const INTERVAL: Duration = Duration::from_millis(100);

fn answers(request: &Request<Incoming>) -> WebResponse {
    let bytes = match request.uri().path() {
        "/large" => vec![7; 100_000],
        "/small" => vec![7],
        _ => Vec::new(),
    };
    response::text(StatusCode::OK, BYTES, bytes)
}

fn empty(_request: &Request<Incoming>) -> WebResponse {
    response::text(StatusCode::OK, BYTES, "")
}

fn refused(_request: &Request<Incoming>) -> WebResponse {
    response::refuse(StatusCode::SERVICE_UNAVAILABLE, "busy")
}

fn too_large(_request: &Request<Incoming>) -> WebResponse {
    response::text(StatusCode::OK, BYTES, vec![7; 4097])
}

fn start(target: &HttpTarget, direction: Direction) -> UnboundedReceiver<TestEvent> {
    let (events, happened) = unbounded_channel();
    tokio::spawn(generate(target.clone(), objects(target.connect.remote), direction, events));
    happened
}

async fn opened(happened: &mut UnboundedReceiver<TestEvent>) -> LoadConnection {
    match happened.recv().await {
        Some(TestEvent::Opened(connection)) => connection,
        Some(TestEvent::Broken(reason)) => panic!("{reason}"),
        _ => panic!("no connection"),
    }
}

async fn broken(happened: &mut UnboundedReceiver<TestEvent>) -> String {
    match happened.recv().await {
        Some(TestEvent::Broken(reason)) => reason,
        _ => panic!("no failure"),
    }
}

/// Samples until this much has moved; returns the meter.
async fn until_moved(connections: &[LoadConnection], direction: Direction, bytes: u64) -> LoadMeter {
    let mut meter = LoadMeter::new(direction);
    while meter.payload() < ByteCount::new(bytes) {
        tokio::task::yield_now().await;
        meter.sample(connections, INTERVAL);
    }
    meter
}

#[test]
fn a_download_goes_on_with_the_object_again_until_its_connection_is_dropped() {
    Loopback::new().block_on(async {
        let target = serve(&[HTTP2], answers).await;
        let mut happened = start(&target, Direction::Down);
        let connections = [opened(&mut happened).await];
        let samples = until_moved(&connections, Direction::Down, 250_000).await.finish();
        assert!(samples.payload.is_sorted() && samples.samples.is_empty(), "the far end sends");
        assert_eq!(until_idle(&connections, Direction::Up), ByteCount::ZERO, "the other direction has none");
        drop(connections);
        assert!(broken(&mut happened).await.starts_with("GET https://127.0.0.1:"));
    });
}

/// Payload that one sample of a direction finds.
fn until_idle(connections: &[LoadConnection], direction: Direction) -> ByteCount {
    let mut meter = LoadMeter::new(direction);
    meter.sample(connections, INTERVAL);
    meter.payload()
}

#[test]
fn an_upload_counts_what_the_far_end_acknowledges() {
    let server = OwnServer::start(|_| ());
    Loopback::new().block_on(async {
        let mut happened = start(&server.target, Direction::Up);
        let connections = [opened(&mut happened).await];
        let samples = until_moved(&connections, Direction::Up, 100_000).await.finish();
        let last = samples.samples.last().expect("samples of the sender");
        assert_eq!(last.bytes_acknowledged, samples.payload.last().map(|(_, bytes)| *bytes));
        assert!(last.rtt.is_some() && last.congestion_window.is_some());
    });
}

#[test]
fn a_sender_without_connections_has_an_unknown_window() {
    let mut meter = LoadMeter::new(Direction::Up);
    meter.sample(&[], INTERVAL);
    assert_eq!(meter.payload(), ByteCount::ZERO);
    let sample = &meter.finish().samples[0];
    assert_eq!((sample.rtt, sample.congestion_window, sample.not_sent), (None, None, None));
    assert_eq!(sample.retransmits, None);
}

#[test]
fn a_load_that_the_server_does_not_take_ends_with_the_reason() {
    for (answer, direction, reason) in [
        (empty as fn(&_) -> _, Direction::Down, "/large is empty: it must have 8 GB or more"),
        (refused, Direction::Down, "/large: the server answered 503 Service Unavailable"),
        (empty, Direction::Up, "/upload: the server ended the upload at once"),
        (refused, Direction::Up, "/upload: the server answered 503 Service Unavailable"),
    ] {
        Loopback::new().block_on(async {
            let mut happened = start(&serve(&[HTTP2], answer).await, direction);
            let _connection = opened(&mut happened).await;
            let broken = broken(&mut happened).await;
            assert!(broken.ends_with(reason), "{broken}");
        });
    }
}

#[test]
fn a_load_without_a_server_is_broken_at_once() {
    let loopback = Loopback::new();
    let (closed, _held) = closed_port(&loopback);
    loopback.block_on(async {
        let mut target = serve(&[HTTP2], answers).await;
        target.connect.remote = closed;
        let reason = broken(&mut start(&target, Direction::Down)).await;
        assert!(reason.contains("refused"), "{reason}");
    });
}

/// Results of a probe on a new connection, and of one on an existing connection.
fn probes(answer: fn(&Request<Incoming>) -> WebResponse) -> (Result<bool, String>, Result<Duration, String>) {
    Loopback::new().block_on(async {
        let target = serve(&[HTTP2], answer).await;
        let objects = objects(target.connect.remote);
        let opened = target.open().await.expect("a connection");
        let (events, mut happened) = unbounded_channel();
        probe::foreign(target.clone(), Arc::clone(&objects), events.clone()).await;
        probe::loaded(target, objects, opened.sender, events).await;
        let (Some(TestEvent::Foreign(first, foreign)), Some(TestEvent::Loaded(second, loaded))) =
            (happened.recv().await, happened.recv().await)
        else {
            panic!("one result of each probe")
        };
        assert!(first < second, "each has the time of its end");
        let has_parts = foreign.map(|probe| {
            !probe.tcp.is_zero() && probe.tls.is_some_and(|time| !time.is_zero()) && !probe.request.is_zero()
        });
        (has_parts, loaded)
    })
}

#[test]
fn a_probe_has_the_time_of_each_part() {
    let (foreign, loaded) = probes(answers);
    assert_eq!(foreign, Ok(true));
    assert!(loaded.is_ok_and(|time| !time.is_zero()));
}

#[test]
fn a_probe_that_is_refused_or_much_too_large_has_failed() {
    for (answer, reason) in
        [(refused as fn(&_) -> _, "the server answered 503"), (too_large, "has more than 4096 bytes")]
    {
        let (foreign, loaded) = probes(answer);
        assert!(foreign.is_err_and(|text| text.contains(reason)), "{reason}");
        assert!(loaded.is_err_and(|text| text.contains(reason)), "{reason}");
    }
}
