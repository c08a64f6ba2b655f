//! Tests of `linerate path` on every path of the library, against its emulated properties.
//!
//! Bounds: round trips within 0.1 ms or 0.5 %, path MTUs exact, capacity within 3 %, loss within its 95 % interval,
//! duplicates and reordering only where emulated, policers within 5 % and no false positive.
//!
//! With `LINERATE_PATH_TABLE=FILE`, the table of all figures is written to that file as Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, number, text};
use crate::support::lab::{OwnPath, in_parallel, lab_command};
use crate::support::linerate;
use crate::support::process::{result, run};

const LIMIT: Duration = Duration::from_secs(300);

/// Differences from the truth on one path, and its row in the table.
struct Compared {
    name: String,
    row: String,
    differences: Vec<String>,
}

/// One path of each kind, tested in every run.
const KINDS: [&str; 9] = [
    "300m-20ms-bursty-loss",
    "300m-20ms-black-hole",
    "300m-20ms-ecmp-reordering",
    "300m-20ms-policer-cubic",
    "asymmetric-100-to-1",
    "cable-docsis-pie",
    "lte",
    "tunnel-path-mtu",
    "xs4all-adsl",
];

#[test]
fn each_kind_of_path_is_measured_as_emulated() {
    verify(&KINDS.map(str::to_owned));
}

/// A stream half as fast again as the policer waits for the link, and shows the link's queue only.
#[test]
fn a_policer_little_slower_than_its_link_is_measured() {
    let own = |queue: &str, policer: &str| {
        OwnPath::new(&format!(
            "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nmtu = 1500\nrate = \"100 Mbit/s\"\n\
             delay = \"2 ms\"\n{queue}\n{policer}"
        ))
    };
    let short = "buffer = \"20 kB\"\nqueue = \"fifo\"";
    let policer = "[link.forward]\npolicer = { rate = \"90 Mbit/s\", burst = \"300 kB\" }\n";
    let paths =
        [own(short, policer), own("queue = \"codel\"", policer), own("buffer = \"6 kB\"\nqueue = \"fifo\"", "")];
    verify(&paths.each_ref().map(|path| path.file.clone()));
}

#[test]
#[ignore = "long: cargo xtask library, a quarter of an hour"]
fn every_path_is_measured_as_emulated() {
    let names = library();
    assert!(names.len() >= 40, "{} paths", names.len());
    assert!(KINDS.iter().all(|kind| names.iter().any(|name| name == kind)), "{names:?}");
    verify(&names);
}

fn verify(names: &[String]) {
    let mut done = in_parallel(names, |name| compare(name));
    done.sort_by(|one, other| one.name.cmp(&other.name));
    publish(&done);
    let differences: Vec<String> =
        done.iter().flat_map(|one| one.differences.iter().map(|text| format!("{}: {text}", one.name))).collect();
    assert!(differences.is_empty(), "{} differences: {differences:#?}", differences.len());
}

fn library() -> Vec<String> {
    let document: Value = serde_json::from_str(&output(&["list", "--json"])).expect("JSON");
    // Results on a path with a variable rate depend on the time of measurement.
    let steady = array(&document, "/paths").iter().filter(|path| text(path, "/label") != "variable-rate");
    steady.map(|path| text(path, "/name").to_owned()).collect()
}

fn output(arguments: &[&str]) -> String {
    let mut command = linerate();
    command.arg("lab").args(arguments);
    run(command, LIMIT).expect_code(0).stdout
}

fn compare(name: &str) -> Compared {
    let shown: Value = serde_json::from_str(&output(&["show", name, "--json"])).expect("JSON");
    let ended = run(lab_command(name, &["linerate", "path", "far", "--json", "--quiet"]), LIMIT);
    let mut compared = Compared { name: name.to_owned(), row: String::new(), differences: Vec::new() };
    if ended.code() != Some(0) {
        compared.differences.push(format!("ended with {:?}: {}", ended.code(), ended.stderr));
        return compared;
    }
    let found: Value = match serde_json::from_str(&ended.stdout) {
        Ok(found) => result(found),
        Err(error) => {
            compared.differences.push(format!("no JSON ({error}): {}", ended.stdout));
            return compared;
        }
    };
    let truth = &shown["truth"];
    compared.round_trip(&found, truth);
    for (ours, built) in [("up", "forward"), ("down", "backward")] {
        let (found, truth) = (&found[ours], &truth[built]);
        compared.sizes(ours, found, truth);
        compared.capacity(ours, found, truth);
        compared.packets(ours, found, truth);
        compared.policer(ours, found, truth);
        compared.marks(ours, found, truth);
    }
    compared.row = row(name, &found, truth);
    compared
}

/// A number, or `None` for null and for an absent value.
fn maybe(document: &Value, pointer: &str) -> Option<f64> {
    document.pointer(pointer).and_then(Value::as_f64)
}

impl Compared {
    fn check(&mut self, holds: bool, difference: impl FnOnce() -> String) {
        if !holds {
            self.differences.push(difference());
        }
    }

    /// Checks the median of the round trips, which varies with emulated jitter.
    fn round_trip(&mut self, found: &Value, truth: &Value) {
        let Some(median) = maybe(found, "/rtt/best/median_ns").map(|time| time / 1e9) else {
            self.check(false, || "no round trip".to_owned());
            return;
        };
        let count = number(found, "/rtt/best/count");
        // Serialisation takes time in proportion to the frame.
        let (base, small) = (number(truth, "/base_rtt_seconds"), number(truth, "/small_packet_rtt_seconds"));
        let frame = number(found, "/up/packets/packet_bytes") + 14.0;
        let expected = base + (small - base) * frame / (number(truth, "/small_packet_bytes") + 14.0);
        let jitter = ["forward", "backward"]
            .map(|way| number(truth, &format!("/{way}/jitter_seconds")))
            .iter()
            .fold(0.0_f64, |sum, jitter| sum.hypot(*jitter));
        // The error of a median of normal samples is 1.2533 times that of their mean; three of them.
        let spread = 3.0 * 1.2533 * jitter / count.sqrt();
        let tolerance = (0.1e-3_f64).max(0.005 * expected) + spread;
        let contended = ["forward", "backward"].iter().any(|way| truth[way]["contended"] == Value::Bool(true));
        if contended {
            let least = number(found, "/rtt/best/min_ns") / 1e9;
            self.check(least >= expected - tolerance && median >= expected - tolerance, || {
                format!("round trip {least} to {median} s, and nothing is faster than {expected}")
            });
            return;
        }
        // Reordered packets take less time.
        let sooner: f64 =
            ["forward", "backward"].iter().map(|way| number(truth, &format!("/{way}/overtaking_seconds"))).sum();
        self.check((expected - sooner - tolerance..=expected + tolerance).contains(&median), || {
            format!("round trip {median} s instead of {expected} ± {tolerance}")
        });
    }

    fn sizes(&mut self, way: &str, found: &Value, truth: &Value) {
        let (bytes, expected) = (maybe(found, "/mtu/bytes"), number(truth, "/mtu_bytes"));
        self.check(bytes == Some(expected), || format!("{way}: path MTU {bytes:?} instead of {expected}"));
        let hole = maybe(found, "/mtu/black_hole_bytes");
        let expected = (truth["black_hole"] == Value::Bool(true)).then_some(expected + 1.0);
        self.check(hole == expected, || format!("{way}: black hole from {hole:?} instead of {expected:?}"));
    }

    fn capacity(&mut self, way: &str, found: &Value, truth: &Value) {
        let Some(rate) = maybe(found, "/capacity/bits_per_second") else {
            return self.check(false, || format!("{way}: no capacity"));
        };
        let at_least = found.pointer("/capacity/at_least") == Some(&Value::Bool(true));
        let Some(built) = maybe(truth, "/capacity_bits_per_second") else {
            return self.check(at_least, || format!("{way}: {rate} bit/s on a path without a limit"));
        };
        let free = built - number(truth, "/taken_bits_per_second");
        if truth["contended"] == Value::Bool(true) {
            // Congestion-controlled cross traffic yields in part; other cross traffic keeps its rate.
            return self.check(rate >= 0.5 * free && rate <= 1.03 * built, || {
                format!("{way}: capacity {rate} of {built} bit/s, {free} bit/s available")
            });
        }
        self.check((rate / free - 1.0).abs() <= 0.03, || format!("{way}: capacity {rate} instead of {free} bit/s"));
        self.check(!at_least, || format!("{way}: the limit of {free} bit/s was reached and not recognised"));
    }

    fn packets(&mut self, way: &str, found: &Value, truth: &Value) {
        let contended = truth["contended"] == Value::Bool(true);
        let loss = number(truth, "/loss");
        let (low, high) = (maybe(found, "/packets/loss_low"), maybe(found, "/packets/loss_high"));
        let (Some(low), Some(high)) = (low, high) else {
            return self.check(false, || format!("{way}: no loss figures"));
        };
        let measured = number(found, "/packets/loss");
        let holds = if loss == 0.0 {
            // Cross traffic may fill the queue; otherwise nothing is lost.
            measured == 0.0 || contended
        } else if truth["bursty"] == Value::Bool(true) {
            // Independent events are loss episodes, not packets.
            let episodes = maybe(found, "/packets/loss_episodes").unwrap_or(0.0);
            let slack = 4.0 / episodes.max(1.0).sqrt();
            measured <= loss * (1.0 + slack) && measured >= loss * (1.0 - slack)
        } else {
            low <= loss && loss <= high
        };
        self.check(holds, || format!("{way}: loss {measured} ({low} to {high}) instead of {loss}"));
        let duplicates = number(found, "/packets/duplicates");
        let duplication = number(truth, "/duplication");
        self.check((duplicates > 0.0) == (duplication > 0.0), || {
            format!("{way}: {duplicates} duplicates instead of a share of {duplication}")
        });
        let reordered = number(found, "/packets/reordered");
        let reordering = truth["reordering"] == Value::Bool(true);
        self.check((reordered > 0.0) == reordering, || {
            format!("{way}: {reordered} reordered packets, emulated: {reordering}")
        });
    }

    fn policer(&mut self, way: &str, found: &Value, truth: &Value) {
        let built = maybe(truth, "/policer_bits_per_second");
        let present = found.pointer("/policer/present") == Some(&Value::Bool(true));
        self.check(present == built.is_some(), || format!("{way}: policer {present} instead of {built:?}"));
        if let (true, Some(built)) = (present, built) {
            let rate = maybe(found, "/policer/bits_per_second").unwrap_or(0.0);
            self.check((rate / built - 1.0).abs() <= 0.05, || format!("{way}: policer {rate} instead of {built}"));
        }
    }

    fn marks(&mut self, way: &str, found: &Value, truth: &Value) {
        let bleached = truth["bleaches_ecn"] == Value::Bool(true);
        let marks = array(found, "/marks/ecn");
        self.check(marks.len() == 4, || format!("{way}: {} of 4 ECN codepoints were tested", marks.len()));
        for mark in marks {
            let (sent, arrived) = (number(mark, "/sent"), maybe(mark, "/arrived"));
            let rewritten = mark["sent"].as_u64() == Some(1) && truth["rewrites_ect1"] == Value::Bool(true);
            let expected = if bleached {
                0.0
            } else if rewritten {
                2.0
            } else {
                sent
            };
            // Where queues mark, a congestion mark may replace the other two.
            let marked = arrived == Some(3.0) && sent > 0.0 && !bleached;
            self.check(arrived == Some(expected) || marked, || format!("{way}: ECN {sent} arrived as {arrived:?}"));
        }
    }
}

fn row(name: &str, found: &Value, truth: &Value) -> String {
    let mut row = format!("| {name} |");
    let milliseconds = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{:.3}", value * 1e3));
    let _ = write!(
        row,
        " {} | {} |",
        milliseconds(maybe(truth, "/small_packet_rtt_seconds")),
        milliseconds(maybe(found, "/rtt/best/median_ns").map(|time| time / 1e9)),
    );
    for (ours, built) in [("up", "forward"), ("down", "backward")] {
        let megabits = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{:.4}", value / 1e6));
        let share = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{:.3}", value * 100.0));
        let _ = write!(
            row,
            " {} | {} | {} | {} | {} |",
            maybe(found, &format!("/{ours}/mtu/bytes")).map_or("–".to_owned(), |bytes| format!("{bytes}")),
            megabits(maybe(truth, &format!("/{built}/capacity_bits_per_second"))),
            megabits(maybe(found, &format!("/{ours}/capacity/bits_per_second"))),
            share(maybe(truth, &format!("/{built}/loss"))),
            share(maybe(found, &format!("/{ours}/packets/loss"))),
        );
    }
    row
}

fn publish(compared: &[Compared]) {
    let Ok(file) = std::env::var("LINERATE_PATH_TABLE") else { return };
    let mut page = "# Results of `linerate path` in the lab\n\nPaths of the library, with their emulated \
                    properties (\"true\") next to the result of one run of `linerate path`. The true round trip is that of a \
                    packet of 84 bytes; capacities are those of the IP layer, through the policer where there is one, \
                    before other traffic takes its share. Made by `LINERATE_PATH_TABLE=docs/path.md cargo test -p \
                    linerate-cli --test cli path_lab::`, which also checks the bounds; with `-- --ignored` it \
                    goes through the whole library.\n\n| path | RTT true ms | RTT ms | \
                    MTU up | true up Mbit/s | up Mbit/s | true loss % | loss % | MTU down | true down Mbit/s | down \
                    Mbit/s | true loss % | loss % |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for one in compared {
        let _ = writeln!(page, "{}", one.row);
    }
    std::fs::write(file, page).expect("a file that can be written");
}
