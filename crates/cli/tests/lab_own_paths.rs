//! Paths without a file, traces, exports, and the guide for CI: real guests, in virtual time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::lab::OwnPath;
use crate::support::process::{FinishedChild, run};
use crate::support::{Scratch, linerate};

const LIMIT: Duration = Duration::from_secs(300);

/// A path without any property.
const PLAIN: &str = "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\n";

fn in_directory(directory: &Scratch, arguments: &[&str]) -> FinishedChild {
    let mut command = linerate();
    command.args(arguments).current_dir(directory.path(""));
    run(command, LIMIT)
}

fn export(path: &str, format: &str) -> String {
    in_directory(&Scratch::new(), &["lab", "export", path, "--format", format]).expect_code(0).stdout
}

/// Times of `ping` in milliseconds.
fn pings(output: &str) -> Vec<f64> {
    output.lines().filter_map(|line| line.split_once(" time=")?.1.strip_suffix(" ms")?.parse().ok()).collect()
}

#[test]
fn options_are_a_path() {
    let options = ["--rate", "10M", "--rtt", "20ms", "--loss", "0.1%", "--buffer", "500ms"];
    let arguments = [&["lab", "run"], &options[..], &["--", "ping", "-c", "5", "-i", "0.2", "far"]].concat();
    let times = pings(&in_directory(&Scratch::new(), &arguments).expect_code(0).stdout);
    assert!(times.len() >= 4 && times.iter().all(|time| (time - 20.0).abs() < 0.5), "{times:?}");
    let document =
        in_directory(&Scratch::new(), &["lab", "show", "rate=10M,rtt=20ms,loss=0.1%,buffer=500ms", "--json"]);
    let document = document.expect_code(0).json();
    assert_eq!(document.pointer("/forward/queueing_delay_seconds"), Some(&Value::from(0.5)));
}

/// Path with windows of 64 kB, of which a round trip of 20 ms carries one.
const SMALL_WINDOWS: &str = "[host.near]\n[host.far.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 131072\"\n[[link]]\nbetween = \
                             [\"near\", \"far\"]\nrate = \"300 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"600000 B\"\n";

#[test]
fn receivers_of_several_streams_take_nothing_from_their_windows() {
    let directory = Scratch::new();
    std::fs::write(directory.path("windows.toml"), SMALL_WINDOWS).expect("a path");
    let received = |streams: &str| {
        let test = ["iperf3", "-c", "far", "-C", "cubic", "-t", "4", "-P", streams, "-J"];
        let output = in_directory(&directory, &[&["lab", "run", "./windows.toml", "--"][..], &test].concat());
        let document = output.expect_code(0).json();
        document.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64).expect("a rate")
    };
    let (one, four) = (received("1"), received("4"));
    assert!((four / one / 4.0 - 1.0).abs() < 0.03, "{one} bit/s with one stream, {four} with four");
}

/// Half a second with a packet in each millisecond, and one packet at its end.
fn on_and_off() -> String {
    let lines: Vec<String> = (1..=500).chain([1000]).map(|time: u32| time.to_string()).collect();
    lines.join("\n") + "\n"
}

#[test]
fn a_link_follows_its_trace_again_and_again() {
    let directory = Scratch::new();
    std::fs::write(directory.path("on-off.trace"), on_and_off()).expect("a trace");
    let script = "began=$(date +%s%N); linerate iperf3 -c far -R -u -b 40M -l 1472 -t 9 > /dev/null & load=$!
        for i in $(seq 100); do
            echo $(($(date +%s%N) - began)) $(cat /sys/class/net/eth0/statistics/rx_bytes); sleep 0.05
        done; kill $load";
    let path = ["--trace-down", "on-off.trace", "--rtt", "4ms", "--buffer", "100ms"];
    let arguments = [&["lab", "run"], &path[..], &["--", "sh", "-c", script]].concat();
    let counted = in_directory(&directory, &arguments).expect_code(0).stdout;
    let counts: Vec<(f64, f64)> = counted
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(time, bytes)| (time.parse::<f64>().expect("a time") / 1e9, bytes.parse().expect("a count")))
        .collect();
    let at = |time: f64| counts.iter().rev().find(|count| count.0 <= time).expect("a count").1;
    for second in [1.0, 2.0, 3.0] {
        let packets = |from: f64, to: f64| (at(second + to) - at(second + from)) / 1514.0;
        let (whole, busy, idle) = (packets(0.3, 1.3), packets(0.1, 0.4), packets(0.6, 0.95));
        assert!((whole / 501.0 - 1.0).abs() < 0.03, "{whole} packets in a second\n{counted}");
        assert!((busy / 300.0 - 1.0).abs() < 0.2, "{busy} packets in 0.3 s\n{counted}");
        assert!(idle <= 3.0, "{idle} packets in the pause\n{counted}");
    }
}

#[test]
fn garbage_in_a_trace_is_an_error_with_its_line() {
    let directory = Scratch::new();
    std::fs::write(directory.path("bad.trace"), "1\n2\nsoon\n").expect("a trace");
    let path = format!("{PLAIN}trace = \"bad.trace\"\nbuffer = \"1 MB\"\n");
    std::fs::write(directory.path("own.toml"), path).expect("a path");
    for (path, expected) in [
        ("trace-up=bad.trace", "the trace bad.trace, line 3: 'soon' is not a whole number of milliseconds"),
        ("./own.toml", "own.toml:5: the trace bad.trace, line 3: 'soon'"),
        ("trace=none.trace", "the trace none.trace cannot be read: No such file or directory"),
        ("trace=/dev/zero", "the trace /dev/zero cannot be read: it has more than 200 MB"),
        ("trace=/bin/ls", "cannot be read: it is no text"),
    ] {
        let error = in_directory(&directory, &["lab", "show", path]).expect_code(2).stderr;
        assert!(error.contains(expected), "{path}: {error}");
    }
}

#[test]
fn exported_commands_make_the_path() {
    let (directory, plain) = (Scratch::new(), OwnPath::new(PLAIN));
    std::fs::write(directory.path("path.sh"), export("rate=10M,rtt=20ms,buffer=500ms", "tc")).expect("a script");
    let script = "set -e; sh path.sh near eth0; ip netns exec far sh path.sh far
        ping -c 3 -i 0.2 far; linerate iperf3 -c far -t 4 -J > /dev/null & sleep 3; ping -c 1 far
        cat /sys/class/net/eth0/statistics/tx_bytes; sleep 0.8; cat /sys/class/net/eth0/statistics/tx_bytes";
    let output = in_directory(&directory, &["lab", "run", &plain.file, "--", "sh", "-c", script]).expect_code(0).stdout;
    let times = pings(&output);
    assert_eq!(times.len(), 4, "{output}");
    assert!(times[..3].iter().all(|time| (time - 20.0).abs() < 0.5), "{times:?}");
    assert!(times[3] > 50.0 && times[3] < 560.0, "a queue: {times:?}");
    let counts: Vec<f64> = output.lines().filter_map(|line| line.parse().ok()).collect();
    let [before, after] = counts[..] else { panic!("{output}") };
    let rate = (after - before) * 8.0 / 0.8;
    assert!((rate / 1e7 - 1.0).abs() < 0.05, "{rate} bit/s\n{output}");
}

/// Every path of the library, and one with all that filters and stages can do, for `tc` of the lab's kernel.
#[test]
fn every_exported_command_is_accepted_by_tc() {
    let (directory, plain) = (Scratch::new(), OwnPath::new(PLAIN));
    let listed = in_directory(&directory, &["lab", "list", "--json"]).expect_code(0).json();
    let names = listed.pointer("/paths").and_then(Value::as_array).expect("paths").iter();
    let names: Vec<String> = names.filter_map(|path| Some(path.get("name")?.as_str()?.to_owned())).collect();
    let odd = format!(
        "{PLAIN}rate = \"10 Mbit/s\"\ndelay = \"10 ms\"\njitter = \"1 ms\"\ndistribution = \"pareto\"\ncorrupt = \"1 %\"\n\
         loss = {{ gilbert_elliott = {{ good_to_bad = \"1 %\", bad_to_good = \"20 %\" }} }}\nqueue = \"fq_codel\"\n\
         reorder = {{ share = \"1 %\", by = \"1 ms\" }}\npolicer = {{ rate = \"9 Mbit/s\", burst = \"20 kB\" }}\n\
         drop_larger_than = \"1400 B\"\nbleach_ecn = true\nlink_layer = {{ framing = \"atm\", overhead = \"40 B\" }}\n"
    );
    std::fs::write(directory.path("odd.toml"), odd).expect("a path");
    let mut count = 0;
    for name in names.iter().map(String::as_str).chain(["./odd.toml"]) {
        let script = in_directory(&directory, &["lab", "export", name]).expect_code(0).stdout;
        // A rate that changes keeps the script running.
        if !script.contains("sleep ") {
            std::fs::write(directory.path(&format!("{count}.sh")), script).expect("a script");
            count += 1;
        }
    }
    assert!(count > 30, "{count} paths");
    let script = "for file in *.sh; do for host in near far; do
            sh $file $host eth0 || { echo \"$file $host\"; cat $file; exit 1; }
            tc qdisc del dev eth0 root 2>/dev/null; tc qdisc del dev eth0 clsact 2>/dev/null; sleep 0.01
        done; done; echo accepted";
    let output = in_directory(&directory, &["lab", "run", &plain.file, "--", "sh", "-c", script]);
    assert!(output.stdout.ends_with("accepted\n"), "{}\n{}", output.stdout, output.stderr);
    let mut shellcheck = Command::new("shellcheck");
    shellcheck.args((0..count).map(|number| format!("{number}.sh"))).current_dir(directory.path(""));
    run(shellcheck, LIMIT).expect_code(0);
}

#[test]
fn exported_topologies_are_read() {
    let directory = Scratch::new();
    let names = ["xs4all-adsl", "rhel-10g-117ms", "wifi", "rate=10M,rtt=20ms,loss=1%,buffer=500ms"];
    let files: Vec<String> = (0..names.len()).map(|number| format!("{number}.yml")).collect();
    for (name, file) in names.iter().zip(&files) {
        std::fs::write(directory.path(file), export(name, "containerlab")).expect("a topology");
    }
    let mut yamllint = Command::new("yamllint");
    yamllint
        .args(["-d", "{extends: default, rules: {line-length: disable}}"])
        .args(&files)
        .current_dir(directory.path(""));
    run(yamllint, LIMIT).expect_code(0);
    let read = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let mut python = Command::new("python3");
    python.args(["-c", read, &files[3]]).current_dir(directory.path(""));
    let topology = run(python, LIMIT).expect_code(0).json();
    let lines = |node: &str| -> Vec<String> {
        let lines = topology.pointer(&format!("/topology/nodes/{node}/exec")).and_then(Value::as_array).expect("lines");
        lines.iter().map(|line| line.as_str().expect("text").to_owned()).collect()
    };
    let queue = "tc qdisc add dev eth1 parent 1:1 handle 2: tbf rate 10000000bit burst 1519 limit 625000";
    for (node, address) in [("near", "10.0.0.1/30"), ("far", "10.0.0.2/30")] {
        assert_eq!(
            lines(node),
            [
                &format!("ip addr add {address} dev eth1"),
                "tc qdisc replace dev eth1 root handle 1: netem limit 1000000000 delay 10000us loss random 1%",
                queue,
            ]
        );
    }
    let ends = topology.pointer("/topology/links/0/endpoints").cloned();
    assert_eq!(ends, Some(serde_json::json!(["near:eth1", "far:eth1"])));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Commands of the guide below a heading.
fn guide(heading: &str) -> String {
    let guide = std::fs::read_to_string(root().join("docs/ci.md")).expect("the guide");
    let section = guide.split(&format!("\n## {heading}\n")).nth(1).expect("the heading");
    section.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("commands").to_owned()
}

/// Types the commands of the guide, and nothing else.
fn follow_the_guide(heading: &str) -> FinishedChild {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_BIN_EXE_linerate")).parent().expect("a directory");
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-e", "-c", &guide(heading)]).current_dir(root()).env("PATH", path);
    command.env("LINERATE_HISTORY", scratch.path("history")).env("CARGO_TARGET_DIR", scratch.path("target"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("RUSTFLAGS");
    run(command, LIMIT)
}

#[test]
fn the_shell_example_of_the_guide_passes() {
    let output = follow_the_guide("A shell script").expect_code(0).stdout;
    assert!(output.starts_with("200000 bytes in "), "{output}");
}

#[test]
fn the_shell_example_fails_where_the_path_is_too_slow() {
    let mut command = linerate();
    command.args(["lab", "run", "--rate", "100k", "--rtt", "300ms", "--", "sh", "examples/ci/shell/test.sh", "10"]);
    command.current_dir(root());
    let failed = run(command, LIMIT);
    // curl's exit code when its time is over.
    assert_eq!(failed.code(), Some(28), "{failed:#?}");
}

#[test]
fn the_python_example_of_the_guide_passes() {
    let ended = follow_the_guide("A Python project").expect_code(0);
    assert!(ended.stderr.contains("Ran 2 tests in ") && ended.stderr.ends_with("OK\n"), "{ended:#?}");
}

#[test]
fn the_rust_example_of_the_guide_passes() {
    let ended = follow_the_guide("A Rust project").expect_code(0);
    assert!(ended.stdout.contains("test greets_within_its_deadline ... ok"), "{ended:#?}");
}

/// Block of a page with the output of a command on this path.
fn shown_output(page: &str, path: &str) -> String {
    let text = std::fs::read_to_string(root().join(page)).expect("the page");
    let mut blocks = text.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.find(|block| block.lines().take(2).any(|line| line.contains(path)));
    let lines = block.expect("a block with the path").lines().filter(|line| !line.starts_with("$ "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Words without figures and their units.
fn words(text: &str) -> Vec<&str> {
    let units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "ms", "us", "s", "min", "h", "B", "kB", "MB", "GB", "RPM", "%"];
    let is_unit = |word: &str| units.contains(&word.trim_matches([';', ',', '.', ':', '(', ')']));
    text.split_whitespace()
        .filter(|word| !word.contains(|letter: char| letter.is_ascii_digit()) && !is_unit(word))
        .collect()
}

#[test]
fn the_pages_show_what_the_commands_print() {
    let directory = Scratch::new();
    for (page, command, path) in [
        ("README.md", "test", "lab:transatlantic-1g-59ms"),
        ("docs/guides/first-test.md", "test", "lab:wifi"),
        ("docs/guides/slow-transfer.md", "diagnose", "lab:300m-20ms-receive-buffer-375k"),
        ("docs/guides/bufferbloat.md", "load", "lab:xs4all-adsl"),
    ] {
        let mut typed = linerate();
        typed.args([command, path, "--quiet"]).current_dir(directory.path(""));
        typed.env("LINERATE_HISTORY", directory.path("history"));
        let ended = run(typed, LIMIT);
        assert!(matches!(ended.code(), Some(0 | 1)), "{ended:#?}");
        let shown = shown_output(page, path);
        assert!(shown.lines().count() <= 12, "{page}: {shown}");
        assert_eq!(words(&shown), words(&ended.stdout), "{page}, {command} {path}:\n{}", ended.stdout);
        let mut recorded = linerate();
        recorded.args(["history", "show", "last", "--json"]).env("LINERATE_HISTORY", directory.path("history"));
        let recorded = run(recorded, LIMIT).expect_code(0).document();
        assert_eq!(recorded["arguments"], serde_json::json!([command, path, "--quiet"]), "as typed");
    }
}

/// The page of a guided run is that of the command as typed, at this host's time, also without a history.
#[test]
fn a_guided_run_writes_its_page_on_this_host() {
    let directory = Scratch::new();
    let path = "lab:rate=20M,rtt=20ms,buffer=50ms";
    let options = ["--dry-run", "--no-load", "--no-history", "--quiet", "--html", "page.html", "--", "-t", "2"];
    let ended = in_directory(&directory, &[&["doctor", path][..], &options].concat()).expect_code(0);
    assert!(ended.stdout.contains(&format!("Next: linerate load {path}\n")), "{}", ended.stdout);
    let page = std::fs::read_to_string(directory.path("page.html")).expect("a page");
    assert!(page.contains(&format!("<h1>Guided run: {path}")), "{page}");
    assert!(page.contains(&format!("linerate doctor {path} {}</dd>", options.join(" "))), "{page}");
    assert!(!page.contains("<dd>2023-"), "the guest's time");
}
