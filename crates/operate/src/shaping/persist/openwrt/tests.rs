//! Files of `OpenWrt`, and their scripts in `BusyBox`'s shell.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::super::tests::{HostDirectory, LONG, carry_out};
use super::super::{PersistencePlan, PersistencePlan as Plan};
use super::*;

const DIRECTORIES: [&str; 5] = ["etc/config", "etc/rc.d", "var/run", "sys/class/net/eth0", "sys/class/net/eth1"];

/// A host with `OpenWrt`, whose commands leave lines in `record`.
fn openwrt() -> HostDirectory {
    let root = HostDirectory::with(&DIRECTORIES);
    write(&root, "etc/rc.common", "");
    write(&root, "emulation.sh", include_str!("emulation.sh"));
    let program = "#!/bin/sh\n{ printf run; printf ' [%s]' \"$@\"; echo; } >> HERE/record\n";
    write(&root, "linerate's", &program.replace("HERE", &root.0.display().to_string()));
    fs::set_permissions(root.0.join("linerate's"), fs::Permissions::from_mode(0o755)).expect("own file");
    root
}

fn write(root: &HostDirectory, path: &str, contents: &str) {
    fs::write(root.0.join(path), contents).expect("written");
}

fn read(root: &HostDirectory, path: &str) -> String {
    fs::read_to_string(root.0.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn wish(root: &HostDirectory, text: &str) -> PersistRequest {
    let program = root.0.join("linerate's").display().to_string();
    let (words, autorate) = text.split_once(" | ").unwrap_or((text, ""));
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let autorate: Vec<String> = autorate.split_whitespace().map(str::to_owned).collect();
    PersistRequest::following(&words[0].clone(), &words, &autorate, &program).expect("a request")
}

fn persist(root: &HostDirectory, wish: &PersistRequest) -> Vec<String> {
    let place = root.place(None);
    let plan = Plan::to_persist(&place, wish, None).expect("a plan");
    let (done, commands) = carry_out(&plan, &place);
    done.expect("done");
    commands
}

fn unpersist(root: &HostDirectory, device: &str) -> (Vec<String>, Vec<String>) {
    let place = root.place(None);
    let wish = PersistRequest::to_forget(device).expect("a name");
    let plan = Plan::to_unpersist(&place, &wish).expect("a plan");
    let (done, commands) = carry_out(&plan, &place);
    done.expect("done");
    (commands, plan.notes)
}

/// Runs a script of the host in `BusyBox`'s shell, below the directory, and returns the lines that it left.
fn ash(root: &HostDirectory, path: &str, arguments: &[&str], variables: &[&str]) -> Vec<String> {
    let _ = fs::remove_file(root.0.join("record"));
    let here = root.0.display().to_string();
    let mut text = read(root, path);
    for name in ["/sys/class/net", "/var/run/", "/etc/init.d/"] {
        text = text.replace(name, &format!("{here}{name}"));
    }
    for name in [". /lib/functions/network.sh", ". /lib/functions.sh"] {
        text = text.replace(name, ":");
    }
    write(root, "script", &text);
    if path != &INIT[1..] && root.0.join(&INIT[1..]).exists() {
        let text = "#!/bin/sh\necho \"init $*\" >> @/record\n[ \"$1\" != enabled ] || [ -e @/etc/rc.d/S95linerate ]\n";
        write(root, &INIT[1..], &text.replace('@', &here));
    }
    let variable = format!("ROOT={here}");
    let (script, emulation) = (format!("{here}/script"), format!("{here}/emulation.sh"));
    let mut words = vec![variable.as_str()];
    words.extend(variables);
    words.extend(["busybox", "ash", &emulation, &script]);
    words.extend(arguments);
    let output = linerate_sys::command::run("env", &words, None, LONG).expect("busybox is installed");
    assert!(output.stderr_text().is_empty(), "{path} {arguments:?}: {}", output.stderr_text());
    fs::read_to_string(root.0.join("record")).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn init(root: &HostDirectory, arguments: &[&str]) -> Vec<String> {
    ash(root, &INIT[1..], arguments, &[])
}

const FIXED: &str = "eth0 --up 20M --down 1.5G --interactive tcp/22 --nat";

#[test]
fn files_and_commands_of_a_shaper() {
    let root = openwrt();
    let commands = persist(&root, &wish(&root, FIXED));
    assert_eq!(commands, ["/etc/init.d/linerate enable", "/etc/init.d/linerate start eth0"]);
    let config = read(&root, "etc/config/linerate");
    let lines: Vec<&str> = config.lines().filter(|line| !line.starts_with('#')).map(str::trim).collect();
    assert_eq!(
        lines[1..lines.len() - 1],
        [
            "config shaper 'eth0'",
            "option enabled '1'",
            "option device 'eth0'",
            "option up '20M'",
            "option down '1.5G'",
            "list options '--interactive tcp/22'",
            "list options '--nat'",
        ]
    );
    let files = root.files();
    assert!(files[INIT].0.starts_with("#!/bin/sh /etc/rc.common\n") && files[INIT].1, "procd runs it");
    assert!(!files[HOTPLUG].1 && !files[CONFIG].1);
    persist(&root, &wish(&root, FIXED));
    assert_eq!(root.files(), files, "equal requests produce equal files");
    let (commands, _) = unpersist(&root, "eth0");
    assert_eq!(commands, ["/etc/init.d/linerate disable", "/etc/init.d/linerate release"]);
    assert_eq!(root.paths().iter().filter(|path| path.contains("linerate") && path.starts_with("/etc")).count(), 0);
    assert_eq!(unpersist(&root, "eth0"), (Vec::new(), Vec::new()), "nothing left to do is no error");
}

#[test]
fn interfaces_share_the_files_until_the_last_one() {
    let root = openwrt();
    persist(&root, &wish(&root, FIXED));
    let alone = root.files();
    persist(&root, &wish(&root, "br-lan --up 1M"));
    assert!(read(&root, "etc/config/linerate").contains("\n\nconfig shaper 'br_2dlan'\n"));
    persist(&root, &wish(&root, "eth0 --up 3M"));
    assert!(read(&root, "etc/config/linerate").contains("option up '3M'"), "a new request replaces its own section");
    persist(&root, &wish(&root, FIXED));
    let (commands, _) = unpersist(&root, "br-lan");
    assert_eq!(commands, ["/etc/init.d/linerate release br_2dlan"]);
    assert_eq!(root.files()[INIT], alone[INIT]);
    assert_eq!(read(&root, "etc/config/linerate").trim_end(), alone[CONFIG].0.trim_end());
}

/// Sections, comments and edits of the user are neither overwritten nor removed.
#[test]
fn nothing_of_the_user_s_is_lost() {
    let root = openwrt();
    let own = "# mine\nconfig shaper 'guest' # a remark\n\toption device 'eth1'\n\toption note 'it'\\''s mine'";
    write(&root, "etc/config/linerate", own);
    persist(&root, &wish(&root, FIXED));
    let config = read(&root, "etc/config/linerate");
    assert!(config.starts_with(&format!("{own}\n\nconfig shaper 'eth0'\n")), "{config}");
    let place = root.place(None);
    let refused = Plan::to_persist(&place, &wish(&root, "eth1 --up 1M"), None).expect_err("it is the user's");
    assert!(refused.text.contains("'guest'") && refused.advice.is_some_and(|advice| advice.contains("uci delete")));

    // Switched off is no edit; another rate is one.
    let off = config.replace("enabled '1'", "enabled '0'");
    write(&root, "etc/config/linerate", &off);
    persist(&root, &wish(&root, FIXED));
    assert_eq!(read(&root, "etc/config/linerate"), config);
    let edited = config.replace("up '20M'", "up '19M'");
    write(&root, "etc/config/linerate", &edited);
    assert!(Plan::to_persist(&place, &wish(&root, FIXED), None).is_err());
    assert_eq!(read(&root, "etc/config/linerate"), edited);
    persist(&root, &wish(&root, "eth0 --up 19M --down 1.5G --interactive tcp/22 --nat"));
    write(&root, "etc/config/linerate", &edited);

    let (commands, notes) = unpersist(&root, "eth0");
    assert_eq!(commands, ["/etc/init.d/linerate release eth0"], "the user's other section uses the scripts");
    assert!(notes.iter().any(|note| note.contains("switched off")), "{notes:?}");
    let left = read(&root, "etc/config/linerate");
    assert_eq!(left, edited.replace("enabled '1'", "enabled '0'"));
    assert_eq!(init(&root, &["start"]).iter().filter(|line| line.starts_with("run [shape] [eth0]")).count(), 0);
    assert_eq!(unpersist(&root, "eth0").0, Vec::<String>::new(), "once");
}

#[test]
fn foreign_scripts_and_unreadable_files_are_not_changed() {
    for (path, contents) in [
        ("etc/init.d/linerate", "#!/bin/sh /etc/rc.common\nSTART=1\n"),
        ("etc/config/linerate", "config shaper 'eth0\n"),
    ] {
        let root = openwrt();
        fs::create_dir_all(root.0.join("etc/init.d")).expect("created");
        write(&root, path, contents);
        let before = root.files();
        let error = PersistencePlan::to_persist(&root.place(None), &wish(&root, FIXED), None).expect_err(path);
        assert!(error.text.contains(path) && error.text.contains("nothing was changed"), "{}", error.text);
        assert_eq!(root.files(), before);
    }
}

#[test]
fn a_failed_command_restores_the_files_of_openwrt() {
    for failing in ["enable", "start", "disable", "release"] {
        let root = openwrt();
        let is_removal = matches!(failing, "disable" | "release");
        if is_removal {
            persist(&root, &wish(&root, FIXED));
        }
        let (before, place) = (root.files(), root.place(None));
        let plan = if is_removal {
            Plan::to_unpersist(&place, &wish(&root, FIXED))
        } else {
            Plan::to_persist(&place, &wish(&root, FIXED), None)
        };
        let plan = plan.expect("a plan");
        let mut commands = Vec::new();
        let done = plan.changes.carry_out(&place, &plan.files, &mut |command| {
            commands.push(command[1].clone());
            let refused = linerate_sys::Error::Cancelled { operation: "init".to_owned() };
            if command[1] == failing { Err(refused) } else { Ok(()) }
        });
        assert!(done.is_err_and(|error| error.text.ends_with("nothing was changed")), "{failing}");
        assert_eq!(root.files(), before, "{failing}");
        assert_eq!(
            commands.last().map(String::as_str),
            Some(if is_removal { "enable" } else { "disable" }),
            "{failing}"
        );
    }
}

#[test]
fn a_fixed_shaper_is_set_up_once_and_removed() {
    let root = openwrt();
    let odd = ["eth0", "--up", "20M", "--classes", "/etc/my \"classes'  of $HOME.csv", "--nat"].map(str::to_owned);
    let program = root.0.join("linerate's").display().to_string();
    persist(&root, &PersistRequest::new("eth0", &odd, &program).expect("a request"));
    let expected =
        "run [shape] [eth0] [--up] [20M] [--classes] [/etc/my \"classes'  of $HOME.csv] [--nat] [--replace] [--quiet]";
    assert_eq!(init(&root, &["start"]), [expected, "trigger config linerate"]);
    assert_eq!(init(&root, &["start", "eth1"]), ["trigger config linerate"], "another section");
    assert_eq!(init(&root, &["reload"]), [expected, "trigger config linerate"], "it is set up as now configured");
    assert_eq!(init(&root, &["stop"]), ["kill linerate eth0", "run [shape] [eth0] [off] [--quiet]"]);
    assert_eq!(init(&root, &["stop"]), Vec::<String>::new(), "nothing is in effect");
}

#[test]
fn automatic_rates_are_a_process_of_procd() {
    let root = openwrt();
    persist(&root, &wish(&root, "wwan0 --variable | --autorate --min-up 1000 --reflector linerate:far:5201"));
    let config = read(&root, "etc/config/linerate");
    assert!(config.contains("option autorate '1'") && config.contains("list options '--reflector linerate:far:5201'"));
    let program = root.0.join("linerate's").display().to_string();
    let command = format!(
        "command [{program}] [shape] [wwan0] [--variable] [--min-up] [1000] [--reflector] [linerate:far:5201] [--replace] \
         [--autorate]"
    );
    let started = [
        "instance wwan0",
        &command,
        "respawn [3600] [10] [30]",
        "netdev [wwan0]",
        "stderr [1]",
        "instance complete",
        "trigger config linerate",
    ];
    assert_eq!(init(&root, &["start"]), started);
    // The processes end first: they would set the shaper up again.
    assert_eq!(init(&root, &["stop"]), ["kill linerate wwan0", "run [shape] [wwan0] [off] [--quiet]"]);
    init(&root, &["start"]);
    assert_eq!(init(&root, &["release", "wwan0"]), ["kill linerate wwan0"]);
    assert_eq!(init(&root, &["stop"]), Vec::<String>::new(), "the shaper stays active");
}

#[test]
fn sections_written_by_hand_follow_their_options() {
    let root = openwrt();
    persist(&root, &wish(&root, FIXED));
    let section = |text: &str| write(&root, "etc/config/linerate", &format!("config shaper 'a'\n{text}"));
    section("\toption device 'eth0'\n\toption enabled '0'\n\toption up '1M'\n");
    assert_eq!(init(&root, &["start"]), ["trigger config linerate"], "switched off");
    section("\toption interface 'wan'\n\toption up '1M'\n\toption follow '1'\n");
    let started = init(&root, &["start"]);
    assert!(started[1].ends_with("[shape] [pppoe-wan] [--up] [1M] [--replace] [--follow]"), "{started:?}");
    assert_eq!(started.last().map(String::as_str), Some("trigger interface wan"));
    section("\toption interface 'away'\n\toption up '1M'\n");
    assert_eq!(
        init(&root, &["reload"]),
        [
            "kill linerate a",
            "run [shape] [pppoe-wan] [off] [--quiet]",
            "trigger config linerate",
            "trigger interface away"
        ],
        "its interface is down"
    );
    section("\toption device 'eth0'\n\toption up '1M'\n");
    init(&root, &["start"]);
    section("\toption device 'eth1'\n\toption up '1M'\n");
    assert_eq!(
        init(&root, &["reload"])[..3],
        [
            "kill linerate a",
            "run [shape] [eth0] [off] [--quiet]",
            "run [shape] [eth1] [--up] [1M] [--replace] [--quiet]",
        ]
    );
    write(&root, "etc/config/linerate", "");
    assert_eq!(init(&root, &["reload"])[..2], ["kill linerate a", "run [shape] [eth1] [off] [--quiet]"], "deleted");
    section("\toption device 'eth7'\n\toption up '1M'\n");
    assert_eq!(init(&root, &["start"]), ["trigger config linerate"], "no such interface yet");
}

#[test]
fn only_events_of_its_interface_set_a_shaper_up() {
    let root = openwrt();
    persist(&root, &wish(&root, FIXED));
    let text = read(&root, "etc/config/linerate");
    write(&root, "etc/config/linerate", &format!("{text}\nconfig shaper 'b'\n\toption interface 'wan'\n"));
    write(&root, "etc/rc.d/S95linerate", "");
    let event = |action: &str, interface: &str, device: &str| {
        let variables = [format!("ACTION={action}"), format!("INTERFACE={interface}"), format!("DEVICE={device}")];
        let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
        let lines = ash(&root, &HOTPLUG[1..], &[":"], &variables);
        lines.into_iter().filter(|line| line != "init enabled").collect::<Vec<_>>()
    };
    assert_eq!(event("ifup", "lan", "eth0"), ["init start eth0"]);
    assert_eq!(event("ifup", "wan", "pppoe-wan"), ["init start b"]);
    assert_eq!(event("ifup", "lan", "eth3"), Vec::<String>::new(), "an unrelated interface");
    assert_eq!(event("ifup", "loopback", ""), Vec::<String>::new());
    assert_eq!(event("ifdown", "wan", "eth0"), Vec::<String>::new());
    assert_eq!(event("ifup-failed", "wan", "eth0"), Vec::<String>::new());
    fs::remove_file(root.0.join("etc/rc.d/S95linerate")).expect("there");
    assert_eq!(event("ifup", "lan", "eth0"), Vec::<String>::new(), "the service is not enabled");
}

#[test]
fn openwrt_is_detected_and_its_pppd_is_its_own() {
    let wish = PersistRequest::new("pppoe-wan", &["pppoe-wan", "--up", "1M"].map(str::to_owned), "/usr/bin/linerate");
    let wish = wish.expect("a request");
    let chosen = |root: &HostDirectory| -> Vec<&str> {
        let chosen = super::super::managers::choose(&root.place(None), &wish, None).expect("a manager");
        chosen.iter().map(|(manager, _)| manager.id.name()).collect()
    };
    let root = HostDirectory::with(&["etc/ppp/ip-up.d", "etc/config"]);
    assert_eq!(chosen(&root), ["ppp"]);
    write(&root, "etc/openwrt_release", "");
    assert_eq!(chosen(&root), ["openwrt"]);
    assert_eq!(section::section_name("pppoe-wan"), "pppoe_2dwan");
}
