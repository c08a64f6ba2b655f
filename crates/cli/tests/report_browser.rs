//! Tests of `linerate report` and its HTML page in Chromium: the browser tests are in `tests/browser`.
//!
//! Without Node.js or Chromium this fails with the installation command: `packaging/prerequisites.sh test`. With
//! `LINERATE_SCREENSHOTS=FOLDER`, pictures of the pages are stored in that folder.

#[path = "../../report/tests/runs/mod.rs"]
mod runs;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use linerate_documents::label::LabelledDocument;
use linerate_documents::run::RunDocument;
use linerate_report::presentation::Quantity;

use crate::support::Scratch;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn write_run(folder: &Path, name: &str, run: &RunDocument) -> PathBuf {
    let file = folder.join(format!("{name}.json"));
    fs::write(&file, serde_json::to_string(&LabelledDocument::run(run)).expect("a run is JSON")).expect("writable");
    file
}

/// Runs `linerate report` with these arguments, in `folder`, without a history.
fn report(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("report")
        .args(arguments)
        .current_dir(folder)
        .env("LINERATE_HISTORY", folder.join("history.sqlite"))
        .output()
        .expect("linerate starts")
}

fn succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn fails(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Formatted numbers of a chart, including some that are hard to round.
fn shown() -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    let mut add = |value: f64, unit| {
        let quantity = Quantity::new(value, unit);
        shown.insert(format!("{} {}", quantity.unit_name(), quantity.exact()), quantity.display_text());
    };
    for run in [runs::throughput(), runs::load(1)] {
        for series in &run.series {
            for value in series.values.iter().flatten() {
                add(*value, series.unit);
            }
        }
        for figure in &run.figures {
            let decades = (0..20).map(|power| 10_f64.powi(power - 9));
            for factor in
                decades.flat_map(|power| [1.0, 9.995, 99.95, 999.5, 1.25, 0.125, 2.5].map(|digit| digit * power))
            {
                add(factor, figure.unit);
            }
        }
    }
    shown.retain(|key, _| !key.starts_with("ns ") || key[3..].parse().is_ok_and(|value: f64| value.fract() == 0.0));
    shown
}

fn pages(folder: &Path) {
    let mut all = runs::all();
    all.push(("big", runs::big()));
    all.push(("load_shaped", runs::load(8)));
    let mut hostile = runs::load(2);
    for text in [&mut hostile.host, &mut hostile.verdict, &mut hostile.series[0].name, &mut hostile.phases[0].name] {
        runs::HOSTILE.clone_into(text);
    }
    all.push(("hostile", hostile));
    for (name, run) in &all {
        write_run(folder, name, run);
        succeeds(&report(folder, &[&format!("{name}.json"), "--out", &format!("{name}.html")]));
    }
    succeeds(&report(folder, &["--compare", "load.json", "load_shaped.json", "--out", "compare.html"]));
    succeeds(&report(folder, &["load.json", "path.json", "--out", "several.html"]));
    fs::write(folder.join("shown.json"), serde_json::to_string(&shown()).expect("text")).expect("writable");
}

#[test]
fn the_page_works_in_a_browser() {
    let scratch = Scratch::new();
    let pages_folder = scratch.folder();
    pages(pages_folder);
    let tests = root().join("tests/browser");
    let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(in_path);
    let advice = "`packaging/prerequisites.sh test` installs what is missing";
    let chromium = chromium.unwrap_or_else(|| panic!("no Chromium in $PATH: {advice}"));
    assert!(tests.join("node_modules/playwright-core").is_dir(), "tests/browser has no node_modules: {advice}");
    let output = Command::new("node")
        .arg(tests.join("report.mjs"))
        .arg(pages_folder)
        .args(std::env::var_os("LINERATE_SCREENSHOTS"))
        .env("CHROMIUM", chromium)
        .output()
        .unwrap_or_else(|error| panic!("cannot start node: {error}. {advice}"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.lines().filter(|line| line.starts_with("ok ")).count() >= 16, "{said}");
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[test]
fn a_file_is_not_overwritten_without_force() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    write_run(folder, "load", &runs::load(1));
    succeeds(&report(folder, &["load.json"]));
    let page = folder.join("linerate-report-load.html");
    assert!(fs::read_to_string(&page).expect("it is there").starts_with("<!doctype html>"));
    fs::write(&page, "mine").expect("writable");
    assert!(fails(&report(folder, &["load.json"])).contains("--force"));
    assert_eq!(fs::read_to_string(&page).expect("still there"), "mine");
    succeeds(&report(folder, &["load.json", "--force"]));
    assert_ne!(fs::read_to_string(&page).expect("still there"), "mine");
}

#[test]
fn other_formats_go_to_the_standard_output() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let run = runs::path();
    write_run(folder, "path", &run);
    assert!(succeeds(&report(folder, &["path.json", "--format", "text"])).contains("94.1 Mbit/s"));
    assert!(succeeds(&report(folder, &["path.json", "--format", "markdown"])).starts_with("# Path: "));
    let json = succeeds(&report(folder, &["path.json", "--format", "json"]));
    assert_eq!(serde_json::from_str::<RunDocument>(&json).expect("a run"), run);
    // Several runs are an array, which can be read again.
    let json = succeeds(&report(folder, &["path.json", "path.json", "--format", "json"]));
    fs::write(folder.join("both.json"), json).expect("writable");
    let text = succeeds(&report(folder, &["both.json", "--format", "text"]));
    assert_eq!(text.matches("Path: fra.example.net").count(), 2);
}

#[test]
fn invalid_runs_are_refused_with_a_remedy() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    fs::write(folder.join("broken.json"), "{\"schema\": 1}").expect("writable");
    fs::write(folder.join("newer.json"), "{\"schema\": 2}").expect("writable");
    assert!(fails(&report(folder, &["broken.json"])).contains("is not what a command of linerate prints"));
    assert!(fails(&report(folder, &["newer.json"])).contains("schema 2"));
    assert!(fails(&report(folder, &["nothing.json"])).contains("cannot read nothing.json"));
    assert!(fails(&report(folder, &["--compare", "broken.json"])).contains("two runs"));
    fails(&report(folder, &["17"]));
}
