//! `linerate fleet` over NATS: agents, tasks, members and results with a real server.

#[allow(dead_code, reason = "its own tests use more of it")]
#[path = "../../nats/tests/support/mod.rs"]
mod nats_servers;
#[path = "../../nats/tests/support/relay.rs"]
mod relay;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use nats_servers::NatsServers;
use relay::Relay;
use serde_json::{Value, json};

use crate::support::document::{array, text};
use crate::support::process::{FinishedChild, Process, eventually, run};
use crate::support::{Program, Scratch, Server, linerate};

const LIMIT: Duration = Duration::from_secs(90);

/// Fleet of these addresses with one server for all, tests of a second from each to each later one, and a timetable that leaves
/// time.
fn description(port: u16, repeat: &str, names: &[&str]) -> String {
    let name = |name: &&str| json!({ "name": name });
    let address = |(index, name): (usize, &&str)| {
        ((*name).to_owned(), json!({ "address": format!("127.0.0.{}:{port}", index + 1) }))
    };
    let addresses: serde_json::Map<String, Value> = names.iter().enumerate().map(address).collect();
    let [sources, targets] =
        [&names[..names.len() - 1], &names[1..]].map(|part| part.iter().map(name).collect::<Vec<_>>());
    json!({
        "addresses": addresses,
        "groups": { "pairs": { "type": "disjoint", "unidirectional": true, "a-addresses": sources, "b-addresses": targets } },
        "tests": { "goodput": { "type": "throughput", "spec": { "duration": "PT1S" } },
                   "delay": { "type": "rtt", "spec": {} } },
        "schedules": { "rarely": { "repeat": repeat } },
        "tasks": { "goodput": { "group": "pairs", "test": "goodput", "schedule": "rarely" },
                   "delay": { "group": "pairs", "test": "delay", "schedule": "rarely" } },
        "_meta": { "linerate": { "clock-guard": "PT0.3S" } }
    })
    .to_string()
}

struct NatsFleet {
    servers: NatsServers,
    scratch: Scratch,
    server: Server,
    names: &'static [&'static str],
}

impl NatsFleet {
    /// A server of NATS, a published description of these addresses and a server of linerate.
    fn start(names: &'static [&'static str]) -> Self {
        let (fleet, published) = Self::publish_to(NatsServers::single(""), names, "PT24H");
        assert!(published.contains("\nMade 5 streams. One copy"), "{published}");
        fleet
    }

    /// Fleet on these servers, and what publishing its description printed.
    fn publish_to(servers: NatsServers, names: &'static [&'static str], repeat: &str) -> (Self, String) {
        let server = Server::start(Program::Linerate, &[]);
        let fleet = Self { servers, scratch: Scratch::new(), server, names };
        let published = fleet.publish(repeat).expect_code(0).stdout;
        assert!(published.starts_with("Published as revision 1: "), "{published}");
        (fleet, published)
    }

    fn publish(&self, repeat: &str) -> FinishedChild {
        let file = self.scratch.file("fleet.json", description(self.server.port, repeat, self.names));
        self.run(&["publish", &file, "--member-time", "2s"])
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.command_at(&self.servers.urls().join(","), arguments)
    }

    /// Command with these servers.
    fn command_at(&self, urls: &str, arguments: &[&str]) -> Command {
        let mut command = linerate();
        command.arg("fleet").args(arguments).args(["--nats", urls]);
        command.env("LINERATE_HISTORY", self.scratch.path("history"));
        command
    }

    fn run(&self, arguments: &[&str]) -> FinishedChild {
        run(self.command(arguments), LIMIT)
    }

    /// Agent with results of its own, after it is a member.
    fn agent(&self, name: &str, results: &str) -> Process {
        self.agent_at(&self.servers.urls().join(","), name, results)
    }

    /// Agent that dials these servers.
    fn agent_at(&self, urls: &str, name: &str, results: &str) -> Process {
        let directory = self.scratch.path(results);
        let arguments = ["agent", "--address", name, "--results", &directory, "--json"];
        let agent = Process::start(self.command_at(urls, &arguments));
        assert!(eventually(LIMIT, || agent.stderr().contains("member ")), "{}", agent.stderr());
        agent
    }

    fn file(&self) -> String {
        self.scratch.path("collected.jsonl")
    }

    fn collect(&self, arguments: &[&str]) -> Command {
        let file = self.file();
        self.command(&[&["collect", "--results", &file][..], arguments].concat())
    }

    /// Results that were collected, by identity; each is there once.
    fn collected(&self) -> BTreeMap<String, Value> {
        Self::results_in(&self.file())
    }

    fn results_in(file: &str) -> BTreeMap<String, Value> {
        let mut text = std::fs::read_to_string(file).unwrap_or_default();
        // The last line may be being written.
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        let results: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        let count = results.len();
        let by_id: BTreeMap<String, Value> =
            results.into_iter().map(|result| (result["id"].as_str().expect("an id").to_owned(), result)).collect();
        assert_eq!(by_id.len(), count, "a result is there twice: {text}");
        by_id
    }

    /// Checks that no two tests were in one slot.
    fn assert_slots_differ(&self) {
        let of_task =
            |result: &Value| (result["task"] == "goodput").then(|| result["at_unix_ns"].as_u64().expect("a time"));
        let mut times: Vec<u64> = self.collected().values().filter_map(of_task).collect();
        times.sort_unstable();
        assert!(times.windows(2).all(|two| two[1] - two[0] >= 4_600_000_000), "{times:?}");
    }

    fn done(&self, task: &str) -> usize {
        self.collected().values().filter(|result| result["task"] == task && result["outcome"] == "done").count()
    }
}

#[test]
fn a_killed_agent_loses_no_task_and_a_killed_reader_no_result() {
    let fleet = NatsFleet::start(&["a", "b"]);
    let agents = [fleet.agent("a", "results-a"), fleet.agent("b", "results-b")];
    members_are_listed_and_names_are_unique(&fleet);
    let mut collecting = Process::start(fleet.collect(&[]));
    for _ in 0..2 {
        let given = fleet.run(&["run", "b", "a", "goodput"]).expect_code(0);
        assert!(given.stdout.starts_with("a runs a -> b  throughput (goodput) not before 20"), "{given:#?}");
        assert!(given.stderr.is_empty(), "{given:#?}");
    }
    fleet.run(&["run", "a", "b", "delay"]).expect_code(0);
    // Killed in the middle of a test: its successor runs the test once more, after the locks have ended.
    let [first, other] = agents;
    assert!(eventually(LIMIT, || is_running(first.id(), "test")), "{}", first.stderr());
    first.signal("KILL");
    drop(first);
    collecting.signal("KILL");
    assert!(eventually(LIMIT, || !collecting.is_running()));
    let successor = fleet.agent("a", "results-a");
    let collecting = Process::start(fleet.collect(&[]));
    let all = eventually(LIMIT, || fleet.done("goodput") >= 2 && fleet.done("delay") >= 1);
    assert!(all, "{:#?}\n{}{}", fleet.collected(), successor.stderr(), collecting.stderr());
    collecting.signal("TERM");
    let end = collecting.finish(LIMIT).expect_code(0).stdout;
    assert!(end.contains("new result") && end.contains("in all"), "{end}");
    fleet.assert_slots_differ();
    // What agents have in their logs, and nothing else, was collected; also once more into the same file.
    let again = run(fleet.collect(&["--once"]), LIMIT).expect_code(0).stdout;
    assert!(again.starts_with("0 new results; "), "{again}");
    let logged = logged(&fleet, &["results-a", "results-b"]);
    assert_eq!(logged, fleet.collected().into_keys().collect::<BTreeSet<_>>());
    // Another name, another file.
    let other_file = fleet.scratch.path("other.jsonl");
    let whole = fleet.run(&["collect", "--results", &other_file, "--name", "other", "--once"]).expect_code(0).stdout;
    assert!(whole.starts_with(&format!("{} new result", logged.len())), "{whole}");
    descriptions_are_taken_up(&fleet, &successor);
    for agent in [successor, other] {
        agent.signal("TERM");
        agent.finish(LIMIT).expect_code(0);
    }
    let listed = fleet.run(&["members"]).expect_code(0).stdout;
    assert_eq!(listed, "No agent runs.\nWithout an agent: a, b\n");
}

/// Each agent would take the next free slot, which is the same for all; the locks give it to one.
#[test]
fn tasks_of_several_agents_that_share_hosts_never_share_a_slot() {
    let fleet = NatsFleet::start(&["a", "b", "c"]);
    let agents = ["a", "b", "c"].map(|name| fleet.agent(name, &format!("results-{name}")));
    for pair in [["a", "b"], ["b", "c"], ["a", "c"]] {
        fleet.run(&["run", pair[0], pair[1], "goodput"]).expect_code(0);
    }
    let collecting = Process::start(fleet.collect(&[]));
    let log = || agents.each_ref().map(Process::stderr).concat();
    assert!(eventually(LIMIT, || fleet.done("goodput") == 3), "{:#?}\n{}", fleet.collected(), log());
    fleet.assert_slots_differ();
    drop(collecting);
}

/// Beginning and end of each test that filled the path, in nanoseconds.
fn busy_times(results: &BTreeMap<String, Value>) -> Vec<(u64, u64)> {
    let runs = results.values().filter(|result| result["task"] == "goodput" && result["outcome"] == "done");
    let number = |run: &Value, key: &str| run[key].as_u64().expect("a time");
    let times = runs.map(|result| {
        let (start, length) = (number(&result["run"], "started_at_unix_ns"), number(&result["run"], "duration_ns"));
        (start, start + length)
    });
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    times
}

/// Reader that could not write at first, as on a full disk, with what it reads after it was started again.
fn collect_on_a_full_disk(fleet: &NatsFleet, file: &str) -> Process {
    let arguments = ["collect", "--results", file, "--name", "small"];
    let whole = fleet.command(&arguments);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(whole.get_program())
        .args(whole.get_args());
    limited.env("LINERATE_HISTORY", "off");
    let done = run(limited, LIMIT).expect_code(2);
    assert!(done.stderr.contains(": none of them is acknowledged"), "{done:#?}");
    assert_eq!(std::fs::read_to_string(file).expect("the file"), "", "a part of a result");
    Process::start(whole)
}

/// A whole fleet on three servers: one is killed, an agent is cut off and comes back, another one is killed in a test.
#[test]
fn agents_lose_and_double_no_result_in_a_broken_cluster() {
    let (mut fleet, published) = NatsFleet::publish_to(NatsServers::cluster(), &["a", "b", "c"], "PT15S");
    assert!(published.contains("\nMade 5 streams. Three copies"), "{published}");
    let relay = Relay::to(fleet.servers.port());
    let first = fleet.agent("a", "results-a");
    let others = [fleet.agent_at(&relay.url(), "b", "results-b"), fleet.agent("c", "results-c")];
    let collecting = Process::start(fleet.collect(&[]));
    // The starter of a pair is decided by the description: that agent is killed which runs a test now.
    assert!(eventually(LIMIT, || fleet.done("goodput") >= 1), "{}{}", first.stderr(), collecting.stderr());
    let small = fleet.scratch.path("small.jsonl");
    let second = collect_on_a_full_disk(&fleet, &small);
    relay.cut();
    fleet.servers.kill(1);
    assert!(eventually(LIMIT, || is_running(first.id(), "test")), "{}", first.stderr());
    first.signal("KILL");
    drop(first);
    let successor = fleet.agent("a", "results-a");
    let cut_off = logged(&fleet, &["results-b"]).len();
    let goes_on = eventually(LIMIT, || logged(&fleet, &["results-b"]).len() > cut_off);
    assert!(goes_on, "an agent without the servers goes on: {}", others[0].stderr());
    relay.mend();
    let before = fleet.done("goodput");
    let directories = ["results-a", "results-b", "results-c"];
    let is_whole = || {
        let collected = fleet.collected().into_keys().collect::<BTreeSet<_>>();
        fleet.done("goodput") >= before + 3 && logged(&fleet, &directories).is_subset(&collected)
    };
    assert!(eventually(LIMIT, is_whole), "{}{}", others[0].stderr(), collecting.stderr());
    for agent in others.into_iter().chain([successor]) {
        agent.signal("TERM");
        agent.finish(LIMIT).expect_code(0);
    }
    collecting.signal("TERM");
    collecting.finish(LIMIT).expect_code(0);
    run(fleet.collect(&["--once"]), LIMIT).expect_code(0);
    let collected = fleet.collected();
    assert_eq!(logged(&fleet, &directories), collected.keys().cloned().collect::<BTreeSet<_>>());
    assert!(eventually(LIMIT, || NatsFleet::results_in(&small) == collected), "{}", second.stderr());
    // The test that filled the path, and perhaps a light one.
    let is_killed = |result: &&Value| result["reason"] == "linerate was killed during the test";
    let killed: Vec<&Value> = collected.values().filter(is_killed).collect();
    assert!(killed.iter().all(|result| result["outcome"] == "skipped"), "{killed:#?}");
    assert_eq!(killed.iter().filter(|result| result["task"] == "goodput").count(), 1, "{killed:#?}");
    let times = busy_times(&collected);
    assert!(times.len() >= 4 && times.windows(2).all(|two| two[0].1 <= two[1].0), "tests overlap: {times:?}");
}

/// Identities in the logs of agents.
fn logged(fleet: &NatsFleet, directories: &[&str]) -> BTreeSet<String> {
    let files = directories.iter().flat_map(|name| std::fs::read_dir(fleet.scratch.path(name)).expect("a log"));
    let paths = files.map(|file| file.expect("a file").path());
    let logs = paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let texts: Vec<String> = logs.map(|path| std::fs::read_to_string(path).expect("text")).collect();
    let ids = texts.iter().flat_map(|text| text.lines()).map(|line| {
        let result: Value = serde_json::from_str(line).expect("an object");
        result["id"].as_str().expect("an id").to_owned()
    });
    ids.collect()
}

/// True when the agent has a child that runs this command of linerate.
fn is_running(agent: u32, command: &str) -> bool {
    let children = std::fs::read_to_string(format!("/proc/{agent}/task/{agent}/children")).unwrap_or_default();
    let tasks = std::fs::read_dir(format!("/proc/{agent}/task")).into_iter().flatten().flatten();
    let all = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children = all.fold(children, |joined, more| joined + " " + &more);
    children.split_whitespace().any(|child| {
        let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(command.as_bytes())
    })
}

fn members_are_listed_and_names_are_unique(fleet: &NatsFleet) {
    let members = fleet.run(&["members"]).expect_code(0).stdout;
    let lines: Vec<&str> = members.lines().collect();
    assert_eq!(lines.len(), 3, "{members}");
    assert!(
        lines[0].starts_with("MEMBER  SEEN (UTC)") && lines[1].starts_with("a  ") && lines[2].starts_with("b  "),
        "{members}"
    );
    assert!(lines[1].contains(env!("CARGO_PKG_VERSION")) && lines[1].contains("s ±"), "{members}");
    let document = fleet.run(&["members", "--json"]).expect_code(0).json();
    assert_eq!(text(&document, "/kind"), "fleet-members");
    assert_eq!((array(&document, "/members").len(), array(&document, "/missing").len()), (2, 0));
    let second = fleet.run(&["agent", "--address", "a", "--json"]).expect_code(2);
    assert!(second.stderr.contains("another agent is the member \"a\": instance "), "{second:#?}");
}

fn descriptions_are_taken_up(fleet: &NatsFleet, agent: &Process) {
    assert!(fleet.publish("PT24H").expect_code(0).stdout.starts_with("Revision 1 on the servers is this description"));
    assert!(fleet.publish("PT12H").expect_code(0).stdout.starts_with("Published as revision 2"));
    assert!(eventually(LIMIT, || agent.stderr().contains("takes up revision 2")), "{}", agent.stderr());
    // Repetitions, which the new description has, too.
    let before = fleet.done("delay");
    let given = fleet.run(&["run", "a", "b", "delay", "--every", "1s"]).expect_code(0).stdout;
    assert_eq!(given, "b runs a -> b  rtt (delay) by the schedule \"@every 1s\", each time in the next free slot.\n");
    let collecting = Process::start(fleet.collect(&[]));
    assert!(eventually(LIMIT, || fleet.done("delay") > before), "{}", agent.stderr());
    let ended = fleet.run(&["run", "a", "b", "delay", "--end"]).expect_code(0).stdout;
    assert_eq!(ended, "Task delay between a and b is repeated no longer.\n");
    collecting.signal("TERM");
    collecting.finish(LIMIT).expect_code(0);
}

#[test]
fn errors_name_the_server_and_the_remedy() {
    let fleet = NatsFleet::start(&["a", "b"]);
    let notes = fleet.scratch.file("notes", "not a result\n");
    for (arguments, part) in [
        (vec!["run", "a", "c", "goodput"], "the description has no address \"c\"; it has a, b"),
        (vec!["run", "a", "b", "speed"], "the description has no task \"speed\"; it has delay, goodput"),
        (vec!["run", "a", "a", "delay"], "task \"delay\" does not test \"a\" and \"a\"; the tasks that do: none"),
        (vec!["run", "a", "b", "delay", "--at", "2020-01-01"], "the time of --at is over"),
        (vec!["run", "a", "b", "delay", "--every", "often"], "refuses the schedule \"often\""),
        (vec!["run", "a", "b", "delay", "--end"], "is not repeated"),
        (vec!["members", "--fleet", "other"], "has no stream \"KV_other-members\": publish a description first"),
        (vec!["collect", "--results", &notes], "its line 1 is no result"),
        (vec!["agent", "--address", "c"], "no address \"c\"; it has a, b"),
        (vec!["members", "--nats-token", "/no/such/file"], "reading /no/such/file: No such file"),
    ] {
        let done = fleet.run(&arguments).expect_code(2);
        assert!(done.stderr.contains(part) && done.stdout.is_empty(), "{part}: {done:#?}");
    }
    assert_eq!(std::fs::read_to_string(&notes).expect("the file"), "not a result\n");
    // No agent runs there.
    let given = fleet.run(&["run", "a", "b", "goodput"]).expect_code(0);
    assert!(given.stderr.contains("no agent of a runs"), "{given:#?}");
    let mut closed = linerate();
    closed.args(["fleet", "members", "--nats", "nats://127.0.0.1:9"]);
    let done = run(closed, LIMIT).expect_code(2);
    assert!(done.stderr.contains("connecting to nats://127.0.0.1:9: ") && done.stderr.contains("refused"), "{done:#?}");
}
