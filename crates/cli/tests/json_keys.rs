//! Tests of the JSON keys: those of the stock iperf3 for the same options, with values of the same types, plus the keys
//! of later versions. Only the top-level "linerate" is an extension.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::document::key_paths;
use crate::support::pairing::{LIMIT, PAIRINGS, Pair, Run, undisturbed};
use crate::support::process::run;
use crate::support::{self, Program, Server};

/// Keys that iperf3 3.13 to 3.21 added to 3.12's: a document with the second path has the first, too.
const ADDED: &[(&str, &str)] = &[
    // 3.13
    ("start.test_start.bidir: number", "start.test_start.reverse: number"),
    ("start.test_start.fqrate: number", "start.test_start.reverse: number"),
    ("start.fq_rate: number", "start.target_bitrate: number"),
    // 3.17
    ("start.test_start.interval: number", "start.test_start.reverse: number"),
    // 3.20
    ("start.timestamp.timemillisecs: number", "start.timestamp.timesecs: number"),
    ("intervals[].streams[].reorder: number", "intervals[].streams[].snd_wnd: number"),
    ("end.streams[].sender.reorder: number", "end.streams[].sender.max_snd_wnd: number"),
    // 3.21
    ("start.test_start.gso: number", "start.test_start.reverse: number"),
    ("start.test_start.gro: number", "start.test_start.reverse: number"),
];

/// Paths of a document of iperf3, with the additions of later versions; these also in the part of the server if it is
/// linerate.
fn expected(stock: &Value, server: Program) -> BTreeSet<String> {
    let mut paths = key_paths(stock);
    let both = ["", "server_output_json."];
    for prefix in if server == Program::Linerate { &both[..] } else { &both[..1] } {
        for (added, companion) in ADDED {
            if paths.contains(&format!("{prefix}{companion}")) {
                paths.insert(format!("{prefix}{added}"));
            }
        }
    }
    paths
}

/// Paths of a document of linerate, without its extensions.
fn ours(mut document: Value) -> BTreeSet<String> {
    let remove = |object: &mut Value| object.as_object_mut().and_then(|object| object.remove("linerate"));
    assert!(remove(&mut document).is_some(), "a document of linerate's has its own part");
    document.get_mut("server_output_json").map(remove);
    key_paths(&document)
}

#[track_caller]
fn assert_same(ours: &BTreeSet<String>, expected: &BTreeSet<String>, what: &str) {
    let missing: Vec<_> = expected.difference(ours).collect();
    let surplus: Vec<_> = ours.difference(expected).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "{what}: missing {missing:#?}, surplus {surplus:#?}");
}

/// Runs `arguments` in all pairings; each document of linerate is compared with the stock iperf3's in the same role.
fn check(arguments: &[&str]) {
    undisturbed(|| check_once(arguments));
}

fn check_once(arguments: &[&str]) {
    let arguments = [arguments, &["-J"]].concat();
    let run = Run { client: &arguments, server: &["-J"], ..Run::default() };
    let [both_stock, others @ ..] = {
        let mut pairs: Vec<Pair> = std::thread::scope(|scope| {
            let threads = PAIRINGS.map(|pairing| scope.spawn(move || run.run(pairing)));
            threads.into_iter().map(|thread| thread.join().expect("a pair")).collect()
        });
        pairs.reverse();
        <[Pair; 4]>::try_from(pairs).expect("four pairings")
    };
    let (client, server) = (both_stock.client.json(), both_stock.server.json());
    for Pair { pairing, client: our_client, server: our_server } in others {
        if pairing.client == Program::Linerate {
            assert_same(&ours(our_client.json()), &expected(&client, pairing.server), &format!("{pairing}, client"));
        }
        if pairing.server == Program::Linerate {
            assert_same(&ours(our_server.json()), &expected(&server, pairing.server), &format!("{pairing}, server"));
        }
    }
}

/// Most are paced: the keys are those of any rate, and other suites need the processors.
macro_rules! same_keys {
    ($($name:ident: $($argument:literal)*;)*) => {
        $(#[test] fn $name() { check(&[$($argument),*]); })*
    };
}

same_keys! {
    tcp: "-t" "1";
    bytes: "-n" "32M";
    blocks: "-k" "256";
    reverse: "-t" "1" "-b" "100M" "-R";
    bidirectional: "-t" "1" "-b" "100M" "--bidir";
    parallel: "-t" "1" "-b" "100M" "-P" "4";
    bidirectional_parallel: "-t" "1" "-b" "100M" "--bidir" "-P" "2";
    udp: "-u" "-t" "1";
    udp_reverse: "-u" "-R" "-t" "1";
    udp_bidirectional: "-u" "--bidir" "-t" "1";
    udp_parallel_reverse: "-u" "-P" "2" "-R" "-t" "1";
    udp_at_a_rate: "-u" "-b" "100M" "-l" "1200" "-t" "1";
    udp_omit: "-u" "-O" "1" "-t" "1";
    zero_copy: "-t" "1" "-b" "100M" "-Z";
    omit: "-t" "1" "-b" "100M" "-O" "1";
    window: "-t" "1" "-b" "100M" "-w" "256K";
    segment_size: "-t" "1" "-b" "100M" "-M" "1400";
    no_delay: "-t" "1" "-b" "100M" "-N";
    congestion: "-t" "1" "-b" "100M" "-C" "reno";
    type_of_service: "-t" "1" "-b" "100M" "-S" "16";
    server_output: "-t" "1" "-b" "100M" "--get-server-output";
    title_and_data: "-t" "1" "-b" "10M" "-T" "title" "--extra-data" "data";
    without_intervals: "-t" "1" "-b" "100M" "-i" "0";
    short_intervals: "-t" "1" "-i" "0.2" "-b" "10M";
}

/// Paced, because iperf3 3.12 omits its only interval when the end of a test overtakes its data.
#[test]
fn a_file() {
    let scratch = support::Scratch::new();
    let source = scratch.file("source", vec![7; 1 << 20]);
    check(&["-F", &source, "-b", "20M"]);
}

#[test]
fn a_client_without_a_server() {
    let port = support::free_port().to_string();
    let arguments = ["-c", "127.0.0.1", "-p", &port, "-J"];
    let stock = run(Program::Iperf3.with(&arguments), LIMIT).json();
    assert_same(
        &ours(run(Program::Linerate.with(&arguments), LIMIT).json()),
        &expected(&stock, Program::Linerate),
        "refused",
    );
}

#[test]
fn a_refused_client() {
    let server = Server::start(Program::Linerate, &["--max-sessions", "1"]);
    let busy = support::Process::start(server.client(Program::Linerate, &["-t", "30", "-b", "1M"]));
    busy.wait_for_output("connected to", LIMIT);
    let stock = run(server.client(Program::Iperf3, &["-J"]), LIMIT).json();
    let refused = run(server.client(Program::Linerate, &["-J"]), LIMIT).json();
    assert_same(&ours(refused), &expected(&stock, Program::Linerate), "busy");
}

#[test]
fn an_interrupted_client() {
    let interrupted = |program: Program| {
        let server = Server::start(Program::Linerate, &["-i", "0.1"]);
        let client = support::Process::start(server.client(program, &["-t", "30", "-i", "0.1", "-b", "10M", "-J"]));
        // The client prints nothing before its end; its first interval is over by then.
        server.process.wait_for_interval(0.5, LIMIT);
        client.signal("INT");
        client.finish(LIMIT).json()
    };
    let stock = interrupted(Program::Iperf3);
    assert_same(&ours(interrupted(Program::Linerate)), &expected(&stock, Program::Linerate), "interrupted");
}
