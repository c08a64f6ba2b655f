//! Effects of `linerate tune` on emulated paths. `cargo xtask effect` checks the whole library in the same manner.

use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, number, text};
use crate::support::lab::lab;
use crate::support::process::{result, run};
use crate::support::{Scratch, linerate};

use super::guest::{self, FAR, FAR_SMALL, Limit, NEAR, NEAR_SMALL, flat};

const LIMIT: Duration = Duration::from_secs(300);

/// Smallest share of the capacity that arrives afterwards, and largest share of the former round trip under load.
const MIN_CAPACITY_SHARE: f64 = 0.95;
const MAX_ROUND_TRIP_RATIO: f64 = 1.2;

fn tune(path: &str, code: i32) -> Value {
    let mut command = linerate();
    command.args(["tune", &format!("lab:{path}"), "--yes", "--json", "--quiet"]);
    run(command, LIMIT).expect_code(code).json()
}

/// Proposed settings, such as `near net.ipv4.tcp_wmem`.
fn proposed(document: &Value) -> Vec<String> {
    let rounds = array(document, "/rounds").iter();
    let changes = rounds.flat_map(|round| array(round, "/changes"));
    let name =
        |one: &Value| format!("{} {}", text(one, "/end"), one["change"]["target"]["key"].as_str().unwrap_or("-"));
    changes.map(name).collect()
}

fn trials(document: &Value) -> usize {
    array(document, "/rounds").iter().map(|round| array(round, "/trials").len()).sum()
}

/// Only one setting of one host is changed, and the path is full then without a new queue. The send buffer is that of
/// [`kept_changes_are_exported_and_undone`].
#[test]
fn a_small_receive_buffer_is_raised() {
    let setting = "far net.ipv4.tcp_rmem";
    let path = guest::path(Limit::Far);
    let document = tune(&path.file, 0);
    assert_eq!(text(&document, "/outcome"), "kept", "{document:#}");
    assert_eq!(proposed(&document), [setting], "{document:#}");
    let [kept] = array(&document, "/kept") else { panic!("one end: {document:#}") };
    assert!(setting.starts_with(text(kept, "/end")), "{kept}");
    let goodput = number(&document, "/after/goodput_bits_per_second");
    let capacity = number(&document, "/after/figures/capacity_payload_bits_per_second");
    assert!(goodput >= MIN_CAPACITY_SHARE * capacity, "{goodput} of {capacity} bit/s");
    let [before, after] =
        ["before", "after"].map(|when| number(&document, &format!("/{when}/figures/round_trip_loaded_p95_seconds")));
    assert!(after <= MAX_ROUND_TRIP_RATIO * before, "{after} s after {before} s");
    let pairs = array(&document, "/rounds/0/trials/0/pairs");
    assert!(pairs.len() >= 5 && pairs.iter().all(|pair| pair["fault"].is_null()), "{pairs:#?}");
}

#[test]
fn without_a_host_limit_nothing_is_tried() {
    let document = tune("cable-bloat", 0);
    assert_eq!(text(&document, "/outcome"), "nothing_to_change", "{document:#}");
    assert_eq!((proposed(&document).len(), trials(&document)), (0, 0), "{document:#}");
    assert!(document["after"].is_null() && array(&document, "/kept").is_empty(), "{document:#}");
    assert!(!array(&document, "/rounds/0/refusals").is_empty(), "without a reason: {document:#}");
}

/// After `--dry-run`, `--export`, and a run that may not ask, the hosts are unchanged.
#[test]
fn a_plan_touches_nothing() {
    let script = r#"
        run() { "$L" tune far --far netns:far "$@" -- -t 5 -C cubic < /dev/null; }
        run --dry-run --json > plan; echo "plan: $?"
        run --export sysctl.d > exported; echo "export: $?"
        run --export systemd-link > partial 2> omitted; echo "partial: $?"
        run > asked 2> questions; echo "asked: $?"
        echo '== document'; cat plan; echo '== exported'; cat exported
        echo '== omitted'; cat omitted; echo '== partial'; cat partial
        echo '== questions'; cat questions; echo '== asked'; cat asked
        : > out; : > err; left"#;
    let said = guest::run(Limit::Near, script);
    assert_eq!((said.value("plan"), said.value("export"), said.value("asked")), ("0", "0", "1"), "{}", said.whole());
    let document = result(serde_json::from_str(said.part("document")).expect("JSON"));
    assert_eq!((text(&document, "/outcome"), trials(&document)), ("planned", 0), "{document:#}");
    let change = &array(&document, "/rounds/0/changes")[0]["change"];
    assert_eq!((text(change, "/target/key"), text(change, "/from")), (NEAR, NEAR_SMALL), "{change}");
    let to = text(change, "/to");
    let line = format!("{NEAR} = {to}");
    assert!(said.part("exported").lines().any(|exported| exported == line), "{}", said.whole());
    // Names and time are those of the run, not of the guest's virtual clock.
    let year = linerate_sys::clock::format_utc(linerate_sys::clock::realtime_now(), "%Y");
    said.assert_contains("exported", &[&format!("for near, {year}-"), "measured to lab:"]);
    assert_eq!(said.value("partial"), "1", "{}", said.whole());
    said.assert_contains("omitted", &["cannot express 1 of 1 changes", &format!("near: {NEAR} = {to}")])
        .assert_contains("partial", &["# Not included: near: "]);
    let questions = [&format!("{NEAR} = {to}"), NEAR_SMALL, "The verification takes", "nothing was touched", "--yes"];
    said.assert_contains("questions", &questions).assert_contains("asked", &["[planned only]"]);
    let unchanged = "linerate has made no changes on this host";
    said.assert_restored().assert_contains("near", &[unchanged]).assert_contains("far", &[unchanged]);
}

/// The decisive setting of the far host is in the export, in a file of its own.
#[test]
fn the_far_host_has_its_own_file() {
    let path = guest::path(Limit::Far);
    let scratch = Scratch::new();
    let mut command = linerate();
    command.args(["tune", &format!("lab:{}", path.file), "--export", "sysctl.d", "--out", "plan", "--quiet"]);
    command.current_dir(scratch.path(""));
    let done = run(command, LIMIT).expect_code(0);
    assert_eq!(done.stdout, "plan/far/etc/sysctl.d/90-linerate.conf\n", "{}", done.stderr);
    let file = std::fs::read_to_string(scratch.path(done.stdout.trim())).expect("the file");
    assert!(file.lines().any(|line| line.starts_with(&format!("{FAR} = "))), "{file}");
}

/// Kept changes are in linerate's own file, can be exported, and are gone after `undo`.
#[test]
fn kept_changes_are_exported_and_undone() {
    let script = r#"file=/etc/sysctl.d/90-linerate.conf
        tune; echo "code: $?"; both > now; echo "kept: $(one_line now)"
        echo '== file'; cat $file
        echo '== exported'; "$L" tune export --format nixos
        "$L" tune undo > undone; echo "undo: $?"; echo '== undone'; cat undone
        test -e $file && echo 'the file is there'
        "$L" tune export > nothing 2>&1; echo "export: $?"; echo '== nothing'; cat nothing
        left"#;
    let said = guest::run(Limit::Near, script);
    assert_eq!((said.value("code"), said.value("undo"), said.value("export")), ("0", "0", "0"), "{}", said.whole());
    let kept = said.value("kept").split(';').next().expect("two of them");
    assert_ne!(kept, NEAR_SMALL, "{}", said.whole());
    said.assert_contains("file", &["# Written by linerate", "goodput", &format!("{NEAR} = {kept}")]);
    said.assert_contains("exported", &["boot.kernel.sysctl", &format!("\"{NEAR}\" = \"{kept}\";")]);
    said.assert_contains("undone", &[NEAR, NEAR_SMALL])
        .assert_contains("nothing", &["no changes of linerate are in effect"]);
    assert!(!said.whole().contains("the file is there"), "{}", said.whole());
    said.assert_restored().assert_contains("near", &["rolled back"]);
}

/// A far host that shares this kernel keeps its changes while its namespace exists, in separate journals.
#[test]
fn changes_of_the_far_host_are_kept_there() {
    let script = r#"tune; echo "code: $?"; both > now; echo "kept: $(one_line now)"; : > err
        export LINERATE_STATE="$D/state/netns-far"; far "$L" tune undo > undone; echo "undo: $?"
        export LINERATE_STATE="$D/state"; left"#;
    let said = guest::run(Limit::Far, script);
    assert_eq!((said.value("code"), said.value("undo")), ("0", "0"), "{}", said.whole());
    assert!(!said.value("kept").ends_with(FAR_SMALL), "{}", said.whole());
    said.assert_contains("output", &["[kept]", FAR, "until reboot", "as long as it exists"]);
    said.assert_restored()
        .assert_contains("near", &["linerate has made no changes on this host"])
        .assert_contains("far", &["rolled back"]);
}

/// All steps on a path without a fault, up to the report.
#[test]
fn doctor_examines_and_writes_a_report() {
    let path = guest::path(Limit::None);
    let script = format!(
        "set -e; D=$(mktemp -d); cd $D; export LINERATE_HISTORY=off LINERATE_STATE=$D/state
         {} doctor far --far netns:far --dry-run --verbose --html report.html -- -t 5 -C cubic 2> err || {{ cat err; exit 1; }}
         echo; head -c 15 report.html; grep -o '<title>[^<]*' report.html",
        env!("CARGO_BIN_EXE_linerate")
    );
    let said = flat(&lab(&path.file, &["sh", "-c", &script]).stdout);
    for part in ["[nothing to change]", "path", "load", "diagnose", "<!doctype html>", "<title>"] {
        assert!(said.to_lowercase().contains(part), "{part:?} is not in {said}");
    }
}

/// Complete procedure: interrupted during a trial, everything is rolled back; restarted, it reuses the measurements,
/// keeps the effective changes, compares them with the values of a guide, and writes its report.
#[test]
fn doctor_resumes_and_keeps_effective_changes() {
    let script = r#"doctor="doctor far --far netns:far --yes --compare-guide"; transfer="-- -t 5 -C cubic"
        "$L" $doctor --no-html $transfer > out 2> err & process=$!
        for i in $(seq 240); do grep -q 'pair 2:' err && break; sleep 1; done
        kill -INT $process; wait $process; echo "first: $?"; both > now; echo "back: $(one_line now)"
        "$L" $doctor --json --html report.html $transfer > document 2> again; echo "code: $?"; both > now; echo "kept: $(one_line now)"
        echo '== again'; cat again; echo '== document'; cat document; echo '== page'; head -c 15 report.html; left"#;
    let said = guest::run(Limit::Far, script);
    assert_eq!((said.value("first"), said.value("code")), ("3", "0"), "{}", said.whole());
    assert!(said.value("back").ends_with(FAR_SMALL) && !said.value("kept").ends_with(FAR_SMALL), "{}", said.whole());
    let document = result(serde_json::from_str(said.part("document")).expect("JSON"));
    let step = |name: &str| array(&document, "/steps").iter().find(|step| step["name"] == name).expect("a step");
    assert!(step("path")["resumed"] == true && step("load")["resumed"] == true, "{document:#}");
    assert_eq!(text(&document, "/tune/outcome"), "kept");
    assert!(array(&document, "/tune/rounds/0/trials/0/pairs").len() >= 5, "{document:#}");
    let number = |path: &str| document.pointer(path).and_then(Value::as_f64).expect(path);
    let figure = |name: &str| number(&format!("/tune/after/figures/{name}"));
    assert!(figure("steady_bits_per_second") >= 0.95 * figure("capacity_payload_bits_per_second"), "{document:#}");
    // 2 x (20 Mbit/s / 8) / 40 ms is 125 kB: the guide divides, and is still above the current value.
    let (guide, before) = (number("/comparison/measured_bits_per_second"), number("/effects/0/before"));
    assert!(guide > before && number("/comparison/predicted_bits_per_second") > before, "{document:#}");
    assert!(!document["load_before"].is_null() && !document["load_after"].is_null(), "{document:#}");
    said.assert_contains("again", &["Resuming the interrupted run", "report written to report.html"]);
    said.assert_contains("page", &["<!doctype html>"]);
}
