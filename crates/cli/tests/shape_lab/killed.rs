//! Tests of `kill -9` between any two commands, and `linerate rollback --pending`: the previous configuration is
//! restored.

use std::process::Command;
use std::time::Duration;

use crate::support::Scratch;
use crate::support::namespace::Namespace;
use crate::support::process::run as run_program;

use super::guest::{ScriptOutput, run, with_functions};

/// Replacement for `tc` and `ip`: executes `$AFTER` commands that concern the interface, then kills the process that
/// runs them. It records their number.
const KILLER: &str = r#"#!/bin/sh
PATH=$OLD_PATH real=${0##*/}
case "$*" in
"-batch -") cat > "$D/commands" ;;
*"$DEVICE"*) echo "$*" > "$D/commands" ;;
*) exec "$real" "$@" ;;
esac
seen=$(cat "$D/seen"); all=$(wc -l < "$D/commands")
echo $((seen + all)) > "$D/seen"
if [ "$AFTER" -ge "$seen" ] && [ "$AFTER" -lt $((seen + all)) ]; then
  head -n $((AFTER - seen)) "$D/commands" | "$real" -batch -
  kill -9 $PPID
  exit 1
fi
if [ "$*" = "-batch -" ]; then exec "$real" -batch - < "$D/commands"; fi
exec "$real" "$@"
"#;

/// Runs each back end once without a kill, to count its commands; then kills it after none and one of them, in steps of
/// a third, before the last one, and after all of them, while it waits for a confirmation.
const ROUNDS: &str = r#"
mkdir bin; printf '%s' "$KILLER" > bin/tc; chmod +x bin/tc; cp bin/tc bin/ip
export OLD_PATH="$PATH"
killed() {
  echo 0 > seen
  AFTER=$2 PATH="$D/bin:$PATH" "$L" shape $DEVICE --up 20M --down 80M --back-end "$1" --replace -q > out 2>&1
}
back() {
  for i in $(seq 100); do
    "$L" rollback --pending > rolled 2>&1 && is_as_before && break
    sleep 0.1
  done
  compare "$1"
}
for b in $BACK_ENDS; do
  tree > before
  killed "$b" 1000000 || cat out
  all=$(cat seen); echo "commands $b: $all"
  is_as_before && echo "$b: different, as nothing was set up"
  "$L" shape $DEVICE off > out 2>&1 || cat out
  compare "$b off"
  for after in 0 1 $(seq 2 $((all / 3 + 1)) $((all - 2))) $((all - 1)); do
    killed "$b" "$after"; code=$?
    [ $code = 137 ] || { echo "$b $after: different, ended with $code"; cat out; }
    back "$b after $after"
  done
  "$L" shape $DEVICE --up 20M --down 80M --back-end "$b" --replace -q --confirm-within 50s > out 2>&1 & process=$!
  for i in $(seq 100); do is_as_before || break; sleep 0.1; done
  sleep 0.5
  is_as_before && echo "$b: different, as nothing was set up"
  kill -9 $process; wait $process
  back "$b after all"
done
"#;

fn script(back_ends: &[&str]) -> String {
    format!("BACK_ENDS='{}'\nKILLER='{KILLER}'\n{ROUNDS}", back_ends.join(" "))
}

/// Number of tree comparisons for this number of commands.
fn rounds(commands: usize) -> usize {
    let steps = (2..=commands.saturating_sub(2)).step_by(commands / 3 + 1);
    // One for the normal removal, then kills after none and one, in steps, before the last, and after all.
    1 + 2 + steps.count() + 1 + 1
}

fn check(said: &ScriptOutput, back_ends: &[&str]) {
    let commands = |back_end: &&str| said.value(&format!("commands {back_end}")).parse().expect("a number");
    let commands: Vec<usize> = back_ends.iter().map(commands).collect();
    assert!(commands.iter().all(|number| *number >= 6), "{commands:?}:\n{}", said.whole());
    said.assert_trees_equal(commands.into_iter().map(rounds).sum());
}

#[test]
fn with_the_queues_of_the_lab() {
    let back_ends = ["htb+fq_codel"];
    let said = run("lan-1g", &format!("foreign\n{}", script(&back_ends)));
    check(&said, &back_ends);
}

#[test]
fn with_the_queues_of_this_host() {
    let (namespace, folder) = (Namespace::new(), Scratch::new());
    let before =
        "tc qdisc add dev line0 root handle 7: tbf rate 9mbit burst 3000 limit 30000; tc qdisc add dev line0 clsact";
    let text = format!("ip link add line0 type veth peer name line1; ip link set line0 up; {before}");
    let back_ends = ["tbf", "htb+bfifo"];
    let mut command: Command = namespace.command("sh");
    command.env("TMPDIR", folder.path("")).env("DEVICE", "line0");
    command.args(["-c", &with_functions(&format!("{text}\n{}", script(&back_ends)))]);
    let finished = run_program(command, Duration::from_secs(600)).expect_code(0);
    check(&ScriptOutput(finished), &back_ends);
}
