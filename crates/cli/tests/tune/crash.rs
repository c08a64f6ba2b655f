//! State of both hosts and of the record after `linerate tune` is disturbed.

use super::guest::{FAR, FAR_SMALL, Limit, NEAR, run};

const NOTHING_CHANGED: &str = "linerate has made no changes on this host";

/// Both hosts have pending changes at that time, and only their watchdogs are left.
#[test]
fn a_killed_run_is_rolled_back_on_both_hosts() {
    let said = run(Limit::Both, "try; kill -9 $process; left");
    let (tried, before) = (said.value("tried"), said.value("before"));
    let changed = tried.split(';').zip(before.split(';')).filter(|(tried, before)| tried != before).count();
    assert_eq!(changed, 2, "{}", said.whole());
    said.assert_restored()
        .assert_contains("near", &["rolled back", "net.ipv4.tcp_wmem (rolled back)", "its process had ended"]);
    said.assert_contains("far", &["rolled back", "net.ipv4.tcp_rmem (rolled back)"]);
}

fn signal(name: &str) {
    let said = run(Limit::Both, &format!("try; kill -{name} $process; wait $process; echo \"code: $?\"; left"));
    assert_eq!(said.value("code"), "3", "{}", said.whole());
    said.assert_restored()
        .assert_contains("errors", &["interrupted"])
        .assert_contains("output", &["[aborted]", "rolled back"]);
    said.assert_contains("near", &["rolled back"]).assert_contains("far", &["rolled back"]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_lost_terminal_rolls_everything_back() {
    signal("HUP");
}

#[test]
fn an_interrupted_run_rolls_everything_back() {
    signal("INT");
}

#[test]
fn a_far_host_that_dies_ends_the_run() {
    let script = r#"try
        agent=$(sed -n 's/.*"process":\([0-9]*\).*/\1/p' state/netns-far/changes/1/journal | head -n 1)
        kill -9 $agent; wait $process; echo "code: $?"; left"#;
    let said = run(Limit::Both, script);
    assert_eq!(said.value("code"), "3", "{}", said.whole());
    said.assert_restored().assert_contains("errors", &["netns:far: ", "SIGKILL", "rolls its changes back"]);
    said.assert_contains("near", &["rolled back"]).assert_contains("far", &["rolled back", "its process had ended"]);
}

#[test]
fn a_concurrent_foreign_change_stays() {
    let theirs = "4096 131072 5000000";
    let said = run(
        Limit::Both,
        &format!(
            "try; far sh -c 'echo {theirs} > /proc/sys/net/ipv4/tcp_rmem'; wait $process; echo \"code: $?\"
             both > now; echo \"at once: $(one_line now)\"; left"
        ),
    );
    assert_eq!(said.value("code"), "3", "{}", said.whole());
    let near = said.value("before").split(';').next().expect("two of them");
    assert_eq!(said.value("at once"), format!("{near};{theirs}"), "{}", said.whole());
    assert_eq!(said.value("after"), said.value("at once"), "later neither");
    let left = format!("{FAR}: left alone: another program has changed it since, to \"{theirs}\"");
    said.assert_contains("errors", &[&left])
        .assert_contains("near", &["rolled back"])
        .assert_contains("far", &["partly rolled back", "left alone"]);
}

#[test]
fn a_full_disk_is_found_before_anything_is_written() {
    let script = r#"mount -t tmpfs -o size=16k none "$LINERATE_STATE"
        dd if=/dev/zero of="$LINERATE_STATE/much" 2> /dev/null
        tune; echo "code: $?"; left"#;
    let said = run(Limit::Both, script);
    assert!(["2", "3"].contains(&said.value("code")), "{}", said.whole());
    said.assert_restored()
        .assert_contains("errors", &["writing the journal", "No space left on device", "free some space"]);
    said.assert_contains("near", &[NOTHING_CHANGED]).assert_contains("far", &[NOTHING_CHANGED]);
}

/// Unwritable settings are not proposed, and the plan lists the right values.
#[test]
fn settings_on_a_read_only_mount_are_left_alone() {
    let script = r#"unshare -m sh -c 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec "$@"' \
        sh "$L" tune far --far netns:far --yes --verbose -- -t 5 -C cubic > out 2> err; echo "code: $?"; left"#;
    let said = run(Limit::Far, script);
    said.assert_restored().assert_contains("output", &[FAR, "is needed", "mounted read-only"]);
    said.assert_contains("near", &[NOTHING_CHANGED]).assert_contains("far", &[NOTHING_CHANGED]);
    assert!(said.value("after").ends_with(FAR_SMALL), "{}", said.whole());
}

/// Measuring needs no privilege; changing does, and the error names it.
#[test]
fn an_ordinary_user_gets_the_required_privileges() {
    // The program may be in a directory that only its owner can read.
    let script = r#"touch program; mount --bind "$L" program
        user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
        user "$D/program" tune far --yes -- -t 5 -C cubic > out 2> err; echo "code: $?"
        user "$D/program" tune far --far netns:far --yes > more 2>&1; echo "both: $?"; echo '== both'; cat more
        left"#;
    let said = run(Limit::Near, script);
    assert_eq!((said.value("code"), said.value("both")), ("4", "4"), "{}", said.whole());
    said.assert_restored()
        .assert_contains("errors", &[NEAR, "Permission denied", "needs root", "sudo"])
        .assert_contains("both", &["need root"]);
}
