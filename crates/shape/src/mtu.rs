//! Benefit and cost of a smaller MTU on a slow link. Advice only: it is never set implicitly.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{ByteCount, Mss, Mtu, Ratio};

use crate::link::AccessLink;

/// Rate in bit/s below which a full packet takes more than 4 ms and dominates the delay of interactive packets.
const SLOW_RATE: f64 = 3e6;

/// Minimum MTU: the size that every IPv4 host accepts (RFC 791 §3.1), and IPv6's minimum link MTU (RFC 8200 §5).
const MIN_MTU: Mtu = Mtu::new(576);
const MIN_MTU_IPV6: Mtu = Mtu::new(1280);

/// Headers of TCP with timestamps over IPv4 and over IPv6.
const HEADERS: ByteCount = ByteCount::new(20 + 32);
const HEADERS_IPV6: ByteCount = ByteCount::new(40 + 32);

/// Size of the TCP and IP headers without options, which the MSS excludes (RFC 9293 §3.7.1).
const BARE_HEADERS: u32 = 40;

/// Method to reduce the packet size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuMethod {
    /// Route MTU: all packets of this host to that route; the peers' TCP follows the advertised MSS.
    RouteMtu(Mtu),
    /// MSS clamping of forwarded TCP handshakes: TCP only, both directions, including hosts behind this one.
    MssClamp(Mss),
}

/// Effect of a smaller packet size in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct MtuOffer {
    /// Direction.
    pub direction: Direction,
    /// Reduced MTU.
    pub mtu: Mtu,
    /// Methods, the gentler one last.
    pub means: [MtuMethod; 2],
    /// Current serialisation time of a full packet.
    pub packet_now: Duration,
    /// Reduced serialisation time of a full packet.
    pub packet_then: Duration,
    /// Reduction of an interactive packet's mean delay under load: half the difference.
    pub mean_gain: Duration,
    /// Reduction of its longest delay: two packets' difference.
    pub longest_gain: Duration,
    /// Loss of goodput in one direction by more headers and cells: payload per byte on the link.
    pub goodput_cost: Ratio,
    /// Notes: sentences.
    pub notes: Vec<String>,
}

/// Offers for each direction of a link below 3 Mbit/s, the strongest first: 576 bytes, and 1280, IPv6's minimum. Empty
/// for faster links, and where the MTU is already as small.
#[must_use]
pub fn advice(line: &AccessLink) -> Vec<MtuOffer> {
    let slow =
        |direction| line.rate(direction).is_some_and(|rate| !rate.is_zero() && rate.bits_per_second() < SLOW_RATE);
    let directions = Direction::BOTH.into_iter().filter(|direction| slow(*direction));
    let sizes = [MIN_MTU, MIN_MTU_IPV6];
    directions.flat_map(|direction| sizes.into_iter().filter_map(move |mtu| offer(line, direction, mtu))).collect()
}

fn offer(line: &AccessLink, direction: Direction, mtu: Mtu) -> Option<MtuOffer> {
    if mtu >= line.mtu {
        return None;
    }
    let packet_now = line.serialisation(direction, line.mtu.byte_count())?;
    let packet_then = line.serialisation(direction, mtu.byte_count())?;
    let gain = packet_now.saturating_sub(packet_then);
    let ipv6 = mtu >= MIN_MTU_IPV6;
    let headers = if ipv6 { HEADERS_IPV6 } else { HEADERS };
    let efficiency = |mtu: Mtu| {
        let size = mtu.byte_count();
        (size - headers).as_f64() / line.layer.wire_length(size).as_f64()
    };
    let goodput_cost = Ratio::new(1.0 - efficiency(mtu) / efficiency(line.mtu))?;
    let segment = Mss::new(mtu.get() - BARE_HEADERS - if ipv6 { 20 } else { 0 });
    let mut notes = vec![
        "With both directions full the cost is larger: more packets mean more acknowledgements (25 % was seen for 576)."
            .to_owned(),
        "The queues of other flows change little: the gain is for prioritised traffic.".to_owned(),
    ];
    if !ipv6 {
        notes.push("IPv6 needs 1280: only its TCP segments can be smaller.".to_owned());
    }
    Some(MtuOffer {
        direction,
        mtu,
        means: [MtuMethod::RouteMtu(mtu), MtuMethod::MssClamp(segment)],
        packet_now,
        packet_then,
        mean_gain: gain / 2,
        longest_gain: gain.saturating_mul(2),
        goodput_cost,
        notes,
    })
}

#[cfg(test)]
mod tests {
    use linerate_units::BitRate;

    use super::*;

    /// 1500 × 8 / 220 000 = 54.5 ms, 576 × 8 / 220 000 = 20.9 ms; half of the difference is 16.8 ms. Goodput:
    /// (524 / 576) / (1448 / 1500) = 0.942, so 5.8 % (reference: 7 % was measured).
    #[test]
    fn an_uplink_of_220_kilobits() {
        let line =
            AccessLink::new(Some(BitRate::from_bits_per_second(220e3)), Some(BitRate::from_bits_per_second(8e6)));
        let all = advice(&line);
        assert_eq!(all.len(), 2, "only upwards, two sizes");
        let first = &all[0];
        assert_eq!((first.direction, first.mtu), (Direction::Up, Mtu::new(576)));
        assert!(first.mean_gain.abs_diff(Duration::from_micros(16_800)) < Duration::from_micros(1), "{first:?}");
        assert!((first.goodput_cost.percent() - 5.76).abs() < 0.01, "{first:?}");
        assert_eq!(first.means[1], MtuMethod::MssClamp(Mss::new(536)));
        assert_eq!(all[1].means[1], MtuMethod::MssClamp(Mss::new(1220)));
        assert!(all[1].goodput_cost < first.goodput_cost);
    }

    #[test]
    fn no_advice_where_nothing_is_gained() {
        let fast = BitRate::from_bits_per_second(3e6);
        assert!(advice(&AccessLink::new(Some(fast), Some(fast))).is_empty());
        let mut line = AccessLink::new(Some(BitRate::from_bits_per_second(1e5)), None);
        line.mtu = Mtu::new(576);
        assert!(advice(&line).is_empty());
    }
}
