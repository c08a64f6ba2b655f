//! Results while each server of a cluster is killed in turn: none lost, none twice.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use linerate_nats::{Delivery, NatsFleet, NatsSettings, Publisher, ResultFile};

use crate::support::{Folder, NatsServers, eventually};

/// Results that are stored between two events.
const STEP: usize = 60;

/// Publishes a result until the servers have it.
fn deliver(publisher: &Publisher, id: &str, attempts: &AtomicUsize) -> Delivery {
    let bytes = format!("{{\"id\":\"{id}\",\"figure\":1}}");
    loop {
        match publisher.publish(id, bytes.as_bytes()) {
            Ok(delivery) => return delivery,
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        attempts.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(10));
    }
}

/// Reads into the file until `is_over` and it has all results. The third batch is not acknowledged, and each fifth time the
/// reader and the file are opened anew.
fn collect(settings: &NatsSettings, path: &std::path::Path, is_over: &AtomicBool, stored: &AtomicUsize) {
    let mut round = 0;
    loop {
        let reader = match NatsFleet::connect(settings).and_then(|fleet| fleet.reader("collect")) {
            Ok(reader) => reader,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                continue;
            }
        };
        let mut file = ResultFile::open(path).expect("the file");
        for _ in 0..5 {
            round += 1;
            let results = match reader.next(100, Duration::from_millis(500)) {
                Ok(results) => results,
                Err(error) => {
                    assert!(error.is_transient(), "{error}");
                    break;
                }
            };
            let outcome = file
                .append(results.iter().map(|result| (result.id.as_str(), result.publisher.as_str(), &*result.bytes)));
            assert!(outcome.expect("written").refused.is_empty());
            if round != 3 {
                // Those whose acknowledgement is lost are received and recognised once more.
                drop(reader.acknowledge(&results));
            }
            if is_over.load(Ordering::SeqCst) && file.count() == stored.load(Ordering::SeqCst) {
                return;
            }
        }
    }
}

#[test]
fn no_result_is_lost_or_twice_while_each_server_is_killed() {
    let (mut servers, folder) = (NatsServers::cluster(), Folder::new());
    let settings = NatsSettings::new(servers.urls(), "fleet");
    let fleet = NatsFleet::connect(&settings).expect("connected");
    let prepared = fleet.prepare(Duration::from_secs(10)).expect("prepared");
    assert_eq!((prepared.replicas, prepared.created.len(), prepared.refusal), (3, 5, None));
    let (publisher, path) = (fleet.publisher("lisbon").expect("a publisher"), folder.path("results.jsonl"));
    let (stored, attempts, is_over, is_read) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let number = stored.load(Ordering::SeqCst);
                let id = format!("lisbon-{number}");
                deliver(&publisher, &id, &attempts);
                if number % 3 == 0 {
                    // An agent whose cursor was not written.
                    assert_eq!(deliver(&publisher, &id, &attempts), Delivery::Duplicate);
                }
                stored.store(number + 1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(2));
            }
            is_read.store(true, Ordering::SeqCst);
        });
        scope.spawn(|| collect(&settings, &path, &is_read, &stored));
        let more = |what: &str| {
            let before = stored.load(Ordering::SeqCst);
            eventually(what, || stored.load(Ordering::SeqCst) >= before + STEP);
        };
        more("results before anything is killed");
        for index in 0..3 {
            servers.kill(index);
            more("results while a server is dead");
            servers.restart(index);
        }
        more("results after all are back");
        is_over.store(true, Ordering::SeqCst);
    });
    let text = std::fs::read_to_string(&path).expect("the file");
    let lines: Vec<&str> = text.lines().collect();
    let distinct: BTreeSet<&str> = lines.iter().copied().collect();
    let count = stored.load(Ordering::SeqCst);
    assert_eq!((lines.len(), distinct.len()), (count, count), "{} attempts failed", attempts.load(Ordering::Relaxed));
    // Each dead server was the leader of some stream, or its answers were waited for.
    assert!(attempts.load(Ordering::Relaxed) > 0);
}
