//! Disks that are full or read-only, and damaged or foreign files. No stored run is lost.

use std::path::{Path, PathBuf};

use linerate_history::{History, HistoryError, RunFilter};

use crate::support::{Scratch, as_process, large, run, with_own_mounts};

/// Samples of a run of about a megabyte.
const MEGABYTE: usize = 120_000;

fn place() -> Option<PathBuf> {
    std::env::var_os("HISTORY_PLACE").map(PathBuf::from)
}

#[test]
fn a_full_disk_loses_no_run() {
    let scratch = Scratch::new();
    let prepare = "mount -t tmpfs -o size=7m none \"$HISTORY_PLACE\"";
    let mut command = with_own_mounts(prepare, "trouble::child_on_a_small_disk");
    let text = as_process(&mut command, &[("HISTORY_PLACE", scratch.folder())]);
    assert!(text.contains("1 passed"), "the child did not run: {text}");
}

#[test]
#[ignore = "child of the test above"]
fn child_on_a_small_disk() {
    let Some(place) = place() else { return };
    let (file, ballast) = (place.join("history.sqlite"), place.join("ballast"));
    std::fs::write(&ballast, vec![1; 1 << 20]).expect("room");
    let mut history = History::open(&file).expect("room for the first");
    let small = history.add(&run("small", 0, 1e9)).expect("room");
    let mut stored = vec![small];
    let error = (1..).map(|seconds| history.add(&large(seconds, MEGABYTE))).find_map(|added| match added {
        Ok(id) => {
            stored.push(id);
            assert!(stored.len() < 20, "seven megabytes do not hold twenty of them");
            None
        }
        Err(error) => Some(error),
    });
    let error = error.expect("an end");
    assert!(matches!(error, HistoryError::DiskFull { .. }), "{error:?}");
    assert!(error.to_string().contains("the disk is full") && error.advice().is_some(), "{error}");
    assert!(stored.len() > 1, "one fits at least");
    for id in &stored {
        history.get(*id).expect("still there");
    }
    drop(history);
    // A new process finds the same, on the full disk.
    let mut history = History::open_existing(&file).expect("opened");
    assert_eq!(history.list(&RunFilter::default()).expect("listed").len(), stored.len());
    // With a little free space, deleting frees more.
    std::fs::remove_file(&ballast).expect("removed");
    history.delete(&stored[1..]).expect("deleting needs less than it frees");
    history.add(&run("again", 99, 1e9)).expect("room again");
    assert_eq!(history.get(small).expect("still there").host, "small");
}

#[test]
fn a_read_only_medium_can_be_read() {
    let scratch = Scratch::new();
    let file = scratch.file("history.sqlite");
    History::open(&file).expect("opened").add(&run("old", 0, 1e9)).expect("added");
    let prepare = "mount --bind \"$HISTORY_PLACE\" \"$HISTORY_PLACE\" && mount -o remount,bind,ro \"$HISTORY_PLACE\"";
    let mut command = with_own_mounts(prepare, "trouble::child_on_a_read_only_medium");
    let text = as_process(&mut command, &[("HISTORY_PLACE", scratch.folder())]);
    assert!(text.contains("1 passed"), "the child did not run: {text}");
}

#[test]
#[ignore = "child of the test above"]
fn child_on_a_read_only_medium() {
    let Some(place) = place() else { return };
    let file = place.join("history.sqlite");
    let history = History::open_existing(&file).expect("readable");
    assert_eq!(history.list(&RunFilter::default()).expect("listed")[0].host, "old");
    let error =
        History::open(&file).and_then(|mut history| history.add(&run("new", 1, 1e9))).expect_err("not writable");
    assert!(matches!(error, HistoryError::NotWritable { .. }), "{error:?}");
    assert!(error.to_string().contains("cannot be written"), "{error}");
    let elsewhere = History::open(&place.join("new/history.sqlite")).expect_err("no directory can be made");
    assert!(matches!(elsewhere, HistoryError::Directory { .. }), "{elsewhere:?}");
    assert!(elsewhere.advice().is_some_and(|advice| advice.contains("LINERATE_HISTORY")));
}

fn open_errors(file: &Path) -> [HistoryError; 2] {
    [History::open(file).expect_err("refused"), History::open_existing(file).expect_err("refused")]
}

#[test]
fn a_file_that_is_not_a_database_is_unchanged() {
    let scratch = Scratch::new();
    let file = scratch.file("history.sqlite");
    let garbage = b"this is not a database, but a PhD thesis".repeat(100);
    std::fs::write(&file, &garbage).expect("written");
    for error in open_errors(&file) {
        assert!(matches!(error, HistoryError::Damaged { .. }), "{error:?}");
        let advice = error.advice().expect("a way out");
        assert!(advice.contains("mv ") && advice.contains("left as it is"), "{advice}");
    }
    assert_eq!(std::fs::read(&file).expect("there"), garbage);
}

#[test]
fn a_damaged_file_is_unchanged() {
    let scratch = Scratch::new();
    let file = scratch.file("history.sqlite");
    let mut history = History::open(&file).expect("opened");
    for seconds in 0..50 {
        history.add(&run("host", seconds, 1e9)).expect("added");
    }
    drop(history);
    let mut bytes = std::fs::read(&file).expect("there");
    assert!(bytes.len() > 8192, "several pages");
    bytes[4096..].fill(0xA5);
    std::fs::write(&file, &bytes).expect("written");
    let error =
        History::open_existing(&file).and_then(|history| history.list(&RunFilter::default())).expect_err("damaged");
    assert!(matches!(error, HistoryError::Damaged { .. }), "{error:?}");
    let error = History::open(&file).and_then(|mut history| history.add(&run("new", 99, 1e9))).expect_err("damaged");
    assert!(matches!(error, HistoryError::Damaged { .. }), "{error:?}");
    assert_eq!(std::fs::read(&file).expect("there")[4096..], bytes[4096..]);
}

#[test]
fn files_of_other_programs_are_unchanged() {
    let scratch = Scratch::new();
    let file = scratch.file("other.sqlite");
    let other = rusqlite::Connection::open(&file).expect("made");
    other.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1);").expect("filled");
    drop(other);
    let before = std::fs::read(&file).expect("there");
    for error in open_errors(&file) {
        assert!(matches!(error, HistoryError::Foreign { .. }), "{error:?}");
    }
    assert_eq!(std::fs::read(&file).expect("there"), before);
}

#[test]
fn a_newer_file_is_refused_and_unchanged() {
    let scratch = Scratch::new();
    let file = scratch.file("history.sqlite");
    let mut early = History::open(&file).expect("opened");
    early.add(&run("host", 0, 1e9)).expect("added");
    let newer = rusqlite::Connection::open(&file).expect("opened");
    newer.pragma_update(None, "user_version", 7).expect("written");
    drop(newer);
    for error in open_errors(&file) {
        assert!(matches!(error, HistoryError::Newer { found: 7, known: 2, .. }), "{error:?}");
        assert!(error.advice().is_some_and(|advice| advice.contains("newer linerate")));
    }
    // A connection that was open when the schema changed does not write either.
    assert!(matches!(early.add(&run("host", 1, 1e9)), Err(HistoryError::Newer { .. })));
}

#[test]
fn reading_does_not_create_a_file() {
    let scratch = Scratch::new();
    let file = scratch.file("history.sqlite");
    let error = History::open_existing(&file).expect_err("there is none");
    assert!(matches!(error, HistoryError::Missing { .. }), "{error:?}");
    assert!(!file.exists());
}

#[test]
fn a_damaged_run_does_not_hide_the_others() {
    let scratch = Scratch::new();
    let file = scratch.file("history.sqlite");
    let mut history = History::open(&file).expect("opened");
    let ids = [0, 1].map(|seconds| history.add(&run("host", seconds, 1e9)).expect("added"));
    let other = rusqlite::Connection::open(&file).expect("opened");
    other.execute("UPDATE documents SET document = x'00' WHERE run = ?1", [ids[0].get()]).expect("written");
    assert!(matches!(history.get(ids[0]), Err(HistoryError::DamagedRun { .. })));
    history.get(ids[1]).expect("whole");
    assert_eq!(history.list(&RunFilter::default()).expect("listed").len(), 2);
}
