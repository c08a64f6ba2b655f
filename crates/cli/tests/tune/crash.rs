//! What is left of `linerate tune` when something comes between: both hosts as they were, and a record that says so.

use super::guest::{FAR, FAR_SMALL, Limit, NEAR, run};

const NOTHING_CHANGED: &str = "linerate has changed nothing on this host";

/// Both hosts are being changed at that time: neither has anybody left but its watchdog.
#[test]
fn a_killed_one_is_taken_back_at_both_ends() {
    let said = run(Limit::Both, "try; kill -9 $process; left");
    let (tried, before) = (said.value("tried"), said.value("before"));
    let changed = tried.split(';').zip(before.split(';')).filter(|(tried, before)| tried != before).count();
    assert_eq!(changed, 2, "{}", said.whole());
    said.is_back().says("near", &["rolled back", "net.ipv4.tcp_wmem (back)", "the process that tried it was gone"]);
    said.says("far", &["rolled back", "net.ipv4.tcp_rmem (back)"]);
}

fn signal(name: &str) {
    let said = run(Limit::Both, &format!("try; kill -{name} $process; wait $process; echo \"code: $?\"; left"));
    assert_eq!(said.value("code"), "3", "{}", said.whole());
    said.is_back().says("errors", &["broken off"]).says("output", &["[broken off]", "taken back"]);
    said.says("near", &["rolled back"]).says("far", &["rolled back"]);
}

#[test]
fn a_lost_terminal_takes_everything_back() {
    signal("HUP");
}

#[test]
fn an_interrupted_one_takes_everything_back() {
    signal("INT");
}

#[test]
fn a_far_end_that_dies_ends_it() {
    let script = r#"try
        agent=$(sed -n 's/.*"process":\([0-9]*\).*/\1/p' state/netns-far/changes/1/journal | head -n 1)
        kill -9 $agent; wait $process; echo "code: $?"; left"#;
    let said = run(Limit::Both, script);
    assert_eq!(said.value("code"), "3", "{}", said.whole());
    said.is_back().says("errors", &["netns:far: ", "SIGKILL", "takes its changes back by itself"]);
    said.says("near", &["rolled back"]).says("far", &["rolled back", "the process that tried it was gone"]);
}

#[test]
fn what_another_writer_sets_meanwhile_stays() {
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
    let left = format!("{FAR}: left alone: somebody else has changed it since, to \"{theirs}\"");
    said.says("errors", &[&left]).says("near", &["rolled back"]).says("far", &["partly rolled back", "left alone"]);
}

#[test]
fn a_full_disk_is_found_before_anything_is_written() {
    let script = r#"mount -t tmpfs -o size=16k none "$LINERATE_STATE"
        dd if=/dev/zero of="$LINERATE_STATE/much" 2> /dev/null
        tune; echo "code: $?"; left"#;
    let said = run(Limit::Both, script);
    assert!(["2", "3"].contains(&said.value("code")), "{}", said.whole());
    said.is_back().says("errors", &["writing the journal", "No space left on device", "make room"]);
    said.says("near", &[NOTHING_CHANGED]).says("far", &[NOTHING_CHANGED]);
}

/// What cannot be written is not proposed, and the plan says what would be right.
#[test]
fn settings_that_are_mounted_read_only_are_left_alone() {
    let script = r#"unshare -m sh -c 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec "$@"' \
        sh "$L" tune far --far netns:far --yes -- -t 5 -C cubic > out 2> err; echo "code: $?"; left"#;
    let said = run(Limit::Far, script);
    said.is_back().says("output", &[FAR, "would be right", "mounted read-only"]);
    said.says("near", &[NOTHING_CHANGED]).says("far", &[NOTHING_CHANGED]);
    assert!(said.value("after").ends_with(FAR_SMALL), "{}", said.whole());
}

/// Measuring needs no privilege; changing does, and says which.
#[test]
fn an_ordinary_user_is_told_what_it_takes() {
    // The program may lie where nobody but its owner may look.
    let script = r#"touch program; mount --bind "$L" program
        user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
        user "$D/program" tune far --yes -- -t 5 -C cubic > out 2> err; echo "code: $?"
        user "$D/program" tune far --far netns:far --yes > more 2>&1; echo "both: $?"; echo '== both'; cat more
        left"#;
    let said = run(Limit::Near, script);
    assert_eq!((said.value("code"), said.value("both")), ("4", "4"), "{}", said.whole());
    said.is_back().says("errors", &[NEAR, "Permission denied", "needs root", "sudo"]).says("both", &["need root"]);
}
