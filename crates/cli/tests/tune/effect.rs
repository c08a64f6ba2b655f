//! What `linerate tune` brings on emulated paths. `cargo xtask effect` looks at all of the library in the same way.

use std::time::Duration;

use serde_json::Value;

use super::guest::{self, FAR, FAR_SMALL, Limit, NEAR, NEAR_SMALL, flat};
use crate::support::document::{array, number, text};
use crate::support::lab::lab;
use crate::support::linerate;
use crate::support::process::run;

const LIMIT: Duration = Duration::from_secs(300);

/// Least share of what the path carries that arrives afterwards, and most of its former round trip under load.
const ENOUGH: f64 = 0.95;
const LONGER: f64 = 1.2;

fn tune(path: &str, code: i32) -> Value {
    let mut command = linerate();
    command.args(["tune", &format!("lab:{path}"), "--yes", "--json", "--quiet"]);
    run(command, LIMIT).expect_code(code).json()
}

/// `near net.ipv4.tcp_wmem`, … of everything that was proposed.
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

/// One setting of one end is all that is changed, and the path is full then without a queue that was not there before.
fn one_setting_is_enough(path: &str, setting: &str) {
    let document = tune(path, 0);
    assert_eq!(text(&document, "/outcome"), "kept", "{document:#}");
    assert_eq!(proposed(&document), [setting], "{document:#}");
    let [kept] = array(&document, "/kept") else { panic!("one end: {document:#}") };
    assert!(setting.starts_with(text(kept, "/end")), "{kept}");
    let goodput = number(&document, "/after/goodput_bits_per_second");
    let capacity = number(&document, "/after/figures/capacity_payload_bits_per_second");
    assert!(goodput >= ENOUGH * capacity, "{goodput} of {capacity} bit/s");
    let [before, after] =
        ["before", "after"].map(|when| number(&document, &format!("/{when}/figures/round_trip_loaded_p95_seconds")));
    assert!(after <= LONGER * before, "{after} s after {before} s");
    let pairs = array(&document, "/rounds/0/trials/0/pairs");
    assert!(pairs.len() >= 5 && pairs.iter().all(|pair| pair["fault"].is_null()), "{pairs:#?}");
}

#[test]
fn a_small_receive_buffer_is_raised() {
    one_setting_is_enough("300m-20ms-receive-buffer-375k", "far net.ipv4.tcp_rmem");
}

#[test]
fn a_small_send_buffer_is_raised() {
    one_setting_is_enough("300m-20ms-send-buffer-375k", "near net.ipv4.tcp_wmem");
}

#[test]
fn where_no_host_limits_nothing_is_tried() {
    for path in ["300m-20ms", "300m-20ms-loss-cubic", "cable-bloat"] {
        let document = tune(path, 0);
        assert_eq!(text(&document, "/outcome"), "nothing_to_change", "{path}: {document:#}");
        assert_eq!((proposed(&document).len(), trials(&document)), (0, 0), "{path}: {document:#}");
        assert!(document["after"].is_null() && array(&document, "/kept").is_empty(), "{path}: {document:#}");
        assert!(!array(&document, "/rounds/0/refusals").is_empty(), "{path}: why is not said: {document:#}");
    }
}

/// With what is printed by `--dry-run` and `--export`, and by a run that may ask nobody, the hosts are as they were.
#[test]
fn a_plan_touches_nothing() {
    let script = r#"
        run() { "$L" tune far --far netns:far "$@" -- -t 5 -C cubic < /dev/null; }
        run --dry-run --json > plan; echo "plan: $?"
        run --export sysctl.d > exported; echo "export: $?"
        run > asked 2> questions; echo "asked: $?"
        echo '== document'; cat plan; echo '== exported'; cat exported
        echo '== questions'; cat questions; echo '== asked'; cat asked
        : > out; : > err; left"#;
    let said = guest::run(Limit::Near, script);
    assert_eq!((said.value("plan"), said.value("export"), said.value("asked")), ("0", "0", "1"), "{}", said.whole());
    let document: Value = serde_json::from_str(said.part("document")).expect("JSON");
    assert_eq!((text(&document, "/outcome"), trials(&document)), ("planned", 0), "{document:#}");
    let change = &array(&document, "/rounds/0/changes")[0]["change"];
    assert_eq!((text(change, "/target/key"), text(change, "/from")), (NEAR, NEAR_SMALL), "{change}");
    let to = text(change, "/to");
    let line = format!("{NEAR} = {to}");
    assert!(said.part("exported").lines().any(|exported| exported == line), "{}", said.whole());
    said.says("questions", &[&format!("{NEAR} = {to}"), NEAR_SMALL, "The proof takes"]).says("asked", &["--yes"]);
    let unchanged = "linerate has changed nothing on this host";
    said.is_back().says("near", &[unchanged]).says("far", &[unchanged]);
}

/// What is kept on this host stands in linerate's own file, can be exported, and is gone after `undo`.
#[test]
fn what_is_kept_is_exported_and_undone() {
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
    said.says("file", &["# Written by linerate", "goodput", &format!("{NEAR} = {kept}")]);
    said.says("exported", &["boot.kernel.sysctl", &format!("\"{NEAR}\" = \"{kept}\";")]);
    said.says("undone", &[NEAR, NEAR_SMALL]).says("nothing", &["nothing of linerate's is in force"]);
    assert!(!said.whole().contains("the file is there"), "{}", said.whole());
    said.is_back().says("near", &["rolled back"]);
}

/// A far end that shares this kernel keeps its changes for as long as its namespace is there, in journals of its own.
#[test]
fn what_is_kept_at_the_far_end_is_its_own() {
    let script = r#"tune; echo "code: $?"; both > now; echo "kept: $(one_line now)"; : > err
        export LINERATE_STATE="$D/state/netns-far"; far "$L" tune undo > undone; echo "undo: $?"
        export LINERATE_STATE="$D/state"; left"#;
    let said = guest::run(Limit::Far, script);
    assert_eq!((said.value("code"), said.value("undo")), ("0", "0"), "{}", said.whole());
    assert!(!said.value("kept").ends_with(FAR_SMALL), "{}", said.whole());
    said.says("output", &["[kept]", FAR, "until the next boot", "as long as it is there"]);
    said.is_back().says("near", &["linerate has changed nothing on this host"]).says("far", &["rolled back"]);
}

/// All steps on a path where nothing is wrong, up to the report.
#[test]
fn doctor_examines_and_writes_a_report() {
    let path = guest::path(Limit::None);
    let script = format!(
        "set -e; D=$(mktemp -d); cd $D; export LINERATE_HISTORY=off LINERATE_STATE=$D/state
         {} doctor far --far netns:far --dry-run --html report.html -- -t 5 -C cubic 2> err || {{ cat err; exit 1; }}
         echo; head -c 15 report.html; grep -o '<title>[^<]*' report.html",
        env!("CARGO_BIN_EXE_linerate")
    );
    let said = flat(&lab(&path.file, &["sh", "-c", &script]).stdout);
    for part in ["[nothing to change]", "path", "load", "diagnose", "<!doctype html>", "<title>"] {
        assert!(said.to_lowercase().contains(part), "{part:?} is not in {said}");
    }
}

/// The whole of it: broken off in the middle of the proof, everything is taken back; started again, it goes on with what was
/// measured, keeps what helps, compares it with what a guide would set, and writes its report.
#[test]
fn doctor_goes_on_where_it_was_and_keeps_what_helps() {
    let script = r#"doctor="doctor far --far netns:far --yes --compare-guide"; transfer="-- -t 5 -C cubic"
        "$L" $doctor --no-html $transfer > out 2> err & process=$!
        for i in $(seq 240); do grep -q 'pair 2:' err && break; sleep 1; done
        kill -INT $process; wait $process; echo "first: $?"; both > now; echo "back: $(one_line now)"
        "$L" $doctor --json --html report.html $transfer > document 2> again; echo "code: $?"; both > now; echo "kept: $(one_line now)"
        echo '== again'; cat again; echo '== document'; cat document; echo '== page'; head -c 15 report.html; left"#;
    let said = guest::run(Limit::Far, script);
    assert_eq!((said.value("first"), said.value("code")), ("3", "0"), "{}", said.whole());
    assert!(said.value("back").ends_with(FAR_SMALL) && !said.value("kept").ends_with(FAR_SMALL), "{}", said.whole());
    let document: Value = serde_json::from_str(said.part("document")).expect("JSON");
    let step = |name: &str| array(&document, "/steps").iter().find(|step| step["name"] == name).expect("a step");
    assert!(step("path")["resumed"] == true && step("load")["resumed"] == true, "{document:#}");
    assert_eq!(text(&document, "/tune/outcome"), "kept");
    assert!(array(&document, "/tune/rounds/0/trials/0/pairs").len() >= 5, "{document:#}");
    let number = |path: &str| document.pointer(path).and_then(Value::as_f64).expect(path);
    let figure = |name: &str| number(&format!("/tune/after/figures/{name}"));
    assert!(figure("steady_bits_per_second") >= 0.95 * figure("capacity_payload_bits_per_second"), "{document:#}");
    // 2 x (20 Mbit/s / 8) / 40 ms is 125 kB: the guide divides, and is still more than what stands there.
    let (guide, before) = (number("/comparison/measured_bits_per_second"), number("/effects/0/before"));
    assert!(guide > before && number("/comparison/predicted_bits_per_second") > before, "{document:#}");
    assert!(!document["load_before"].is_null() && !document["load_after"].is_null(), "{document:#}");
    said.says("again", &["Going on where an earlier run was interrupted", "report written to report.html"]);
    said.says("page", &["<!doctype html>"]);
}
