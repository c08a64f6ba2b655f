//! Causes that a path can have, and their removal from its description: the counterfactual.

use linerate_lab::description::PathDescription;
use linerate_units::ByteCount;
use toml::{Table, Value};

macro_rules! causes {
    ($($variant:ident $name:literal says $verdicts:expr;)*) => {
        /// Cause that can be removed from a description.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum RemovableCause { $($variant,)* }

        impl RemovableCause {
            /// All of them.
            pub(super) const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Name: the label of a path that is built around it, where there is one.
            pub(super) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Verdicts that name it.
            pub(super) const fn verdicts(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &$verdicts,)* }
            }
        }
    };
}

causes! {
    Loss "loss" says ["loss"];
    BurstyLoss "bursty-loss" says ["bursty-loss"];
    Policer "policer" says ["policer"];
    BufferTooSmall "buffer-too-small" says ["buffer-too-small"];
    ReceiveWindow "receive-window" says ["receive-window"];
    SendBuffer "send-buffer" says ["send-buffer"];
    SackOff "sack-off" says ["sack-off"];
    TimestampsOff "timestamps-off" says ["timestamps-off"];
    WindowScalingOff "window-scaling-off" says ["window-scaling-off"];
    AutotuningOff "autotuning-off" says ["autotuning-off", "receive-window"];
    CongestionControl "congestion-control" says ["congestion-control", "slow-start-exit"];
    KernelMemory "kernel-memory" says ["kernel-memory"];
    SenderQueue "sender-queue" says ["sender-queue", "socket-pacing"];
    SocketPacing "socket-pacing" says ["socket-pacing"];
    ApplicationPacing "application-pacing" says ["application-pacing", "application"];
    SlowReader "slow-reader" says ["slow-reader"];
    SocketBuffer "socket-buffer" says ["socket-buffer"];
    CrossTraffic "cross-traffic" says ["cross-traffic"];
    Incast "incast" says ["incast"];
    Reordering "reordering" says ["reordering", "slow-start-exit"];
    Duplication "duplication" says ["duplication"];
    Corruption "corruption" says ["corruption"];
    Asymmetric "asymmetric" says ["asymmetric"];
    BlackHole "black-hole" says ["black-hole"];
    DelayVariation "delay-variation" says ["delay-variation", "slow-start-exit"];
    ShortTransfer "short-transfer" says ["short-transfer", "slow-start-exit"];
    SmallPackets "small-packets" says ["small-packets"];
    EcnMarking "ecn-marking" says ["ecn-marking"];
    VariableRate "variable-rate" says ["outage", "variable-rate"];
    LinkRate "link-rate" says ["link-rate", "bufferbloat", "ecn-marking"];
}

/// Buffers that no path of the lab fills.
const LARGE_BUFFERS: &str = "4096 1048576 1073741824";

impl RemovableCause {
    /// The cause of this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|cause| cause.name() == name)
    }

    /// Returns the description without this cause, everything else unchanged.
    pub(super) fn removed_from(self, path: &Table) -> Table {
        let mut path = path.clone();
        match self {
            Self::Loss | Self::BurstyLoss => remove_link_keys(&mut path, &["loss"]),
            Self::Policer => remove_link_keys(&mut path, &["policer"]),
            Self::BufferTooSmall => enlarge_buffers(&mut path),
            Self::ReceiveWindow => set_on_ends(&mut path, "net.ipv4.tcp_rmem", LARGE_BUFFERS),
            Self::SendBuffer => set_on_ends(&mut path, "net.ipv4.tcp_wmem", LARGE_BUFFERS),
            Self::SackOff => remove_setting(&mut path, "net.ipv4.tcp_sack"),
            Self::TimestampsOff => remove_setting(&mut path, "net.ipv4.tcp_timestamps"),
            Self::WindowScalingOff => remove_setting(&mut path, "net.ipv4.tcp_window_scaling"),
            Self::AutotuningOff => remove_setting(&mut path, "net.ipv4.tcp_moderate_rcvbuf"),
            Self::KernelMemory => remove_setting(&mut path, "net.ipv4.tcp_mem"),
            Self::CongestionControl => other_congestion_control(&mut path),
            Self::SenderQueue => hosts(&mut path).for_each(|host| drop(host.remove("queueing_rate"))),
            Self::SocketPacing => set_option(&mut path, "--fq-rate", None),
            Self::ApplicationPacing => set_option(&mut path, "-b", None),
            Self::SlowReader => hosts(&mut path).for_each(remove_read_rate),
            Self::SocketBuffer => set_option(&mut path, "-w", None),
            Self::CrossTraffic => drop(path.remove("traffic")),
            Self::Incast => set_option(&mut path, "-P", Some("2")),
            Self::Reordering => remove_link_keys(&mut path, &["reorder"]),
            Self::Duplication => remove_link_keys(&mut path, &["duplicate"]),
            Self::Corruption => remove_link_keys(&mut path, &["corrupt"]),
            Self::Asymmetric => equal_directions(&mut path),
            Self::BlackHole => remove_link_keys(&mut path, &["drop_larger_than"]),
            Self::DelayVariation => remove_link_keys(&mut path, &["jitter", "distribution"]),
            Self::ShortTransfer => longer_transfer(&mut path),
            Self::SmallPackets => larger_packets(&mut path),
            Self::EcnMarking => {
                remove_setting(&mut path, "net.ipv4.tcp_ecn");
                remove_link_keys(&mut path, &["ecn_threshold"]);
            }
            Self::VariableRate => remove_link_keys(&mut path, &["steps"]),
            Self::LinkRate => faster_links(&mut path),
        }
        path
    }
}

/// The tables of all hosts.
fn hosts(path: &mut Table) -> impl Iterator<Item = &mut Table> {
    let hosts = path.get_mut("host").and_then(Value::as_table_mut).into_iter();
    hosts.flat_map(Table::iter_mut).filter_map(|(_, host)| host.as_table_mut())
}

/// Entry of a host, `near` or `far`.
pub(super) fn host<'a>(path: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    path.get_mut("host")?.as_table_mut()?.get_mut(name)?.as_table_mut()
}

/// Sets a kernel setting of a host.
pub(super) fn set_setting(path: &mut Table, name: &str, key: &str, value: &str) {
    let Some(host) = host(path, name) else { return };
    let settings = host.entry("sysctl").or_insert_with(|| Value::Table(Table::new()));
    if let Some(settings) = settings.as_table_mut() {
        settings.insert(key.to_owned(), value.into());
    }
}

fn set_on_ends(path: &mut Table, key: &str, value: &str) {
    for name in ["near", "far"] {
        set_setting(path, name, key, value);
    }
}

fn remove_setting(path: &mut Table, key: &str) {
    for host in hosts(path) {
        if let Some(settings) = host.get_mut("sysctl").and_then(Value::as_table_mut) {
            settings.remove(key);
        }
    }
}

fn remove_read_rate(host: &mut Table) {
    let Some(arguments) = host.get_mut("server").and_then(Value::as_array_mut) else { return };
    if let Some(place) = arguments.iter().position(|word| word.as_str() == Some("--read-rate")) {
        arguments.drain(place..(place + 2).min(arguments.len()));
    }
}

/// The tables of all links.
fn links(path: &mut Table) -> impl Iterator<Item = &mut Table> {
    let links = path.get_mut("link").and_then(Value::as_array_mut).into_iter();
    links.flatten().filter_map(Value::as_table_mut)
}

/// The tables of a link: its own, and those of its directions.
fn link_tables(link: &mut Table, change: &mut impl FnMut(&mut Table)) {
    change(link);
    for direction in ["forward", "backward"] {
        if let Some(table) = link.get_mut(direction).and_then(Value::as_table_mut) {
            change(table);
        }
    }
}

fn remove_link_keys(path: &mut Table, keys: &[&str]) {
    for link in links(path) {
        link_tables(link, &mut |table| keys.iter().for_each(|key| drop(table.remove(*key))));
    }
}

/// Gives each queue twice the product of its rate and the path's round trip, and at least 50 packets. `sfq` holds at most 127
/// packets of a flow whatever its limit is: it becomes one queue for all.
fn enlarge_buffers(path: &mut Table) {
    let Ok(read) = PathDescription::parse("path", &super::text::text(path)) else { return };
    let fastest = |link: &linerate_lab::description::EmulatedLink| link.forward.rate.max(link.backward.rate);
    let sizes: Vec<Option<ByteCount>> = read
        .links
        .iter()
        .map(|link| fastest(link).map(|rate| (rate * read.propagation() * 2).max(link.mtu.byte_count() * 50)))
        .collect();
    for (link, size) in links(path).zip(sizes) {
        let Some(size) = size else { continue };
        link_tables(link, &mut |table| {
            if let Some(buffer) = table.get_mut("buffer") {
                *buffer = format!("{} B", size.get()).into();
            }
            if let Some(queue) = table.get_mut("queue").filter(|queue| queue.as_str() == Some("sfq")) {
                *queue = "fifo".into();
            }
        });
    }
}

/// Sets the rate of the direction of the acknowledgements to that of the data.
fn equal_directions(path: &mut Table) {
    let is_reverse = scenario(path).iter().any(|word| word == "-R");
    let (data, acknowledgements) = if is_reverse { ("backward", "forward") } else { ("forward", "backward") };
    for link in links(path) {
        let of_link = link.get("rate").cloned();
        let of_data = link.get(data).and_then(|table| table.get("rate")).cloned().or(of_link);
        if let Some((table, rate)) = link.get_mut(acknowledgements).and_then(Value::as_table_mut).zip(of_data) {
            table.insert("rate".to_owned(), rate);
        }
    }
}

/// Gives each link with a rate four times that, and its queue as many bytes as before.
fn faster_links(path: &mut Table) {
    for link in links(path) {
        link_tables(link, &mut |table| {
            let rate =
                table.get("rate").and_then(Value::as_str).and_then(|text| text.parse::<linerate_units::BitRate>().ok());
            if let Some(rate) = rate {
                table.insert("rate".to_owned(), format!("{} bit/s", (rate * 4.0).whole_bits_per_second()).into());
            }
        });
    }
}

/// Sets both hosts to BBR where they have CUBIC, else to CUBIC.
fn other_congestion_control(path: &mut Table) {
    let current = host(path, "near").and_then(|host| host.get("congestion_control")).and_then(Value::as_str);
    let other = if current.is_none_or(|name| name == "cubic") { "bbr" } else { "cubic" };
    for name in ["near", "far"] {
        if let Some(host) = host(path, name) {
            host.insert("congestion_control".to_owned(), other.into());
        }
    }
    set_option(path, "-C", Some(other));
}

fn longer_transfer(path: &mut Table) {
    set_option(path, "-n", None);
    set_option(path, "-t", Some("30"));
}

fn larger_packets(path: &mut Table) {
    set_option(path, "-M", None);
    for link in links(path) {
        link.remove("mtu");
    }
}

/// Words of the path's own transfer.
pub(super) fn scenario(path: &Table) -> Vec<String> {
    let text = path.get("scenario").and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Sets an option of the path's own transfer, or removes it with its value.
pub(super) fn set_option(path: &mut Table, option: &str, value: Option<&str>) {
    let mut words = scenario(path);
    if let Some(place) = words.iter().position(|word| word == option) {
        words.drain(place..(place + 2).min(words.len()));
    }
    if let Some(value) = value {
        words.extend([option.to_owned(), value.to_owned()]);
    }
    path.insert("scenario".to_owned(), words.join(" ").into());
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = r#"
story = "All causes."
source = "test"
label = "loss"
scenario = "iperf3 -c far -t 4 -C cubic -b 10M -w 64K --fq-rate 20M"
[host.near]
queueing_rate = "5 Mbit/s"
[host.near.sysctl]
"net.ipv4.tcp_mem" = "512 768 1024"
"net.ipv4.tcp_sack" = 0
[host.far]
server = ["--read-rate", "5MB/s", "--debug"]
[[link]]
between = ["near", "far"]
rate = "100 Mbit/s"
delay = "10 ms"
buffer = "4 kB"
loss = "1 %"
[link.backward]
rate = "1 Mbit/s"
loss = "2 %"
[[traffic]]
kind = "bulk"
from = "near"
to = "far"
"#;

    fn without(cause: RemovableCause) -> Table {
        let path: Table = PATH.parse().expect("TOML");
        let removed = cause.removed_from(&path);
        assert_ne!(removed, path, "{}", cause.name());
        PathDescription::parse("test", &super::super::text::text(&removed)).expect("still a description");
        removed
    }

    #[test]
    fn a_removed_cause_leaves_all_others() {
        use RemovableCause as Cause;
        for cause in [
            Cause::Loss,
            Cause::BufferTooSmall,
            Cause::ReceiveWindow,
            Cause::SendBuffer,
            Cause::SackOff,
            Cause::KernelMemory,
            Cause::CongestionControl,
            Cause::SenderQueue,
            Cause::SocketPacing,
            Cause::ApplicationPacing,
            Cause::SlowReader,
            Cause::SocketBuffer,
            Cause::CrossTraffic,
            Cause::Asymmetric,
            Cause::LinkRate,
        ] {
            let once = without(cause);
            let changed =
                once.iter().filter(|(key, value)| PATH.parse::<Table>().expect("TOML").get(*key) != Some(value));
            assert!(changed.count() <= 2, "{}: {once:?}", cause.name());
        }
    }

    #[test]
    fn values_after_the_removal() {
        let at = |table: &Table, place: &str| {
            let mut value = Value::Table(table.clone());
            for key in place.split('/') {
                value = match key.parse::<usize>() {
                    Ok(index) => value.get(index).cloned(),
                    Err(_) => value.get(key).cloned(),
                }
                .unwrap_or(Value::Boolean(false));
            }
            value
        };
        assert_eq!(at(&without(RemovableCause::BufferTooSmall), "link/0/buffer"), "500000 B".into());
        assert_eq!(at(&without(RemovableCause::Asymmetric), "link/0/backward/rate"), "100 Mbit/s".into());
        assert_eq!(at(&without(RemovableCause::LinkRate), "link/0/backward/rate"), "4000000 bit/s".into());
        assert_eq!(at(&without(RemovableCause::SlowReader), "host/far/server/0"), "--debug".into());
        assert_eq!(at(&without(RemovableCause::Loss), "link/0/backward/loss"), false.into());
        let plain = at(&without(RemovableCause::ApplicationPacing), "scenario");
        assert_eq!(plain, "iperf3 -c far -t 4 -C cubic -w 64K --fq-rate 20M".into());
    }

    #[test]
    fn a_queue_with_a_limit_of_its_own_is_replaced_by_a_larger_one() {
        for (queue, larger) in [("sfq", "fifo"), ("codel", "codel")] {
            let mut path: Table = PATH.parse().expect("TOML");
            links(&mut path).next().expect("a link").insert("queue".to_owned(), queue.into());
            let mut removed = RemovableCause::BufferTooSmall.removed_from(&path);
            let link = links(&mut removed).next().expect("a link");
            assert_eq!(link.get("queue").and_then(Value::as_str), Some(larger));
        }
    }

    #[test]
    fn names_are_unique() {
        assert!(RemovableCause::ALL.iter().all(|cause| RemovableCause::from_name(cause.name()) == Some(*cause)));
    }
}
