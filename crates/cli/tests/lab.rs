//! Tests of the lab as a process: real guests, in virtual time.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, number, text};
use crate::support::lab::{OwnPath, in_parallel, lab, lab_command};
use crate::support::process::{Process, eventually, run};
use crate::support::{self, Scratch, linerate};

const LIMIT: Duration = Duration::from_secs(300);

/// Short path that needs little memory.
const SHORT: &str = "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"100 Mbit/s\"\n\
                     delay = \"5 ms\"\n";

/// Output of a successful `linerate lab …`.
fn output(arguments: &[&str]) -> String {
    let mut command = linerate();
    command.arg("lab").args(arguments);
    run(command, LIMIT).expect_code(0).stdout
}

/// Error message of a refused command.
fn refused(command: Command) -> String {
    run(command, LIMIT).expect_code(2).stderr
}

fn library() -> Vec<(String, Vec<String>)> {
    let document: Value = serde_json::from_str(&output(&["list", "--json"])).expect("JSON");
    let paths = array(&document, "/paths").iter();
    paths
        .map(|path| {
            let scenario = array(path, "/scenario").iter().map(|word| word.as_str().expect("a word").to_owned());
            (text(path, "/name").to_owned(), scenario.collect())
        })
        .collect()
}

/// Paths whose scenarios are repeated in every run.
const SAMPLE: &[&str] = &[
    "300m-20ms-ecmp-reordering",
    "300m-20ms-loss-bbr",
    "cable-bloat",
    "leo-satellite",
    "short-transfer-1g-50ms",
    "wifi",
    "xs4all-adsl",
];

#[test]
fn the_same_scenario_gives_the_same_figures() {
    let paths: Vec<_> = library().into_iter().filter(|(name, _)| SAMPLE.contains(&name.as_str())).collect();
    assert_eq!(paths.len(), SAMPLE.len());
    assert_eq!(differences(&paths), Vec::<String>::new());
}

/// Compares two runs of every second path's scenario: neighbours in the list are variants of one another.
#[test]
#[ignore = "long: cargo xtask library"]
fn every_second_scenario_gives_the_same_figures() {
    let paths: Vec<_> = library().into_iter().step_by(2).collect();
    assert!(paths.len() >= 40, "{} paths", paths.len());
    let different = differences(&paths);
    assert!(different.len() <= paths.len() / 20, "{} of {} differ: {different:#?}", different.len(), paths.len());
}

/// Scenarios whose second run gives other figures, with the figures.
fn differences(paths: &[(String, Vec<String>)]) -> Vec<String> {
    let compare = |(name, scenario): &(String, Vec<String>)| {
        compare_two_runs(name, scenario).err().map(|why| format!("{name}: {why}"))
    };
    in_parallel(paths, compare).into_iter().flatten().collect()
}

/// Runs a scenario twice. For iperf3's, goodput and retransmissions are read from its document.
fn compare_two_runs(name: &str, scenario: &[String]) -> Result<(), String> {
    let mut arguments = vec!["linerate"];
    arguments.extend(scenario.iter().map(String::as_str));
    let is_iperf3 = scenario[0] == "iperf3";
    if is_iperf3 {
        arguments.push("-J");
    }
    let [first, second] = [(); 2].map(|()| lab(name, &arguments));
    if !is_iperf3 {
        return if first.stdout == second.stdout { Ok(()) } else { Err("another output".to_owned()) };
    }
    let (first, second) = (first.json(), second.json());
    let bounds: Value = serde_json::from_str(&output(&["show", name, "--json"])).expect("JSON");
    within_the_bounds(name, &first, &bounds);
    let figure = |document: &Value, pointer: &str| document.pointer(pointer).and_then(Value::as_f64);
    for pointer in ["/end/sum_received/bits_per_second", "/end/sum_sent/retransmits"] {
        let (one, other) = (figure(&first, pointer), figure(&second, pointer));
        let same = match (one, other) {
            (Some(one), Some(other)) => (one - other).abs() <= 0.001 * one.abs(),
            (one, other) => one == other,
        };
        if !same {
            return Err(format!("{pointer} is {one:?} and {other:?}"));
        }
    }
    Ok(())
}

/// Asserts that goodput does not exceed the bounds of the formulas.
fn within_the_bounds(name: &str, document: &Value, bounds: &Value) {
    let goodput = number(document, "/end/sum_received/bits_per_second");
    let reverse = document.pointer("/start/test_start/reverse").and_then(Value::as_u64) == Some(1);
    let direction = if reverse { "backward" } else { "forward" };
    let Some(ceiling) =
        bounds.pointer(&format!("/{direction}/goodput_ceiling_bits_per_second")).and_then(Value::as_f64)
    else {
        return;
    };
    // Data queued at the end of the test counts for the receiver, whose time is not longer.
    assert!(goodput <= ceiling * 1.01, "{name}: {goodput} bit/s arrived, and only {ceiling} fit");
}

#[test]
fn each_ping_takes_exactly_the_time_of_the_path() {
    let output = lab("rhel-10g-117ms", &["ping", "-c", "5", "-i", "1", "far"]).stdout;
    let times: Vec<f64> =
        output.lines().filter_map(|line| line.split_once(" time=")?.1.strip_suffix(" ms")?.parse().ok()).collect();
    assert_eq!(times.len(), 5, "{output}");
    assert!(times.iter().all(|time: &f64| (time - 117.0).abs() <= 0.5), "{times:?}");
    // The output of ping is rounded to a millisecond from 100 ms on; its summary has three decimals.
    let summary = output.lines().find_map(|line| line.split_once("mdev = ")).expect("a summary").1;
    let figures: Vec<f64> =
        summary.trim_end_matches(" ms").split('/').map(|figure| figure.parse().expect("a figure")).collect();
    assert!(figures[..3].iter().all(|time| (time - 117.0).abs() <= 0.01), "{summary}");
    assert!(figures[3] <= 0.01, "{summary}");
}

/// Rate and buffer of a link, the rate of a load that exceeds it, and a time in which some thousand packets pass.
const RATES: [(u32, &str, &str, &str); 7] = [
    (10, "100 kB", "20M", "2"),
    (94, "200 kB", "200M", "0.4"),
    (300, "45 packets", "600M", "0.2"),
    (300, "1 BDP", "600M", "0.2"),
    (940, "1 MB", "2G", "0.1"),
    (1000, "400 kB", "2G", "0.1"),
    (2500, "400 kB", "5G", "0.04"),
];

/// A bucket of exactly one packet would lose the lateness of each timer: up to 3 % of these rates.
#[test]
fn a_link_with_a_buffer_carries_its_rate() {
    let shares = in_parallel(&RATES, |&(rate, buffer, load, time)| {
        let own = OwnPath::new(&format!(
            "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"{rate} Mbit/s\"\n\
             delay = \"2 ms\"\nbuffer = \"{buffer}\"\n"
        ));
        let count = "date +%s%N; cat /sys/class/net/eth0/statistics/rx_bytes";
        let script = format!(
            "linerate iperf3 -c far -R -u -b {load} -l 1448 -t 9 > /dev/null & load=$!
             sleep 0.1; {count}; sleep {time}; {count}; kill $load"
        );
        let counted = lab(&own.file, &["sh", "-c", &script]).stdout;
        let counts: Vec<f64> = counted.lines().map(|line| line.parse().expect("a count")).collect();
        let [began, before, ended, after] = counts[..] else { panic!("{counted}") };
        (after - before) * 8.0 / ((ended - began) / 1e9) / (f64::from(rate) * 1e6)
    });
    for ((rate, buffer, ..), share) in RATES.iter().zip(shares) {
        assert!((share - 1.0).abs() < 0.003, "{share} of {rate} Mbit/s with {buffer}");
    }
}

#[test]
fn captures_repeat_to_the_byte() {
    let (folder, own) = (Scratch::new(), OwnPath::new(&format!("{SHORT}loss = \"1 %\"\n")));
    let captures = ["one.pcap", "two.pcap"].map(|name| {
        let file = folder.path(name);
        let mut command = linerate();
        command
            .args(["lab", "run", &own.file, "--pcap", &file, "--"])
            .args(["linerate", "iperf3", "-c", "far", "-t", "2"]);
        run(command, LIMIT).expect_code(0);
        std::fs::read(&file).expect("a capture")
    });
    assert!(captures[0].len() > 1_000_000, "{} bytes", captures[0].len());
    // Magic number of a capture with nanoseconds, in native byte order.
    assert_eq!(captures[0][..4], 0xa1b2_3c4d_u32.to_ne_bytes());
    assert!(captures[0] == captures[1], "two runs, two captures");
}

#[test]
fn another_seed_loses_other_packets() {
    let own = OwnPath::new(&format!("{SHORT}loss = \"1 %\"\n"));
    let output = |seed: &str| {
        let mut command = linerate();
        command.args(["lab", "run", "--seed", seed, &own.file, "--", "ping", "-i", "0.2", "-c", "500", "-q", "far"]);
        run(command, LIMIT).stdout
    };
    let outputs = in_parallel(&["7", "7", "1", "2", "3"], |seed| output(seed));
    assert_eq!(outputs[0], outputs[1]);
    let lost =
        |output: &String| output.lines().find(|line| line.contains("packet loss")).expect("a summary").to_owned();
    let all: Vec<String> = outputs[2..].iter().map(lost).collect();
    assert!(all.iter().any(|one| *one != all[0]), "{all:?}");
}

#[test]
fn a_command_keeps_its_output_and_its_exit_code() {
    let own = OwnPath::new(SHORT);
    let ended = run(lab_command(&own.file, &["sh", "-c", "echo to stdout; echo to stderr >&2; exit 7"]), LIMIT);
    assert_eq!(ended.code(), Some(7), "{ended:#?}");
    assert_eq!(ended.stdout, "to stdout\n");
    assert_eq!(ended.stderr, "to stderr\n");
    let missing = run(lab_command(&own.file, &["no-such-program"]), LIMIT);
    assert_ne!(missing.code(), Some(0), "{missing:#?}");
    assert!(missing.stderr.contains("no-such-program"), "{missing:#?}");
}

#[test]
fn a_command_writes_where_it_was_started_and_nowhere_else() {
    let (folder, elsewhere, own) = (Scratch::new(), Scratch::new(), OwnPath::new(SHORT));
    let (here, there) = (folder.path("here"), elsewhere.path("there"));
    let mut command = lab_command(&own.file, &["sh", "-c", &format!("echo kept > here; echo lost > {there}")]);
    command.current_dir(Path::new(&here).parent().expect("a folder"));
    run(command, LIMIT).expect_code(0);
    assert_eq!(std::fs::read_to_string(&here).expect("a file"), "kept\n");
    assert!(!Path::new(&there).exists(), "the guest wrote to {there}");
}

/// In the directory where the command was started, and elsewhere.
#[test]
#[ignore = "needs root: a program of another user"]
fn programs_do_not_become_another_user() {
    let (folder, elsewhere, own) = (Scratch::new(), Scratch::new(), OwnPath::new(SHORT));
    let program = folder.path("id");
    std::fs::copy("/usr/bin/id", &program).expect("coreutils");
    std::os::unix::fs::chown(&program, Some(65534), Some(65534)).expect("root");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o6755)).expect("ours");
    for directory in [&folder, &elsewhere].map(|scratch| scratch.path("")) {
        let mut command = lab_command(&own.file, &[&program]);
        command.current_dir(directory);
        let shown = run(command, LIMIT).expect_code(0).stdout;
        assert!(shown.starts_with("uid=0(root) gid=0(root)") && !shown.contains("euid"), "{shown}");
    }
}

#[test]
fn a_test_of_a_path_is_a_test_of_a_host() {
    let mut command = linerate();
    command.args(["test", "lab:rhel-1g-1500us", "--time", "2s", "--json"]);
    let document = run(command, LIMIT).expect_code(0).json();
    assert_eq!(document["schema"], 1);
    assert_eq!(array(&document, "/runs").len(), 4);
}

#[test]
fn the_hosts_own_iperf3_runs_in_the_guest() {
    let own = OwnPath::new(SHORT);
    let iperf3 = support::iperf3().to_str().expect("a path").to_owned();
    let document = lab(&own.file, &[&iperf3, "-c", "far", "-t", "2", "-J"]).json();
    let goodput = number(&document, "/end/sum_received/bits_per_second");
    let ceiling = 100e6 * 1448.0 / 1514.0;
    assert!((0.5 * ceiling..=1.01 * ceiling).contains(&goodput), "{goodput} bit/s of {ceiling}");
}

/// Processes of this test: they have its mark in their environment.
fn marked(mark: &str) -> Vec<u32> {
    let needle = format!("LINERATE_TEST_MARK={mark}");
    let processes = std::fs::read_dir("/proc").expect("proc");
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|process: &u32| {
            let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == needle.as_bytes())
        })
        .collect()
}

/// Guest that runs until it is ended.
fn endless(mark: &str, own: &OwnPath) -> Process {
    let script = "echo runs; while :; do sleep 0.001; done";
    let mut command = lab_command(&own.file, &["sh", "-c", script]);
    command.env("LINERATE_TEST_MARK", mark);
    let process = Process::start(command);
    process.wait_for_output("runs", LIMIT);
    assert!(marked(mark).len() > 1, "the guest's processes have the mark");
    process
}

#[test]
fn an_interrupt_ends_the_guest_and_everything_in_it() {
    let (own, mark) = (OwnPath::new(SHORT), format!("interrupt-{}", std::process::id()));
    let process = endless(&mark, &own);
    process.signal("INT");
    let ended = process.finish(LIMIT);
    assert_eq!(ended.code(), Some(3), "{ended:#?}");
    assert!(eventually(LIMIT, || marked(&mark).is_empty()), "{:?} survived", marked(&mark));
}

#[test]
fn nothing_survives_when_the_tool_is_killed() {
    let (own, mark) = (OwnPath::new(SHORT), format!("kill-{}", std::process::id()));
    let process = endless(&mark, &own);
    process.signal("KILL");
    assert!(eventually(LIMIT, || marked(&mark).is_empty()), "{:?} survived", marked(&mark));
}

#[test]
fn a_program_that_never_sleeps_is_detected() {
    let own = OwnPath::new(SHORT);
    let mut command = linerate();
    command.args(["lab", "run", "--stall-limit", "10s", &own.file, "--", "sh", "-c", "while :; do :; done"]);
    let error = refused(command);
    assert!(error.contains("while :; do :; done") || error.contains("sh"), "{error}");
    assert!(error.contains("sleep"), "{error}");
}

#[test]
fn a_wrong_description_is_refused_with_its_line() {
    for (text, line, word) in [
        ("[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"100\"\n", 10, "rate"),
        ("[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nspeed = \"1 Mbit/s\"\n", 10, "speed"),
        ("[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"moon\"]\n", 9, "moon"),
        ("[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nloss = \"140 %\"\n", 10, "140"),
    ] {
        let own = OwnPath::new(text);
        let error = refused(lab_command(&own.file, &["true"]));
        assert!(error.contains(&format!(":{line}:")) && error.contains(word), "line {line}, {word}: {error}");
    }
}

#[test]
fn a_misspelt_path_gets_a_suggestion() {
    let error = refused(lab_command("rhel-10g-117m", &["true"]));
    assert!(error.contains("rhel-10g-117ms") && error.contains("lab list"), "{error}");
}

#[test]
fn the_error_for_a_missing_kernel_names_the_build_command() {
    let (empty, own) = (Scratch::new(), OwnPath::new(SHORT));
    let mut command = lab_command(&own.file, &["true"]);
    command.env("XDG_CACHE_HOME", empty.path("."));
    let error = refused(command);
    assert!(error.contains("linerate lab kernel build"), "{error}");
}

#[test]
fn a_missing_compiler_is_reported_before_any_download() {
    let empty = Scratch::new();
    let mut command = linerate();
    command.args(["lab", "kernel", "build"]).env("XDG_CACHE_HOME", empty.path(".")).env("PATH", empty.path("."));
    let error = refused(command);
    assert!(error.contains("gcc") && error.contains("apt"), "{error}");
}

#[test]
fn a_full_disk_is_detected_before_any_download() {
    let folder = Scratch::new();
    let cache = folder.path("cache");
    std::fs::create_dir(&cache).expect("a folder");
    let script = format!("mount -t tmpfs -o size=64m none {cache} && exec \"$0\" lab kernel build");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", &script]).arg(linerate().get_program());
    command.env("XDG_CACHE_HOME", &cache);
    let error = refused(command);
    assert!(error.contains("67 MB left") && error.contains("XDG_CACHE_HOME"), "{error}");
}

#[test]
fn too_little_memory_is_refused_with_the_figures() {
    let hosts = ["near", "far"].map(|host| {
        format!(
            "[host.{host}.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 2147483647\"\n\
             \"net.ipv4.tcp_wmem\" = \"4096 131072 2147483647\"\n"
        )
    });
    let own = OwnPath::new(&format!(
        "{}[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"400 Gbit/s\"\ndelay = \"10 s\"\n\
         [[traffic]]\nkind = \"bulk\"\nfrom = \"near\"\nto = \"far\"\nstreams = 60\n",
        hosts.concat()
    ));
    let error = refused(lab_command(&own.file, &["true"]));
    assert!(error.contains("MiB of memory") && error.contains("MemAvailable"), "{error}");
}

/// Makes `ptrace` and `seccomp` fail with EPERM, as in a confined container, and executes the program: newer kernels of the
/// lab need one of them.
const WITHOUT_PTRACE: &str = r"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = [(0x20, 0, 0, 0), (0x15, 1, 0, 101), (0x15, 0, 1, 317), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
program = b''.join(struct.pack('HBBI', *line) for line in code)
buffer = ctypes.create_string_buffer(program)
class Filter(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('lines', ctypes.c_void_p)]
filter = Filter(len(code), ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(filter)) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])
";

#[test]
fn missing_ptrace_is_reported() {
    let own = OwnPath::new(SHORT);
    let wanted = lab_command(&own.file, &["true"]);
    let mut command = Command::new("python3");
    command.args(["-c", WITHOUT_PTRACE]).arg(wanted.get_program()).args(wanted.get_args());
    let error = refused(command);
    assert!(error.contains("ptrace"), "{error}");
    let mut check = Command::new("python3");
    check.args(["-c", WITHOUT_PTRACE]).arg(linerate().get_program()).args(["lab", "check"]);
    let checked = run(check, LIMIT);
    let item = checked.stdout.lines().find(|line| line.contains("trapping of system calls")).expect("is listed");
    assert!(item.trim_start().starts_with("NO"), "{checked:#?}");
}

/// Reads both clocks in turn by the vDSO and by system calls, with sleeps, failed calls and other processes between, and looks
/// at one until ticks have passed. The looks that the vDSO counts in its page are those without a system call.
const READ_CLOCKS: &str = "
import ctypes, os, subprocess, time
libc = ctypes.CDLL(None)
class Time(ctypes.Structure):
    _fields_ = [('seconds', ctypes.c_long), ('nanoseconds', ctypes.c_long)]
def asked(clock):
    read = Time()
    assert libc.syscall(228, clock, ctypes.byref(read)) == 0
    return read.seconds * 10**9 + read.nanoseconds
between = [lambda: None, lambda: time.sleep(0.0007), lambda: os.path.exists('/none'), lambda: subprocess.run('true')]
for clock in time.CLOCK_REALTIME, time.CLOCK_MONOTONIC:
    times = []
    for turn in range(40):
        for read in time.clock_gettime_ns, asked:
            times += [read(clock) for _ in range(1 + 7 * turn % 90)]
            between[turn % 4]()
    assert all(one < next for one, next in zip(times, times[1:])), [pair for pair in zip(times, times[1:]) if pair[0] >= pair[1]]
    assert times[-1] - times[0] < 10**9, times[-1] - times[0]
    end = time.clock_gettime_ns(clock) + 25 * 10**6
    while time.clock_gettime_ns(clock) < end:
        pass
assert 1.7e9 < time.time() < 4e9 and abs(libc.time(None) - time.time()) < 2
page, = [int(line.split('-')[0], 16) for line in open('/proc/self/maps') if '[clock]' in line]
looks = ctypes.c_ulong.from_address(page + 16)
def grows():
    before = looks.value
    time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return looks.value == before + 1
print(sum(grows() for _ in range(100)) > 50)
";

#[test]
fn a_clock_that_is_read_without_system_calls_agrees_with_the_kernels() {
    let own = OwnPath::new(SHORT);
    assert_eq!(lab(&own.file, &["python3", "-c", READ_CLOCKS]).stdout.trim(), "True");
}

#[test]
fn the_other_back_end_works_where_the_kernel_has_netem() {
    let own = OwnPath::new(SHORT);
    let inner = ["linerate", "lab", "run", "--back-end", "namespaces", &own.file, "--", "ping", "-c", "3", "-q", "far"];
    let output = lab(&own.file, &inner).stdout;
    assert!(output.contains("3 received"), "{output}");
    let summary = output.lines().find_map(|line| line.split_once("mdev = ")).expect("a summary").1;
    let minimum: f64 = summary.split('/').next().and_then(|figure| figure.parse().ok()).expect("a figure");
    assert!((10.0..11.0).contains(&minimum), "{summary}");
}

#[test]
fn a_path_is_drawn_within_eighty_columns() {
    let names: Vec<String> = library().into_iter().map(|(name, _)| name).collect();
    for (name, drawn) in names.iter().zip(in_parallel(&names, |name| output(&["show", name]))) {
        let widest = drawn.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(widest <= 80, "{name} is {widest} characters wide:\n{drawn}");
        assert!(drawn.contains("near") && drawn.contains("far"), "{drawn}");
    }
}
