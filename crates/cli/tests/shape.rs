//! Tests of `linerate shape` on a host: installed shapers, foreign configuration, and complete restoration.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::Scratch;
use crate::support::document::{array, number, text};
use crate::support::namespace::Namespace;
use crate::support::pairing::undisturbed;
use crate::support::process::{FinishedChild, Process, eventually, run, send_signal};

const LIMIT: Duration = Duration::from_secs(300);

/// Host in a namespace, with an interface `line0` and a state directory.
struct Host {
    namespace: Namespace,
    state: Scratch,
}

impl Host {
    fn new() -> Self {
        let host = Self { namespace: Namespace::new(), state: Scratch::new() };
        host.program("ip", "link add line0 type veth peer name line1");
        host.program("ip", "link set line0 up");
        host.program("ip", "link set line1 up");
        // The carrier comes a moment later, and changes the flags.
        let has_carrier = || host.program("ip", "-o link show up").matches("state UP").count() == 2;
        assert!(eventually(LIMIT, has_carrier), "{}", host.tree());
        host
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.namespace.command(env!("CARGO_BIN_EXE_linerate"));
        command.arg("shape").args(arguments).env("LINERATE_STATE", self.state.path("state"));
        command
    }

    fn shape(&self, arguments: &[&str]) -> FinishedChild {
        run(self.command(arguments), LIMIT)
    }

    fn program(&self, program: &str, line: &str) -> String {
        let output = self.namespace.command(program).args(line.split(' ')).output().expect("it runs");
        assert!(output.status.success(), "{program} {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs `shaper.sh` with this argument and a `/run` of its own, which ordinary users cannot write.
    fn run_script(&self, argument: &str) {
        let directory = self.state.path("");
        let line = format!("cd {directory} && mkdir -p run && mount --bind run /run && sh shaper.sh {argument}");
        let output = self.namespace.command("unshare").args(["-m", "sh", "-c", &line]).output().expect("it runs");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Configuration of the interface, from `tc`, `ip` and the kernel's features, without packet counters.
    fn tree(&self) -> String {
        let links = self.program("ip", "-o link show");
        // Addresses, flags and interface numbers are constant; a new device would add a line.
        let mut tree: Vec<String> = links.lines().map(str::to_owned).collect();
        for line in ["qdisc show", "class show dev line0", "filter show dev line0", "filter show dev line0 ingress"] {
            tree.push(without_counters(&self.program("tc", line)));
        }
        tree.join("\n")
    }
}

/// Removes the packet counter that `tc` prints as a property of HTB.
fn without_counters(text: &str) -> String {
    let mut words = text.split(' ');
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if word == "direct_packets_stat" {
            words.next();
        } else {
            kept.push(word);
        }
    }
    kept.join(" ")
}

/// Back ends that every kernel of recent years has.
const BACK_ENDS: [&str; 2] = ["htb+bfifo", "tbf"];

#[test]
fn off_restores_the_previous_configuration() {
    let host = Host::new();
    let before = host.tree();
    for back_end in BACK_ENDS {
        let set_up = ["line0", "--up", "20M", "--down", "80M", "--back-end", back_end];
        let shown = host.shape(&[&set_up[..], &["-v"]].concat()).expect_code(0).stdout;
        assert!(shown.contains(back_end) && shown.contains("Up, on line0"), "{shown}");
        let tree = host.tree();
        assert!(tree.contains("ifb4line0") && tree.contains("ingress"), "{tree}");
        host.shape(&["line0", "off"]).expect_code(0);
        assert_eq!(host.tree(), before, "{back_end}");
        // A second `off` has nothing to do.
        host.shape(&set_up).expect_code(0);
        host.shape(&["line0", "off"]).expect_code(0);
        host.shape(&["line0", "off"]).expect_code(0);
        assert_eq!(host.tree(), before, "{back_end}, the second time");
    }
}

#[test]
fn the_same_shaper_changes_nothing_and_other_rates_keep_the_queues() {
    let host = Host::new();
    host.shape(&["line0", "--up", "20M", "--down", "80M"]).expect_code(0);
    let first = host.tree();
    let again = host.shape(&["line0", "--up", "20M", "--down", "80M", "--json"]).expect_code(0).json();
    assert_eq!((text(&again, "/outcome"), host.tree()), ("unchanged", first.clone()));
    let other = host.shape(&["line0", "--up", "10M", "--down", "80M", "--json"]).expect_code(0).json();
    assert_eq!(text(&other, "/outcome"), "changed");
    let changed = host.tree();
    assert!(changed.contains("10Mbit") && !changed.contains("20Mbit"), "{changed}");
    let status = host.shape(&["line0", "status", "--json"]).json();
    assert_eq!(status["shapers"][0]["directions"][0]["set_bits_per_second"], 10e6);
    assert!(array(&status, "/shapers/0/differences").is_empty(), "{status}");
    host.shape(&["line0", "off"]).expect_code(0);
}

#[test]
fn a_foreign_qdisc_is_asked_about_and_restored() {
    let host = Host::new();
    host.program("tc", "qdisc add dev line0 root handle 5: htb default 1");
    host.program("tc", "class add dev line0 parent 5: classid 5:1 htb rate 5mbit burst 1999");
    host.program("tc", "filter add dev line0 parent 5: protocol ip prio 3 u32 match ip dport 22 0xffff flowid 5:1");
    let before = host.tree();
    let refused = host.shape(&["line0", "--up", "20M"]).expect_code(2);
    assert!(refused.stderr.contains("--replace") && refused.stderr.contains("htb with 1 class"), "{}", refused.stderr);
    assert_eq!(host.tree(), before);
    host.shape(&["line0", "--up", "20M", "--replace"]).expect_code(0);
    assert_ne!(host.tree(), before);
    host.shape(&["line0", "off"]).expect_code(0);
    assert_eq!(host.tree(), before);
}

/// Another program's stop, or `modprobe -r ifb`: whatever arrives is redirected to nowhere.
#[test]
fn a_shaper_whose_intermediate_device_is_gone_can_be_switched_off() {
    let host = Host::new();
    let before = host.tree();
    host.shape(&["line0", "--up", "20M", "--down", "50M"]).expect_code(0);
    host.program("ip", "link del ifb4line0");
    host.shape(&["line0", "off"]).expect_code(0);
    assert_eq!(host.tree(), before);
    // A redirect of another program stays.
    host.program("ip", "link add other0 type ifb");
    host.program("tc", "qdisc add dev line0 handle ffff: ingress");
    let redirect = "filter add dev line0 parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev";
    host.program("tc", &format!("{redirect} other0"));
    host.program("ip", "link del other0");
    let before = host.tree();
    let refused = host.shape(&["line0", "--up", "10M", "--down", "50M", "--replace"]).expect_code(2);
    assert!(refused.stderr.contains("redirects to an interface that no longer exists"), "{}", refused.stderr);
    assert_eq!(host.tree(), before);
}

/// All packets that arrive are lost, while every queueing discipline is as planned.
#[test]
fn status_names_an_intermediate_device_that_passes_nothing_on() {
    let host = Host::new();
    let before = host.tree();
    let faults = |kind: &str| {
        let document = host.shape(&["line0", "status", "--json"]).expect_code(1).json();
        let shaper = &document["shapers"][0];
        array(shaper, &format!("/{kind}"))
            .iter()
            .map(|one| one.as_str().unwrap_or_default().to_owned())
            .collect::<String>()
    };
    host.shape(&["line0", "--up", "20M", "--down", "50M"]).expect_code(0);
    host.program("ip", "link set ifb4line0 down");
    assert!(faults("warnings").contains("`ip link set ifb4line0 up`"), "{}", faults("warnings"));
    host.program("ip", "link set ifb4line0 up");
    host.shape(&["line0", "status", "--once"]).expect_code(0);
    host.program("ip", "link del ifb4line0");
    assert!(faults("warnings").contains("`linerate shape line0 off`"), "{}", faults("warnings"));
    host.shape(&["line0", "off"]).expect_code(0);
    assert_eq!(host.tree(), before);
    // A redirect that another program has changed.
    host.shape(&["line0", "--up", "20M", "--down", "50M"]).expect_code(0);
    host.program("ip", "link add other0 type ifb");
    host.program("tc", "filter del dev line0 ingress");
    host.program(
        "tc",
        "filter add dev line0 ingress prio 1 u32 match u32 0 0 action mirred egress redirect dev other0",
    );
    let differences = faults("differences");
    assert!(differences.contains("redirected to other0 instead of ifb4line0"), "{differences}");
    host.program("tc", "qdisc del dev line0 ingress");
    host.program("ip", "link del other0");
    host.shape(&["line0", "--up", "20M", "--down", "50M"]).expect_code(0);
    host.shape(&["line0", "status", "--once"]).expect_code(0);
    host.shape(&["line0", "off"]).expect_code(0);
    assert_eq!(host.tree(), before);
}

/// A shaper is known by the present name of its interface, and by the earlier one.
#[test]
fn a_renamed_interface_keeps_its_shaper() {
    let host = Host::new();
    let before = host.tree();
    let rename = |from: &str, to: &str| {
        for line in [format!("down {from}"), format!("name {from} {to}"), format!("up {to}")] {
            let (what, names) = line.split_once(' ').expect("two words");
            let line = match names.split_once(' ') {
                Some((from, to)) => format!("link set {from} name {to}"),
                None => format!("link set {names} {what}"),
            };
            host.program("ip", &line);
        }
    };
    let set_up = |device: &str| host.shape(&[device, "--up", "20M", "--down", "50M", "--json"]).expect_code(0).json();
    let is_well = |device: &str| {
        let status = host.shape(&[device, "status", "--json"]).expect_code(0).json();
        assert_eq!(text(&status, "/shapers/0/device"), "wan0", "{status:#}");
        assert_eq!(array(&status, "/shapers/0/directions").len(), 2, "{status:#}");
    };
    for name in ["line0", "wan0", ""] {
        set_up("line0");
        rename("line0", "wan0");
        is_well("wan0");
        is_well("line0");
        assert_eq!(text(&set_up("wan0"), "/outcome"), "unchanged");
        if name.is_empty() {
            let mut rollback = host.namespace.command(env!("CARGO_BIN_EXE_linerate"));
            rollback.arg("rollback").env("LINERATE_STATE", host.state.path("state"));
            run(rollback, LIMIT).expect_code(0);
        } else {
            host.shape(&[name, "off"]).expect_code(0);
        }
        assert!(array(&host.shape(&["status", "--json"]).expect_code(0).json(), "/shapers").is_empty());
        rename("wan0", "line0");
        assert!(eventually(LIMIT, || host.tree() == before), "{name}: {}", host.tree());
    }
    // Another interface that has got the name is not the shaped one.
    set_up("line0");
    rename("line0", "wan0");
    host.program("ip", "link add line0 type veth peer name line2");
    let refused = host.shape(&["line0", "--up", "20M", "--down", "50M"]).expect_code(2);
    assert!(refused.stderr.contains("`linerate shape wan0 off`"), "{}", refused.stderr);
    host.shape(&["line0", "off"]).expect_code(0);
    is_well("wan0");
    host.shape(&["wan0", "--up", "20M", "--down", "50M", "--back-end", "tbf"]).expect_code(0);
    assert!(host.program("ip", "-o link show").contains("ifb4wan0"));
    set_up("line0");
    for device in ["wan0", "line0"] {
        host.shape(&[device, "status", "--json"]).expect_code(0);
        host.shape(&[device, "off"]).expect_code(0);
    }
    host.program("ip", "link del line0");
    rename("wan0", "line0");
    assert!(eventually(LIMIT, || host.tree() == before), "{}", host.tree());
}

/// Process and watchdog are killed: the shaper is still known by its arguments.
#[test]
fn an_unconfirmed_shaper_without_its_process_is_known() {
    let host = Host::new();
    let before = host.tree();
    let waiting = Process::start(host.command(&["line0", "--up", "20M", "--confirm-within", "50s"]));
    assert!(eventually(LIMIT, || waiting.stderr().contains("confirm")));
    let watchdog = std::fs::read_to_string(host.state.path("state/changes/1/watchdog")).expect("recorded");
    for process in [watchdog.trim().parse().expect("a number"), waiting.id()] {
        send_signal(process, "KILL");
    }
    drop(waiting);
    let status = host.shape(&["line0", "status", "--json"]).json();
    assert_eq!(status["shapers"][0]["directions"][0]["set_bits_per_second"], 20e6, "{status:#}");
    host.shape(&["line0", "off"]).expect_code(0);
    assert_eq!(host.tree(), before);
}

/// Its driver cannot change all offloads.
#[test]
fn a_macvlan_is_shaped_and_restored() {
    let host = Host::new();
    host.program("ip", "link add link line1 name upper0 type macvlan mode bridge");
    host.program("ip", "link set upper0 up");
    let state = || without_counters(&host.program("tc", "qdisc show dev upper0"));
    let before = state();
    host.shape(&["upper0", "--up", "20M", "--down", "80M"]).expect_code(0);
    assert!(state().contains("root"), "{}", state());
    host.shape(&["upper0", "off"]).expect_code(0);
    assert_eq!(state(), before);
    assert!(!host.tree().contains("ifb4upper0"), "{}", host.tree());
}

/// As that of iproute2 5.9, which prints the filters' options as text within JSON.
#[test]
fn filters_of_an_older_tc_are_read() {
    let host = Host::new();
    let broken = r#"[{"protocol":"all","pref":1,"kind":"u32","options":{fh 800: ht divisor 1 }}]"#;
    let script =
        format!("#!/bin/sh\ncase \"$*\" in *-j*filter*) echo '{broken}' ;; *) PATH=$ACTUAL exec tc \"$@\" ;; esac\n");
    host.state.script("tc", script);
    let actual = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").expect("set"));
    let older = |arguments: &[&str]| {
        let mut command = host.command(arguments);
        command.env("PATH", format!("{}:{actual}", host.state.path(""))).env("ACTUAL", &actual);
        run(command, LIMIT)
    };
    older(&["line0", "--up", "20M", "--down", "80M", "--back-end", "htb+bfifo"]).expect_code(0);
    older(&["line0", "status"]).expect_code(0);
    host.program("tc", "qdisc del dev line0 ingress");
    older(&["line0", "status"]).expect_code(1);
}

/// One that ends at an option that it does not understand, which is how `invarg` of iproute2 answers, executes a part of a batch.
#[test]
fn features_are_probed_by_one_tc_or_one_by_one() {
    let host = Host::new();
    let actual = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").expect("set"));
    let plan = |batches: &str| {
        let script = format!(
            "#!/bin/sh\necho call >>\"$CALLS\"\nexport PATH=\"$ACTUAL\"\ncase \"$*\" in *-force*) {batches} ;; esac\nexec tc \"$@\"\n"
        );
        host.state.script("tc", script);
        host.state.file("calls", "");
        let mut command = host.command(&["line0", "--up", "20M", "--down", "80M", "--dry-run", "--json"]);
        command.env("PATH", format!("{}:{actual}", host.state.path(""))).env("ACTUAL", &actual);
        command.env("CALLS", host.state.path("calls"));
        let plan = run(command, LIMIT).expect_code(0).json();
        let calls = std::fs::read_to_string(host.state.path("calls")).expect("written").lines().count();
        (plan["back_end"].clone(), plan["steps"].clone(), calls)
    };
    let (back_end, steps, calls) = plan("");
    assert!(calls < 15, "{calls} processes of tc");
    let (of_others, steps_of_others, more_calls) = plan("head -n 20 | tc \"$@\"; exit 255");
    assert!(more_calls > calls + 50, "{more_calls} processes of tc");
    assert_eq!((back_end, steps), (of_others, steps_of_others));
}

/// A veth reports 10 Gbit/s.
#[test]
fn a_rate_above_the_links_is_noted() {
    let host = Host::new();
    let noted = |rate: &str| {
        host.shape(&["line0", "--up", rate, "--dry-run"]).expect_code(0).stdout.contains("The link of line0 runs at")
    };
    assert!(noted("90G") && !noted("9G"));
}

/// Chosen by itself, and reported: CAKE distinguishes the hosts behind this one, HTB cannot.
#[test]
fn a_host_that_masquerades_is_recognised() {
    let host = Host::new();
    let plan = |options: &[&str]| {
        let line = ["line0", "--up", "20M", "--dry-run", "--json"];
        host.shape(&[&line[..], options].concat()).expect_code(0).json()
    };
    let has = |plan: &Value, wanted: &str| array(plan, "/arguments").iter().any(|argument| argument == wanted);
    assert!(!has(&plan(&[]), "--nat"));
    host.program("nft", "add table ip out");
    host.program("nft", "add chain ip out post { type nat hook postrouting priority 100 ; }");
    host.program("nft", "add rule ip out post oifname line1 masquerade");
    assert!(!has(&plan(&[]), "--nat"), "another interface's");
    host.program("nft", "add rule ip out post oifname line0 masquerade");
    let found = plan(&[]);
    let note = match text(&found, "/back_end") {
        "cake" => "hosts behind it are distinguished",
        _ => "not hosts, also behind this host's NAT",
    };
    let is_noted = array(&found, "/notes").iter().filter_map(Value::as_str).any(|one| one.contains(note));
    assert!(has(&found, "--nat") && is_noted, "{found:#}");
    assert!(has(&plan(&["--no-nat"]), "--no-nat") && !has(&plan(&["--per-flow"]), "--nat"));
    let shown = host.shape(&["line0", "--up", "20M"]).expect_code(0).stdout;
    assert!(shown.contains("NAT"), "{shown}");
    host.shape(&["line0", "off", "--quiet"]).expect_code(0);
}

/// Rules of iptables' own tables, which nft does not list.
#[test]
fn a_host_that_masquerades_by_iptables_is_recognised() {
    let host = Host::new();
    let has_option = |rule: &str| {
        host.state.script("iptables-save", format!("#!/bin/sh\necho '{rule}'\n"));
        let mut command = host.command(&["line0", "--up", "20M", "--dry-run", "--json"]);
        let others = std::env::var("PATH").expect("set");
        command.env("PATH", format!("{}:{others}:/usr/sbin:/sbin", host.state.path("")));
        array(&run(command, LIMIT).expect_code(0).json(), "/arguments").iter().any(|argument| argument == "--nat")
    };
    assert!(has_option("-A POSTROUTING -s 10.0.0.0/8 -o line0 -j MASQUERADE"));
    assert!(!has_option("-A POSTROUTING -s 10.0.0.0/8 -o line1 -j MASQUERADE"));
}

#[test]
fn a_dry_run_and_a_script_touch_nothing() {
    let host = Host::new();
    let before = host.tree();
    let shown = host.shape(&["line0", "--up", "220k", "--down", "850k", "--dry-run", "-v"]).expect_code(0).stdout;
    assert!(shown.contains("tc qdisc add dev line0 root") && shown.contains("Option: smaller packets"), "{shown}");
    let summary = host.shape(&["line0", "--up", "220k", "--down", "850k", "--dry-run"]).expect_code(0).stdout;
    assert!(summary.starts_with("line0: 220 kbit/s up, 850 kbit/s down\n"), "{summary}");
    assert!(summary.lines().count() <= 12 && summary.contains("Nothing was changed"), "{summary}");
    assert!(summary.lines().all(|line| line.chars().count() <= 80), "{summary}");
    let plan = host.shape(&["line0", "--up", "220k", "--dry-run", "--json"]).expect_code(0).json();
    let taken = text(&plan, "/back_end");
    assert_eq!(text(&plan, "/outcome"), "planned");
    assert!(["htb+fq_codel", "htb+fq_pie", "htb+sfq", "htb+bfifo"].contains(&taken), "{taken} on so slow a line");
    assert!(plan["changes"].is_null() && !array(&plan, "/steps").is_empty());
    let script =
        host.shape(&["line0", "--up", "20M", "--down", "80M", "--back-end", "htb+bfifo", "--script"]).expect_code(0);
    assert!(script.stdout.starts_with("#!/bin/sh\n"), "{}", script.stdout);
    assert_eq!(host.tree(), before);
    host.state.file("shaper.sh", &script.stdout);
    host.run_script("start");
    assert!(host.tree().contains("ifb4line0"));
    host.run_script("stop");
    // The script only deletes; the kernel's default is the same here.
    assert_eq!(host.tree(), before);
    let old = ["line0", "--up", "20M", "--back-end", "lartc-cbq"];
    let refused = host.shape(&old).expect_code(2);
    assert!(refused.stderr.contains("lartc-htb") || refused.stderr.contains("6.3"), "{}", refused.stderr);
    assert!(host.shape(&[&old[..], &["--script"]].concat()).expect_code(0).stdout.contains("cbq"));
}

/// A user who has lost access to the host cannot confirm.
#[test]
fn an_unconfirmed_shaper_is_rolled_back() {
    let host = Host::new();
    let before = host.tree();
    let back = host.shape(&["line0", "--up", "20M", "--confirm-within", "1s"]).expect_code(5);
    assert!(back.stderr.contains("not confirmed"), "{}", back.stderr);
    assert_eq!(host.tree(), before);
    let waiting = Process::start(host.command(&["line0", "--up", "20M", "--confirm-within", "50s"]));
    assert!(eventually(LIMIT, || host.tree().contains("htb") || host.tree().contains("cake")));
    assert!(eventually(LIMIT, || host.shape(&["line0", "confirm"]).code() == Some(0)));
    waiting.finish(LIMIT).expect_code(0);
    assert_ne!(host.tree(), before);
    host.shape(&["line0", "off"]).expect_code(0);
    assert_eq!(host.tree(), before);
}

/// Ctrl-C during the installation rolls everything back.
#[test]
fn an_interrupted_process_rolls_everything_back() {
    let host = Host::new();
    let before = host.tree();
    let waiting = Process::start(host.command(&["line0", "--up", "20M", "--down", "80M", "--confirm-within", "50s"]));
    assert!(eventually(LIMIT, || waiting.stderr().contains("confirm")));
    assert_ne!(host.tree(), before);
    waiting.signal("INT");
    waiting.finish(LIMIT).expect_code(5);
    assert_eq!(host.tree(), before);
}

#[test]
fn a_smaller_mtu_is_a_route_change_that_is_restored() {
    let host = Host::new();
    host.program("ip", "address add 192.0.2.1/24 dev line0");
    host.program("ip", "route add default via 192.0.2.2 dev line0");
    let route = || host.program("ip", "route show default");
    let before = (host.tree(), route());
    let small = ["line0", "--up", "220k", "--route-mtu", "576"];
    host.shape(&small).expect_code(0);
    assert!(route().contains("mtu 576 advmss 536"), "{}", route());
    let again = host.shape(&[&small[..], &["--json"]].concat()).expect_code(0).json();
    assert_eq!(text(&again, "/outcome"), "unchanged");
    // Without the option, the route is restored and the shaper stays.
    let other = host.shape(&["line0", "--up", "220k", "--json"]).expect_code(0).json();
    assert_eq!((text(&other, "/outcome"), route()), ("set_up", before.1.clone()));
    host.shape(&["line0", "off"]).expect_code(0);
    assert_eq!((host.tree(), route()), before);
}

#[test]
fn a_shaper_whose_interface_is_gone_hides_no_other() {
    let host = Host::new();
    host.program("ip", "link add gone0 type veth peer name gone1");
    for device in ["line0", "gone0"] {
        host.shape(&[device, "--up", "4M", "--quiet"]).expect_code(0);
    }
    host.program("ip", "link del gone0");
    let document = host.shape(&["status", "--json"]).expect_code(1).document();
    let shapers = array(&document, "/shapers");
    let devices: BTreeSet<_> = shapers.iter().map(|shaper| text(shaper, "/device")).collect();
    assert_eq!(devices, BTreeSet::from(["gone0", "line0"]));
    let gone = shapers.iter().find(|shaper| shaper["device"] == "gone0").expect("listed");
    assert!(text(gone, "/warnings/0").contains("`linerate shape gone0 off`"), "{gone:#}");
    for device in ["line0", "gone0"] {
        host.shape(&[device, "off", "--quiet"]).expect_code(0);
    }
}

/// Two hosts with addresses on `line0` and `line1`, and a server on the far one.
fn connected_hosts() -> (Host, Namespace, Process) {
    let host = Host::new();
    let far = host.namespace.beside();
    let far_host = |program: &str, line: &str| {
        let output = far.command(program).args(line.split(' ')).output().expect("it runs");
        assert!(output.status.success(), "{program} {line}: {}", String::from_utf8_lossy(&output.stderr));
    };
    host.program("ip", &format!("link set line1 netns {}", far.id()));
    far_host("ip", "address add 10.9.0.2/24 dev line1");
    far_host("ip", "link set line1 up");
    let mut server = far.command(env!("CARGO_BIN_EXE_linerate"));
    server.arg("serve");
    let server = Process::start(server);
    assert!(eventually(LIMIT, || server.stderr().contains("port 5201")), "{server:?}");
    (host, far, server)
}

/// Aggregated packets of 64 KiB, larger than a queue of 20 ms, would all be dropped. docs/shaping.md has all rates.
#[test]
fn one_flow_fills_the_rate() {
    let (host, _far, _server) = connected_hosts();
    host.program("ip", "address add 10.9.0.1/24 dev line0");
    // Received packets of 4 to 14 ms are shaped up to 5 % below the given rate; a busy host delays acknowledgements by more than
    // a queue of 20 ms holds.
    for (rate, margin, seconds) in [(200e3, 0.05, "12"), (2e6, 0.01, "4"), (50e6, 0.15, "4")] {
        let shaper =
            ["line0", "--up", &format!("{rate}"), "--down", &format!("{rate}"), "--back-end", "htb+bfifo", "-q"];
        host.shape(&shaper).expect_code(0);
        for direction in [&[][..], &["-R"]] {
            undisturbed(|| {
                let mut client = host.namespace.command(env!("CARGO_BIN_EXE_linerate"));
                client.args(["iperf3", "-c", "10.9.0.2", "-C", "cubic", "-t", seconds, "-J"]).args(direction);
                client.env("LINERATE_HISTORY", "off");
                let received = run(client, LIMIT).expect_code(0).json();
                let received = number(&received, "/end/sum_received/bits_per_second");
                // 1448 of 1514 bytes are payload; at the lowest rate the test ends with some of 200 packets in the queue.
                let share = received * 1514.0 / 1448.0 / rate;
                let least = 0.94 * (1.0 - margin);
                assert!((least..=1.03).contains(&share), "{share:.3} of {rate} bit/s, {direction:?}");
            });
        }
        host.shape(&["line0", "off", "--quiet"]).expect_code(0);
    }
    assert!(host.program("ip", "-d link show dev line0").contains("gso_max_segs 65535"), "restored");
}

/// A packet that this host sends or receives is one segment in the queues.
#[test]
fn no_packet_of_several_segments_is_queued() {
    let (host, _far, _server) = connected_hosts();
    host.program("ip", "address add 10.9.0.1/24 dev line0");
    let script = ["line0", "--up", "50M", "--back-end", "htb+bfifo", "--script"];
    host.state.file("shaper.sh", &host.shape(&script).expect_code(0).stdout);
    let largest = || {
        let mut client = host.namespace.command(env!("CARGO_BIN_EXE_linerate"));
        client.args(["iperf3", "-c", "10.9.0.2", "-C", "cubic", "-t", "1"]).env("LINERATE_HISTORY", "off");
        run(client, LIMIT).expect_code(0);
        // ` Sent 5932 bytes 4 pkt (dropped 0, …`: segments, not packets, of which the classes count the dequeued ones.
        let classes = host.program("tc", "-s class show dev line0");
        let tokens = |line: &str| line.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<f64>>();
        let sent = classes.lines().filter(|line| line.trim_start().starts_with("Sent ")).map(tokens);
        let borrowed = classes.lines().filter(|line| line.trim_start().starts_with("lended: ")).map(tokens);
        let busiest = sent.zip(borrowed).filter(|(_, dequeued)| dequeued[1] > 0.0);
        busiest.map(|(sent, dequeued)| sent[0] / (dequeued[0] + dequeued[1])).fold(0.0, f64::max)
    };
    host.shape(&["line0", "--up", "50M", "--back-end", "htb+bfifo", "--quiet"]).expect_code(0);
    let by_command = largest();
    host.shape(&["line0", "off", "--quiet"]).expect_code(0);
    host.run_script("start");
    let by_script = largest();
    host.run_script("stop");
    for size in [by_command, by_script] {
        // Those in the queue are counted, too; two segments would have 2962 bytes.
        assert!((500.0..=1600.0).contains(&size), "{by_command} and {by_script} B");
    }
}

/// Twelve classes, of which one has traffic: ten rows, the largest first, and all with `-v` and in the document.
#[test]
fn classes_are_listed_with_their_figures() {
    let (host, _far, _server) = connected_hosts();
    host.program("ip", "address add 10.9.0.1/24 dev line0");
    let mut rows = "match,name,group,down,up\ngroup,ACME,,8M,8M\n10.9.0.1,office,ACME,3M,3M:4M\n".to_owned();
    rows.extend((1..=10).map(|number| format!("192.0.2.{number} 2001:db8::{number},,,{number}00k,\n")));
    let file = host.state.file("classes.csv", rows);
    let set_up = ["line0", "--up", "20M", "--down", "20M", "--back-end", "htb+bfifo", "--classes", &file];
    let planned = host.shape(&set_up).expect_code(0).stdout;
    assert!(planned.contains("12 classes") && planned.contains("and 2 more (-v)"), "{planned}");
    let lines: Vec<Vec<&str>> = planned.lines().map(|line| line.split_whitespace().collect()).collect();
    let place =
        |row: &[&str]| lines.iter().position(|line| line == row).unwrap_or_else(|| panic!("{row:?}: {planned}"));
    assert!(place(&["ACME", "(group)", "8M", "8M"]) < place(&["office", "10.9.0.1", "3M:4M", "3M"]));
    assert!(planned.contains("192.0.2.10 ") && !planned.contains("192.0.2.1 "), "{planned}");
    assert!(!planned.contains("traffic without a rule") && planned.lines().count() <= 12 + 13, "{planned}");

    let mut client = host.namespace.command(env!("CARGO_BIN_EXE_linerate"));
    client.args(["iperf3", "-c", "10.9.0.2", "-C", "cubic", "-t", "2", "-J"]).env("LINERATE_HISTORY", "off");
    run(client, LIMIT).expect_code(0);
    let status = host.shape(&["line0", "status", "--json"]).expect_code(0).json();
    let up = array(&status, "/shapers/0/directions/0/traffic_classes");
    assert_eq!(up.len(), 2, "the others have no rate up: {status:#}");
    for class in up {
        assert!(number(class, "/sent_bytes") > 300e3 && number(class, "/sent_packets") > 200.0, "{class:#}");
        assert!(class["dropped"].is_u64() && class["backlog_bytes"].is_u64(), "{class:#}");
    }
    assert_eq!((number(&up[1], "/guaranteed_bits_per_second"), number(&up[1], "/ceiling_bits_per_second")), (3e6, 4e6));
    assert_eq!(array(&status, "/shapers/0/directions/1/traffic_classes").len(), 12);
    let shown = host.shape(&["line0", "status", "--once"]).expect_code(0).stdout;
    assert!(shown.contains("12 classes") && shown.contains("and 2 more (-v)"), "{shown}");
    let all = host.shape(&["line0", "status", "--once", "-v"]).expect_code(0).stdout;
    assert!(all.contains("192.0.2.1") && !all.contains("more (-v)"), "{all}");
    for text in [&planned, &shown, &all] {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    host.shape(&["line0", "off", "--quiet"]).expect_code(0);
}

/// The tree is lost with the move, its offloads are not.
#[test]
fn an_interface_that_comes_back_from_another_namespace_is_restored() {
    let host = Host::new();
    let other = host.namespace.beside();
    let state = || host.program("ip", "-d link show dev line0");
    assert!(state().contains("gso_max_segs 65535"), "{}", state());
    host.shape(&["line0", "--up", "20M", "--down", "50M", "--quiet"]).expect_code(0);
    host.program("ip", &format!("link set line0 netns {}", other.id()));
    let warned = host.shape(&["line0", "status"]).expect_code(1).stdout;
    assert!(warned.contains("`linerate shape line0 off`"), "{warned}");
    let left = host.shape(&["line0", "off"]).expect_code(1);
    assert!(left.stdout.contains("in another network namespace"), "{}", left.stdout);
    let back = other.command("ip").args(["link", "set", "line0", "netns", &host.namespace.id().to_string()]).output();
    assert!(back.expect("ip").status.success());
    assert!(state().contains("gso_max_segs 1 "), "{}", state());
    host.shape(&["line0", "off"]).expect_code(0);
    assert!(state().contains("gso_max_segs 65535"), "{}", state());
    assert!(array(&host.shape(&["status", "--json"]).expect_code(0).json(), "/shapers").is_empty());
}

/// Packets still pass it, as the kernel knows it by its number.
#[test]
fn a_renamed_intermediate_device_is_removed() {
    let host = Host::new();
    let before = host.tree();
    let rename = || {
        host.shape(&["line0", "--up", "20M", "--down", "50M", "--quiet"]).expect_code(0);
        for line in ["set ifb4line0 down", "set ifb4line0 name other0", "set other0 up"] {
            host.program("ip", &format!("link {line}"));
        }
    };
    rename();
    let status = host.shape(&["line0", "status", "--json"]).expect_code(1).json();
    let differences = array(&status, "/shapers/0/differences");
    assert!((1..=6).contains(&differences.len()), "{status:#}");
    host.shape(&["line0", "--up", "10M", "--down", "50M", "--quiet"]).expect_code(0);
    host.shape(&["line0", "status", "--json"]).expect_code(0);
    host.shape(&["line0", "off", "--quiet"]).expect_code(0);
    assert_eq!(host.tree(), before);
    rename();
    host.shape(&["line0", "off", "--quiet"]).expect_code(0);
    assert_eq!(host.tree(), before);
}

/// A new interface has the name, with another number.
#[test]
fn another_interface_of_the_same_name_is_shaped_anew() {
    let host = Host::new();
    let queueing = || (host.program("tc", "qdisc show dev line0"), host.program("ip", "-o link show type ifb"));
    let before = queueing();
    let shaper = ["line0", "--up", "20M", "--down", "50M", "--quiet"];
    let exchange = || {
        host.shape(&shaper).expect_code(0);
        host.program("ip", "link del line0");
        host.program("ip", "link add line0 type veth peer name line1");
        host.program("ip", "link set line0 up");
    };
    exchange();
    host.shape(&["line0", "status"]).expect_code(1);
    host.shape(&shaper).expect_code(0);
    host.shape(&["line0", "status"]).expect_code(0);
    host.shape(&["line0", "off"]).expect_code(0);
    assert_eq!(queueing(), before);
    exchange();
    host.shape(&["line0", "off"]).expect_code(0);
    assert_eq!(queueing(), before);
}

/// Received packets pass the intermediate device before the bridge.
#[test]
fn a_port_of_a_bridge_is_shaped() {
    let (host, _far, _server) = connected_hosts();
    for line in ["add br0 type bridge", "set line0 master br0", "set br0 up"] {
        host.program("ip", &format!("link {line}"));
    }
    host.program("ip", "address add 10.9.0.1/24 dev br0");
    let before = host.program("tc", "qdisc show dev line0");
    host.shape(&["line0", "--up", "5M", "--down", "5M", "--quiet"]).expect_code(0);
    for direction in [&[][..], &["-R"]] {
        let mut client = host.namespace.command(env!("CARGO_BIN_EXE_linerate"));
        client.args(["iperf3", "-c", "10.9.0.2", "-C", "cubic", "-t", "2", "-J"]).args(direction);
        client.env("LINERATE_HISTORY", "off");
        let received = run(client, LIMIT).expect_code(0).json();
        let received = number(&received, "/end/sum_received/bits_per_second");
        // A busy host sends less than the shaper lets pass, and without a shaper a thousand times more.
        assert!((1e6..5e6).contains(&received), "{received} bit/s, {direction:?}");
    }
    host.shape(&["line0", "off", "--quiet"]).expect_code(0);
    assert_eq!(host.program("tc", "qdisc show dev line0"), before);
}

/// Number of lines of all files below a directory.
fn lines_below(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let lines = |path: &Path| std::fs::read_to_string(path).unwrap_or_default().lines().count();
    entries.map(|entry| entry.path()).map(|path| if path.is_dir() { lines_below(&path) } else { lines(&path) }).sum()
}

/// A process killed at any moment is cleaned up by its watchdog or `linerate rollback`.
#[test]
fn a_killed_process_leaves_nothing() {
    let host = Host::new();
    host.program("tc", "qdisc add dev line0 root handle 7: tbf rate 9mbit burst 3000 limit 30000");
    let tree = || (host.tree(), host.program("nft", "list ruleset"));
    let before = tree();
    let state = host.state.path("state");
    for round in 0..8 {
        let recorded = lines_below(Path::new(&state));
        let mut process = Process::start(host.command(&[&STORING[..], &["--replace", "-q"]].concat()));
        // Each step is recorded before it is carried out.
        let reached = || lines_below(Path::new(&state)) >= recorded + round || !process.is_running();
        assert!(eventually(LIMIT, reached), "round {round}");
        let completed = !process.is_running();
        drop(process);
        let back = || {
            let mut command = host.namespace.command(env!("CARGO_BIN_EXE_linerate"));
            command.args(["rollback", "--pending"]).env("LINERATE_STATE", &state);
            run(command, LIMIT).code() == Some(0) && tree() == before
        };
        // It may also complete between the question and the signal.
        if completed || !eventually(LIMIT, back) {
            host.shape(&["line0", "off"]).expect_code(0);
        }
        assert_eq!(tree(), before, "round {round}");
    }
}

#[test]
fn errors_name_the_remedy() {
    let host = Host::new();
    let said = |arguments: &[&str], words: &[&str]| {
        let finished = host.shape(arguments).expect_code(2);
        for word in words {
            assert!(finished.stderr.contains(word), "{arguments:?}: {}", finished.stderr);
        }
    };
    said(&["line0"], &["--up", "--find-rate", "--autorate"]);
    said(&["nowhere0", "--up", "1M"], &["nowhere0", "ip link"]);
    said(&["off", "line0"], &["linerate shape line0 off"]);
    said(&["line0", "stop"], &["off", "status", "persist"]);
    said(&["line0", "--up", "1M", "--back-end", "wred"], &["htb+fq_codel"]);
    said(&["line0", "--up", "1M", "--verify", "127.0.0.1", "--port", "1"], &["127.0.0.1"]);
    // Reasons of back ends that this kernel lacks would hide the user's own.
    let mistakes: [(&[&str], &[&str]); 3] = [
        (&["--class", "192.0.2.7=30M"], &["the class 192.0.2.7 has 30.0 Mbit/s", "--oversubscribe"]),
        (&["--class", "192.0.2.7=12M", "--class", "192.0.2.8=12M"], &["24.0 Mbit/s", "--oversubscribe"]),
        (&["--dualpi2", "step=2ms"], &["add --back-end htb+dualpi2"]),
    ];
    for (options, words) in mistakes {
        for action in [&[][..], &["--dry-run"], &["--script"]] {
            let refused = host.shape(&[&["line0", "--up", "20M"], options, action].concat()).expect_code(2).stderr;
            assert!(words.iter().all(|word| refused.contains(word)) && !refused.contains("cake"), "{refused}");
        }
        let persist = host.shape(&[&["line0", "persist", "--dry-run", "--up", "20M"], options].concat());
        assert!(persist.expect_code(2).stderr.contains(words[0]));
    }
    let nothing: Value = host.shape(&["status", "--json"]).expect_code(0).json();
    assert!(array(&nothing, "/shapers").is_empty());
}

const STORING: [&str; 8] = ["line0", "--up", "20M", "--down", "80M", "--store-dscp", "--interactive", "dscp/40"];

/// `--store-dscp` stores what `--restore-dscp` reads, in a table that `off` deletes.
#[test]
fn codepoints_of_sent_packets_are_stored_in_the_marks_of_their_connections() {
    let host = Host::new();
    host.program("nft", "add table inet others");
    let state = || (host.tree(), host.program("nft", "list ruleset"));
    let before = state();
    let planned = host.shape(&[&STORING[..], &["--dry-run", "-v"]].concat()).expect_code(0).stdout;
    assert!(planned.contains("nft create table inet linerate_dscp_line0"), "{planned}");
    let script = host.shape(&[&STORING[..], &["--script"]].concat()).expect_code(0).stdout;
    assert!(script.contains("nft delete table inet linerate_dscp_line0 2>/dev/null || :"), "{script}");
    assert_eq!(state(), before);

    host.shape(&STORING).expect_code(0);
    check_stored_marks(&host);
    let again = host.shape(&[&STORING[..], &["--json"]].concat()).expect_code(0).json();
    assert_eq!(text(&again, "/outcome"), "unchanged");
    host.program("nft", "delete table inet linerate_dscp_line0");
    let status = host.shape(&["line0", "status", "--json"]).json();
    assert!(text(&status, "/shapers/0/differences/0").contains("linerate_dscp_line0"), "{status}");
    host.shape(&STORING).expect_code(0);
    let without = host.shape(&["line0", "--up", "20M", "--down", "80M", "--json"]).expect_code(0).json();
    assert_eq!((text(&without, "/outcome"), host.program("nft", "list ruleset")), ("set_up", before.1.clone()));
    host.shape(&STORING).expect_code(0);
    host.shape(&["line0", "off"]).expect_code(0);
    assert_eq!(state(), before);
}

/// A datagram of each codepoint marks its connection, and another bit of the mark stays.
fn check_stored_marks(host: &Host) {
    host.program("ip", "address add 192.0.2.1/24 dev line0");
    host.program("ip", "neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev line0");
    for (codepoint, mark) in
        [("0x2e", 0xb900_0000_u32), ("0x08", 0x2100_0000), ("0x01", 0x0500_0000), ("0x28", 0xa100_0000)]
    {
        let set = format!(
            "table inet sender {{\n chain mark_sent {{\n type route hook output priority mangle; ip dscp set {codepoint} ct mark set 0x10\n }}\n \
             chain counted {{\n type filter hook postrouting priority 100; ct mark {:#x} counter\n }}\n}}\n",
            mark | 0x10
        );
        let set = host.state.file("set.nft", set);
        host.program("nft", &format!("-f {set}"));
        let datagram =
            host.namespace.command("bash").args(["-c", "echo > /dev/udp/192.0.2.2/9"]).output().expect("bash");
        assert!(datagram.status.success(), "{datagram:?}");
        let counted = host.program("nft", "list table inet sender");
        assert!(counted.contains("counter packets 1 "), "{codepoint}: {counted}");
        host.program("nft", "delete table inet sender");
    }
}

#[test]
fn a_table_of_the_same_name_is_refused_and_a_changed_one_left_alone() {
    let host = Host::new();
    let before = host.tree();
    host.program("nft", "add table inet linerate_dscp_line0");
    let refused = host.shape(&STORING).expect_code(2).stderr;
    assert!(refused.contains("nft delete table inet linerate_dscp_line0"), "{refused}");
    assert_eq!(
        (host.tree(), host.program("nft", "list tables")),
        (before, "table inet linerate_dscp_line0\n".to_owned())
    );
    host.program("nft", "delete table inet linerate_dscp_line0");

    host.shape(&STORING).expect_code(0);
    host.program("nft", "flush chain inet linerate_dscp_line0 store");
    let reported = host.shape(&["line0", "off"]);
    assert_ne!(reported.code(), Some(0), "{}", reported.stdout);
    assert_eq!(host.program("nft", "list tables"), "table inet linerate_dscp_line0\n");
}
