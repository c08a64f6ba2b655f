//! Size of the file: its limit, deletion, many runs, and files of the first schema.

use std::io::Write as _;
use std::path::Path;

use linerate_documents::run::RunDocument;
use linerate_history::{DeletedRuns, History, RunFilter, RunId, transfer};
use linerate_units::ByteCount;

use crate::support::{Scratch, large, run};

/// Samples of a run of about 80 kB.
const SAMPLES: usize = 10_000;

fn length(file: &Path) -> u64 {
    std::fs::metadata(file).expect("there").len()
}

fn numbers(history: &History) -> Vec<i64> {
    let mut all: Vec<i64> =
        history.list(&RunFilter::default()).expect("listed").iter().map(|entry| entry.id.get()).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_limit_holds_for_the_file_and_spares_tags() {
    let scratch = Scratch::new();
    let file = scratch.file("history.sqlite");
    let mut history = History::open(&file).expect("opened");
    assert_eq!(history.size_limit().expect("read"), None);
    let limit = ByteCount::new(1_000_000);
    history.set_size_limit(Some(limit)).expect("set");
    let first = history.add(&large(0, SAMPLES)).expect("added");
    history.tag(first, "keep").expect("tagged");
    let mut deleted = 0;
    for seconds in 1..40 {
        history.add(&large(seconds, SAMPLES)).expect("added");
        deleted += history.delete_excess().expect("deleted").count;
        assert!(history.size().expect("measured") <= limit);
    }
    assert!(length(&file) <= limit.get() + 100_000, "{} bytes", length(&file));
    let left = numbers(&history);
    assert!(left.len() > 5 && left[0] == 1 && left.last() == Some(&40), "{left:?}");
    assert_eq!(left.len() as u64 + deleted, 40);
    assert!(left[1..].is_sorted_by(|one, next| one + 1 == *next), "the oldest went: {left:?}");
    // A limit that not even the latest run fits leaves that one.
    let tiny = ByteCount::new(1);
    let excess = history.excess(tiny).expect("measured");
    assert_eq!(numbers(&history), left, "measuring deletes nothing");
    history.set_size_limit(Some(tiny)).expect("set");
    assert_eq!(history.delete_excess().expect("deleted"), excess);
    assert_eq!(numbers(&history), [1, 40]);
    history.set_size_limit(None).expect("set");
    assert_eq!(history.delete_excess().expect("nothing to delete"), DeletedRuns::default());
}

#[test]
fn deleting_makes_the_file_smaller() {
    let scratch = Scratch::new();
    let file = scratch.file("history.sqlite");
    let mut history = History::open(&file).expect("opened");
    let ids: Vec<RunId> = (0..20).map(|seconds| history.add(&large(seconds, SAMPLES)).expect("added")).collect();
    let before = length(&file);
    history.delete(&ids[..18]).expect("deleted");
    assert!(length(&file) < before / 5, "{before} bytes before, {} after", length(&file));
    history.get(ids[19]).expect("whole");
}

/// More runs than are stored at once, some of them known, the last line damaged.
#[test]
fn a_long_import_stores_what_came_before_an_error() {
    let scratch = Scratch::new();
    let mut history = History::open(&scratch.file("history.sqlite")).expect("opened");
    let known = history.add(&run("host", 7, 1e9)).expect("added");
    let mut text: String =
        (0..1234).map(|seconds| serde_json::to_string(&run("host", seconds, 1e9)).expect("JSON") + "\n").collect();
    text.push_str("{\"schema\":1}\n");
    let mut reports = Vec::new();
    let error = transfer::read_runs(&mut history, &mut text.as_bytes(), &mut |report| reports.push(report.clone()))
        .expect_err("the last line is no run");
    assert!(error.to_string().contains("line 1235"), "{error}");
    let last = reports.last().expect("progress");
    assert_eq!((last.added.len(), last.known.as_slice()), (1233, &[known][..]));
    assert!(reports.len() >= 3, "{} reports", reports.len());
    let mut csv = Vec::new();
    transfer::write_csv(&history, &RunFilter::default(), &mut csv).expect("written");
    assert_eq!(String::from_utf8(csv).expect("UTF-8").lines().count(), 1235);
    assert_eq!(history.figure_names().expect("read"), ["goodput_down"]);
}

/// A file of the first schema has its documents among the runs.
#[test]
fn a_file_of_the_first_schema_is_migrated() {
    let scratch = Scratch::new();
    let file = scratch.file("history.sqlite");
    let old = rusqlite::Connection::open(&file).expect("made");
    old.execute_batch(include_str!("../src/schema1.sql")).expect("the first schema");
    old.pragma_update(None, "application_id", 0x6c69_6e52).expect("written");
    old.pragma_update(None, "user_version", 1).expect("written");
    let runs: Vec<RunDocument> = (0..20).map(|seconds| large(seconds, SAMPLES)).collect();
    for run in &runs {
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&serde_json::to_vec(run).expect("JSON")).expect("packed");
        let document = packed.finish().expect("packed");
        old.execute(
            "INSERT INTO runs VALUES (NULL, ?1, ?2, 'throughput', ?3, 5201, 'complete', '', NULL, '0.1.0', ?4)",
            rusqlite::params![run.started_at_unix_ns.cast_signed(), run.duration_ns.cast_signed(), run.host, document],
        )
        .expect("stored");
    }
    drop(old);
    let mut history = History::open(&file).expect("migrated");
    for (number, run) in (1..).zip(&runs) {
        assert_eq!(&history.get(RunId::new(number)).expect("whole"), run);
    }
    let before = length(&file);
    history.delete(&(1..=15).map(RunId::new).collect::<Vec<_>>()).expect("deleted");
    assert!(length(&file) < before / 2, "{before} bytes before, {} after", length(&file));
}
