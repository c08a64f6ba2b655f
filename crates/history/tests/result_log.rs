//! Log of results: what is appended is read once, in order, also after a cut and by a receiver that was away.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use linerate_documents::fleet_result::FleetResult;
use linerate_history::result_log::{ResultLog, ResultReceiver};
use linerate_units::WallTime;

use crate::support::Scratch;

const DAY: u64 = 24 * 3600;

fn result(seconds: u64) -> FleetResult {
    let at = WallTime::from_unix(Duration::from_secs(seconds));
    let reason = Some("the host was asleep".to_owned());
    FleetResult { reason, ..FleetResult::unstarted("goodput", "throughput", ["a", "b"], at) }
}

fn read(path: &Path) -> (Vec<u64>, usize) {
    let read = ResultLog::read(&[path.to_owned()]).expect("readable");
    (read.results.iter().map(|result| result.at_unix_ns / 1_000_000_000).collect(), read.unreadable)
}

#[test]
fn results_are_read_once_in_the_order_of_their_times() {
    let scratch = Scratch::new();
    let log = ResultLog::open(&scratch.file("results")).expect("a log");
    for seconds in [5, 3, 3 * DAY, 3] {
        log.append(&result(seconds)).expect("written");
    }
    assert_eq!(read(log.directory()), (vec![3, 5, 3 * DAY], 0));
    let files: Vec<PathBuf> =
        std::fs::read_dir(log.directory()).expect("a directory").map(|entry| entry.expect("a file").path()).collect();
    assert_eq!(files.len(), 2, "a file a day: {files:?}");
}

#[test]
fn the_latest_results_are_those_of_the_last_days() {
    let scratch = Scratch::new();
    let log = ResultLog::open(&scratch.file("results")).expect("a log");
    for seconds in [5, DAY + 7, 2 * DAY, 2 * DAY + 3, DAY + 7] {
        log.append(&result(seconds)).expect("written");
    }
    let latest = |seconds, count| {
        let since = WallTime::from_unix(Duration::from_secs(seconds));
        let read = log.read_latest(since, count).expect("readable").results;
        read.iter().map(|result| result.at_unix_ns / 1_000_000_000).collect::<Vec<_>>()
    };
    assert_eq!(latest(DAY + 100, 10), [DAY + 7, 2 * DAY, 2 * DAY + 3]);
    assert_eq!(latest(0, 2), [2 * DAY, 2 * DAY + 3]);
    assert!(latest(3 * DAY, 10).is_empty());
}

#[test]
fn a_line_that_was_cut_off_costs_only_itself() {
    let scratch = Scratch::new();
    let log = ResultLog::open(&scratch.file("results")).expect("a log");
    log.append(&result(1)).expect("written");
    let file = log.directory().join("results-1970-01-01.jsonl");
    let mut open = std::fs::File::options().append(true).open(&file).expect("the day's file");
    open.write_all(b"{\"schema\":1,\"id\":\"goo").expect("written");
    let receiver = ResultReceiver::open(&log, "otlp").expect("a receiver");
    assert_eq!(receiver.pending(9).expect("readable").len(), 1);
    log.append(&result(2)).expect("written");
    assert_eq!(read(log.directory()), (vec![1, 2], 1));
    assert_eq!(receiver.pending(9).expect("readable").len(), 2);
}

#[test]
fn a_receiver_goes_on_where_it_was() {
    let scratch = Scratch::new();
    let log = ResultLog::open(&scratch.file("results")).expect("a log");
    let seconds = [10, 20, DAY + 10, 2 * DAY + 10];
    for seconds in seconds {
        log.append(&result(seconds)).expect("written");
    }
    let mut seen = Vec::new();
    while seen.len() < seconds.len() {
        // Another process each time.
        let mut receiver = ResultReceiver::open(&log, "otlp").expect("a receiver");
        let pending = receiver.pending(2).expect("readable");
        assert!(!pending.is_empty(), "{seen:?}");
        // The second of them is not acknowledged, and comes again.
        receiver.advance(&pending[0]).expect("written");
        seen.push(pending[0].result.at_unix_ns / 1_000_000_000);
    }
    assert_eq!(seen, seconds);
    let receiver = ResultReceiver::open(&log, "otlp").expect("a receiver");
    assert!(receiver.pending(9).expect("readable").is_empty());
}

#[test]
fn old_days_are_deleted_once_each_receiver_has_them() {
    let scratch = Scratch::new();
    let log = ResultLog::open(&scratch.file("results")).expect("a log");
    for day in 0..4 {
        log.append(&result(day * DAY)).expect("written");
    }
    let mut receiver = ResultReceiver::open(&log, "nats").expect("a receiver");
    let pending = receiver.pending(2).expect("readable");
    receiver.advance(&pending[1]).expect("written");
    let third_day = WallTime::from_unix(Duration::from_secs(3 * DAY));
    assert_eq!(log.delete_before(third_day, third_day).expect("deleted"), 2);
    assert_eq!(read(log.directory()).0, [2 * DAY, 3 * DAY]);
}

#[test]
fn a_receiver_that_is_no_longer_used_holds_back_nothing() {
    let scratch = Scratch::new();
    let log = ResultLog::open(&scratch.file("results")).expect("a log");
    for day in 0..3 {
        log.append(&result(day * DAY)).expect("written");
    }
    // It has received nothing yet, and was used now.
    let receiver = ResultReceiver::open(&log, "otlp").expect("a receiver");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let after = |days: u32| WallTime::from_unix(now + Duration::from_secs(DAY) * days);
    let first_kept = WallTime::from_unix(Duration::from_secs(2 * DAY));
    assert_eq!(log.delete_before(first_kept, after(29)).expect("none deleted"), 0);
    assert_eq!(receiver.pending(9).expect("readable").len(), 3);
    assert_eq!(log.delete_before(first_kept, after(31)).expect("deleted"), 2);
    assert_eq!(receiver.pending(9).expect("readable").len(), 1);
}

#[test]
fn a_log_that_cannot_be_written_is_an_error_with_its_path() {
    let error = ResultLog::open(Path::new("/proc/no-such-directory")).expect_err("no directory can be made there");
    assert!(error.to_string().starts_with("making the directory /proc/no-such-directory: "), "{error}");
    let error = ResultLog::read(&[PathBuf::from("/no/such/file")]).expect_err("no file");
    assert!(error.to_string().starts_with("reading /no/such/file: "), "{error}");
}

#[test]
fn a_receiver_of_the_last_days_leaves_no_file() {
    let scratch = Scratch::new();
    let log = ResultLog::open(&scratch.file("results")).expect("a log");
    for seconds in [1, 5 * DAY + 7, 6 * DAY] {
        log.append(&result(seconds)).expect("written");
    }
    let mut receiver = ResultReceiver::of_days_since(&log, WallTime::from_unix(Duration::from_secs(5 * DAY + 50)));
    let pending = receiver.pending(9).expect("readable");
    let times: Vec<u64> = pending.iter().map(|one| one.result.at_unix_ns / 1_000_000_000).collect();
    assert_eq!(times, [5 * DAY + 7, 6 * DAY]);
    receiver.advance(&pending[1]).expect("nothing to write");
    assert_eq!(receiver.pending(9).expect("readable").len(), 0);
    let ninth_day = WallTime::from_unix(Duration::from_secs(9 * DAY));
    assert_eq!(log.delete_before(ninth_day, ninth_day).expect("deleted"), 3);
    assert_eq!(std::fs::read_dir(log.directory()).expect("a directory").count(), 0);
}

/// A test that began before midnight ends after the first one of the next day.
#[test]
fn results_of_the_day_before_are_not_lost() {
    let scratch = Scratch::new();
    let log = ResultLog::open(&scratch.file("results")).expect("a log");
    log.append(&result(DAY + 5)).expect("written");
    let mut receiver = ResultReceiver::open(&log, "otlp").expect("a receiver");
    let first = receiver.pending(9).expect("readable");
    receiver.advance(&first[0]).expect("written");
    log.append(&result(DAY - 10)).expect("written");
    log.append(&result(DAY + 50)).expect("written");
    for mut receiver in [ResultReceiver::open(&log, "otlp").expect("a receiver"), receiver] {
        let pending = receiver.pending(9).expect("readable");
        let times: Vec<u64> = pending.iter().map(|one| one.result.at_unix_ns / 1_000_000_000).collect();
        assert_eq!(times, [DAY - 10, DAY + 50]);
        // One of a batch is acknowledged.
        receiver.advance(&pending[0]).expect("written");
        assert_eq!(receiver.pending(9).expect("readable").len(), 1);
    }
    let tenth_day = WallTime::from_unix(Duration::from_secs(10 * DAY));
    assert_eq!(log.delete_before(tenth_day, tenth_day).expect("deleted"), 1);
    assert_eq!(read(log.directory()).0, [DAY + 5, DAY + 50]);
}
