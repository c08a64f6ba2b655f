//! Tests of `linerate path --hops` on emulated routes: what is found at which hop.

use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, number, text};
use crate::support::lab::{OwnPath, lab_command};
use crate::support::process::{result, run};
use crate::support::{Scratch, linerate};

const LIMIT: Duration = Duration::from_secs(300);

/// Route with two links of equal cost, a router that limits its ICMP errors, and a smaller MTU behind it.
const TWO_ROUTES: &str = "300m-10ms-two-routes";

fn hops(path: &str, more: &[&str]) -> Value {
    let arguments = [&["linerate", "path", "far", "--hops", "--json", "--quiet"], more].concat();
    let document = result(run(lab_command(path, &arguments), LIMIT).expect_code(0).json());
    assert!(document["route"]["is_reached"] == true, "{document}");
    document
}

/// Addresses of a hop with their flows.
fn addresses(hop: &Value) -> Vec<(String, Vec<u64>)> {
    let one = |one: &Value| {
        let flows = array(one, "/flows").iter().filter_map(Value::as_u64).collect();
        (text(one, "/address").to_owned(), flows)
    };
    let mut all: Vec<_> = array(hop, "/addresses").iter().map(one).collect();
    all.sort();
    all
}

fn replies(document: &Value) -> Vec<&str> {
    array(document, "/hops").iter().map(|hop| text(hop, "/replies")).collect()
}

#[test]
fn routes_of_equal_cost_a_limit_and_an_mtu_are_found_at_their_hops() {
    let document = hops(TWO_ROUTES, &["--count", "40", "--interval", "100ms", "--flows", "8"]);
    let found: Vec<_> = array(&document, "/hops").iter().map(addresses).collect();
    let names: Vec<Vec<&str>> =
        found.iter().map(|hop| hop.iter().map(|(address, _)| address.as_str()).collect()).collect();
    assert_eq!(names, [vec!["10.0.0.2"], vec!["10.0.1.2", "10.0.65.2"], vec!["10.0.2.2"], vec!["10.0.3.2"]]);
    // A flow sees one of the two routes only.
    let [first, second] = &found[1][..] else { panic!("{found:?}") };
    assert!(first.1.iter().all(|flow| !second.1.contains(flow)), "{found:?}");
    // The limit of one hop is no loss of the path.
    assert_eq!(replies(&document), ["complete", "limited", "complete", "complete"], "{document}");
    let route = &document["route"];
    assert!(number(&document, "/hops/1/unanswered") > 0.5, "{document}");
    assert_eq!((route["loss"].as_f64(), &route["loss_from"]), (Some(0.0), &Value::Null));
    assert!(array(&document, "/route/changes").is_empty(), "{route}");
    let [drop] = array(&document, "/route/mtu_drops") else { panic!("{route}") };
    assert_eq!((&drop["after"], &drop["from_bytes"], &drop["to_bytes"]), (&2.into(), &1500.into(), &1400.into()));
    let sizes: Vec<_> = array(&document, "/hops").iter().map(|hop| hop["mtu_bytes"].as_u64()).collect();
    assert_eq!(sizes, [Some(1500), Some(1500), Some(1400), Some(1400)]);
    for (hop, milliseconds) in [(0, 2.0), (1, 10.0), (3, 10.2)] {
        let median = number(&document, &format!("/hops/{hop}/rtt/median_ns")) / 1e6;
        assert!((median - milliseconds).abs() < 0.3, "hop {}: {median} ms instead of {milliseconds}", hop + 1);
    }
}

/// Three routers; the second link has these keys.
fn three_routers(keys: &str) -> OwnPath {
    let link = |from: &str, to: &str, keys: &str| {
        format!("[[link]]\nbetween = [\"{from}\", \"{to}\"]\ndelay = \"1 ms\"\n{keys}\n")
    };
    let links = [link("near", "r1", ""), link("r1", "r2", ""), link("r2", "r3", keys), link("r3", "far", "")];
    OwnPath::new(&format!("[host.near]\n[host.r1]\n[host.r2]\n[host.r3]\n[host.far]\n{}", links.concat()))
}

#[test]
fn loss_is_named_at_the_hop_from_which_it_persists() {
    let path = three_routers("[link.forward]\nloss = \"20 %\"");
    let document = hops(&path.file, &["--count", "60", "--interval", "20ms"]);
    assert_eq!(replies(&document), ["complete", "complete", "lossy", "lossy"], "{document}");
    assert_eq!(document["route"]["loss_from"], 3);
    let (low, high) = (number(&document, "/route/loss_low"), number(&document, "/route/loss_high"));
    assert!(low <= 0.2 && 0.2 <= high, "{low} to {high}");
}

#[test]
fn a_black_hole_is_found_behind_the_last_hop_that_large_packets_reach() {
    let path = three_routers("[link.forward]\ndrop_larger_than = \"1400 B\"");
    let document = hops(&path.file, &["--count", "3", "--interval", "50ms"]);
    let [drop] = array(&document, "/route/mtu_drops") else { panic!("{}", document["route"]) };
    assert_eq!((&drop["after"], &drop["from_bytes"]), (&2.into(), &1500.into()));
    assert_eq!((&drop["reporter"], &drop["to_bytes"]), (&Value::Null, &Value::Null));
    assert_eq!(replies(&document), ["complete"; 4]);
}

#[test]
fn names_and_autonomous_systems_come_from_this_host() {
    let folder = Scratch::new();
    let table = folder.path("as.tsv");
    std::fs::write(&table, "10.0.0.0\t10.0.1.255\t64500\tZZ\tNEAR\n10.0.2.0\t24\t64501\n").expect("a table");
    let path = three_routers("");
    let document = hops(&path.file, &["--count", "1", "--names", "--as-data", &table]);
    let labels: Vec<_> = array(&document, "/hops")
        .iter()
        .map(|hop| (hop["addresses"][0]["name"].as_str(), hop["addresses"][0]["autonomous_system"]["number"].as_u64()))
        .collect();
    let expected =
        [(Some("r1"), Some(64_500)), (Some("r2"), Some(64_500)), (Some("r3"), Some(64_501)), (Some("far"), None)];
    assert_eq!(labels, expected);
}

#[test]
fn the_table_fits_a_terminal() {
    for (width, blocks) in [("80", 1), ("60", 2)] {
        let script = format!(
            "NO_COLOR=1 LINERATE_TERMINAL=out COLUMNS={width} linerate path far --hops --quiet --count 12 --interval 50ms"
        );
        let output = run(lab_command(TWO_ROUTES, &["sh", "-c", &script]), LIMIT).expect_code(0).stdout;
        let headings = output.lines().filter(|line| line.trim_start().starts_with("Hop ")).count();
        let limit = width.parse().expect("a number");
        assert!(output.lines().all(|line| line.chars().count() <= limit), "{output}");
        assert!(headings <= blocks && headings > 0, "{headings} blocks in {width} columns: {output}");
        for part in ["no loss", "the path MTU falls from 1500 to 1400 B after hop 2", "a limit of ICMP errors"] {
            let flat = output.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(part), "{part}: {output}");
        }
    }
}

#[test]
fn a_file_that_is_no_table_is_named() {
    let folder = Scratch::new();
    let table = folder.path("as.tsv");
    std::fs::write(&table, "no table\n").expect("a file");
    for (file, problem) in
        [(table.as_str(), "as.tsv:1: fewer than three columns"), ("/nonexistent", "reading /nonexistent")]
    {
        let mut command = linerate();
        command.args(["path", "127.0.0.1", "--hops", "--as-data", file]);
        let ended = run(command, LIMIT);
        assert!(ended.stderr.contains(problem), "{}", ended.stderr);
        assert_eq!((ended.code() == Some(0), ended.stdout.as_str()), (false, ""));
    }
}

#[test]
fn an_interrupt_prints_what_was_measured() {
    let script = "linerate path far --hops --count 1000 --json --quiet & sleep 3; kill -INT $!; wait $!";
    let ended = run(lab_command(TWO_ROUTES, &["sh", "-c", script]), LIMIT);
    let document = result(ended.json());
    assert_eq!(array(&document, "/hops").len(), 4, "{document}");
    assert_eq!(text(&document, "/termination/outcome"), "interrupted", "{}", document["termination"]);
}
