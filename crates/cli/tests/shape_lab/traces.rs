//! Each back end can be installed, works in both directions over both IP versions, and is removed without a trace.

use super::guest::run;

/// Back ends that the lab's kernel supports.
const BACK_ENDS: [&str; 7] = ["cake", "htb+fq_codel", "htb+fq_pie", "htb+sfq", "htb+bfifo", "tbf", "lartc-htb"];

/// A classless and a classful tree, and a policer: these are installed a second time, and in place of a foreign qdisc,
/// which is restored from its record whatever has replaced it.
const SAMPLE: [&str; 3] = ["cake", "htb+fq_codel", "lartc-htb"];

/// Script of cycles: off, on, off with the kernel's own queueing before, and with a foreign qdisc.
/// While the shaper is active, five pings over each version pass it in both directions.
const CYCLE: &str = r#"
counted_up() { tc -s qdisc show dev eth0 root | awk '/Sent/ { print $4; exit }'; }
counted_down() {
  if [ -e /sys/class/net/ifb4eth0 ]; then tc -s qdisc show dev ifb4eth0 root | awk '/Sent/ { print $4; exit }'
  else tc -s filter show dev eth0 ingress | awk '/Sent/ { print $4; exit }'; fi
}
passes() {
  up=$(counted_up) down=$(counted_down)
  ping -q -c 5 -i 0.01 "$1" > ping || cat ping
  echo "$2 $1: $(($(counted_up) - up)) up $(($(counted_down) - down)) down"
}
cycle() {
  tree > before
  for b in $2; do
    shape eth0 off 2> err || cat err
    for time in $TIMES; do
      shape eth0 --up 20M --down 80M --back-end "$b" --replace -q > out 2> err || { echo "refused $b"; cat out err; }
      grep -q " $b\b" out || cat out
      if [ "$time" = first ]; then passes far "$1 $b"; passes far6 "$1 $b"; fi
      [ -n "$(tc qdisc show dev eth0 ingress)$(ip link show type ifb dev ifb4eth0 2> err)" ] || echo "$1 $b: nothing was set up"
      shape eth0 off -q > out 2>&1 || cat out
      compare "$1 $b $time"
    done
  done
}
# Nothing that stands for minutes may notice.
ping -i 0.2 -q far > four & four=$!
ping -i 0.2 -q far6 > six & six=$!
TIMES=first cycle own "$BACK_ENDS"
TIMES=second cycle own "$SAMPLE"
foreign
TIMES=first cycle foreign "$SAMPLE"
kill -INT $four $six; wait $four $six
echo "four: $(grep -o '[0-9]*% packet loss' four)"; echo "six: $(grep -o '[0-9]*% packet loss' six)"
for b in cake_mq lartc-cbq; do shape eth0 --up 20M --back-end $b > out 2>&1; echo "code $b: $?"; echo "said $b: $(tr '\n' ' ' < out)"; done
compare refused
"#;

#[test]
fn each_back_end_leaves_no_trace() {
    let said = run("lan-1g", &format!("BACK_ENDS='{}' SAMPLE='{}'\n{CYCLE}", BACK_ENDS.join(" "), SAMPLE.join(" ")));
    said.assert_trees_equal(BACK_ENDS.len() + 2 * SAMPLE.len() + 1);
    assert!(!said.whole().contains("nothing was set up"), "{}", said.whole());
    for (before, back_ends) in [("own", &BACK_ENDS[..]), ("foreign", &SAMPLE)] {
        for (back_end, host) in back_ends.iter().flat_map(|one| [(one, "far"), (one, "far6")]) {
            let words: Vec<&str> = said.value(&format!("{before} {back_end} {host}")).split(' ').collect();
            let counted = |place: usize| words[place].parse::<u64>().expect("a number of packets");
            // The ingress filter of LARTC matches IPv4 only, as in the original.
            let down = if *back_end == "lartc-htb" && host == "far6" { 0 } else { 5 };
            assert!(counted(0) >= 5 && counted(2) >= down, "{before} {back_end} {host}:\n{}", said.whole());
        }
    }
    assert_eq!((said.value("four"), said.value("six")), ("0% packet loss", "0% packet loss"), "{}", said.whole());
    for (back_end, reason) in [("cake_mq", "cake_mq"), ("lartc-cbq", "6.3")] {
        assert_eq!(said.value(&format!("code {back_end}")), "2", "{}", said.whole());
        assert!(said.value(&format!("said {back_end}")).contains(reason), "{}", said.whole());
    }
}
