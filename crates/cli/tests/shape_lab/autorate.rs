//! Autorate follows a link with a variable capacity: little delay, most of the capacity used.

use linerate_lab::description::PathDescription;

use crate::support::lab::OwnPath;

use super::guest::{ScriptOutput, run};

/// Script with four CUBIC streams down, pings, and received bytes of the interface, during autorate for `$SECONDS_ALL`.
const FOLLOW: &str = r#"
tree > before
begun=$(date +%s.%N); echo "begun: $begun"
"$L" iperf3 -c far -t $((SECONDS_ALL - 2)) -C cubic -i 0 -P 4 -R > load 2>&1 & load=$!
ping -D -i 0.1 -w $SECONDS_ALL far > pings & pings=$!
(while sleep 1; do read bytes < /sys/class/net/eth0/statistics/rx_bytes; echo "$(date +%s.%N) $bytes"; done > received) & reader=$!
shape eth0 --up "$UP" --down "$DOWN" --autorate --reflector $REFLECTOR --for ${SECONDS_ALL}s --off-at-end --log log --plot page.html -q > out 2> err
echo "code: $?"; kill $reader; wait $load; echo "load: $?"; wait $pings
compare off
echo "page: $(grep -c '<svg' page.html)"; echo "log: $(wc -l < log)"
echo '== received'; cat received; echo '== pings'; cat pings; echo '== load'; cat load; echo '== errors'; cat err
"#;

/// Capacity towards this host as (start in seconds, bits per second).
type Capacity = Vec<(f64, f64)>;

fn capacity(description: &PathDescription) -> Capacity {
    let direction = &description.links[0].backward;
    let first = (0.0, direction.rate.expect("the link's").bits_per_second());
    let steps = direction.steps.iter().map(|step| (step.at.as_secs_f64(), step.rate.bits_per_second()));
    std::iter::once(first).chain(steps).collect()
}

/// True for the evaluated time: from 5 s after the start until 3 s before the end, without the 2 s after a step of more
/// than a third.
fn is_judged(capacity: &Capacity, seconds: f64, at: f64) -> bool {
    let large = |pair: &&[(f64, f64)]| !(2.0 / 3.0..=4.0 / 3.0).contains(&(pair[1].1 / pair[0].1));
    let step = capacity.windows(2).filter(large).any(|pair| (pair[1].0..pair[1].0 + 2.0).contains(&at));
    (5.0..seconds - 3.0).contains(&at) && !step
}

fn at(capacity: &Capacity, at: f64) -> f64 {
    capacity.iter().rev().find(|(from, _)| *from <= at).expect("from the beginning on").1
}

/// The 95th percentile of the delay added to pings in milliseconds, and the received share of the capacity.
fn judged(said: &ScriptOutput, capacity: &Capacity, seconds: f64, propagation: f64) -> (f64, f64) {
    let begun: f64 = said.value("begun").parse().expect("a time");
    let ping = |line: &str| {
        let answered: f64 = line.strip_prefix('[')?.split(']').next()?.parse().ok()?;
        let time: f64 = line.split("time=").nth(1)?.split(' ').next()?.parse().ok()?;
        Some((answered - begun - time / 1e3, time - propagation))
    };
    let pings = said.part("pings").lines().filter_map(ping);
    let mut added: Vec<f64> =
        pings.filter(|(sent, _)| is_judged(capacity, seconds, *sent)).map(|(_, added)| added).collect();
    added.sort_by(f64::total_cmp);
    assert!(added.len() > 250, "{} pings", added.len());
    let reading = |line: &str| {
        line.split_once(' ').map(|(at, bytes)| Some((at.parse::<f64>().ok()? - begun, bytes.parse::<f64>().ok()?)))
    };
    let readings: Vec<(f64, f64)> = said.part("received").lines().filter_map(|line| reading(line)?).collect();
    let (mut carried, mut possible) = (0.0, 0.0);
    for pair in readings.windows(2).filter(|pair| pair.iter().all(|(at, _)| is_judged(capacity, seconds, *at))) {
        carried += (pair[1].1 - pair[0].1) * 8.0;
        possible += at(capacity, pair[0].0) * (pair[1].0 - pair[0].0);
    }
    (added[added.len() * 95 / 100], carried / possible)
}

/// Follows the path of this name or file for so many seconds.
#[track_caller]
fn follows(path: &str, description: &PathDescription, seconds: u32, (up, down): (&str, &str)) {
    follows_with("linerate:far", path, description, seconds, (up, down));
}

#[track_caller]
fn follows_with(reflector: &str, path: &str, description: &PathDescription, seconds: u32, (up, down): (&str, &str)) {
    let said = run(path, &format!("UP={up}; DOWN={down}; SECONDS_ALL={seconds}; REFLECTOR={reflector}\n{FOLLOW}"));
    assert_eq!(
        (said.value("code"), said.value("load"), said.value("off")),
        ("0", "0", "the same"),
        "{}",
        said.part("errors")
    );
    assert_ne!(said.value("page"), "0");
    assert!(said.value("log").parse::<u32>().expect("lines") > 9 * seconds);
    let propagation = description.propagation().as_secs_f64() * 1e3;
    let (added, used) = judged(&said, &capacity(description), f64::from(seconds), propagation);
    assert!(added <= 30.0, "{added} ms added");
    assert!(used >= 0.85, "{used} used");
}

fn library(path: &str) -> PathDescription {
    linerate_lab::library::find(path).expect("in the library").description().expect("readable")
}

/// The steps of `variable-20-5-40`, in less than half of its time.
fn quick_steps() -> OwnPath {
    let link = "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\nmtu = 1500\ndelay = \"20 ms\"\n\n";
    let direction = |name: &str, rates: [&str; 3]| {
        format!(
            "[link.{name}]\nrate = \"{} Mbit/s\"\nbuffer = \"500 ms\"\nsteps = [\n  {{ at = \"13 s\", rate = \"{} Mbit/s\" }},\n  \
             {{ at = \"26 s\", rate = \"{} Mbit/s\" }},\n]\n\n",
            rates[0], rates[1], rates[2]
        )
    };
    let directions = direction("forward", ["10", "2.5", "20"]) + &direction("backward", ["20", "5", "40"]);
    OwnPath::new(&format!("{link}{directions}"))
}

#[track_caller]
fn follows_quick_steps(reflector: &str) {
    let path = quick_steps();
    let text = std::fs::read_to_string(&path.file).expect("just written");
    let description = PathDescription::parse("own", &text).expect("readable");
    follows_with(reflector, &path.file, &description, 38, ("10M", "20M"));
}

#[test]
fn a_capacity_in_quick_steps() {
    follows_quick_steps("linerate:far");
}

/// The far kernel answers ICMP timestamp requests with times in milliseconds.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn quick_steps_by_timestamps_of_icmp() {
    follows_quick_steps("timestamp:10.0.0.2");
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_capacity_in_steps() {
    follows("variable-20-5-40", &library("variable-20-5-40"), 90, ("10M", "20M"));
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_capacity_that_wobbles() {
    let description = library("variable-lte");
    let link = &description.links[0];
    let [up, down] = [&link.forward, &link.backward]
        .map(|direction| format!("{:.0}", direction.rate.expect("the link's").bits_per_second()));
    follows("variable-lte", &description, 90, (&up, &down));
}
