//! What a smaller MTU would bring on a slow line, and what it costs. Advice: nobody sets it silently.

use core::time::Duration;

use linerate_units::{ByteCount, Mss, Mtu, Ratio};

use crate::link::{Direction, Line};

/// Below this, in bit/s, one full packet takes more than 4 ms, and is most of what an interactive packet waits for.
const SLOW: f64 = 3e6;

/// What every IPv4 host takes in one piece (RFC 791 §3.1); with IPv6 no link may be smaller than 1280 (RFC 8200 §5).
const SMALLEST: Mtu = Mtu::new(576);
const SMALLEST_FOR_IPV6: Mtu = Mtu::new(1280);

/// The headers of TCP with timestamps over IPv4 and over IPv6.
const HEADERS: ByteCount = ByteCount::new(20 + 32);
const HEADERS_IPV6: ByteCount = ByteCount::new(40 + 32);

/// What TCP's header and IP's take without options, which is what the MSS leaves out (RFC 9293 §3.7.1).
const BARE: u32 = 40;

/// How a smaller packet is brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// A route's MTU: everything that this host sends there; the peers' TCP follows the advertised MSS.
    RouteMtu(Mtu),
    /// The MSS in the handshakes of TCP that pass here is lowered: TCP only, both directions, hosts behind this one too.
    MssClamp(Mss),
}

/// What a smaller packet would bring in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// In which direction.
    pub direction: Direction,
    /// The largest packet then.
    pub mtu: Mtu,
    /// How, the gentler way last.
    pub means: [Means; 2],
    /// How long a full packet keeps the line busy now.
    pub packet_now: Duration,
    /// And then.
    pub packet_then: Duration,
    /// What the mean delay of an interactive packet under load falls by: half the difference.
    pub mean_gain: Duration,
    /// What the longest falls by: two packets' difference.
    pub longest_gain: Duration,
    /// The share of the goodput of one direction that more headers and cells cost: payload per byte on the line, then and now.
    pub goodput_cost: Ratio,
    /// What else is to be said: sentences.
    pub notes: Vec<String>,
}

/// Offers for each direction of a line below 3 Mbit/s, the strongest first: 576 bytes, and 1280, which IPv6 allows.
/// Empty for faster lines, and where the MTU is as small already.
#[must_use]
pub fn advice(line: &Line) -> Vec<Advice> {
    let slow = |direction| line.rate(direction).is_some_and(|rate| !rate.is_zero() && rate.bits_per_second() < SLOW);
    let directions = Direction::BOTH.into_iter().filter(|direction| slow(*direction));
    let sizes = [SMALLEST, SMALLEST_FOR_IPV6];
    directions.flat_map(|direction| sizes.into_iter().filter_map(move |mtu| offer(line, direction, mtu))).collect()
}

fn offer(line: &Line, direction: Direction, mtu: Mtu) -> Option<Advice> {
    if mtu >= line.mtu {
        return None;
    }
    let packet_now = line.serialisation(direction, line.mtu.byte_count())?;
    let packet_then = line.serialisation(direction, mtu.byte_count())?;
    let gain = packet_now.saturating_sub(packet_then);
    let ipv6 = mtu >= SMALLEST_FOR_IPV6;
    let headers = if ipv6 { HEADERS_IPV6 } else { HEADERS };
    let efficiency = |mtu: Mtu| {
        let size = mtu.byte_count();
        (size - headers).as_f64() / line.layer.wire_length(size).as_f64()
    };
    let goodput_cost = Ratio::new(1.0 - efficiency(mtu) / efficiency(line.mtu))?;
    let segment = Mss::new(mtu.get() - BARE - if ipv6 { 20 } else { 0 });
    let mut notes = vec![
        "With both directions full the cost is larger: more packets mean more acknowledgements (25 % was seen for 576)."
            .to_owned(),
        "What other flows wait for in their own queues changes little: this is for what goes first.".to_owned(),
    ];
    if !ipv6 {
        notes.push("IPv6 needs 1280: for it, only the segments of TCP can be made smaller.".to_owned());
    }
    Some(Advice {
        direction,
        mtu,
        means: [Means::RouteMtu(mtu), Means::MssClamp(segment)],
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
        let line = Line::new(Some(BitRate::from_bits_per_second(220e3)), Some(BitRate::from_bits_per_second(8e6)));
        let all = advice(&line);
        assert_eq!(all.len(), 2, "only upwards, two sizes");
        let first = &all[0];
        assert_eq!((first.direction, first.mtu), (Direction::Up, Mtu::new(576)));
        assert!(first.mean_gain.abs_diff(Duration::from_micros(16_800)) < Duration::from_micros(1), "{first:?}");
        assert!((first.goodput_cost.percent() - 5.76).abs() < 0.01, "{first:?}");
        assert_eq!(first.means[1], Means::MssClamp(Mss::new(536)));
        assert_eq!(all[1].means[1], Means::MssClamp(Mss::new(1220)));
        assert!(all[1].goodput_cost < first.goodput_cost);
    }

    #[test]
    fn no_advice_where_nothing_is_gained() {
        let fast = BitRate::from_bits_per_second(3e6);
        assert!(advice(&Line::new(Some(fast), Some(fast))).is_empty());
        let mut line = Line::new(Some(BitRate::from_bits_per_second(1e5)), None);
        line.mtu = Mtu::new(576);
        assert!(advice(&line).is_empty());
    }
}
