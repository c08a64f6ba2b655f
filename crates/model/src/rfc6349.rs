//! The framework for TCP throughput testing (RFC 6349): what a path should give, and the three metrics of what it gave.
//!
//! * Transfer time ratio (§4.1): the time that a transfer took, of the ideal time.
//! * TCP efficiency (§4.2): the share of the bytes sent that were not retransmissions.
//! * Buffer delay (§4.3): how much more the round trip took during the transfer than at rest, of the time at rest.
//!
//! The RFC reads them together: a bad ratio with low efficiency comes from loss, with high buffer delay from queues; with
//! neither, windows, hosts or applications hold the transfer back.
//!
//! The bottleneck's rate is a layer-2 rate here, as links are sold: [`Framing::link`] says what it counts around each IP
//! packet. Where the rate comes from [`crate::capacity`], it counts IP packets, and the framing's link share is zero.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, PacketCount, Ratio};

use crate::formulas::Framing;

/// A path as steps 1 and 2 of the procedure know it (§2.1, §3.1, §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// The bottleneck's rate.
    pub rate: BitRate,
    /// The round-trip time at rest: the smallest that was measured.
    pub round_trip: Duration,
    /// The packets' sizes: path MTU, headers, and what the rate counts around them.
    pub framing: Framing,
}

impl Bottleneck {
    /// Packets of full size per second that the bottleneck carries (§4.1.1); `None` for packets of no size.
    #[must_use]
    pub fn packets_per_second(&self) -> Option<PacketCount> {
        let packet = self.framing.mtu.byte_count() + self.framing.link;
        Some(PacketCount::new(self.rate.whole_bits_per_second() / (packet * 8).get().max(1)))
            .filter(|_| !packet.is_zero())
    }

    /// The highest rate of payload that TCP can reach (§4.1.1); `None` when headers fill the packets.
    #[must_use]
    pub fn achievable(&self) -> Option<BitRate> {
        self.framing.goodput(self.rate)
    }

    /// The smallest window that fills the path: the bandwidth-delay product (§3.3.1).
    #[must_use]
    pub fn least_window(&self) -> ByteCount {
        self.rate * self.round_trip
    }

    /// The rate of payload to expect with a window of that many bytes: a window each round trip, as long as the path
    /// carries it (§3.3.1). `None` when headers fill the packets, and without a round-trip time.
    #[must_use]
    pub fn expected(&self, window: ByteCount) -> Option<BitRate> {
        if self.round_trip.is_zero() {
            return None;
        }
        Some(window.rate_over(self.round_trip).min(self.achievable()?))
    }

    /// The time in which that much payload arrives at best (§4.1); `None` when nothing does.
    #[must_use]
    pub fn ideal_time(&self, payload: ByteCount) -> Option<Duration> {
        payload / self.achievable()?
    }
}

/// One test with a chosen window: what came of it (§3.3.2 shows them side by side).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowTest {
    /// The window of all connections together.
    pub window: ByteCount,
    /// What the path and the window allow.
    pub expected: BitRate,
    /// What was received.
    pub achieved: BitRate,
    /// Achieved of expected; `None` when nothing can be expected.
    pub share: Option<Ratio>,
}

impl WindowTest {
    /// The test beside its expectation; `None` when there is none.
    #[must_use]
    pub fn of(bottleneck: &Bottleneck, window: ByteCount, achieved: BitRate) -> Option<Self> {
        let expected = bottleneck.expected(window)?;
        Some(Self { window, expected, achieved, share: achieved / expected })
    }
}

/// TCP transfer time ratio (§4.1): 1 is ideal, 1.5 took half as long again. `None` without an ideal time.
#[must_use]
pub fn transfer_time_ratio(actual: Duration, ideal: Duration) -> Option<Ratio> {
    Ratio::of(actual.as_secs_f64(), ideal.as_secs_f64())
}

/// TCP efficiency (§4.2): `(sent − retransmitted) / sent`, where `sent` includes retransmissions, as
/// `tcpi_bytes_sent` and `tcpi_bytes_retrans` count. `None` when nothing was sent.
#[must_use]
pub fn tcp_efficiency(sent: ByteCount, retransmitted: ByteCount) -> Option<Ratio> {
    (sent - retransmitted) / sent
}

/// Buffer delay (§4.3): `(mean − base) / base` of round-trip times, zero when the mean is below the base. `None` without
/// a base.
#[must_use]
pub fn buffer_delay(mean_in_transfer: Duration, base: Duration) -> Option<Ratio> {
    Ratio::of(mean_in_transfer.saturating_sub(base).as_secs_f64(), base.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use linerate_units::Mtu;
    use proptest::prelude::*;

    use super::*;
    use crate::formulas::InternetProtocol;

    fn path(megabits: f64, milliseconds: f64) -> Bottleneck {
        Bottleneck {
            rate: BitRate::from_bits_per_second(megabits * 1e6),
            round_trip: Duration::from_secs_f64(milliseconds / 1e3),
            framing: Framing {
                mtu: Mtu::new(1500),
                protocol: InternetProtocol::V4,
                timestamps: false,
                link: Framing::ETHERNET_CABLE,
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
            assert_eq!(path(rate, milliseconds).least_window(), ByteCount::new(bytes));
        }
    }

    #[test]
    fn rates_of_section_3_3_1_and_4_1_1() {
        // A window of 16 KB: 25.6 Mbit/s at 5 ms and 12.8 at 10 ms.
        megabits(path(100.0, 5.0).expected(ByteCount::new(16_000)), 25.6);
        megabits(path(100.0, 10.0).expected(ByteCount::new(16_000)), 12.8);
        // 100 Mbit/s of Ethernet: 8127 frames a second, 94.9 Mbit/s of payload; 81274 and 812743 for ten times that.
        megabits(path(100.0, 5.0).achievable(), 94.9);
        megabits(path(100.0, 5.0).expected(ByteCount::from_mebibytes(1)), 94.9);
        for (rate, frames) in [(100.0, 8127), (1000.0, 81_274), (10_000.0, 812_743)] {
            assert_eq!(path(rate, 1.0).packets_per_second(), Some(PacketCount::new(frames)));
        }
        // T3, 44.21 Mbit/s, where HDLC and PPP take 8 bytes of a packet: 42.8 Mbit/s, which 64 KB at 10 ms exceed.
        let mut t3 = path(44.21, 10.0);
        t3.framing.link = ByteCount::new(8);
        megabits(t3.expected(ByteCount::from_kibibytes(64)), 42.8);
    }

    #[test]
    fn examples_of_section_4() {
        let ratio = transfer_time_ratio(Duration::from_secs(12), Duration::from_secs(8));
        assert_eq!(ratio, Ratio::new(1.5));
        let efficiency = tcp_efficiency(ByteCount::new(102_000), ByteCount::new(2000)).map_or(0.0, Ratio::percent);
        // The RFC prints 98.03 %, cut off.
        assert!((efficiency - 98.039).abs() < 1e-3, "{efficiency}");
        let delay = buffer_delay(Duration::from_millis(32), Duration::from_millis(25)).map_or(0.0, Ratio::percent);
        assert!((delay - 28.0).abs() < 1e-9, "{delay}");
        // 100 MB at 94.9 Mbit/s.
        let ideal = path(100.0, 5.0).ideal_time(ByteCount::new(100_000_000)).expect("payload");
        assert!((ideal.as_secs_f64() - 8.43).abs() < 0.01, "{ideal:?}");
    }

    #[test]
    fn what_has_no_answer() {
        assert_eq!(transfer_time_ratio(Duration::from_secs(1), Duration::ZERO), None);
        assert_eq!(tcp_efficiency(ByteCount::ZERO, ByteCount::ZERO), None);
        assert_eq!(buffer_delay(Duration::from_secs(1), Duration::ZERO), None);
        assert_eq!(buffer_delay(Duration::from_millis(9), Duration::from_millis(10)), Some(Ratio::ZERO));
        assert_eq!(path(100.0, 0.0).expected(ByteCount::new(1)), None);
        assert_eq!(path(0.0, 5.0).ideal_time(ByteCount::new(1)), None);
    }

    proptest! {
        #[test]
        fn a_window_never_gives_more_than_the_path(
            rate in 0.1..1e5_f64, milliseconds in 0.01..1000.0_f64, window in 1_u64..1_000_000_000
        ) {
            let path = path(rate, milliseconds);
            let test = WindowTest::of(&path, ByteCount::new(window), path.rate).expect("a path");
            prop_assert!(test.expected <= path.achievable().expect("payload"));
            // What arrives in the ideal time is the achievable rate.
            let payload = ByteCount::new(window);
            let ideal = path.ideal_time(payload).expect("payload");
            let ratio = transfer_time_ratio(ideal * 2, ideal).expect("time").get();
            prop_assert!((ratio - 2.0).abs() < 1e-6 || ideal < Duration::from_micros(1));
        }
    }
}
