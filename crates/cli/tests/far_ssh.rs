//! Measurements of a host over ssh: a real sshd in a network namespace of its own, with keys, a home and a directory for
//! temporary files of its own. What a run may leave is looked for after each: processes, listening sockets, files.

use std::time::Duration;

use crate::support;
use crate::support::document::{array, number, text};
use crate::support::far_host::{FarHost, LIMIT, stripped};
use crate::support::process::{FinishedChild, eventually, run, send_signal};

/// Longest time until an error is reported, on a busy host: a blocked port is tried for 3 s, by the kernel alone for 67 s
/// (`tcp_syn_retries`).
const SOON: Duration = Duration::from_secs(60);

/// The three measurements, short, with the options of the session.
fn measure_all(host: &FarHost, options: &[&str]) {
    let with = |arguments: &[&str]| {
        let (command, more) = arguments.split_at(1);
        host.run(&[command, options, more].concat())
    };
    let test = with(&["test", "ssh:far", "-t", "1s", "-P", "1", "--json"]).expect_code(0);
    let whole = test.document();
    assert_eq!(text(&whole, "/host"), "ssh:far", "{whole:#}");
    let rates = array(&test.json(), "/runs").iter().map(|run| number(run, "/bits_per_second")).collect::<Vec<_>>();
    assert!(rates.len() == 2 && rates.iter().all(|rate| *rate > 1e6), "{rates:?}");
    host.assert_clean("test");
    let load = with(&["load", "ssh:far", "-t", "1s", "--idle", "1s", "--phases", "up", "--json"]).expect_code(0);
    assert_eq!(text(&load.json(), "/host"), "ssh:far");
    host.assert_clean("load");
    let diagnose = with(&["diagnose", "ssh:far", "--no-path", "--json", "--", "-t", "2"]);
    assert!(matches!(diagnose.code(), Some(0 | 1)), "{diagnose:#?}");
    assert_eq!(text(&diagnose.json(), "/host"), "ssh:far");
    host.assert_clean("diagnose");
}

#[test]
#[ignore = "needs root, sshd, ip and ss: a network namespace"]
fn linerate_is_found_there() {
    let host = FarHost::with_linerate("");
    measure_all(&host, &[]);
    // Text on a pipe: the host as given, no port that the next run would not have.
    let done = host.run(&["test", "ssh:far", "-t", "1s", "-P", "1", "--up"]).expect_code(0);
    assert!(done.stdout.starts_with("ssh:far · port "), "{}", done.stdout);
    assert!(!done.stdout.contains(" -p "), "{}", done.stdout);
    host.assert_clean("a text");
}

#[test]
#[ignore = "needs root, sshd, ip and ss: a network namespace"]
fn linerate_is_pushed_and_leaves_nothing() {
    let host = FarHost::new("");
    measure_all(&host, &[&format!("--push={}", stripped())]);
    // Without a file, the program itself is copied.
    let command = host.command(stripped(), &["test", "ssh:far", "--push", "-t", "1s", "-P", "1", "--up"]);
    let done = run(command, LIMIT).expect_code(0);
    assert!(done.stderr.contains("copying linerate (") && done.stdout.contains("ssh:far"), "{done:#?}");
    host.assert_clean("--push");
}

/// The other measuring commands start the session at the same point.
#[test]
#[ignore = "needs root, sshd, ip and ss: a network namespace"]
fn every_measuring_command_takes_the_host() {
    let host = FarHost::with_linerate("");
    for arguments in [
        &["path", "ssh:far", "--count", "20", "--no-capacity", "--json"][..],
        &["rfc6349", "ssh:far", "--time", "1s", "--no-windows", "--no-traffic-management", "--json"],
        &["rr", "ssh:far", "--udp", "--time", "1s", "--json"],
        &["tune", "ssh:far", "--dry-run", "--yes", "--json", "--", "-t", "2"],
        &["doctor", "ssh:far", "--dry-run", "--no-load", "--no-html", "--json", "--", "-t", "2"],
    ] {
        let done = host.run(arguments);
        assert!(matches!(done.code(), Some(0 | 1)), "{done:#?}");
        assert_eq!(text(&done.document(), "/host"), "ssh:far", "{arguments:?}");
        host.assert_clean(arguments[0]);
    }
}

#[test]
#[ignore = "needs root, sshd, ip and ss: a network namespace"]
fn kill_9_on_either_side_leaves_nothing() {
    let host = FarHost::new("");
    let push = format!("--push={}", stripped());
    let start = || {
        let near = host.start(&["test", "ssh:far", &push, "-t", "60s", "-P", "1", "--up"]);
        host.wait_for_server();
        near
    };
    // linerate here.
    let near = start();
    send_signal(near.id(), "KILL");
    host.assert_clean("kill -9 of linerate here");
    // ssh here, linerate there, and the end of the connection there: the measurement ends, with an error.
    for victim in ["/usr/bin/ssh -F", "/proc/self/fd/4 serve", "sshd: root@notty"] {
        let near = start();
        send_signal(host.wait_for_process(victim), "KILL");
        let done = near.finish(LIMIT);
        assert!(matches!(done.code(), Some(2 | 3)), "{victim}: {done:#?}");
        assert!(done.stderr.contains("linerate: "), "{victim}: {done:#?}");
        host.assert_clean(victim);
    }
}

/// The upload waits in the middle: there, too, nothing has a name any more.
#[test]
#[ignore = "needs root, sshd, ip and ss: a network namespace"]
fn kill_9_during_the_upload_leaves_nothing() {
    let host = FarHost::new("");
    // Blocks of zeros are written as usual; the program's bytes are read without an end.
    host.scratch.script("bin/head", "#!/bin/sh\ntest $# = 3 && exec /usr/bin/head \"$@\"\nexec cat -\n");
    let push = format!("--push={}", stripped());
    for victim in ["near", "cat -", "/bin/sh -c set -f"] {
        let near = host.start(&["test", "ssh:far", &push, "-t", "1s", "-P", "1", "--up"]);
        let receiving = host.wait_for_process("cat -");
        match victim {
            "near" => send_signal(near.id(), "KILL"),
            "cat -" => send_signal(receiving, "KILL"),
            other => send_signal(host.wait_for_process(other), "KILL"),
        }
        if victim != "near" {
            let done = near.finish(LIMIT).expect_code(2);
            assert!(done.stderr.contains("ssh:far: "), "{victim}: {done:#?}");
        }
        host.assert_clean(victim);
    }
}

#[test]
#[ignore = "needs root, sshd, ip and ss: a network namespace"]
fn banners_of_shells_are_skipped() {
    for (banner, compression) in [("echo Welcome; echo '{\"schema\":1}'", "yes"), ("printf 'Welcome {> '", "no")] {
        let host = FarHost::with_compression(compression, banner).and_linerate();
        for push in [None, Some(format!("--push={}", stripped()))] {
            let mut arguments = vec!["test", "ssh:far", "-t", "1s", "-P", "1", "--up", "--json"];
            arguments.extend(push.as_deref());
            let done = host.run(&arguments).expect_code(0);
            assert_eq!(text(&done.document(), "/host"), "ssh:far");
            host.assert_clean(banner);
        }
    }
}

/// Directories with these options of a `tmpfs` on the far host, in a mount namespace of each command.
fn mounted(directories: &[(&str, &str)]) -> String {
    let mount = |(directory, options): &(&str, &str)| format!("mount -t tmpfs -o {options} none {directory}; ");
    let mounts: String = directories.iter().map(mount).collect();
    format!("exec unshare -m sh -c '{mounts} exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"'")
}

#[test]
#[ignore = "needs root, sshd, ip and ss: a network namespace"]
fn a_directory_that_takes_programs_is_found() {
    let push = format!("--push={}", stripped());
    let arguments = ["test", "ssh:far", &push, "-t", "1s", "-P", "1", "--up"];
    for options in ["noexec", "size=1M"] {
        let host = FarHost::new(&mounted(&[("$TMPDIR", options)]));
        host.run(&arguments).expect_code(0);
        host.assert_clean(options);
    }
    let all = [("$TMPDIR", "noexec"), ("$HOME", "size=1M"), ("/var/tmp", "noexec"), ("/dev/shm", "ro")];
    let host = FarHost::new(&mounted(&all));
    let done = host.run(&arguments).expect_code(2);
    let tmp = host.scratch.path("tmp");
    for part in [
        "ssh:far: no directory there takes a program of",
        &format!("{tmp} is mounted noexec"),
        "/dev/shm cannot be written",
        "/home is full",
        "omit --push",
    ] {
        assert!(done.stderr.contains(part), "{part:?} is not in {}", done.stderr);
    }
    host.assert_clean("no directory");
}

/// Asserts that it fails with these texts, and leaves nothing.
fn assert_fails(host: &FarHost, arguments: &[&str], parts: &[&str]) -> FinishedChild {
    let done = host.run(arguments).expect_code(2);
    for part in parts {
        assert!(done.stderr.contains(part), "{part:?} is not in {}", done.stderr);
    }
    assert!(done.stdout.is_empty(), "{done:#?}");
    host.assert_clean(&done.line);
    done
}

/// Asserts that it fails so and soon.
fn assert_refused(host: &FarHost, arguments: &[&str], parts: &[&str]) -> FinishedChild {
    let done = assert_fails(host, arguments, parts);
    assert!(done.elapsed < SOON, "{done:#?}");
    done
}

#[test]
#[ignore = "needs root, sshd, ip and ss: a network namespace"]
fn errors_name_the_remedy() {
    let host = FarHost::new("");
    let push = format!("--push={}", stripped());
    let found = ["test", "ssh:far", "-t", "1s"];
    assert_refused(&host, &found, &["ssh:far: the connection is closed", "linerate: not found", "--push"]);
    let pushed = ["test", "ssh:far", &push, "-t", "1s"];
    for (system, part) in [("Linux aarch64", "processor is aarch64"), ("FreeBSD amd64", "the host runs FreeBSD")] {
        host.scratch.script("bin/uname", format!("#!/bin/sh\necho {system}\n"));
        assert_refused(&host, &pushed, &["ssh:far: the host", part]);
    }
    host.scratch.script("bin/uname", "#!/bin/sh\nexec /usr/bin/uname \"$@\"\n");
    // It arrives damaged: to copy it takes its time.
    host.scratch.script("bin/head", "#!/bin/sh\n/usr/bin/head \"$@\" | tr A B\n");
    assert_fails(&host, &pushed, &["the program arrived damaged and was not started"]);
    std::fs::remove_file(host.scratch.path("bin/head")).expect("written before");
    let script = host.scratch.script("script", "#!/bin/sh\necho no linerate\n");
    assert_refused(&host, &["test", "ssh:far", &format!("--push={script}")], &["it is no Linux program"]);
    assert_refused(&host, &["test", "127.0.0.1", "--push"], &["--push is for a host over ssh"]);
    assert_refused(&host, &["test", "ssh:far;x"], &["invalid address \"ssh:far;x\""]);
    host.trust("other_key");
    assert_refused(&host, &found, &["REMOTE HOST IDENTIFICATION HAS CHANGED", "find out why before you connect"]);
    host.scratch.file("known_hosts", "");
    assert_refused(&host, &found, &["Host key verification failed", "connect once manually"]);
    host.trust("host_key");
    host.scratch.file("authorized", "");
    assert_refused(&host, &found, &["Permission denied", "use a key or an ssh agent"]);
    let only = host.scratch.path("only");
    std::fs::create_dir(&only).expect("a directory");
    std::os::unix::fs::symlink("/usr/bin/nsenter", format!("{only}/nsenter")).expect("a link");
    let mut without_ssh = host.command(env!("CARGO_BIN_EXE_linerate"), &found);
    without_ssh.env("PATH", only);
    let done = run(without_ssh, LIMIT).expect_code(2);
    assert!(done.stderr.contains("ssh:far: ") && done.stderr.contains("not installed, or not in $PATH"), "{done:#?}");
}

#[test]
#[ignore = "needs root, sshd, ip, ss and nft: a firewall in a network namespace"]
fn a_blocked_port_is_an_error_within_seconds() {
    let host = FarHost::with_linerate("");
    let rules = "table inet filter {\n chain input {\n  type filter hook input priority 0; policy drop;\n  ct state \
                 established,related accept\n  tcp dport { 22, 5299 } accept\n  udp dport 5299 accept\n }\n}\n";
    let rules = host.scratch.file("rules.nft", rules);
    let done = host.namespace.command("nft").args(["-f", &rules]).status();
    assert!(done.is_ok_and(|status| status.success()), "not run: nft is needed");
    let arguments = ["test", "ssh:far", "-t", "1s", "-P", "1", "--up"];
    let parts = ["its linerate listens on port", "no connection from here reaches it", "127.0.0.1", "-p PORT"];
    let refused = assert_refused(&host, &arguments, &parts);
    assert!(refused.elapsed < Duration::from_secs(20), "{:?}", refused.elapsed);
    host.run(&[&arguments[..], &["-p", "5299"]].concat()).expect_code(0);
    host.assert_clean("a chosen port");
}

/// The server of a session serves who has its key.
#[test]
#[ignore = "needs root, sshd, ip and ss: a network namespace"]
fn other_clients_are_refused() {
    let host = FarHost::with_linerate("");
    let near = host.start(&["test", "ssh:far", "-t", "120s", "-P", "1", "--up", "--json"]);
    let port = host.wait_for_server().to_string();
    let stock = host.run(&["iperf3", "-c", "127.0.0.1", "-p", &port, "-t", "1"]).expect_code(1);
    assert!(stock.stderr.contains("the server is busy running a test"), "{stock:#?}");
    for command in [&["test", "127.0.0.1", "-p", &port, "-t", "1s"][..], &["path", "127.0.0.1", "-p", &port]] {
        let stranger = host.run(command);
        assert!(matches!(stranger.code(), Some(2 | 3)), "{stranger:#?}");
    }
    near.signal("INT");
    let done = near.finish(LIMIT).expect_code(3);
    assert_eq!(text(&done.document(), "/host"), "ssh:far");
    host.assert_clean("refused clients");
}

#[test]
#[ignore = "needs root, sshd, ip and ss: a network namespace"]
fn several_hosts_are_one_table() {
    let host = FarHost::with_linerate("");
    let mut server = host.namespace.command(env!("CARGO_BIN_EXE_linerate"));
    server.args(["serve", "-p", "5301", "--no-stamp"]);
    let server = support::Process::start(server);
    assert!(eventually(LIMIT, || server.stderr().contains("serves iperf3")), "{}", server.stderr());
    let hosts = ["test", "ssh:far", "127.0.0.1:5301", "127.0.0.1:9", "-t", "1s", "-P", "1", "--up"];
    let done = host.run(&hosts).expect_code(3);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(lines.len() == 4 && lines[0].starts_with("HOST"), "{}", done.stdout);
    assert!(lines[1].starts_with("ssh:far ") && lines[1].contains("bit/s"), "{}", done.stdout);
    assert!(lines[2].starts_with("127.0.0.1:5301 ") && lines[2].contains("bit/s"), "{}", done.stdout);
    assert!(lines[3].contains("failed") && done.stderr.contains("127.0.0.1:9: "), "{done:#?}");
    let done = host.run(&[&hosts[..], &["--json"]].concat()).expect_code(3);
    assert_eq!(done.stdout.lines().count(), 3, "{}", done.stdout);
    let documents = done.documents();
    let hosts: Vec<&str> = documents.iter().map(|document| text(document, "/host")).collect();
    assert_eq!(hosts, ["ssh:far", "127.0.0.1", "127.0.0.1"], "{}", done.stdout);
    let done = host.run(&["test", "lab:cable-bloat", "127.0.0.1"]).expect_code(2);
    assert!(done.stderr.contains("an emulated path is measured alone"), "{done:#?}");
    drop(server);
    host.assert_clean("several hosts");
}
