//! Several threads and several processes at once.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::Stdio;

use linerate_history::{History, RunFilter, RunReference};

use crate::support::{Scratch, own_binary, run};

const WRITER_COUNT: u64 = 4;
const RUNS_PER_WRITER: u64 = 15;

/// All open a file that does not exist yet, so that they also compete to create it.
#[test]
fn concurrent_threads_lose_no_run() {
    let scratch = Scratch::new();
    let file = scratch.file("deep/below/history.sqlite");
    std::thread::scope(|scope| {
        for writer in 0..WRITER_COUNT {
            let file = &file;
            scope.spawn(move || {
                let mut history = History::open(file).expect("opened");
                for number in 0..RUNS_PER_WRITER {
                    let added = history.add(&run(&format!("host{writer}"), number, 1e9)).expect("added");
                    assert_eq!(history.get(added).expect("there").host, format!("host{writer}"));
                }
            });
        }
    });
    let history = History::open_existing(&file).expect("opened");
    let all = history.list(&RunFilter::default()).expect("listed");
    assert_eq!(all.len() as u64, WRITER_COUNT * RUNS_PER_WRITER);
    let ids: BTreeSet<_> = all.iter().map(|entry| entry.id).collect();
    assert_eq!(ids.len(), all.len(), "every run has its own number");
    assert_eq!(history.figures("goodput_down", &RunFilter::default()).expect("read").len(), all.len());
}

#[test]
fn concurrent_processes_lose_no_run() {
    let scratch = Scratch::new();
    let file = scratch.file("history.sqlite");
    let children: Vec<_> = (0..WRITER_COUNT)
        .map(|_| {
            let mut command = own_binary("several::child_that_writes");
            command.env("HISTORY_FILE", &file).stdout(Stdio::null()).stderr(Stdio::piped());
            command.spawn().expect("a process")
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("its end");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let history = History::open_existing(&file).expect("opened");
    assert_eq!(history.list(&RunFilter::default()).expect("listed").len() as u64, WRITER_COUNT * RUNS_PER_WRITER);
}

#[test]
#[ignore = "child of the test above"]
fn child_that_writes() {
    let Some(file) = std::env::var_os("HISTORY_FILE").map(PathBuf::from) else { return };
    for number in 0..RUNS_PER_WRITER {
        History::open(&file).expect("opened").add(&run("host", number, 1e9)).expect("added");
    }
}

/// A process that is killed while writing leaves the earlier runs, and no lock.
#[test]
fn a_killed_process_leaves_whole_runs() {
    let scratch = Scratch::new();
    let file = scratch.file("history.sqlite");
    let first = History::open(&file).expect("opened").add(&run("first", 0, 1e9)).expect("added");
    for _ in 0..5 {
        let mut command = own_binary("several::child_that_writes");
        command.env("HISTORY_FILE", &file).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("a process");
        let before = History::open_existing(&file).expect("opened").list(&RunFilter::default()).expect("listed").len();
        while History::open_existing(&file).expect("opened").list(&RunFilter::default()).expect("listed").len()
            == before
        {
            if child.try_wait().expect("a child").is_some() {
                break;
            }
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    let mut history = History::open(&file).expect("opened");
    for entry in history.list(&RunFilter::default()).expect("listed") {
        history.get(entry.id).expect("whole");
    }
    assert_eq!(history.get(first).expect("there").host, "first");
    history.add(&run("last", 99, 1e9)).expect("no lock is left");
    let last = history.resolve(RunReference::BeforeLast(0)).expect("there is one");
    assert_eq!(history.get(last).expect("there").host, "last");
    assert_eq!(history.latest(NonZeroU32::MIN).expect("listed")[0].id, last);
}
