//! Parsed descriptions, and the error for each mistake.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount, Ratio, StreamCount};

use super::*;

/// A path with everything in it.
const WHOLE: &str = r#"
story  = "Everything that a description can say."
source = "This test."
label  = "receive-window"
scenario = "iperf3 -c far -t 10 -C cubic"
seed = 7

[host.near]
congestion_control = "bbr"
queueing = "fq"
sysctl = { "net.ipv4.tcp_rmem" = "4096 131072 6291456", "net.ipv4.tcp_sack" = 0, "net.core.rmem_max" = 4194304 }
offload = true

[host.r1]

[host.far]
server = ["--read-rate", "5MB/s"]

[[link]]
between = ["near", "r1"]
mtu = 9000
rate = "10 Gbit/s"
link_layer = { framing = "atm", overhead = "40 B", minimum = "64 B" }
delay = "58.5 ms"
jitter = "1 ms"
distribution = "normal"
loss = "0.1 %"
duplicate = "0.5 %"
corrupt = "0.01 %"
reorder = { share = "1 %", by = "1 ms" }
buffer = "1.5 MB"
queue = "red"
ecn_threshold = "65 kB"
policer = { rate = "100 Mbit/s", burst = "200 kB" }
drop_larger_than = "1400 B"
bleach_ecn = true

[link.backward]
rate = "240 kbit/s"
jitter = "0 ms"
loss = { gilbert_elliott = { good_to_bad = "0.1 %", bad_to_good = "10 %" } }
buffer = "45 packets"
queue = "fifo"
bleach_ecn = false

[[link]]
between = ["r1", "far"]
loss = { every = 36000 }

[[traffic]]
kind = "on-off"
from = "near"
to = "far"
protocol = "udp"
rate = "5 Mbit/s"
streams = 2
start = "1.5 s"
duration = "30 s"
on = "1 s"
off = "2 s"

[[traffic]]
kind = "bulk"
from = "far"
to = "near"
congestion_control = "reno"
"#;

fn parsed(text: &str) -> PathDescription {
    PathDescription::parse("whole", text).unwrap_or_else(|error| panic!("{error}"))
}

fn share(percent: f64) -> Ratio {
    Ratio::from_percent(percent).unwrap_or_default()
}

#[test]
fn everything_that_is_written_is_parsed() {
    let path = parsed(WHOLE);
    assert_eq!((path.name.as_str(), path.seed, path.label), ("whole", 7, PathLabel::ReceiveWindow));
    assert_eq!(path.scenario, ["iperf3", "-c", "far", "-t", "10", "-C", "cubic"]);
    let names: Vec<&str> = path.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["near", "r1", "far"]);
    let near = path.host("near").unwrap_or_else(|| panic!("near"));
    assert_eq!(
        (near.congestion_control.as_str(), near.queueing.as_deref(), near.offload),
        ("bbr", Some("fq"), Some(true))
    );
    let settings: Vec<String> =
        near.sysctls.iter().map(|setting| format!("{}={}", setting.key, setting.value)).collect();
    let expected = ["net.core.rmem_max=4194304", "net.ipv4.tcp_rmem=4096 131072 6291456", "net.ipv4.tcp_sack=0"];
    assert_eq!(settings, expected);
    assert_eq!(path.host("far").and_then(|far| far.server.clone()), Some(vec!["--read-rate".into(), "5MB/s".into()]));
    assert_eq!(path.host("r1").map(|router| router.server.is_none()), Some(true));
    assert_eq!(path.propagation(), Duration::from_millis(117));
    assert!(path.has_ipv6());
}

#[test]
fn a_link_with_all_keys() {
    let path = parsed(WHOLE);
    assert_eq!(path.links[0].mtu, Mtu::new(9000));
    let expected = LinkDirection {
        policer: Some(PolicerDescription { rate: BitRate::from_bits_per_second(1e8), burst: ByteCount::new(200_000) }),
        drop_larger_than: Some(ByteCount::new(1400)),
        bleach_ecn: true,
        rewrite_ect1: false,
        queue: BottleneckQueue::Red,
        buffer: Some(BufferSize::Bytes(ByteCount::new(1_500_000))),
        ecn_threshold: Some(ByteCount::new(65_000)),
        rate: Some(BitRate::from_bits_per_second(1e10)),
        layer: LinkLayer { framing: LinkFraming::Atm, overhead: ByteCount::new(40), minimum: ByteCount::new(64) },
        steps: Vec::new(),
        steps_period: None,
        delay: Duration::from_micros(58_500),
        jitter: Some(DelayJitter { by: Duration::from_millis(1), distribution: JitterDistribution::Normal }),
        loss: Some(LossModel::Random(share(0.1))),
        duplicate: Some(share(0.5)),
        corrupt: Some(share(0.01)),
        reorder: Some(LinkReordering { share: share(1.0), by: Duration::from_millis(1) }),
    };
    assert_eq!(path.links[0].forward, expected);
}

#[test]
fn steps_of_a_rate_are_in_order_and_have_something_to_change() {
    let read = |keys: &str| {
        let text = format!(
            "story = \"A test.\"\nsource = \"This file.\"\nlabel = \"none\"\nscenario = \"test far\"\n[host.near]\n[host.far]\n\
             [[link]]\nbetween = [\"near\", \"far\"]\n{keys}\n"
        );
        PathDescription::parse("steps", &text)
    };
    let whole = "rate = \"20 Mbit/s\"\nbuffer = \"1 MB\"\nsteps = [{ at = \"1 s\", rate = \"5 Mbit/s\" }, { at = \"2 s\", rate = \"8 Mbit/s\" }]";
    let path = read(whole).unwrap_or_else(|error| panic!("{error}"));
    let steps: Vec<_> =
        path.links[0].backward.steps.iter().map(|step| (step.at.as_secs(), step.rate.bits_per_second())).collect();
    assert!(path.varies() && !parsed(WHOLE).varies());
    assert_eq!(steps, [(1, 5e6), (2, 8e6)]);
    for (wrong, why) in [
        (whole.replace("rate = \"20 Mbit/s\"\nbuffer = \"1 MB\"\n", ""), "none to begin with"),
        (whole.replace("buffer = \"1 MB\"\n", ""), "needs a buffer"),
        (whole.replace("1 MB", "40 packets"), "counts bytes"),
        (whole.replace("\"2 s\"", "\"1 s\""), "already"),
        (whole.replace("\"2 s\"", "\"0.5 s\""), "already"),
        (whole.replace("\"2 s\"", "\"2000.1 ms\""), "whole milliseconds"),
        (whole.replace("\"1 s\"", "\"0 s\""), "is zero"),
        (whole.replace("\"8 Mbit/s\"", "\"8\""), "no unit"),
        (whole.replace("at = \"1 s\", ", ""), "missing key `at`"),
    ] {
        let error = read(&wrong).expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_direction_overrides_what_it_mentions_and_nothing_else() {
    let path = parsed(WHOLE);
    let forward = path.links[0].forward.clone();
    let loss = LossModel::GilbertElliott {
        good_to_bad: share(0.1),
        bad_to_good: share(10.0),
        loss_in_bad: share(100.0),
        loss_in_good: share(0.0),
    };
    let expected = LinkDirection {
        bleach_ecn: false,
        rewrite_ect1: false,
        queue: BottleneckQueue::Fifo,
        buffer: Some(BufferSize::Packets(PacketCount::new(45))),
        // The queue is the direction's own, so the link's threshold is not for it; so with the jitter's distribution.
        ecn_threshold: None,
        rate: Some(BitRate::from_bits_per_second(240e3)),
        jitter: None,
        loss: Some(loss),
        ..forward
    };
    assert_eq!(path.links[0].backward, expected);
}

#[test]
fn missing_keys_have_the_plainest_values() {
    let path = parsed(WHOLE);
    let second = &path.links[1];
    assert_eq!(second.mtu, Mtu::new(1500));
    assert_eq!(
        second.forward,
        LinkDirection { loss: Some(LossModel::Every(PacketCount::new(36_000))), ..LinkDirection::default() }
    );
    let far = path.host("far").unwrap_or_else(|| panic!("far"));
    assert_eq!((far.congestion_control.as_str(), far.queueing.as_deref(), far.offload), ("cubic", None, None));
    let plain = "story = \"s\"\nsource = \"s\"\nlabel = \"none\"\nscenario = \"test far\"\n[host.near]\n[host.far]\n[[link]]\n\
                 between = [\"near\", \"far\"]\n";
    let path = parsed(plain);
    assert_eq!(
        (path.seed, path.traffic.len(), path.host("far").and_then(|far| far.server.clone())),
        (1, 0, Some(vec![]))
    );
}

#[test]
fn traffic_of_each_kind() {
    let path = parsed(WHOLE);
    let expected = TrafficDescription {
        kind: TrafficKind::OnOff {
            rate: BitRate::from_bits_per_second(5e6),
            on: Duration::from_secs(1),
            off: Duration::from_secs(2),
        },
        from: "near".to_owned(),
        to: "far".to_owned(),
        protocol: TrafficProtocol::Udp,
        streams: StreamCount::new(2),
        congestion_control: None,
        start: Duration::from_millis(1500),
        duration: Some(Duration::from_secs(30)),
    };
    assert_eq!(path.traffic[0], expected);
    assert_eq!(path.traffic[1].kind, TrafficKind::Bulk);
    assert_eq!(path.traffic[1].congestion_control.as_deref(), Some("reno"));
    for (kind, rate) in [("paced", "1 Mbit/s"), ("slow-reader", "5 MB/s"), ("application-paced", "50 Mbit/s")] {
        let text = format!(
            "{}\n[[traffic]]\nkind = \"{kind}\"\nfrom = \"near\"\nto = \"far\"\nrate = \"{rate}\"\n",
            plain("")
        );
        assert_eq!(parsed(&text).traffic.len(), 1, "{kind}");
    }
}

/// A path with nothing but what it must have, and one link whose further lines begin in line 9.
fn plain(link: &str) -> String {
    format!(
        "story = \"s\"\nsource = \"s\"\nlabel = \"none\"\nscenario = \"test far\"\n[host.near]\n[host.far]\n[[link]]\nbetween = \
         [\"near\", \"far\"]\n{link}\n"
    )
}

#[test]
fn every_form_of_a_buffer() {
    let table = [
        ("1.5 MB", Some(BufferSize::Bytes(ByteCount::new(1_500_000)))),
        ("64 KiB", Some(BufferSize::Bytes(ByteCount::new(65_536)))),
        ("45 packets", Some(BufferSize::Packets(PacketCount::new(45)))),
        ("1 packet", Some(BufferSize::Packets(PacketCount::new(1)))),
        ("50 ms", Some(BufferSize::Time(Duration::from_millis(50)))),
        ("2 BDP", Some(BufferSize::Multiple(share(200.0)))),
        ("0.5 BDP", Some(BufferSize::Multiple(share(50.0)))),
        ("unlimited", None),
    ];
    for (text, expected) in table {
        let path = parsed(&plain(&format!("rate = \"100 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"{text}\"")));
        assert_eq!(path.links[0].forward.buffer, expected, "{text}");
    }
}

#[test]
fn buffers_come_to_bytes_and_packets() {
    let (rate, round_trip, packet) =
        (BitRate::from_bits_per_second(1e8), Duration::from_millis(20), ByteCount::new(1514));
    let table = [
        (BufferSize::Bytes(ByteCount::new(3028)), 3028, 2),
        (BufferSize::Bytes(ByteCount::new(3000)), 3000, 1),
        (BufferSize::Packets(PacketCount::new(45)), 68_130, 45),
        (BufferSize::Time(Duration::from_millis(50)), 625_000, 412),
        (BufferSize::Multiple(share(200.0)), 500_000, 330),
    ];
    for (buffer, bytes, packets) in table {
        assert_eq!(buffer.size(rate, round_trip, packet), ByteCount::new(bytes), "{buffer:?}");
        assert_eq!(buffer.packets(rate, round_trip, packet), PacketCount::new(packets), "{buffer:?}");
    }
}

#[test]
fn names_of_files_and_of_paths() {
    let text = plain("");
    for (name, expected) in [("adsl", "adsl"), ("adsl.toml", "adsl"), ("../my/adsl-2.toml", "adsl-2")] {
        assert_eq!(PathDescription::parse(name, &text).map(|path| path.name), Ok(expected.to_owned()));
    }
    for name in ["", "ADSL", "a_b", "-a", "a.b", ".toml", "ü"] {
        let error = PathDescription::parse(name, &text).expect_err(name).to_string();
        assert!(error.contains("is not a path name"), "{error}");
    }
}

/// Lines of a link (from line 9 on), the line that is wrong, and parts of the message and the remedy.
const WRONG_LINKS: &[(&str, usize, &str, &str)] = &[
    ("rate = 10", 9, "the number 10 has no unit", "with its unit, in quotes"),
    ("rate = \"10\"", 9, "the rate: the number 10 has no unit", "10 Gbit/s"),
    ("rate = \"10 G\"", 9, "'10 G' has no suitable unit", "10 Gbit/s"),
    ("rate = \"10 GB\"", 9, "has no suitable unit", "Gbit/s"),
    ("rate = \"fast\"", 9, "'fast' is not a rate", "Gbit/s"),
    ("rate = \"-1 Mbit/s\"", 9, "is not a rate", "Gbit/s"),
    ("rate = \"0 bit/s\"", 9, "is not between 8 bit/s and 10 Tbit/s", "Gbit/s"),
    ("rate = \"11 Tbit/s\"", 9, "is not between", "Gbit/s"),
    ("delay = \"117\"", 9, "has no unit", "58.5 ms"),
    ("delay = 0.5", 9, "the number 0.5 has no unit", "58.5 ms"),
    ("delay = \"-5 ms\"", 9, "is not a time", "58.5 ms"),
    ("delay = \"2 h\"", 9, "is more than an hour", "58.5 ms"),
    ("delay = \"300 s\"", 9, "is more than the 270 s", "58.5 ms"),
    ("delay = \"1500 ns\"", 9, "is not in whole microseconds", "no fraction"),
    ("delay = \"1 ms\"\njitter = \"2 ms\"", 10, "jitter of 2ms exceeds the delay of 1ms", "no larger than the delay"),
    ("jitter = \"2 ms\"", 9, "exceeds the delay of 0ns", "no larger than the delay"),
    ("distribution = \"normal\"", 9, "without jitter", "add jitter"),
    (
        "delay = \"1 ms\"\njitter = \"1 ms\"\ndistribution = \"gauss\"",
        11,
        "unknown distribution 'gauss'",
        "uniform, normal",
    ),
    ("loss = \"101 %\"", 9, "the loss '101 %' is more than 100 %", "100 %"),
    ("loss = \"0.1\"", 9, "the number 0.1 has no unit", "0.1 %"),
    ("loss = 0.1", 9, "the number 0.1 has no unit", "0.1 %"),
    ("loss = \"-1 %\"", 9, "is not a share", "0.1 %"),
    ("loss = { every = 1 }", 9, "cannot lose one of 1 packets", "from 2 to"),
    ("loss = { every = -3 }", 9, "cannot lose one of -3 packets", "from 2 to"),
    ("loss = { every = 10007 }", 9, "10007 is not the product of two numbers up to 10000", "write 10006"),
    (
        "loss = { every = 5, gilbert_elliott = { good_to_bad = \"1 %\", bad_to_good = \"1 %\" } }",
        9,
        "one model",
        "either",
    ),
    ("loss = {}", 9, "one model", "either"),
    ("loss = { gilbert_elliott = { good_to_bad = \"1 %\" } }", 9, "missing key `bad_to_good`", "add the key"),
    ("loss = { gilbert_elliott = { good_to_bad = \"1 %\", bad_to_good = \"1\" } }", 9, "has no unit", "0.1 %"),
    ("loss = { burst = 3 }", 9, "unknown key `burst`", "docs/paths.md"),
    ("loss = []", 9, "expected a share such as", "docs/paths.md"),
    ("duplicate = \"200 %\"", 9, "more than 100 %", "100 %"),
    ("corrupt = \"x\"", 9, "is not a share", "100 %"),
    ("delay = \"1 ms\"\nreorder = { share = \"1 %\", by = \"2 ms\" }", 10, "cannot overtake by 2ms", "no larger"),
    ("delay = \"1 ms\"\nreorder = { share = \"1 %\", by = \"0 ms\" }", 10, "the time to overtake by is zero", "1 ms"),
    ("delay = \"1 ms\"\nreorder = { share = \"1 %\" }", 10, "missing key `by`", "add the key"),
    (
        "delay = \"2 ms\"\njitter = \"1 ms\"\nreorder = { share = \"1 %\", by = \"2 ms\" }",
        11,
        "cannot overtake",
        "jitter",
    ),
    ("buffer = \"1 MB\"", 9, "a buffer without a rate", "add the link's rate"),
    ("queue = \"codel\"", 9, "a queue without a rate", "add the link's rate"),
    ("rate = \"1 Mbit/s\"\nbuffer = \"45\"", 10, "has no unit", "45 packets"),
    ("rate = \"1 Mbit/s\"\nbuffer = 45", 10, "the number 45 has no unit", "with its unit"),
    ("rate = \"1 Mbit/s\"\nbuffer = \"0 packets\"", 10, "is not between 1 and", "45 packets"),
    ("rate = \"1 Mbit/s\"\nbuffer = \"-1 BDP\"", 10, "is not a multiple of the BDP", "2 BDP"),
    ("rate = \"1 Mbit/s\"\nbuffer = \"2 BDP\"", 10, "no bandwidth-delay product", "give a link its delay"),
    ("rate = \"1 Mbit/s\"\nbuffer = \"100 B\"", 10, "does not hold one packet of 1.51 kB", "larger"),
    ("rate = \"100 Gbit/s\"\nbuffer = \"1 s\"", 10, "comes to 12.5 GB", "unlimited"),
    ("rate = \"1 Mbit/s\"\nbuffer = \"lots\"", 10, "is not a time", "45 packets"),
    ("rate = \"1 Mbit/s\"\nqueue = \"wfq\"", 10, "unknown queue 'wfq'", "fq_codel"),
    ("rate = \"1 Mbit/s\"\nqueue = \"red\"", 10, "random early detection needs a buffer", "add a buffer"),
    (
        "rate = \"1 Gbit/s\"\nqueue = \"red\"\nbuffer = \"5 MB\"",
        11,
        "cannot average a queue of 5.00 MB",
        "ecn_threshold",
    ),
    ("rate = \"1 Gbit/s\"\nqueue = \"codel\"\necn_threshold = \"1 GB\"", 11, "cannot average", "100 MB"),
    ("rate = \"10 kbit/s\"\nqueue = \"codel\"\necn_threshold = \"1 MB\"", 11, "longer to drain", "smaller"),
    ("rate = \"1 Mbit/s\"\necn_threshold = \"65 kB\"", 10, "a fifo queue has no threshold", "red"),
    (
        "rate = \"1 Mbit/s\"\nbuffer = \"10 kB\"\nqueue = \"red\"\necn_threshold = \"10 kB\"",
        12,
        "never the threshold of 10.0 kB",
        "below the buffer",
    ),
    ("policer = { rate = \"100\", burst = \"200 kB\" }", 9, "the policer's rate: the number 100 has no unit", "Gbit/s"),
    ("policer = { rate = \"1 Mbit/s\", burst = \"5 GiB\" }", 9, "exceeds 4 GiB", "smaller"),
    ("policer = { rate = \"1 Mbit/s\", burst = \"40 MB\" }", 9, "takes longer to fill at 1.00 Mbit/s", "smaller"),
    ("policer = { rate = \"1 Mbit/s\" }", 9, "missing key `burst`", "add the key"),
    ("drop_larger_than = \"1400\"", 9, "has no unit", "1400 B"),
    ("drop_larger_than = \"0 B\"", 9, "is zero", "1400 B"),
    ("bleach_ecn = \"yes\"", 9, "expected a boolean", "docs/paths.md"),
    ("rewrite_ect1 = 1", 9, "expected a boolean", "docs/paths.md"),
    (
        "rate = \"1 Mbit/s\"\nqueue = \"dualpi2\"\nbuffer = \"10 kB\"",
        11,
        "does not size the buffer of dualpi2",
        "remove the buffer",
    ),
    ("mtu = 67", 9, "an MTU of 67 bytes is not possible", "68 to 65535"),
    ("mtu = 65536", 9, "an MTU of 65536 bytes", "68 to 65535"),
    ("mtu = -1500", 9, "an MTU of -1500", "68 to 65535"),
    ("mtu = \"1500 B\"", 9, "invalid type", "docs/paths.md"),
    ("link_layer = { overhead = \"40 B\" }", 9, "a link layer without a rate", "add the link's rate"),
    ("rate = \"1 Mbit/s\"\nlink_layer = { overhead = 40 }", 10, "the number 40 has no unit", "with its unit"),
    ("rate = \"1 Mbit/s\"\nlink_layer = { overhead = \"300 B\" }", 10, "exceeds 256 B", "40 B"),
    ("rate = \"1 Mbit/s\"\nlink_layer = { framing = \"atm\", overhead = \"7 B\" }", 10, "trailer of 8 B", "include it"),
    ("rate = \"1 Mbit/s\"\nlink_layer = { framing = \"x25\", overhead = \"8 B\" }", 10, "unknown framing 'x25'", "ptm"),
    ("rate = \"1 Mbit/s\"\nlink_layer = { framing = \"atm\" }", 10, "missing key `overhead`", "add the key"),
    (
        "mtu = 9217\nrate = \"1 Mbit/s\"\nlink_layer = { overhead = \"8 B\" }",
        11,
        "a link layer with an MTU of 9217",
        "smaller MTU",
    ),
    ("speed = \"10 Gbit/s\"", 9, "unknown key `speed`", "correct the key's spelling"),
    ("[link.forward]\nmtu = 1500", 10, "unknown key `mtu`", "correct the key's spelling"),
    ("[link.forward]\nrate = \"x\"", 10, "is not a rate", "Gbit/s"),
    ("rate = \"1 Mbit/s\"\n[link.backward]\nbuffer = \"7\"", 11, "has no unit", "packets"),
    ("rate = ", 9, "", "docs/paths.md"),
    ("rate = \"1 Mbit/s\"\nrate = \"2 Mbit/s\"", 10, "duplicate key", "docs/paths.md"),
];

#[test]
fn every_mistake_in_a_link_is_reported_with_its_line() {
    for (link, line, message, advice) in WRONG_LINKS {
        expect_error(&plain(link), *line, message, advice);
    }
}

fn expect_error(text: &str, line: usize, message: &str, advice: &str) {
    let Err(error) = PathDescription::parse("paths/x.toml", text) else { panic!("accepted: {text}") };
    let shown = error.to_string();
    assert!(shown.starts_with(&format!("paths/x.toml:{line}: ")), "line {line} of\n{text}\n{shown}");
    assert!(error.message().contains(message), "'{message}' in\n{shown}");
    assert!(error.advice().contains(advice), "'{advice}' in\n{shown}");
    let offending = text.lines().nth(line - 1).unwrap_or_default();
    assert_eq!(error.text(), offending.trim_end(), "{shown}");
    assert!(shown.contains(&format!("{line} | {}", offending.trim_end())), "{shown}");
}

/// A change to the whole description, text of the line that is then wrong, and parts of the message and the remedy.
const WRONG_WHOLES: &[(&str, &str, &str, &str, &str)] = &[
    ("label  = \"receive-window\"", "label = \"wimdow\"", "label =", "unknown label 'wimdow'", "receive-window"),
    ("seed = 7", "seed = -7", "seed =", "the seed -7 is negative", "from 0"),
    ("seed = 7", "seed = \"7\"", "seed =", "invalid type", "docs/paths.md"),
    ("seed = 7", "sed = 7", "sed =", "unknown key `sed`", "correct the key"),
    (
        "\"Everything that a description can say.\"",
        "\"\"",
        "story",
        "the story is not one line of text",
        "one sentence",
    ),
    ("\"This test.\"", "\"a\\nb\"", "source", "the source is not one line", "one sentence"),
    ("iperf3 -c far -t 10 -C cubic", "test far; reboot", "scenario", "not a plain command", "there is no shell"),
    ("iperf3 -c far -t 10 -C cubic", " ", "scenario", "not a plain command", "separated by blanks"),
    (
        "congestion_control = \"bbr\"",
        "congestion_control = \"bbr9\"",
        "bbr9",
        "unknown congestion control 'bbr9'",
        "reno, cubic",
    ),
    ("queueing = \"fq\"", "queueing = \"netem\"", "netem", "unknown queueing discipline for a host 'netem'", "fq"),
    ("offload = true", "offload = 1", "offload =", "expected a boolean", "docs/paths.md"),
    (
        "net.ipv4.tcp_sack",
        "tcp_sack",
        "sysctl =",
        "'tcp_sack' is not the name of a network setting",
        "net.ipv4.tcp_rmem",
    ),
    ("net.ipv4.tcp_sack", "net.ipv4.tcp sack", "sysctl =", "is not the name of a network setting", "with dots"),
    ("net.ipv4.tcp_sack", "net/ipv4/tcp_sack", "sysctl =", "is not the name of a network setting", "with dots"),
    (
        "\"net.ipv4.tcp_sack\" = 0",
        "\"net.ipv4.tcp_sack\" = \"\"",
        "sysctl =",
        "is not a value",
        "as the kernel shows it",
    ),
    (
        "\"net.ipv4.tcp_sack\" = 0",
        "\"net.ipv4.tcp_sack\" = 0.5",
        "sysctl =",
        "expected the setting's value",
        "docs/paths.md",
    ),
    (
        "net.ipv4.tcp_sack",
        "net.ipv4.tcp_congestion_control",
        "sysctl =",
        "the lab itself sets",
        "congestion_control = ",
    ),
    ("net.ipv4.tcp_sack", "net.ipv4.ip_forward", "sysctl =", "the lab itself sets", "routers forward"),
    ("4096 131072 6291456", "4096 6291456", "sysctl =", "is not what this setting holds", "three whole numbers"),
    ("4096 131072 6291456", "4096 6291456 131072", "sysctl =", "is not what this setting holds", "none smaller"),
    ("4096 131072 6291456", "4096 131072 3000000000", "sysctl =", "is not what this setting holds", "three whole"),
    ("= 4194304", "= \"4 MiB\"", "sysctl =", "is not a number of bytes", "whole number"),
    (
        "[host.r1]",
        "[host.r1]\nsysctl = { \"net.ipv4.tcp_mem\" = \"1 2 3\" }",
        "tcp_mem",
        "for the whole system",
        "[host.near]",
    ),
    (
        "[host.r1]",
        "[host.r1]\nsysctl = { \"net.core.rmem_max\" = 1 }",
        "\"net.core.rmem_max\" = 1 }",
        "cannot be set on 'r1' alone",
        "[host.near]",
    ),
    ("[host.r1]", "[host.r1]\ncolour = 1", "colour", "unknown key `colour`", "correct the key"),
    ("[host.r1]", "[host.r1]\n[host.r2]", "[host.r2]", "no link leads to the host 'r2'", "order of the path"),
    ("[host.r1]", "[host.r1]\n[host.wire]", "[host.wire]", "'wire' is reserved", "choose another"),
    ("[host.r1]", "[host.r1]\n[host.r6]", "[host.r6]", "'r6' is reserved", "choose another"),
    ("[host.r1]", "[host.r1]\n[host.R2]", "[host.R2]", "'R2' is not a host name", "small letters"),
    ("[host.r1]", "[host.r1]\n[host.averylongname-16]", "averylong", "is longer than 15 characters", "shorter"),
    ("[\"--read-rate\", \"5MB/s\"]", "[\"\"]", "server =", "is not valid", "string of its own"),
    ("[\"--read-rate\", \"5MB/s\"]", "\"--read-rate\"", "server =", "invalid type", "docs/paths.md"),
    (
        "between = [\"near\", \"r1\"]",
        "between = [\"near\"]",
        "[\"near\"]",
        "a link joins two hosts",
        "[\"near\", \"r1\"]",
    ),
    (
        "between = [\"near\", \"r1\"]",
        "between = [\"far\", \"r1\"]",
        "[\"far\", \"r1\"]",
        "begins at 'far'",
        "order of the path",
    ),
    (
        "between = [\"near\", \"r1\"]",
        "between = [\"near\", \"r9\"]",
        "r9",
        "the host 'r9' is not described",
        "[host.r9]",
    ),
    (
        "between = [\"r1\", \"far\"]",
        "between = [\"r1\", \"near\"]",
        "\"r1\", \"near\"",
        "leads back to 'near'",
        "order",
    ),
    ("between = [\"near\", \"r1\"]\n", "", "mtu = 9000", "does not name the hosts that it joins", "between ="),
    ("kind = \"bulk\"", "kind = \"video\"", "video", "unknown kind of traffic 'video'", "bulk, paced"),
    (
        "kind = \"bulk\"",
        "kind = \"bulk\"\nrate = \"1 Mbit/s\"",
        "rate = \"1 Mbit/s\"",
        "bulk traffic has no rate",
        "paced",
    ),
    ("kind = \"bulk\"", "kind = \"paced\"", "kind = \"paced\"", "needs a rate", "add a rate"),
    ("kind = \"bulk\"", "kind = \"bulk\"\non = \"1 s\"", "on = \"1 s\"\nfrom", "does not pause", "on-off"),
    ("kind = \"bulk\"", "kind = \"bulk\"\nprotocol = \"udp\"", "kind = \"bulk\"", "'bulk' is TCP", "paced"),
    ("kind = \"bulk\"", "kind = \"bulk\"\nstreams = 0", "streams = 0", "0 streams are not possible", "1 to 128"),
    ("kind = \"bulk\"", "kind = \"bulk\"\nduration = \"1.5 s\"", "1.5 s\"\nfrom", "not in whole seconds", "1 s"),
    ("kind = \"bulk\"", "kind = \"bulk\"\nstart = \"2\"", "start = \"2\"", "has no unit", "58.5 ms"),
    ("from = \"far\"", "from = \"r2\"", "r2", "unknown host 'r2'", "near, r1, far"),
    ("from = \"far\"", "from = \"near\"", "to = \"near\"", "from 'near' to itself", "another host"),
    (
        "congestion_control = \"reno\"",
        "congestion_control = \"tahoe\"",
        "tahoe",
        "unknown congestion control 'tahoe'",
        "reno",
    ),
    ("protocol = \"udp\"", "protocol = \"sctp\"", "sctp", "unknown protocol 'sctp'", "tcp, udp"),
    (
        "protocol = \"udp\"",
        "protocol = \"udp\"\ncongestion_control = \"bbr\"",
        "congestion_control = \"bbr\"\nrate",
        "UDP has no",
        "tcp",
    ),
    ("queueing = \"fq\"\n", "", "kind = \"on-off\"", "only fair queueing paces them", "queueing = \"fq\""),
    ("off = \"2 s\"", "", "kind = \"on-off\"", "has no duration 'off'", "add off"),
    ("on = \"1 s\"", "on = \"0 s\"", "on = \"0 s\"", "is zero", "58.5 ms"),
    ("on = \"1 s\"", "on = \"60 s\"", "on = \"60 s\"", "more than 1000 datagrams", "shorter"),
];

#[test]
fn every_mistake_elsewhere_is_reported_with_its_line() {
    for (from, to, mark, message, advice) in WRONG_WHOLES {
        // From the back, so that a mark which occurs in both kinds of traffic is the later one's.
        let at = WHOLE.rfind(from).unwrap_or_else(|| panic!("not in the description: {from}"));
        let text = format!("{}{to}{}", &WHOLE[..at], &WHOLE[at + from.len()..]);
        let place = text[at.saturating_sub(300)..].find(mark).map(|found| found + at.saturating_sub(300));
        let place = place.unwrap_or_else(|| panic!("not in the text: {mark}"));
        let line = text[..place].matches('\n').count() + 1;
        expect_error(&text, line, message, advice);
    }
}

#[test]
fn a_private_path_needs_no_texts() {
    let text = plain("");
    let texts = ["story = \"s\"\n", "source = \"s\"\n", "label = \"none\"\n", "scenario = \"test far\"\n"];
    let bare = texts.iter().fold(text, |text, line| text.replace(line, ""));
    let path = PathDescription::parse("plain", &bare).expect("a path");
    assert_eq!((path.story.as_str(), path.label), ("", PathLabel::None));
    assert_eq!(path.scenario, ["test", "far"]);
}

#[test]
fn missing_parts_are_reported_at_the_top() {
    let text = plain("");
    let without = |part: &str| text.replace(part, "");
    let no_link = text.split("[[link]]").next().unwrap_or_default();
    expect_error(no_link, 1, "no link joins near and far", "add a [[link]]");
    expect_error(&without("[host.far]\n"), 7, "the host 'far' is not described", "[host.far]");
    expect_error(&without("[host.near]\n"), 7, "the host 'near' is not described", "[host.near]");
    let to_router = text.replace("[host.far]", "[host.far]\n[host.r1]").replace("\"far\"]", "\"r1\"]");
    expect_error(&to_router, 9, "the last link does not end at far", "order of the path");
    let beyond = format!("{text}[host.r1]\n[[link]]\nbetween = [\"far\", \"r1\"]\n");
    expect_error(&beyond, 12, "the path goes on after far", "order of the path");
}

#[test]
fn more_links_than_addresses_are_refused() {
    let mut text = plain("").split("[host.near]").next().unwrap_or_default().to_owned();
    let name = |index: usize| match index {
        0 => "near".to_owned(),
        65 => "far".to_owned(),
        _ => format!("r{index}x"),
    };
    text.extend((0..=65).map(|index| format!("[host.{}]\n", name(index))));
    let joined = |index| format!("[[link]]\nbetween = [\"{}\", \"{}\"]\n", name(index), name(index + 1));
    text.extend((0..65).map(joined));
    let line = text.lines().count();
    expect_error(&text, line, "65 links are more than the lab has addresses for", "at most 64");
}

#[test]
fn counters_find_what_they_count() {
    assert_eq!(count_factors(10), Some((10, 1)));
    assert_eq!(count_factors(10_000), Some((10_000, 1)));
    assert_eq!(count_factors(36_000), Some((9_000, 4)));
    assert_eq!(count_factors(100_000_000), Some((10_000, 10_000)));
    assert_eq!(count_factors(10_007), None, "a prime");
}

/// A description with these keys of its link, where `one.trace` has two rates and every other file is missing.
fn traced(keys: &str) -> Result<PathDescription, DescriptionError> {
    let text = format!("[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\n{keys}");
    let mut read = |name: &str| match name {
        "one.trace" => Ok("50\n100\n".to_owned() + &"150\n".repeat(200)),
        "bad.trace" => Ok("1\n2\nsoon\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    PathDescription::parse_with_traces("own", &text, &mut read)
}

#[test]
fn a_trace_is_the_rate_of_its_direction() {
    let path =
        traced("buffer = \"100 ms\"\n[link.forward]\ntrace = \"one.trace\"\n[link.backward]\nrate = \"1 Mbit/s\"")
            .expect("a path");
    let forward = &path.links[0].forward;
    assert_eq!(forward.steps_period, Some(Duration::from_millis(150)));
    // 202 packets of 1500 bytes, each with its Ethernet header, in 150 ms.
    assert!((forward.rate.expect("the mean").bits_per_second() - 202.0 * 1514.0 * 8.0 / 0.15).abs() < 1.0);
    assert_eq!(forward.steps.iter().map(|step| step.at.as_millis()).collect::<Vec<_>>(), [0, 75]);
    assert_eq!(path.links[0].backward.steps, []);
    let both = traced("trace = \"one.trace\"\nbuffer = \"1 MB\"").expect("a path");
    assert_eq!(both.links[0].backward.steps.len(), 2);
    let own = traced("trace = \"one.trace\"\nbuffer = \"1 MB\"\n[link.backward]\nrate = \"1 Mbit/s\"").expect("a path");
    assert!(own.links[0].backward.steps.is_empty(), "a rate of its own replaces the link's trace");
}

#[test]
fn traces_that_cannot_be_followed_are_refused() {
    for (keys, line, message) in [
        (
            "buffer = \"1 MB\"\ntrace = \"bad.trace\"",
            6,
            "the trace bad.trace, line 3: 'soon' is not a whole number of milliseconds",
        ),
        ("trace = \"none\"\nbuffer = \"1 MB\"", 5, "the trace none cannot be read: no such file"),
        ("trace = \"one.trace\"", 5, "a rate that changes needs a buffer"),
        ("trace = \"one.trace\"\nbuffer = \"9 packets\"", 5, "where the rate changes, the lab's fifo counts bytes"),
        ("rate = \"1 Mbit/s\"\ntrace = \"one.trace\"\nbuffer = \"1 MB\"", 6, "a trace is the rate of its link"),
    ] {
        let error = traced(keys).expect_err(keys);
        assert_eq!((error.line(), error.message()), (line, message));
    }
    let text = "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\ntrace = \"x\"\nbuffer = \"1 MB\"";
    assert!(PathDescription::parse("own", text).expect_err("no files").message().contains("cannot be read"));
}
