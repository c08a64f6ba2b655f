//! Framework for TCP throughput testing (RFC 6349): expected performance of a path.
//!
//! The measured performance is evaluated by the three metrics of the RFC, which are formulas
//! ([`crate::formulas::transfer_time_ratio`], [`crate::formulas::tcp_efficiency`], [`crate::formulas::buffer_delay`]).
//!
//! The bottleneck's rate is a layer-2 rate here, as links are sold: [`SegmentFraming::link`] is the framing that it counts
//! around each IP packet. Where the rate comes from [`crate::capacity`], it counts IP packets, and the link framing is
//! zero.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount};

use crate::formulas::SegmentFraming;

/// Path parameters from steps 1 and 2 of the procedure (§2.1, §3.1, §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathBottleneck {
    /// Rate of the bottleneck.
    pub rate: BitRate,
    /// Idle round-trip time: the smallest measured.
    pub round_trip: Duration,
    /// Packet sizes: path MTU, headers, and link framing.
    pub framing: SegmentFraming,
}

impl PathBottleneck {
    /// Maximum achievable TCP payload rate (§4.1.1); `None` when headers fill the packets.
    #[must_use]
    pub fn achievable(&self) -> Option<BitRate> {
        self.framing.goodput(self.rate)
    }

    /// Smallest window that fills the path: the bandwidth-delay product (§3.3.1).
    #[must_use]
    pub fn min_window(&self) -> ByteCount {
        self.rate * self.round_trip
    }

    /// Expected payload rate with a window of that many bytes: one window per round trip, up to the achievable rate
    /// (§3.3.1). `None` when headers fill the packets, and without a round-trip time.
    #[must_use]
    pub fn expected_rate(&self, window: ByteCount) -> Option<BitRate> {
        if self.round_trip.is_zero() {
            return None;
        }
        Some(window.rate_over(self.round_trip).min(self.achievable()?))
    }

    /// Ideal transfer time of that much payload (§4.1); `None` at an achievable rate of zero.
    #[must_use]
    pub fn ideal_time(&self, payload: ByteCount) -> Option<Duration> {
        payload / self.achievable()?
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::Mtu;
    use proptest::prelude::*;

    use super::*;
    use crate::formulas::InternetProtocol;

    fn path(megabits: f64, milliseconds: f64) -> PathBottleneck {
        PathBottleneck {
            rate: BitRate::from_bits_per_second(megabits * 1e6),
            round_trip: Duration::from_secs_f64(milliseconds / 1e3),
            framing: SegmentFraming {
                mtu: Mtu::new(1500),
                protocol: InternetProtocol::V4,
                timestamps: false,
                link: SegmentFraming::ETHERNET_CABLE,
            },
        }
    }

    #[track_caller]
    fn megabits(rate: Option<BitRate>, expected: f64) {
        let rate = rate.map_or(0.0, |rate| rate.bits_per_second() / 1e6);
        assert!((rate / expected - 1.0).abs() < 2e-3, "{rate}, expected {expected}");
    }

    #[test]
    fn windows_of_section_3_3_1() {
        for (rate, milliseconds, bytes) in
            [(44.21, 25.0, 138_156), (100.0, 5.0, 62_500), (1000.0, 1.0, 125_000), (10_000.0, 0.3, 375_000)]
        {
            assert_eq!(path(rate, milliseconds).min_window(), ByteCount::new(bytes));
        }
    }

    #[test]
    fn rates_of_section_3_3_1_and_4_1_1() {
        // A window of 16 KB: 25.6 Mbit/s at 5 ms and 12.8 at 10 ms.
        megabits(path(100.0, 5.0).expected_rate(ByteCount::new(16_000)), 25.6);
        megabits(path(100.0, 10.0).expected_rate(ByteCount::new(16_000)), 12.8);
        // 100 Mbit/s of Ethernet: 94.9 Mbit/s of payload.
        megabits(path(100.0, 5.0).achievable(), 94.9);
        megabits(path(100.0, 5.0).expected_rate(ByteCount::from_mebibytes(1)), 94.9);
        // T3, 44.21 Mbit/s, where HDLC and PPP use 8 bytes of a packet: 42.8 Mbit/s, which 64 KB at 10 ms exceed.
        let mut t3 = path(44.21, 10.0);
        t3.framing.link = ByteCount::new(8);
        megabits(t3.expected_rate(ByteCount::from_kibibytes(64)), 42.8);
    }

    #[test]
    fn ideal_times() {
        // 100 MB at 94.9 Mbit/s.
        let ideal = path(100.0, 5.0).ideal_time(ByteCount::new(100_000_000)).expect("payload");
        assert!((ideal.as_secs_f64() - 8.43).abs() < 0.01, "{ideal:?}");
        assert_eq!(path(100.0, 0.0).expected_rate(ByteCount::new(1)), None);
        assert_eq!(path(0.0, 5.0).ideal_time(ByteCount::new(1)), None);
    }

    proptest! {
        #[test]
        fn a_window_never_gives_more_than_the_path(
            rate in 0.1..1e5_f64, milliseconds in 0.01..1000.0_f64, window in 1_u64..1_000_000_000
        ) {
            let path = path(rate, milliseconds);
            let (window, achievable) = (ByteCount::new(window), path.achievable().expect("payload"));
            let expected = path.expected_rate(window).expect("a path");
            prop_assert!(expected <= achievable && expected <= window.rate_over(path.round_trip));
            // In the ideal time, payload arrives at the achievable rate.
            let ideal = path.ideal_time(window).expect("payload");
            let share = window.rate_over(ideal).bits_per_second() / achievable.bits_per_second();
            prop_assert!((share - 1.0).abs() < 1e-3 || ideal < Duration::from_micros(1), "{}", share);
        }
    }
}
