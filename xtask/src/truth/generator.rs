//! Descriptions of paths, drawn from a seed. The same seed and number give the same path.

use toml::{Table, Value};

use super::cause::{self, RemovableCause};
use super::draw::SeededDraw;

/// Path that was drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RandomPath {
    /// Description.
    pub(super) description: Table,
    /// Causes that were built in; each may cost much or nothing.
    pub(super) injected: Vec<RemovableCause>,
}

/// Limits of what a case may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct CaseBudget {
    /// Largest number of packets of one transfer at the path's rate.
    pub(super) packets: f64,
    /// Shortest transfer in seconds.
    pub(super) seconds: f64,
}

impl CaseBudget {
    /// Full cases.
    pub(super) const FULL: Self = Self { packets: 400_000.0, seconds: 5.0 };

    /// Cases of half the length and a quarter of the packets.
    pub(super) const QUICK: Self = Self { packets: 100_000.0, seconds: 2.5 };
}

/// Figures from which a path is built. Rates in bit/s, times in seconds, sizes in bytes.
struct PathScale {
    rate: f64,
    round_trip: f64,
    buffer: f64,
    mtu: f64,
    seconds: f64,
}

impl PathScale {
    /// Bandwidth-delay product.
    fn product(&self) -> f64 {
        self.rate * self.round_trip / 8.0
    }
}

/// Transfer in round trips, so that the start is a small part of it.
const ROUND_TRIPS: f64 = 100.0;

/// Packets of a transfer at the path's rate: enough to see rare events.
const LEAST_PACKETS: f64 = 2000.0;

/// Longest transfer in seconds.
const LONGEST: f64 = 30.0;

/// Least number of packets that a buffer holds.
const LEAST_BUFFER: f64 = 4.0;

/// Least number of packets in the memory of CAKE.
const LEAST_CAKE: f64 = 16.0;

/// Causes that are drawn.
const DRAWN: &[RemovableCause] = &[
    RemovableCause::Loss,
    RemovableCause::BurstyLoss,
    RemovableCause::Policer,
    RemovableCause::ReceiveWindow,
    RemovableCause::SendBuffer,
    RemovableCause::SackOff,
    RemovableCause::WindowScalingOff,
    RemovableCause::AutotuningOff,
    RemovableCause::CongestionControl,
    RemovableCause::KernelMemory,
    RemovableCause::SenderQueue,
    RemovableCause::SocketPacing,
    RemovableCause::ApplicationPacing,
    RemovableCause::SlowReader,
    RemovableCause::SocketBuffer,
    RemovableCause::CrossTraffic,
    RemovableCause::Reordering,
    RemovableCause::Asymmetric,
    RemovableCause::BlackHole,
    RemovableCause::DelayVariation,
];

/// Pairs that use the same key of a description.
const EXCLUSIVE: &[(RemovableCause, RemovableCause)] =
    &[(RemovableCause::Loss, RemovableCause::BurstyLoss), (RemovableCause::Reordering, RemovableCause::DelayVariation)];

/// Draws the path `index` of the run with this seed.
pub(super) fn random_path(seed: u64, index: u64, budget: CaseBudget) -> RandomPath {
    let mut draw = SeededDraw::new(seed, index);
    let scale = scale(&mut draw, budget);
    let mut description = base(&mut draw, &scale, (seed, index));
    let mut injected = causes(&mut draw);
    for cause in &injected {
        inject(*cause, &mut description, &mut draw, &scale);
    }
    if scale.buffer < scale.product() {
        injected.push(RemovableCause::BufferTooSmall);
    }
    RandomPath { description, injected }
}

/// Draws rate, round trip and buffer, again where a transfer would cost more than the budget.
fn scale(draw: &mut SeededDraw, budget: CaseBudget) -> PathScale {
    loop {
        let rate = draw.log_between(1e6, 10e9);
        let round_trip = draw.log_between(0.2e-3, 0.3);
        let mtu = if rate > 2e9 { 9000.0 } else { 1500.0 };
        let packet = 8.0 * (mtu + 14.0);
        let buffer = (draw.log_between(0.05, 4.0) * rate * round_trip / 8.0).max(LEAST_BUFFER * packet / 8.0);
        let wanted = (ROUND_TRIPS * round_trip).max(LEAST_PACKETS * packet / rate).max(budget.seconds);
        let seconds = wanted.min(LONGEST).ceil();
        if seconds * rate / packet <= budget.packets {
            return PathScale { rate, round_trip, buffer, mtu, seconds };
        }
    }
}

/// Draws none, one or two causes.
fn causes(draw: &mut SeededDraw) -> Vec<RemovableCause> {
    let count = draw.unit();
    if count < 0.12 {
        return Vec::new();
    }
    let first = *draw.pick(DRAWN);
    if count < 0.55 {
        return vec![first];
    }
    loop {
        let second = *draw.pick(DRAWN);
        let is_exclusive = EXCLUSIVE.contains(&(first, second)) || EXCLUSIVE.contains(&(second, first));
        if second != first && !is_exclusive {
            return vec![first, second];
        }
    }
}

/// Path without a cause: hosts with large buffers, one or two links, a bottleneck with a queue.
fn base(draw: &mut SeededDraw, scale: &PathScale, (seed, index): (u64, u64)) -> Table {
    let buffers = (8.0 * (scale.product() + scale.buffer)).max(6_291_456.0);
    let settings = || {
        let mut table = Table::new();
        table.insert("net.ipv4.tcp_rmem".to_owned(), format!("4096 131072 {buffers:.0}").into());
        table.insert("net.ipv4.tcp_wmem".to_owned(), format!("4096 65536 {buffers:.0}").into());
        table
    };
    let end = || table([("congestion_control", "cubic".into()), ("sysctl", Value::Table(settings()))]);
    let (has_router, queue) = (draw.chance(0.3), *draw.pick(QUEUES));
    // It counts its memory with the kernel's own structures, and would hold a packet or two.
    let queue = if queue == "cake" && scale.buffer < LEAST_CAKE * scale.mtu { "fifo" } else { queue };
    let one_way = scale.round_trip / 2.0;
    let mut bottleneck = table([
        ("rate", bits(scale.rate)),
        ("delay", time(if has_router { one_way * 0.9 } else { one_way })),
        ("buffer", bytes(scale.buffer)),
        ("queue", queue.into()),
        ("mtu", integer(scale.mtu)),
    ]);
    let between = |from: &str, to: &str| Value::Array(vec![from.into(), to.into()]);
    let mut hosts = table([("near", Value::Table(end())), ("far", Value::Table(end()))]);
    let mut links = Vec::new();
    if has_router {
        hosts.insert("router".to_owned(), Value::Table(Table::new()));
        let access = table([
            ("between", between("near", "router")),
            ("rate", bits((10.0 * scale.rate).min(40e9))),
            ("delay", time(one_way * 0.1)),
            ("mtu", integer(scale.mtu)),
        ]);
        links.push(Value::Table(access));
    }
    bottleneck.insert("between".to_owned(), between(if has_router { "router" } else { "near" }, "far"));
    links.push(Value::Table(bottleneck));
    table([
        ("story", format!("Path {index} of seed {seed}.").into()),
        ("source", "drawn".into()),
        ("label", "none".into()),
        ("scenario", format!("iperf3 -c far -t {} -C cubic", scale.seconds).into()),
        ("seed", Value::Integer(i64::from(u32::try_from(draw.next() >> 33).unwrap_or_default()))),
        ("host", Value::Table(hosts)),
        ("link", Value::Array(links)),
    ])
}

/// Queues of bottlenecks, the usual ones several times.
const QUEUES: &[&str] =
    &["fifo", "fifo", "fifo", "fifo", "fifo", "fifo", "fq_codel", "fq_codel", "codel", "pie", "cake", "sfq"];

fn inject(cause: RemovableCause, path: &mut Table, draw: &mut SeededDraw, scale: &PathScale) {
    // What is left of the path's rate where the cause sets a rate or a window.
    let left = draw.log_between(0.08, 1.2);
    let limited = left * scale.rate;
    let held = (left * scale.product()).max(4096.0);
    match cause {
        RemovableCause::Loss => set_on_bottleneck(path, "loss", share(draw.log_between(1e-6, 0.02))),
        RemovableCause::BurstyLoss => set_on_bottleneck(path, "loss", bursty(draw)),
        RemovableCause::Policer => {
            let burst = (draw.log_between(0.005, 1.0) * limited / 8.0).max(3.0 * scale.mtu);
            let policer = table([("rate", bits(limited)), ("burst", bytes(burst))]);
            set_on_bottleneck(path, "policer", Value::Table(policer));
        }
        RemovableCause::ReceiveWindow => set_buffer(path, "far", "net.ipv4.tcp_rmem", 1.7 * held),
        RemovableCause::SendBuffer => set_buffer(path, "near", "net.ipv4.tcp_wmem", 1.4 * held),
        RemovableCause::SackOff => cause::set_setting(path, "near", "net.ipv4.tcp_sack", "0"),
        RemovableCause::WindowScalingOff => cause::set_setting(path, "near", "net.ipv4.tcp_window_scaling", "0"),
        RemovableCause::AutotuningOff => cause::set_setting(path, "far", "net.ipv4.tcp_moderate_rcvbuf", "0"),
        RemovableCause::CongestionControl => set_congestion_control(path, draw),
        RemovableCause::KernelMemory => {
            let pages = (2.5 * held / 4096.0).max(256.0);
            let value = format!("{:.0} {:.0} {pages:.0}", pages / 2.0, pages * 0.75);
            cause::set_setting(path, "near", "net.ipv4.tcp_mem", &value);
        }
        RemovableCause::SenderQueue => {
            let is_fair = draw.chance(0.5);
            if let Some(near) = cause::host(path, "near") {
                near.insert("queueing_rate".to_owned(), bits(limited));
                near.insert("queueing".to_owned(), if is_fair { "fq" } else { "fq_codel" }.into());
            }
        }
        RemovableCause::SocketPacing => cause::set_option(path, "--fq-rate", Some(&format!("{limited:.0}"))),
        RemovableCause::ApplicationPacing => cause::set_option(path, "-b", Some(&format!("{limited:.0}"))),
        RemovableCause::SlowReader => {
            if let Some(far) = cause::host(path, "far") {
                let arguments = vec!["--read-rate".into(), format!("{limited:.0}").into()];
                far.insert("server".to_owned(), Value::Array(arguments));
            }
        }
        RemovableCause::SocketBuffer => {
            // The kernel has to grant it, or the transfer does not begin.
            for key in ["net.core.rmem_max", "net.core.wmem_max"] {
                cause::set_setting(path, "near", key, &format!("{:.0}", held.max(212_992.0)));
            }
            cause::set_option(path, "-w", Some(&format!("{held:.0}")));
        }
        RemovableCause::CrossTraffic => add_traffic(path, draw, scale),
        RemovableCause::Reordering => {
            let reorder = table([
                ("share", share(draw.log_between(0.001, 0.3))),
                ("by", time(draw.between(0.05, 0.8) * scale.round_trip / 2.0 * 0.9)),
            ]);
            set_on_bottleneck(path, "reorder", Value::Table(reorder));
        }
        RemovableCause::Asymmetric => {
            let backward = table([("rate", bits((scale.rate / draw.log_between(15.0, 300.0)).max(16e3)))]);
            set_on_bottleneck(path, "backward", Value::Table(backward));
        }
        RemovableCause::BlackHole => {
            set_on_bottleneck(path, "drop_larger_than", bytes(scale.mtu - draw.between(4.0, 200.0)));
        }
        RemovableCause::DelayVariation => {
            set_on_bottleneck(path, "jitter", time(draw.between(0.02, 0.5) * scale.round_trip / 2.0 * 0.9));
            set_on_bottleneck(path, "distribution", "normal".into());
        }
        _ => {}
    }
}

/// Loss in bursts of 2 to 30 packets.
fn bursty(draw: &mut SeededDraw) -> Value {
    let model = table([
        ("good_to_bad", share(draw.log_between(1e-6, 0.003))),
        ("bad_to_good", share(1.0 / draw.between(2.0, 30.0))),
    ]);
    Value::Table(table([("gilbert_elliott", Value::Table(model))]))
}

fn set_buffer(path: &mut Table, host: &str, key: &str, size: f64) {
    let largest = size.max(8192.0);
    cause::set_setting(path, host, key, &format!("4096 {:.0} {largest:.0}", largest.min(65_536.0)));
}

fn set_congestion_control(path: &mut Table, draw: &mut SeededDraw) {
    let name = *draw.pick(&["reno", "vegas", "westwood", "lp", "illinois", "bbr"]);
    for end in ["near", "far"] {
        if let Some(host) = cause::host(path, end) {
            host.insert("congestion_control".to_owned(), name.into());
        }
    }
    cause::set_option(path, "-C", Some(name));
}

/// Adds flows that pass the bottleneck, or only the link before it.
fn add_traffic(path: &mut Table, draw: &mut SeededDraw, scale: &PathScale) {
    let has_router = cause::host(path, "router").is_some();
    let beside = has_router && draw.chance(0.3);
    let from = if has_router && !beside { "router" } else { "near" };
    let to = if beside { "router" } else { "far" };
    let mut flow = table([("from", from.into()), ("to", to.into())]);
    let share = draw.between(0.1, 0.9) * scale.rate;
    match *draw.pick(&["bulk", "paced", "on-off"]) {
        "bulk" => {
            flow.insert("kind".to_owned(), "bulk".into());
            flow.insert("streams".to_owned(), integer(draw.between(1.0, 5.0)));
        }
        "paced" => {
            flow.insert("kind".to_owned(), "paced".into());
            flow.insert("rate".to_owned(), bits(share));
        }
        _ => {
            flow.insert("kind".to_owned(), "on-off".into());
            flow.insert("rate".to_owned(), bits(share));
            flow.insert("on".to_owned(), time(draw.between(0.2, 2.0)));
            flow.insert("off".to_owned(), time(draw.between(0.2, 2.0)));
        }
    }
    path.insert("traffic".to_owned(), Value::Array(vec![Value::Table(flow)]));
}

/// Sets a key of the last link, which is the bottleneck; what impairs data does not impair acknowledgements.
fn set_on_bottleneck(path: &mut Table, key: &str, value: Value) {
    let last = path.get_mut("link").and_then(Value::as_array_mut).and_then(|links| links.last_mut());
    let Some(link) = last.and_then(Value::as_table_mut) else { return };
    if key == "backward" {
        link.insert(key.to_owned(), value);
        return;
    }
    let forward = link.entry("forward").or_insert_with(|| Value::Table(Table::new()));
    if let Some(forward) = forward.as_table_mut() {
        forward.insert(key.to_owned(), value);
    }
}

fn table<const N: usize>(pairs: [(&str, Value); N]) -> Table {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn bits(rate: f64) -> Value {
    format!("{rate:.0} bit/s").into()
}

fn bytes(size: f64) -> Value {
    format!("{size:.0} B").into()
}

/// A time in whole microseconds.
fn time(seconds: f64) -> Value {
    format!("{:.0} us", (seconds * 1e6).max(1.0)).into()
}

fn share(part: f64) -> Value {
    format!("{:.6} %", part * 100.0).into()
}

fn integer(number: f64) -> Value {
    format!("{number:.0}").parse().map_or(Value::Integer(1), Value::Integer)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use linerate_lab::compile::compile;
    use linerate_lab::description::PathDescription;

    use super::super::text::text;
    use super::*;

    const COUNT: u64 = 600;

    fn paths(seed: u64) -> Vec<RandomPath> {
        (0..COUNT).map(|index| random_path(seed, index, CaseBudget::FULL)).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_paths_and_another_gives_others() {
        assert_eq!(paths(1), paths(1));
        let same = paths(1).iter().zip(&paths(2)).filter(|(one, other)| one.description == other.description).count();
        assert_eq!(same, 0);
    }

    #[test]
    fn every_path_is_a_valid_description_with_and_without_its_causes() {
        for path in paths(3) {
            let mut all = vec![path.description.clone()];
            all.extend(path.injected.iter().map(|cause| cause.removed_from(&path.description)));
            for description in all {
                let text = text(&description);
                let read = PathDescription::parse("drawn", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert!(!compile(&read).pairs.is_empty());
            }
        }
    }

    /// The decades that numbers reach.
    fn decades(numbers: impl Iterator<Item = f64>) -> BTreeSet<i64> {
        numbers.map(|number| format!("{:.0}", number.log10().floor()).parse().expect("a number")).collect()
    }

    #[test]
    fn the_distributions_are_covered() {
        let drawn = paths(4);
        let read: Vec<PathDescription> = drawn
            .iter()
            .map(|path| PathDescription::parse("drawn", &text(&path.description)).expect("valid"))
            .collect();
        let rates = read
            .iter()
            .filter_map(|path| path.links.last()?.forward.rate)
            .map(linerate_units::BitRate::bits_per_second);
        assert_eq!(decades(rates).into_iter().collect::<Vec<_>>(), [6, 7, 8, 9]);
        let round_trips = read.iter().map(|path| path.propagation().as_secs_f64());
        assert_eq!(decades(round_trips).into_iter().collect::<Vec<_>>(), [-4, -3, -2, -1]);
        let count = |cause| drawn.iter().filter(|path| path.injected.contains(&cause)).count();
        for cause in DRAWN {
            assert!(count(*cause) >= 15, "{}: {}", cause.name(), count(*cause));
        }
        assert!(count(RemovableCause::BufferTooSmall) > 200);
        let without = drawn.iter().filter(|path| path.injected.iter().all(|cause| !DRAWN.contains(cause))).count();
        assert!((40..120).contains(&without), "{without}");
    }

    #[test]
    fn removing_an_injected_cause_changes_the_path() {
        for path in paths(5) {
            for cause in &path.injected {
                assert_ne!(cause.removed_from(&path.description), path.description, "{}", cause.name());
            }
        }
    }

    #[test]
    fn no_case_costs_more_than_its_budget() {
        for path in (0..COUNT).map(|index| random_path(6, index, CaseBudget::QUICK)) {
            let read = PathDescription::parse("drawn", &text(&path.description)).expect("valid");
            let bottleneck = read.links.last().expect("a link");
            let packet = (bottleneck.mtu.byte_count().as_f64() + 14.0) * 8.0;
            let rate = bottleneck.forward.rate.expect("a rate").bits_per_second();
            let seconds: f64 = read.scenario[4].parse().expect("seconds");
            assert!(seconds * rate / packet <= CaseBudget::QUICK.packets * 1.001, "{seconds} s at {rate} bit/s");
            assert!(seconds <= LONGEST);
        }
    }
}
