//! Tests of `linerate diagnose` on the paths of the library: the first verdict names the emulated limit.
//!
//! A label `none` means a path without a fault; its verdict is `link-rate`, as for a path that is full with a queue.
//!
//! With `LINERATE_DIAGNOSIS_TABLE=FILE`, the table of all verdicts is written to that file as Markdown (`cargo xtask
//! diagnosis`).

mod support;

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use support::document::{array, text};
use support::lab::in_parallel;
use support::linerate;
use support::process::{result, run};

const LIMIT: Duration = Duration::from_secs(300);

/// Paths whose causes are easily confused: tested in every run. Small buffers of hosts are diagnosed in `tune.rs`, too,
/// and steady loss and small buffers of the path in `test_diagnosis.rs`.
const KINDS: &[&str] = &[
    "300m-20ms-application-paced-50m",
    "300m-20ms-bursty-loss",
    "300m-20ms-ecmp-reordering",
    "300m-20ms-policer-bbr",
    "300m-20ms-receive-buffer-1125k",
    "300m-20ms-slow-reader-bbr",
    "asymmetric-10-to-1",
    "short-transfer-1g-50ms",
    "xs4all-adsl",
];

struct Diagnosed {
    name: String,
    label: String,
    row: String,
    complaint: Option<String>,
}

#[test]
fn each_kind_of_limit_is_named() {
    verify(&KINDS.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
}

/// `cargo xtask diagnosis`, which also writes docs/diagnosis.md.
#[test]
#[ignore = "long: cargo xtask diagnosis"]
fn every_limit_is_named() {
    let names: Vec<String> = library().into_iter().map(|(name, _)| name).collect();
    assert!(names.len() >= 40, "{} paths", names.len());
    assert!(KINDS.iter().all(|kind| names.iter().any(|name| name == kind)), "{names:?}");
    verify(&names);
}

/// Names and labels of the paths. Paths with a variable rate are excluded: their diagnosis depends on the time of
/// measurement.
fn library() -> Vec<(String, String)> {
    let mut command = linerate();
    command.args(["lab", "list", "--json"]);
    let document: Value = serde_json::from_str(&run(command, LIMIT).expect_code(0).stdout).expect("JSON");
    let paths = array(&document, "/paths").iter();
    let named = paths.map(|path| (text(path, "/name").to_owned(), text(path, "/label").to_owned()));
    named.filter(|(_, label)| label != "variable-rate").collect()
}

fn verify(names: &[String]) {
    let labels = library();
    let mut done = in_parallel(names, |name| {
        let (_, label) = labels.iter().find(|(known, _)| known == name).expect("in the library");
        diagnose(name, label)
    });
    done.sort_by(|one, other| one.name.cmp(&other.name));
    publish(&done);
    let complaints: Vec<&String> = done.iter().filter_map(|one| one.complaint.as_ref()).collect();
    assert!(complaints.is_empty(), "{} of {}: {complaints:#?}", complaints.len(), done.len());
}

fn diagnose(name: &str, label: &str) -> Diagnosed {
    let mut command = linerate();
    command.args(["--no-history", "diagnose", &format!("lab:{name}"), "--json", "--quiet"]);
    let ended = run(command, LIMIT);
    let mut diagnosed =
        Diagnosed { name: name.to_owned(), label: label.to_owned(), row: String::new(), complaint: None };
    let document: Value = match serde_json::from_str(&ended.stdout) {
        Ok(document) => result(document),
        Err(error) => {
            diagnosed.complaint = Some(format!("{name}: no JSON ({error}): {}", ended.stderr));
            return diagnosed;
        }
    };
    let verdicts: Vec<(&str, &str)> =
        array(&document, "/verdicts").iter().map(|one| (text(one, "/cause"), text(one, "/location"))).collect();
    let first = verdicts.first().copied().unwrap_or(("", ""));
    let wanted = if label == "none" { "link-rate" } else { label };
    if first.0 != wanted {
        diagnosed.complaint = Some(format!("{name}: {verdicts:?} instead of {wanted}"));
    }
    let ends = ended.code() == Some(i32::from(first.1 != "nowhere"));
    if diagnosed.complaint.is_none() && !ends {
        diagnosed.complaint = Some(format!("{name}: ended with {:?}", ended.code()));
    }
    let contradictions = array(&document, "/contradictions");
    if diagnosed.complaint.is_none() && !contradictions.is_empty() {
        diagnosed.complaint = Some(format!("{name}: contradictions {contradictions:?}"));
    }
    diagnosed.row = row(&document, verdicts.get(1).copied());
    diagnosed
}

/// Columns of the table after name and label.
fn row(document: &Value, second: Option<(&str, &str)>) -> String {
    let mbit = |pointer: &str| {
        document.pointer(pointer).and_then(Value::as_f64).map_or("–".to_owned(), |rate| format!("{:.1}", rate / 1e6))
    };
    let first = &document["verdicts"][0];
    let next = document["next"]["name"].as_str().unwrap_or("–");
    format!(
        "{} | {} | {} | {} | {} | {} | {}",
        text(first, "/cause"),
        text(first, "/confidence"),
        second.map_or("–", |(cause, _)| cause),
        mbit("/goodput_bits_per_second"),
        mbit("/figures/capacity_payload_bits_per_second"),
        next,
        text(first, "/text").replace('|', "/"),
    )
}

fn publish(done: &[Diagnosed]) {
    let Some(file) = std::env::var_os("LINERATE_DIAGNOSIS_TABLE") else { return };
    let wrong = done.iter().filter(|one| one.complaint.is_some()).count();
    let mut page = format!(
        "# Verdicts of `linerate diagnose` in the lab\n\n\
         Every path of the library with the label of what was built in, and the first verdict of `linerate diagnose \
         lab:NAME` in one run: {} of {} agree. A label `none` (nothing is wrong) is met by `link-rate` (the path is full). \
         Rates in Mbit/s of payload; \"next\" is the bound that would come without the cause. Made by `cargo xtask \
         diagnosis`.\n\n\
         | path | label | verdict | confidence | also | goodput | carries | next | because |\n\
         |---|---|---|---|---|---:|---:|---|---|\n",
        done.len() - wrong,
        done.len()
    );
    for one in done {
        let mark = if one.complaint.is_some() { " ✗" } else { "" };
        let _ = writeln!(page, "| {}{mark} | {} | {} |", one.name, one.label, one.row);
    }
    std::fs::write(&file, page).expect("the table is written");
}
