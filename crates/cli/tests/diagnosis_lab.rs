//! Tests of `linerate diagnose` on the paths of the library: the first verdict names the emulated limit.
//!
//! A label `none` means a path without a fault; its verdict is `link-rate`, as for a path that is full with a queue.
//!
//! With `LINERATE_DIAGNOSIS_TABLE=FILE`, the table of all verdicts is written to that file as Markdown (`cargo xtask
//! diagnosis`). With `LINERATE_DIAGNOSES=DIRECTORY`, documents are kept there; from a kept one's observation the verdicts
//! are derived again, by the rules of this build and without the lab; with `LINERATE_DIAGNOSES_KEPT` of these paths alone.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use linerate_model::diagnosis::TransferObservation;
use linerate_rules::diagnosis::{diagnose as judge, figures};
use serde_json::{Value, json};

use crate::support::document::{array, text};
use crate::support::lab::in_parallel;
use crate::support::linerate;
use crate::support::process::{result, run};

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
    let mut names: Vec<String> = library().into_iter().map(|(name, _)| name).collect();
    assert!(names.len() >= 40, "{} paths", names.len());
    assert!(KINDS.iter().all(|kind| names.iter().any(|name| name == kind)), "{names:?}");
    names.retain(|name| is_wanted(name));
    verify(&names);
}

/// True for each path, or for those with a kept document.
fn is_wanted(name: &str) -> bool {
    std::env::var_os("LINERATE_DIAGNOSES_KEPT").is_none() || kept(name).is_some_and(|file| file.exists())
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
    publish(&done, labels.len());
    let complaints: Vec<&String> = done.iter().filter_map(|one| one.complaint.as_ref()).collect();
    assert!(complaints.is_empty(), "{} of {}: {complaints:#?}", complaints.len(), done.len());
}

/// File in which the document of a path is kept.
fn kept(name: &str) -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("LINERATE_DIAGNOSES")?).join(format!("{name}.json")))
}

/// Document of a path, kept or new, with the exit code that it came with or stands for.
fn document(name: &str) -> Result<(Value, Option<i32>), String> {
    if let Some(text) = kept(name).and_then(|file| std::fs::read_to_string(file).ok()) {
        let kept = serde_json::from_str(&text).map_err(|error| format!("{name}: the kept document: {error}"))?;
        return judged_again(result(kept)).map_err(|error| format!("{name}: {error}"));
    }
    let mut command = linerate();
    command.args(["--no-history", "diagnose", &format!("lab:{name}"), "--json", "--observation", "--quiet"]);
    let ended = run(command, LIMIT);
    let parsed = serde_json::from_str(&ended.stdout);
    let document = parsed.map_err(|error| format!("{name}: no JSON ({error}): {}", ended.stderr))?;
    if let Some(file) = kept(name) {
        std::fs::write(file, &ended.stdout).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok((result(document), ended.code()))
}

/// Replaces what the rules derive from the observation of a document.
fn judged_again(mut document: Value) -> Result<(Value, Option<i32>), serde_json::Error> {
    let observation: TransferObservation = serde_json::from_value(document["observation"].take())?;
    let found = judge(&observation);
    let verdicts = found.verdicts.iter().map(|one| {
        let (cause, location) = (one.cause.name(), one.cause.location().name());
        json!({ "cause": cause, "location": location, "confidence": one.confidence.name(), "text": one.text })
    });
    document["verdicts"] = verdicts.collect();
    document["figures"] =
        figures(&observation).into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    document["contradictions"] = json!(found.contradictions);
    document["next"] = found.next.map_or(Value::Null, |next| json!({ "name": next.kind.title() }));
    let code = i32::from(document["verdicts"][0]["location"] != "nowhere");
    Ok((document, Some(code)))
}

fn diagnose(name: &str, label: &str) -> Diagnosed {
    let mut diagnosed =
        Diagnosed { name: name.to_owned(), label: label.to_owned(), row: String::new(), complaint: None };
    let (document, code) = match document(name) {
        Ok(found) => found,
        Err(error) => {
            diagnosed.complaint = Some(error);
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
    let ends = code == Some(i32::from(first.1 != "nowhere"));
    if diagnosed.complaint.is_none() && !ends {
        diagnosed.complaint = Some(format!("{name}: ended with {code:?}"));
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

fn publish(done: &[Diagnosed], all: usize) {
    let Some(file) = std::env::var_os("LINERATE_DIAGNOSIS_TABLE") else { return };
    let wrong = done.iter().filter(|one| one.complaint.is_some()).count();
    let mut page = format!(
        "# Verdicts of `linerate diagnose` in the lab\n\n\
         {} with the label of what was built in, and the first verdict of `linerate diagnose lab:NAME` in one run: {} of \
         {} agree. A label `none` (nothing is wrong) is met by `link-rate` (the path is full). \
         Rates in Mbit/s of payload; \"next\" is the bound that would come without the cause. Made by `cargo xtask \
         diagnosis`.\n\n\
         | path | label | verdict | confidence | also | goodput | carries | next | because |\n\
         |---|---|---|---|---|---:|---:|---|---|\n",
        if done.len() == all {
            "Every path of the library".to_owned()
        } else {
            format!("{} of the library's {all} paths, each", done.len())
        },
        done.len() - wrong,
        done.len()
    );
    for one in done {
        let mark = if one.complaint.is_some() { " ✗" } else { "" };
        let _ = writeln!(page, "| {}{mark} | {} | {} |", one.name, one.label, one.row);
    }
    std::fs::write(&file, page).expect("the table is written");
}
