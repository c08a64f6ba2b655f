//! `linerate tune ssh:HOST`: the far host is measured and changed over the user's ssh, with an sshd in the guest.

use super::guest::{FAR_SMALL, Limit, run};

/// Starts sshd on the far host, and makes `ssh` one with a configuration and keys of its own, which notes its process.
const SSH: &str = r#"mkdir -p /run/sshd bin far-state
for key in host user; do ssh-keygen -q -t ed25519 -N '' -f "$D/$key"; done
echo "far $(cat host.pub)" > known
printf '%s\n' 'Port 22' "HostKey $D/host" "AuthorizedKeysFile $D/user.pub" 'StrictModes no' 'UsePAM no' 'PidFile none' \
  'PermitRootLogin prohibit-password' 'PrintMotd no' "SetEnv LINERATE_STATE=$D/far-state HOME=$D" > sshd_config
printf '%s\n' 'Host far' ' User root' " IdentityFile $D/user" " UserKnownHostsFile $D/known" > ssh_config
cat > bin/ssh <<EOF
#!/bin/sh
case "\$*" in *'tune --agent') echo \$\$ > "$D/agent";; esac
exec /usr/bin/ssh -F "$D/ssh_config" "\$@"
EOF
chmod 755 bin/ssh
export PATH="$D/bin:$PATH"
far /usr/sbin/sshd -f "$D/sshd_config" -E "$D/sshd.log" || { echo 'sshd does not run'; cat sshd.log; exit 1; }
far ss -Hltn > usual
after() {
  for i in $(seq 60); do far ss -Hltn > listening; cmp -s usual listening && break; sleep 0.5; done
  both > now; echo "before: $(one_line before)"; echo "after: $(one_line now)"; echo "more: $(sort usual usual listening | uniq -u)"
  echo '== errors'; cat err; echo '== output'; cat out; echo '== sshd'; cat sshd.log
  echo '== far'; LINERATE_STATE="$D/far-state" far "$L" rollback --list 2>&1
}
"#;

#[test]
#[ignore = "needs root: the guest's sshd reads the host's accounts"]
fn a_change_is_kept_by_a_linerate_that_was_copied_there() {
    let script = r#"strip -o linerate "$L"
        "$L" tune ssh:far --push="$D/linerate" --until-reboot --yes --verbose -- -t 5 -C cubic > out 2> err
        echo "code: $?"; after; echo "left: $(ls -d /tmp/linerate.* 2>/dev/null | wc -l)""#;
    let said = run(Limit::Far, &format!("{SSH}{script}"));
    assert_eq!(said.value("code"), "0", "{}", said.whole());
    let (before, after) = (said.value("before"), said.value("after"));
    assert!(before.ends_with(FAR_SMALL) && !after.ends_with(FAR_SMALL), "{}", said.whole());
    assert_eq!((said.value("more"), said.value("left")), ("", "0"), "{}", said.whole());
    said.assert_contains("output", &["net.ipv4.tcp_rmem", "ssh:far"]);
    said.assert_contains("far", &["net.ipv4.tcp_rmem"]);
}

/// A larger buffer does not shorten the round trip, which is what this role is for.
#[test]
#[ignore = "needs root: the guest's sshd reads the host's accounts"]
fn a_change_that_does_not_reach_the_goal_is_rolled_back_there() {
    let script = r#""$L" tune ssh:far --far-program "$L" --role low-latency --yes -- -t 5 -C cubic > out 2> err
        echo "code: $?"; after"#;
    let said = run(Limit::Far, &format!("{SSH}{script}"));
    assert_eq!(said.value("code"), "5", "{}", said.whole());
    said.assert_restored().assert_contains("errors", &["Trying buffers: far", "pair 1:", "Roll back: "]);
    assert_eq!(said.value("more"), "", "{}", said.whole());
    said.assert_contains("far", &["rolled back"]);
}

#[test]
#[ignore = "needs root: the guest's sshd reads the host's accounts"]
fn a_connection_that_is_cut_during_a_trial_rolls_the_far_host_back() {
    let script = r#""$L" tune ssh:far --far-program "$L" --yes -- -t 5 -C cubic > out 2> err & process=$!
        for i in $(seq 90); do grep -q ^Trying err && break; sleep 1; done
        for i in $(seq 40); do is_as_before || break; sleep 0.5; done
        is_as_before && { echo 'nothing came into force'; cat err; exit 1; }
        echo "tried: $(one_line now)"
        kill -9 "$(cat agent)"; wait $process; echo "code: $?"
        for i in $(seq 60); do is_as_before && break; sleep 0.5; done; after"#;
    let said = run(Limit::Far, &format!("{SSH}{script}"));
    assert_eq!(said.value("code"), "3", "{}", said.whole());
    assert!(!said.value("tried").ends_with(FAR_SMALL), "{}", said.whole());
    said.assert_restored().assert_contains("errors", &["ssh:far: ", "rolls its changes back"]);
    assert_eq!(said.value("more"), "", "{}", said.whole());
    said.assert_contains("far", &["rolled back"]);
}
