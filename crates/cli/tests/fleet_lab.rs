//! A fleet in the lab: six hosts behind two shared uplinks with three faults, from 22:13 to past the cycle of midnight.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use crate::support::process::run;
use crate::support::{Scratch, linerate};

const LIMIT: Duration = Duration::from_secs(500);
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fleet/lab-fleet.sh");

/// Goodput of a link of 10 Mbit/s in packets of 1514 bytes.
const LINK_GOODPUT: f64 = 10e6 * 1448.0 / 1514.0;

/// Result of a direction.
struct DirectedGoodput<'a> {
    from: &'a str,
    to: &'a str,
    goodput: f64,
    cause: &'a str,
}

fn directions(result: &Value) -> Vec<DirectedGoodput<'_>> {
    let name = |key: &str| result[key].as_str().expect("a name");
    let (source, destination) = (name("source"), name("destination"));
    let tests = result["run"]["result"]["throughput"]["runs"].as_array().expect("tests");
    let directed = tests.iter().map(|test| {
        let (from, to) = if test["direction"] == "up" { (source, destination) } else { (destination, source) };
        let goodput = test["bits_per_second"].as_f64().expect("a rate");
        let cause = test["diagnosis"]["verdicts"][0]["cause"].as_str().expect("a cause");
        DirectedGoodput { from, to, goodput, cause }
    });
    directed.collect()
}

/// Asserts that no host is in two tests at once.
fn assert_apart(results: &[Value]) {
    let mut times: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for result in results.iter().filter(|result| result["test"] == "throughput") {
        let run = &result["run"];
        let begin = run["started_at_unix_ns"].as_u64().expect("a time");
        let end = begin + run["duration_ns"].as_u64().expect("a duration");
        for key in ["source", "destination"] {
            times.entry(result[key].as_str().expect("a name")).or_default().push((begin, end));
        }
    }
    for (host, mut spans) in times {
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{host} was in two tests at once: {spans:?}");
    }
}

#[test]
fn a_fleet_measures_every_pair_and_names_its_faults() {
    let scratch = Scratch::new();
    let program = linerate().get_program().to_string_lossy().into_owned();
    // Of temporary directories the guest sees that in which the lab was started.
    let directory = scratch.path("fleet");
    let mut command = linerate();
    // The size of the lab's own path gives the guest its memory.
    command.args(["lab", "run", "--rate", "10G", "--rtt", "200ms", "--", "bash", SCRIPT, &program, &directory]);
    command.args(["6", "2", "2h"]).env("LINERATE_HISTORY", "off").current_dir(scratch.path(""));
    run(command, LIMIT).expect_code(0);
    let files = std::fs::read_dir(scratch.path("fleet/results")).expect("results");
    let text: String = files.map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("text")).collect();
    let results: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a result")).collect();
    assert!(results.iter().all(|result| result["outcome"] == "done"), "{text}");
    assert_apart(&results);

    let measured: Vec<DirectedGoodput<'_>> =
        results.iter().filter(|result| result["test"] == "throughput").flat_map(directions).collect();
    let pairs: BTreeSet<(&str, &str)> = measured.iter().map(|one| (one.from, one.to)).collect();
    assert_eq!((measured.len(), pairs.len()), (30, 30), "every direction once");
    // Hosts with an odd number are at the site whose uplink loses packets.
    let is_lossy = |one: &DirectedGoodput<'_>| {
        [one.from, one.to].map(|name| name.ends_with(['1', '3', '5'])).iter().filter(|odd| **odd).count() == 1
    };
    let is_bursty = |one: &DirectedGoodput<'_>| is_lossy(one) && one.cause == "bursty-loss";
    assert!(measured.iter().filter(|one| is_bursty(one)).count() <= 1, "losses of several directions fall together");
    for one in &measured {
        let case = format!("{} to {}: {} bit/s, {}", one.from, one.to, one.goodput, one.cause);
        if one.to == "h02" {
            // Two faults at once: the window is the smaller of both, and what is lost delays its reading.
            let is_named = one.cause == "receive-window" || is_lossy(one) && one.cause == "slow-reader";
            assert!(is_named, "{case}");
        } else if is_lossy(one) {
            // With so small a queue the first two look alike from a transfer alone, and in few episodes losses may fall together by
            // chance.
            let is_named = ["loss", "buffer-too-small", "bursty-loss"].contains(&one.cause);
            assert!(is_named && one.goodput < 0.7 * LINK_GOODPUT, "{case}");
        } else {
            let expected = if one.to == "h03" { "bufferbloat" } else { "link-rate" };
            assert_eq!(one.cause, expected, "{case}");
            assert!((one.goodput / LINK_GOODPUT - 1.0).abs() < 0.03, "{case}");
        }
    }
    let mut report = linerate();
    report.args(["fleet", "report", "--format", "text", &scratch.path("fleet/results")]);
    let report = run(report, LIMIT).expect_code(0).stdout;
    for (cause, host) in [("- the receive window: ", " directions to h02"), ("- bufferbloat: ", " directions to h03")] {
        assert!(report.lines().any(|line| line.starts_with(cause) && line.ends_with(host)), "{report}");
    }
}
