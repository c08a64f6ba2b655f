//! The bounds of known paths.

use super::*;
use linerate_model::direction::Direction;

/// A path of one link between two hosts, each with further lines.
fn path(near: &str, far: &str, link: &str) -> PathDescription {
    let text = format!(
        "story = \"A test.\"\nsource = \"This file.\"\nlabel = \"none\"\nscenario = \"test far\"\n[host.near]\n{near}\n\
         [host.far]\n{far}\n[[link]]\nbetween = [\"near\", \"far\"]\n{link}\n"
    );
    PathDescription::parse("test", &text).unwrap_or_else(|error| panic!("{error}"))
}

fn megabits(rate: Option<BitRate>) -> f64 {
    rate.map_or(f64::NAN, |rate| rate.bits_per_second() / 1e6)
}

fn is_near(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= expected * 0.005
}

#[test]
fn the_rhel_path_with_the_old_defaults_is_bound_by_its_window() {
    let bounds = bounds(&path("", "", "rate = \"10 Gbit/s\"\ndelay = \"58.5 ms\""), Direction::Up);
    assert_eq!(bounds.base_rtt, Duration::from_millis(117));
    assert_eq!(bounds.bdp, Some(ByteCount::new(146_250_000)));
    assert!(is_near(megabits(bounds.goodput_ceiling), 9564.0), "{bounds:?}");
    assert!(is_near(megabits(bounds.receive_window_rate), 272.2), "{bounds:?}");
    assert_eq!(bounds.lowest().map(|(cause, _)| cause), Some(BoundCause::ReceiveWindow));
    assert_eq!((bounds.loss, bounds.loss_rate, bounds.policer_ceiling), (None, None, None));
}

#[test]
fn large_buffers_leave_the_link() {
    let buffers = |key: &str| format!("sysctl = {{ \"net.ipv4.{key}\" = \"4096 131072 438750000\" }}");
    let link = "rate = \"10 Gbit/s\"\ndelay = \"58.5 ms\"\nbuffer = \"1 BDP\"";
    let bounds = bounds(&path(&buffers("tcp_wmem"), &buffers("tcp_rmem"), link), Direction::Up);
    assert_eq!(bounds.lowest().map(|(cause, _)| cause), Some(BoundCause::Link));
    let bottleneck = bounds.bottleneck.unwrap_or_else(|| panic!("a rate"));
    assert_eq!(bottleneck.buffer, Some(ByteCount::new(146_250_000)));
    assert_eq!(bottleneck.queueing_delay, Some(Duration::from_millis(117)));
    assert!(bounds.slow_start.is_some_and(|time| is_near(time.as_secs_f64(), 1.556)), "{bounds:?}");
}

/// 8128 kbit/s × (1492 − 52) bytes in 32 cells of 53; a ping of 84 bytes takes three cells in each direction.
#[test]
fn bounds_count_what_the_link_layer_adds() {
    let path = crate::library::find("adsl-atm-pppoe").expect("in the library").description().expect("readable");
    let down = bounds(&path, Direction::Down);
    assert!(is_near(megabits(down.goodput_ceiling), 8.128 * 1440.0 / 1696.0), "{down:?}");
    // 250 ms of 8128 kbit/s.
    assert_eq!(down.bottleneck.and_then(|bottleneck| bottleneck.buffer), Some(ByteCount::new(254_000)));
    let segment = 0.02 + 1696.0 * 8.0 / 8128e3 + 106.0 * 8.0 / 1024e3;
    assert!((down.segment_rtt.as_secs_f64() - segment).abs() < 1e-6, "{down:?}");
    let ping = 0.02 + 159.0 * 8.0 / 8128e3 + 159.0 * 8.0 / 1024e3;
    assert!((crate::truth::round_trip(&path, ByteCount::new(84)).as_secs_f64() - ping).abs() < 1e-6);
    let capacity = crate::truth::truth(&path, Direction::Up).capacity.map_or(0.0, BitRate::bits_per_second);
    assert!(is_near(capacity, 1024e3 * 1492.0 / 1696.0), "{capacity}");
}

#[test]
fn the_slowest_link_is_that_with_the_least_packets() {
    let text = "story = \"A test.\"\nsource = \"This file.\"\nlabel = \"none\"\nscenario = \"test far\"\n[host.near]\n\
                [host.r]\n[host.far]\n[[link]]\nbetween = [\"near\", \"r\"]\nrate = \"8 Mbit/s\"\n\
                link_layer = { framing = \"atm\", overhead = \"40 B\" }\n[[link]]\nbetween = [\"r\", \"far\"]\n\
                rate = \"7.5 Mbit/s\"\n";
    let path = PathDescription::parse("test", text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(bounds(&path, Direction::Up).bottleneck.map(|bottleneck| bottleneck.link), Some(0));
}

/// Over any time a path carries at most its highest rate: 40 Mbit/s and not the first one. The 500 ms are of the first
/// rate, 1.25 MB, and take 2 s at the lowest.
#[test]
fn a_rate_that_changes_bounds_by_its_highest() {
    let link = "rate = \"20 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"500 ms\"\n\
                steps = [{ at = \"30 s\", rate = \"5 Mbit/s\" }, { at = \"60 s\", rate = \"40 Mbit/s\" }]";
    let bounds = bounds(&path("", "", link), Direction::Up);
    assert!(is_near(megabits(bounds.goodput_ceiling), 38.256), "{bounds:?}");
    let bottleneck = bounds.bottleneck.unwrap_or_else(|| panic!("a rate"));
    assert_eq!(
        (bottleneck.lowest_rate, bottleneck.rate),
        (BitRate::from_bits_per_second(5e6), BitRate::from_bits_per_second(40e6))
    );
    assert_eq!(bottleneck.buffer, Some(ByteCount::new(1_250_000)));
    assert_eq!(bottleneck.queueing_delay, Some(Duration::from_secs(2)));
    assert_eq!(bounds.bdp, Some(ByteCount::new(200_000)));
}

#[test]
fn each_direction_has_its_own() {
    let link =
        "delay = \"10 ms\"\n[link.forward]\nrate = \"1 Mbit/s\"\n[link.backward]\nrate = \"10 Mbit/s\"\nloss = \"1 %\"";
    let path = path("", "congestion_control = \"bbr\"", link);
    let forward = bounds(&path, Direction::Up);
    let backward = bounds(&path, Direction::Down);
    assert!(is_near(megabits(forward.goodput_ceiling), 0.9564) && is_near(megabits(backward.goodput_ceiling), 9.564));
    assert_eq!(forward.loss, None);
    assert!(backward.loss.is_some_and(|loss| is_near(loss.get(), 0.01)));
    assert_eq!(backward.loss_rate, None, "BBR is not bound by loss");
    // 20 ms, a full frame at 1 Mbit/s (12.112 ms) and an acknowledgement at 10 Mbit/s (52.8 µs).
    assert_eq!(forward.segment_rtt, Duration::from_nanos(32_164_800));
}

#[test]
fn loss_bounds_reno_and_cubic_by_their_own_laws() {
    for (name, expected) in [("reno", 38.3), ("cubic", 117.4)] {
        let near = format!("congestion_control = \"{name}\"");
        let bounds = bounds(&path(&near, "", "delay = \"58.5 ms\"\nloss = \"0.001 %\""), Direction::Up);
        assert!((megabits(bounds.loss_rate) - expected).abs() < expected * 0.01, "{name}: {bounds:?}");
        assert_eq!(bounds.lowest().map(|(cause, _)| cause), Some(BoundCause::Loss));
    }
}

#[test]
fn losses_of_all_kinds_and_links_count() {
    let link = "loss = { gilbert_elliott = { good_to_bad = \"1 %\", bad_to_good = \"20 %\", loss_in_bad = \"80 %\" } }\n\
                corrupt = \"1 %\"";
    let loss = bounds(&path("", "", link), Direction::Up).loss.unwrap_or_default();
    // The state is bad for 1 of 21 packets: 3.81 % lost, and 1 % of the others damaged.
    assert!(is_near(loss.get(), 0.0477), "{loss}");
    let every = bounds(&path("", "", "loss = { every = 36000 }"), Direction::Down).loss.unwrap_or_default();
    assert!(is_near(every.get(), 1.0 / 36000.0), "{every}");
}

#[test]
fn windows_without_scaling_end_at_64_kib() {
    let off = "sysctl = { \"net.ipv4.tcp_window_scaling\" = 0 }";
    for (near, far) in [(off, ""), ("", off)] {
        let bounds = bounds(&path(near, far, "rate = \"1 Gbit/s\"\ndelay = \"750 us\""), Direction::Up);
        assert_eq!(bounds.receive_window, ByteCount::new(65_535));
        // 349.5 Mbit/s at 1.5 ms, less the time to send a segment (12 µs).
        assert!(is_near(megabits(bounds.receive_window_rate), 346.5), "{bounds:?}");
    }
}

#[test]
fn a_policer_bounds_by_its_rate_of_ip_bytes() {
    let link = "rate = \"300 Mbit/s\"\ndelay = \"10 ms\"\npolicer = { rate = \"100 Mbit/s\", burst = \"200 kB\" }";
    let bounds = bounds(&path("", "", link), Direction::Up);
    assert!(is_near(megabits(bounds.policer_ceiling), 96.53), "{bounds:?}");
    assert_eq!(bounds.lowest().map(|(cause, _)| cause), Some(BoundCause::Policer));
}

#[test]
fn timestamps_off_gain_twelve_bytes() {
    let off = "sysctl = { \"net.ipv4.tcp_timestamps\" = 0 }";
    assert_eq!(bounds(&path(off, "", ""), Direction::Up).segment, Some(Mss::new(1460)));
    assert_eq!(bounds(&path("", "", "mtu = 9000"), Direction::Up).segment, Some(Mss::new(8948)));
}

#[test]
fn nothing_described_bounds_nothing() {
    let bounds = bounds(&path("", "", ""), Direction::Up);
    assert_eq!(bounds.lowest(), None);
    assert_eq!((bounds.bottleneck, bounds.bdp, bounds.goodput_ceiling), (None, None, None));
}
