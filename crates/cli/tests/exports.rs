//! Exported files, checked by the linters and parsers of the tools that read them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use linerate_model::change::{
    ChangeGroup, ChangePlan, ChangeReason, ChangeTarget, DeviceAttribute, EffectTiming, HostChange, LinkAttribute,
};
use linerate_rules::export::{self, ExportHeading, HostPlan};
use linerate_units::WallTime;

use crate::support::process::run;
use crate::support::{FinishedChild, Scratch, namespace};

const LIMIT: Duration = Duration::from_secs(300);

fn change(target: ChangeTarget, to: &str) -> HostChange {
    let text = "the receive window of 6.29 MB limits each connection to 430 Mbit/s over this round trip of 117 ms";
    HostChange {
        target,
        from: None,
        to: to.to_owned(),
        group: ChangeGroup::Device,
        takes_effect: EffectTiming::Now,
        reason: ChangeReason { text: text.to_owned(), ..ChangeReason::default() },
    }
}

fn setting(key: &str, to: &str) -> HostChange {
    change(ChangeTarget::Setting { key: key.to_owned() }, to)
}

/// Two hosts; the first with every kind of target.
fn plans() -> [HostPlan; 2] {
    let interface = || "enp4s0f1np1".to_owned();
    let offload = |feature: &str| ChangeTarget::Offload { interface: interface(), feature: feature.to_owned() };
    let mut changes = vec![
        setting("net.ipv4.tcp_rmem", "4096 131072 67108864"),
        setting("net.ipv4.tcp_wmem", "4096 16384 67108864"),
        setting("net.core.rmem_max", "67108864"),
        change(ChangeTarget::Queueing { interface: interface() }, &"class add dev enp4s0f1np1 htb ".repeat(9)),
        change(ChangeTarget::Route { destination: "default".into() }, "via 192.0.2.1 initcwnd 30"),
        change(ChangeTarget::File { path: "/sys/class/net/enp4s0f1np1/queues/rx-0/rps_cpus".into() }, "ffff,ffffffff"),
        change(offload("rx-gro"), "on"),
        change(offload("tx-tcp-segmentation"), "off"),
    ];
    changes.extend(LinkAttribute::ALL.iter().zip(7100..).map(|(attribute, number)| {
        change(ChangeTarget::Link { interface: interface(), attribute: *attribute }, &number.to_string())
    }));
    changes.extend(DeviceAttribute::ALL.iter().zip(8200..).map(|(attribute, number)| {
        let to = if number < 8204 { number.to_string() } else { "off".to_owned() };
        change(ChangeTarget::Device { interface: interface(), attribute: *attribute }, &to)
    }));
    let far = vec![setting("net.ipv4.tcp_rmem", "4096 131072 33554432")];
    [("db-1.example.com", changes), ("2001:db8::7", far)].map(|(host, changes)| HostPlan {
        host: host.to_owned(),
        plan: ChangePlan { made_at: WallTime::from_unix(Duration::ZERO), changes },
    })
}

/// Names that a shell, a pattern, a file system or YAML would take for something else.
const ODD_HOSTS: [&str; 12] = [
    "web db",
    "web-db",
    "*",
    "all",
    "!web",
    "-rf",
    "it's \"x\"",
    "line\nbreak: {{ x }}",
    "büro",
    "fe80::1%eth0",
    "../etc",
    "$(reboot)",
];

/// Two settings that all formats of settings express, on each of these hosts.
fn plans_of_odd_hosts() -> Vec<HostPlan> {
    let plan = |host: &str| {
        let changes = vec![
            setting("net.ipv4.tcp_rmem", "4096 131072 67108864"),
            setting("net.ipv4.tcp_wmem", "4096 16384 67108864"),
        ];
        let plan = ChangePlan { made_at: WallTime::from_unix(Duration::ZERO), changes };
        HostPlan { host: host.to_owned(), plan }
    };
    ODD_HOSTS.map(plan).into()
}

/// Exports to this directory; returns the names of the files.
fn write(format: &str, directory: &Scratch) -> Vec<String> {
    write_plans(format, directory, &plans())
}

fn write_plans(format: &str, directory: &Scratch, plans: &[HostPlan]) -> Vec<String> {
    let heading = ExportHeading {
        linerate_version: "0.1.0".to_owned(),
        date: "2026-11-22 10:00 UTC".to_owned(),
        evidence: "measured to 2001:db8::7".to_owned(),
    };
    let files = export::format(format).expect("a format").export(plans, &heading).files;
    for file in &files {
        let path = directory.path(&file.name);
        std::fs::create_dir_all(Path::new(&path).parent().expect("a directory")).expect("a directory");
        std::fs::write(&path, &file.text).expect("a file");
    }
    files.into_iter().map(|file| file.name).collect()
}

#[track_caller]
fn assert_installed(program: &str) {
    let found = Command::new("sh").args(["-c", "command -v \"$1\"", "sh", program]).output().expect("a shell");
    let advice = "`packaging/prerequisites.sh test` installs what these tests need";
    assert!(found.status.success(), "not run: {program} is missing; {advice}");
}

/// Runs a linter in this directory.
fn lint(directory: &Scratch, program: &str, arguments: &[&str]) -> FinishedChild {
    assert_installed(program);
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory.path("")).env("HOME", directory.path("")).env("NO_COLOR", "1");
    // Nix writes there even when it only parses.
    command.env("NIX_STATE_DIR", directory.path("nix"));
    run(command, LIMIT)
}

/// Replaces a part of a file, so that its linter must object.
fn damage(directory: &Scratch, file: &str, from: &str, to: &str) {
    let path = directory.path(file);
    let text = std::fs::read_to_string(&path).expect("the file");
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replacen(from, to, 1)).expect("the file");
}

#[track_caller]
fn assert_silent(done: FinishedChild) {
    let done = done.expect_code(0);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
}

#[test]
fn ansible_accepts_the_playbook() {
    let directory = Scratch::new();
    assert_eq!(write("ansible", &directory), ["linerate.yml"]);
    std::fs::write(directory.path("hosts"), "db-1.example.com\n2001:db8::7\n").expect("an inventory");
    assert_silent(lint(&directory, "yamllint", &["linerate.yml"]));
    let listed = lint(&directory, "ansible-playbook", &["-i", "hosts", "--list-tasks", "--list-hosts", "linerate.yml"]);
    let listed = listed.expect_code(0).stdout;
    for part in ["db-1.example.com", "2001:db8::7", "Install /etc/sysctl.d/90-linerate.conf"] {
        assert!(listed.contains(part), "{part:?} is not in {listed}");
    }
    // It runs `ansible-playbook --syntax-check` too.
    lint(&directory, "ansible-lint", &["--offline", "--strict", "linerate.yml"]).expect_code(0);
    damage(&directory, "linerate.yml", "ansible.builtin.copy:", "ansible.builtin.copied:");
    lint(&directory, "ansible-playbook", &["-i", "hosts", "--syntax-check", "linerate.yml"]).expect_code(4);
}

/// Each play is for one host of the inventory, whatever the host's name is.
#[test]
fn ansible_takes_no_name_for_a_pattern() {
    let directory = Scratch::new();
    write_plans("ansible", &directory, &plans_of_odd_hosts());
    let text = std::fs::read_to_string(directory.path("linerate.yml")).expect("the playbook");
    let hosts: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("  hosts: \"")?.strip_suffix('"')).collect();
    assert_eq!(hosts.len(), ODD_HOSTS.len(), "{text}");
    std::fs::write(directory.path("hosts"), "innocent\nweb\ndb\n".to_owned() + &hosts.join("\n") + "\n")
        .expect("an inventory");
    assert_silent(lint(&directory, "yamllint", &["linerate.yml"]));
    let listed = lint(&directory, "ansible-playbook", &["-i", "hosts", "--list-hosts", "linerate.yml"]).expect_code(0);
    assert_eq!(listed.stdout.matches("hosts (1):").count(), ODD_HOSTS.len(), "{}", listed.stdout);
    assert!(!listed.stdout.contains("innocent"), "{}", listed.stdout);
    lint(&directory, "ansible-lint", &["--offline", "--strict", "linerate.yml"]).expect_code(0);
}

/// The files of each host, by the readers of all other formats.
#[test]
fn files_of_hosts_with_odd_names_are_accepted() {
    let (directory, plans) = (Scratch::new(), plans_of_odd_hosts());
    let one_each = |format: &str| {
        let files = write_plans(format, &directory, &plans);
        assert_eq!(files.len(), ODD_HOSTS.len(), "{files:?}");
        files
    };
    write_plans("kubernetes", &directory, &plans);
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/linters/venv/bin/kubernetes-validate");
    let accepted = lint(&directory, program, &["--strict", "-k", "1.32", "linerate-pods.yaml"]).expect_code(0).stdout;
    assert_eq!(accepted.matches("passed").count(), ODD_HOSTS.len(), "{accepted}");
    assert_silent(lint(&directory, "yamllint", &["linerate-pods.yaml"]));
    for file in one_each("sysctl.d") {
        let shown = lint(&directory, "sysctl", &["--dry-run", "-p", &file]);
        assert_eq!(shown.stdout.matches(" 67108864").count(), 2, "{file}: {shown:?}");
        assert!(!shown.stderr.contains("invalid syntax"), "{}", shown.stderr);
    }
    for file in one_each("docker") {
        assert_silent(lint(&directory, "shellcheck", &[&file]));
    }
    for file in one_each("nixos") {
        let parsed = lint(&directory, "nix-instantiate", &["--parse", &file]).expect_code(0).stdout;
        assert!(parsed.contains("\"net.ipv4.tcp_rmem\" = \"4096 131072 "), "{parsed}");
    }
    for file in one_each("tuned") {
        let read = "import configparser, sys; p = configparser.ConfigParser(interpolation=None); p.read(sys.argv[1]); \
                    print(p['sysctl']['net.ipv4.tcp_rmem'])";
        let shown = lint(&directory, "python3", &["-c", read, &file]).expect_code(0).stdout;
        assert_eq!(shown, "4096 131072 67108864\n");
    }
}

#[test]
fn kubernetes_accepts_the_manifest() {
    let directory = Scratch::new();
    assert_eq!(write("kubernetes", &directory), ["linerate-pods.yaml"]);
    assert_silent(lint(&directory, "yamllint", &["linerate-pods.yaml"]));
    // In its own environment: distributions have no package of it.
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/linters/venv/bin/kubernetes-validate");
    let arguments = ["--strict", "-k", "1.32", "linerate-pods.yaml"];
    let accepted = lint(&directory, program, &arguments).expect_code(0).stdout;
    assert_eq!(accepted.matches("passed").count(), 2, "{accepted}");
    damage(&directory, "linerate-pods.yaml", "sysctls:", "sysctl:");
    assert_ne!(lint(&directory, program, &arguments).status.code(), Some(0));
}

#[test]
fn sysctl_accepts_the_settings() {
    let directory = Scratch::new();
    for file in write("sysctl.d", &directory) {
        let shown = lint(&directory, "sysctl", &["--dry-run", "-p", &file]);
        assert!(shown.stdout.contains("net.ipv4.tcp_rmem = 4096 131072 "), "{}", shown.stdout);
        assert!(!shown.stderr.contains("invalid syntax"), "{}", shown.stderr);
        damage(&directory, &file, " = 4096", " 4096");
        let refused = lint(&directory, "sysctl", &["--dry-run", "-p", &file]);
        assert!(refused.stderr.contains("invalid syntax"), "{refused:#?}");
    }
}

/// udev names keys and values that it does not know.
#[test]
fn udev_accepts_the_link_file() {
    let directory = Scratch::new();
    let [file] = &write("systemd-link", &directory)[..] else { panic!("one file") };
    let script =
        "mount --bind \"$1\" /etc/systemd/network && exec udevadm test-builtin net_setup_link /sys/class/net/lo";
    let (options, files) = (namespace::unshare("m"), directory.path("db-1.example.com/etc/systemd/network"));
    let check = || {
        let arguments = [&options, "sh", "-c", script, "sh", &files];
        assert_installed("udevadm");
        let mut command = Command::new("unshare");
        command.args(arguments).env("SYSTEMD_LOG_LEVEL", "debug");
        run(command, LIMIT)
    };
    let name = Path::new(file).file_name().and_then(|name| name.to_str()).expect("a name");
    let objections =
        |done: &FinishedChild| done.stderr.lines().filter(|line| line.contains(&format!("{name}:"))).count();
    let parsed = check();
    assert!(
        parsed.stderr.contains(&format!("Parsed configuration file \"/etc/systemd/network/{name}\"")),
        "{parsed:#?}"
    );
    assert_eq!(objections(&parsed), 0, "{}", parsed.stderr);
    damage(&directory, file, "MTUBytes=", "MTU=");
    assert_eq!(objections(&check()), 1);
}

#[test]
fn nix_parses_the_module() {
    let directory = Scratch::new();
    for file in write("nixos", &directory) {
        let parsed = lint(&directory, "nix-instantiate", &["--parse", &file]).expect_code(0).stdout;
        assert!(parsed.contains("\"net.ipv4.tcp_rmem\" = \"4096 131072 "), "{parsed}");
        damage(&directory, &file, "\";", "\"");
        lint(&directory, "nix-instantiate", &["--parse", &file]).expect_code(1);
    }
}

/// The scripts call their programs with the settings as arguments.
#[test]
fn shells_accept_the_scripts() {
    let directory = Scratch::new();
    let bin = directory.path("bin");
    std::fs::create_dir(&bin).expect("a directory");
    let recorder =
        "#!/bin/sh\nfor argument; do printf '<%s>' \"$argument\" >> calls; done\necho >> calls\necho Wired 1\n";
    for program in ["docker", "nmcli"] {
        std::fs::write(format!("{bin}/{program}"), recorder).expect("a program");
        run(
            {
                let mut command = Command::new("chmod");
                command.arg("755").arg(format!("{bin}/{program}"));
                command
            },
            LIMIT,
        )
        .expect_code(0);
    }
    for (format, expected) in [
        (
            "docker",
            "<run><--sysctl><net.ipv4.tcp_rmem=4096 131072 67108864><--sysctl><net.ipv4.tcp_wmem=4096 16384 67108864><IMAGE>",
        ),
        ("network-manager", "<connection><modify><Wired 1><802-3-ethernet.mtu><7100>"),
    ] {
        for (number, file) in write(format, &directory).iter().enumerate() {
            assert_silent(lint(&directory, "shellcheck", &[file]));
            let mut command = Command::new("sh");
            command.args([file, "IMAGE"]).current_dir(directory.path(""));
            command.env("PATH", format!("{bin}:{}", std::env::var("PATH").expect("a PATH")));
            run(command, LIMIT).expect_code(0);
            let calls = std::fs::read_to_string(directory.path("calls")).expect("calls");
            assert!(number > 0 || calls.lines().any(|line| line == expected), "{expected} is not in {calls}");
        }
    }
}
