//! Ground truth of a path: the built-in figures that a measurement should find.
//!
//! [`crate::bounds`] computes what TCP can reach over a path; here is the path itself, as `linerate path` measures it.
//! The tests of the lab compare the two.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount, Ratio};

use crate::description::{
    EmulatedLink, LinkDirection, LinkLayer, LossModel, PathDescription, PolicerDescription, TrafficKind,
};

/// Ground truth of one direction of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct GroundTruth {
    /// Largest IP packet that arrives.
    pub mtu: Mtu,
    /// Largest IP packet that the sender's own interface takes.
    pub interface_mtu: Mtu,
    /// True when larger packets are dropped without an ICMP error.
    pub black_hole: bool,
    /// IP-layer bits that arrive per second when more than enough full packets are sent; `None` where no link, no
    /// policer and no queueing discipline of the sender has a rate. Where rates change with time, by the first ones.
    pub capacity: Option<BitRate>,
    /// Part of it that other traffic keeps without yielding.
    pub taken: BitRate,
    /// True when other traffic comes and goes, or shares the capacity.
    pub contended: bool,
    /// Share of packets that do not arrive, when no queue overflows.
    pub loss: Ratio,
    /// True when losses come in bursts, so that their number varies more than a binomial one.
    pub bursty: bool,
    /// Period of periodic loss, in packets.
    pub periodic_loss: Option<PacketCount>,
    /// Share of packets that arrive twice.
    pub duplication: Ratio,
    /// Maximum time by which packets overtake others; zero where they do not.
    pub overtaking: Duration,
    /// Standard deviation (or half the width) of the delay; zero where it does not vary.
    pub jitter: Duration,
    /// The strictest policer.
    pub policer: Option<PolicerDescription>,
    /// True when the ECN bits are cleared on the path.
    pub bleaches_ecn: bool,
    /// True when ECT(1) becomes ECT(0) on the path.
    pub rewrites_ect1: bool,
}

/// The figures of one direction.
#[must_use]
pub fn truth(path: &PathDescription, way: Direction) -> GroundTruth {
    let links: Vec<(&EmulatedLink, &LinkDirection)> =
        path.links.iter().map(|link| (link, link.direction(way))).collect();
    let interface_mtu = match way {
        Direction::Up => path.links.first(),
        Direction::Down => path.links.last(),
    }
    .map_or(Mtu::new(1500), |link| link.mtu);
    let said = links.iter().map(|(link, _)| link.mtu).min().unwrap_or(interface_mtu);
    let dropped = links.iter().filter_map(|(_, direction)| direction.drop_larger_than).min();
    let silent = dropped.and_then(|size| u32::try_from(size.get()).ok()).map(Mtu::new).filter(|mtu| *mtu < said);
    let mtu = silent.unwrap_or(said);
    let policer = links.iter().filter_map(|(_, direction)| direction.policer).min_by_key(|policer| policer.rate);
    let losses: Vec<LossModel> = links.iter().filter_map(|(_, direction)| direction.loss).collect();
    GroundTruth {
        mtu,
        interface_mtu,
        black_hole: silent.is_some(),
        capacity: [capacity(&links, mtu, policer), host_rate(path, way, mtu)].into_iter().flatten().min(),
        taken: taken(path, way),
        contended: path.traffic.iter().any(|traffic| runs_along(path, way, &traffic.from)),
        loss: loss(&links),
        bursty: losses.iter().any(|loss| matches!(loss, LossModel::GilbertElliott { .. })),
        periodic_loss: losses.iter().find_map(|loss| match loss {
            LossModel::Every(count) => Some(*count),
            _ => None,
        }),
        duplication: links.iter().filter_map(|(_, direction)| direction.duplicate).max().unwrap_or_default(),
        overtaking: links.iter().filter_map(|(_, direction)| direction.reorder).map(|reorder| reorder.by).sum(),
        jitter: links.iter().filter_map(|(_, direction)| direction.jitter).map(|jitter| jitter.by).sum(),
        policer,
        bleaches_ecn: links.iter().any(|(_, direction)| direction.bleach_ecn),
        rewrites_ect1: links.iter().any(|(_, direction)| direction.rewrite_ect1),
    }
}

/// Round trip of an IP packet of this size and an answer of the same size, without queueing and jitter: all delays, and
/// the time to send the packet on each link.
#[must_use]
pub fn round_trip(path: &PathDescription, size: ByteCount) -> Duration {
    let both = |link: &EmulatedLink| link.forward.serialisation(size) + link.backward.serialisation(size);
    path.propagation() + path.links.iter().map(both).sum::<Duration>()
}

/// Rate of full packets on the slowest link, or of the policer, which counts IP bytes.
fn capacity(
    links: &[(&EmulatedLink, &LinkDirection)],
    mtu: Mtu,
    policer: Option<PolicerDescription>,
) -> Option<BitRate> {
    let packet = mtu.byte_count();
    let rate_of_packets = |direction: &LinkDirection| {
        let share = packet / direction.layer.counted(packet);
        direction.counted_rate().zip(share).map(|(rate, share)| rate * share.get())
    };
    let link = links.iter().filter_map(|(_, direction)| rate_of_packets(direction)).min();
    [link, policer.map(|policer| policer.rate)].into_iter().flatten().min()
}

/// Rate of full packets that the sending host's own queueing discipline passes.
fn host_rate(path: &PathDescription, way: Direction, mtu: Mtu) -> Option<BitRate> {
    let sender = match way {
        Direction::Up => path.hosts.first(),
        Direction::Down => path.hosts.last(),
    };
    let packet = mtu.byte_count();
    let share = packet / LinkLayer::VIRTUAL_ETHERNET.counted(packet);
    sender.and_then(|host| host.queueing_rate).zip(share).map(|(rate, share)| rate * share.get())
}

fn loss(links: &[(&EmulatedLink, &LinkDirection)]) -> Ratio {
    let arrive: f64 = links
        .iter()
        .map(|(_, direction)| {
            let lost = direction.loss.map_or(0.0, |loss| loss.mean().get());
            (1.0 - lost) * (1.0 - direction.corrupt.map_or(0.0, Ratio::get))
        })
        .product();
    Ratio::new(1.0 - arrive).unwrap_or_default()
}

/// True when traffic from this host takes this direction: hosts are in the order of the path.
fn runs_along(path: &PathDescription, way: Direction, from: &str) -> bool {
    let last = path.hosts.len().saturating_sub(1);
    let place = path.hosts.iter().position(|host| host.name == from);
    match way {
        Direction::Up => place.is_some_and(|place| place < last),
        Direction::Down => place == Some(last),
    }
}

fn taken(path: &PathDescription, way: Direction) -> BitRate {
    path.traffic
        .iter()
        .filter(|traffic| runs_along(path, way, &traffic.from))
        .map(|traffic| match (traffic.kind, traffic.protocol) {
            (TrafficKind::Paced { rate }, crate::description::TrafficProtocol::Udp) => rate,
            _ => BitRate::ZERO,
        })
        .fold(BitRate::ZERO, |sum, rate| BitRate::from_bits_per_second(sum.bits_per_second() + rate.bits_per_second()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;

    fn of(name: &str, way: Direction) -> GroundTruth {
        truth(&library::find(name).expect("in the library").description().expect("readable"), way)
    }

    fn near(value: Option<BitRate>, expected: f64) -> bool {
        value.is_some_and(|rate| (rate.bits_per_second() / expected - 1.0).abs() < 1e-3)
    }

    #[test]
    fn rates_are_those_of_ip_packets() {
        // 300 Mbit/s × 1500 / 1514.
        assert!(near(of("300m-20ms", Direction::Up).capacity, 297.226e6));
        assert!(near(of("300m-20ms-policer-cubic", Direction::Up).capacity, 100e6));
        assert!(near(of("xs4all-adsl", Direction::Down).capacity, 891.68e3));
        assert!((of("cross-traffic-udp", Direction::Up).taken.bits_per_second() - 200e6).abs() < 1.0);
    }

    #[test]
    fn sizes_and_what_happens_to_larger_packets() {
        let tunnel = of("tunnel-path-mtu", Direction::Up);
        assert_eq!((tunnel.mtu, tunnel.black_hole), (Mtu::new(1400), false));
        let hole = of("300m-20ms-black-hole", Direction::Up);
        assert_eq!((hole.mtu, hole.interface_mtu, hole.black_hole), (Mtu::new(1400), Mtu::new(1500), true));
    }

    #[test]
    fn round_trips_count_the_sending() {
        // 98 bytes with the header: 784 bits / 240k + 784 / 900k + 14 ms.
        let path = library::find("xs4all-adsl").expect("in the library").description().expect("readable");
        let expected = 0.014 + 784.0 / 240e3 + 784.0 / 900e3;
        assert!((round_trip(&path, ByteCount::new(84)).as_secs_f64() - expected).abs() < 1e-6);
    }

    #[test]
    fn only_what_is_built_in_is_there() {
        assert_eq!(of("300m-20ms-ecmp-reordering", Direction::Up).overtaking, Duration::from_micros(500));
        assert!(of("300m-20ms-ecmp-reordering", Direction::Down).overtaking.is_zero());
        assert!(of("300m-20ms-bursty-loss", Direction::Up).bursty);
        let plain = of("300m-20ms", Direction::Up);
        assert_eq!((plain.loss, plain.duplication, plain.policer), (Ratio::ZERO, Ratio::ZERO, None));
    }
}
