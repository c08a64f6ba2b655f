use core::time::Duration;

use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio};

use super::PacketLayout;
use crate::statistics::{BlockSample, BootstrapSettings, SampleStatistic};

/// Seed of the interval's resampling.
const RESAMPLING_SEED: u64 = 1;

/// Shares of the rate at which more was sent than the path carries, and at which it was carried at all.
const MIN_SATURATING_SHARE: f64 = 0.98;
const MIN_CARRIED_SHARE: f64 = 0.5;

/// Packets by which a period's count may be wrong: one at each end, as they leave and arrive whole.
const UNCERTAIN_PACKETS: f64 = 2.0;

/// Time by which a period may be wrong: the tick of a shaper or a receiver's coalescing at each end.
const UNCERTAIN_TIME: Duration = Duration::from_millis(2);

/// Share by which shapers and clocks miss their nominal rate.
const RATE_GRANULARITY: f64 = 0.005;

/// Largest share of other traffic that waits of probes can show.
const MAX_OTHERS_SHARE: f64 = 0.9;

/// Shares of a full packet's time at the capacity: up to which half of the probes at rest wait for nothing, and from which
/// some of them wait for a packet.
const MAX_USUAL_WAIT: f64 = 0.1;
const MIN_PACKET_WAIT: f64 = 0.5;

/// Share of the time that other traffic takes of a path at rest, at most, by the one-way delays of probes: most of them
/// wait for nothing, and some for a packet. A probe at a random moment waits for half a packet in that share of the time
/// (PASTA), longer where packets queue. `None` where nothing waits, and where delays vary by themselves.
#[must_use]
pub fn share_of_others(delays: &ProbeDelays, packet: Duration) -> Option<Ratio> {
    let wait = |delay: Duration| delay.saturating_sub(delays.least);
    let is_traffic =
        wait(delays.median) <= packet.mul_f64(MAX_USUAL_WAIT) && wait(delays.high) >= packet.mul_f64(MIN_PACKET_WAIT);
    let share = Ratio::of(2.0 * wait(delays.mean).as_secs_f64(), packet.as_secs_f64()).filter(|_| is_traffic)?;
    Ratio::new(share.get().min(MAX_OTHERS_SHARE))
}

/// One-way delays of probes at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeDelays {
    /// Smallest.
    pub least: Duration,
    /// Median.
    pub median: Duration,
    /// Mean.
    pub mean: Duration,
    /// 95th percentile.
    pub high: Duration,
}

/// Reason why the limit of the path was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchLimiter {
    /// The sending host sent less than requested.
    Sender,
    /// The receiving host dropped packets that the path had delivered.
    Receiver,
    /// The highest allowed rate arrived.
    MaximumRate,
    /// The allowed time was over.
    Duration,
    /// The allowed bytes were sent.
    Bytes,
}

/// Meaning of the capacity figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CapacityBound {
    /// Capacity of the path: more was sent than arrived, and the received rate did not grow.
    Path,
    /// A lower bound: at least this much arrived, and this ended the search.
    AtLeast(SearchLimiter),
    /// Unknown: too little arrived.
    Unknown,
}

/// Rates between two reports, for a chart of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Arrival time of the report, by the driver's clock.
    pub at: MonotonicTime,
    /// Send rate of these packets.
    pub sent: BitRate,
    /// Receive rate of these packets.
    pub received: BitRate,
}

/// The result of a search. All rates are of IP packets, with IP and UDP headers.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityEstimate {
    /// Capacity, or the highest received rate; `None` when unknown.
    pub capacity: Option<BitRate>,
    /// Highest rate that the path carried for a shorter time while it limited, where that is certainly more: other traffic
    /// takes part of it at times.
    pub highest: Option<BitRate>,
    /// Meaning of that figure.
    pub bound: CapacityBound,
    /// Time over which it was measured: about a second, less where the limits did not allow that (RFC 9097 §6).
    pub sub_interval: Duration,
    /// Send rate in that time.
    pub sent_rate: Option<BitRate>,
    /// Loss in that time: mostly packets sent beyond the capacity.
    pub loss: Option<Ratio>,
    /// Loss below the capacity: that of the path itself.
    pub loss_below_capacity: Option<Ratio>,
    /// True when traffic that does not yield was detected at the bottleneck: then the capacity excludes that traffic.
    /// Traffic below about a tenth of the link is not detected, and is partly pushed out.
    pub shared: bool,
    /// Growth of the delay above its minimum over the whole search, smallest and largest value of the measured time:
    /// the queue at the bottleneck. The round-trip time grew by as much.
    pub delay_growth: Option<(Duration, Duration)>,
    /// Copies of packets, in the whole search.
    pub duplicates: PacketCount,
    /// Packets that arrived late, in the whole search.
    pub reordered: PacketCount,
    /// Packets lost at the receiving host, in the whole search; `None` when it does not report them.
    pub receiver_dropped: Option<PacketCount>,
    /// True when the sending host kept up with the requested rate.
    pub sender_kept_up: bool,
    /// IP bytes requested to be sent: an upper bound of the traffic of the search.
    pub asked_for: ByteCount,
    /// Duration of the search.
    pub elapsed: Duration,
    /// Rates, report by report.
    pub readings: Vec<RateSample>,
}

impl CapacityEstimate {
    /// Interval that contains the capacity in at least 95 % of searches; `None` without a rate, and where it is a lower
    /// bound only.
    ///
    /// It has the bootstrap interval of the rates while more was sent than arrived, and systematic parts: whole packets
    /// and ticks at the ends of the period, the granularity of rates, and the path's own loss. Behind the bottleneck,
    /// that loss hides its part of the capacity; before it, nothing. Where other traffic comes and goes, the path carries
    /// what it carried in the pauses.
    #[must_use]
    pub fn interval(&self, packet: &PacketLayout) -> Option<(BitRate, BitRate)> {
        let rate = self.capacity.filter(|rate| !rate.is_zero() && !matches!(self.bound, CapacityBound::AtLeast(_)))?;
        let full: Vec<BitRate> = self
            .readings
            .iter()
            .filter(|reading| {
                reading.sent >= rate * MIN_SATURATING_SHARE && reading.received >= rate * MIN_CARRIED_SHARE
            })
            .map(|reading| reading.received)
            .collect();
        let sample = BlockSample::independent(&full);
        let random = sample.estimate(SampleStatistic::Mean, &BootstrapSettings::with_seed(RESAMPLING_SEED))?.interval?;
        let systematic = self.systematic_share(rate, packet);
        let loss = self.loss_below_capacity.map_or(0.0, Ratio::get).clamp(0.0, 0.5);
        Some((
            random.low.min(rate) * (1.0 - systematic).max(0.0),
            random.high.max(rate).max(self.highest.unwrap_or(rate)) * ((1.0 + systematic) / (1.0 - loss)),
        ))
    }

    /// Returns the upper end of that interval where probes waited for other traffic at rest: a fair queue may have left
    /// only the remainder to the search.
    #[must_use]
    pub fn with_others(high: BitRate, share: Ratio) -> BitRate {
        high * (1.0 / (1.0 - share.get().min(MAX_OTHERS_SHARE)))
    }

    /// Systematic error of the rate, as a share.
    fn systematic_share(&self, rate: BitRate, packet: &PacketLayout) -> f64 {
        let period = self.sub_interval.as_secs_f64().max(f64::MIN_POSITIVE);
        let packets = rate.bits_per_second() * period / (packet.size().as_f64() * 8.0);
        RATE_GRANULARITY + UNCERTAIN_PACKETS / packets.max(1.0) + UNCERTAIN_TIME.as_secs_f64() / period
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(median: u64, mean: u64, high: u64) -> Option<f64> {
        let delay = |wait: u64| Duration::from_micros(10_000 + wait);
        let delays = ProbeDelays { least: delay(0), median: delay(median), mean: delay(mean), high: delay(high) };
        share_of_others(&delays, Duration::from_millis(1)).map(|share| (share.get() * 100.0).round() / 100.0)
    }

    #[test]
    fn waits_of_some_probes_show_other_traffic() {
        // A fifth of the probes wait for half a packet.
        assert_eq!(share(0, 100, 800), Some(0.2));
        assert_eq!(share(50, 700, 9000), Some(0.9), "queues of others");
        assert_eq!(share(0, 20, 300), None, "timers of hosts");
        assert_eq!(share(900, 1000, 3000), None, "a delay that varies by itself");
        let high = CapacityEstimate::with_others(BitRate::from_bits_per_second(8e6), Ratio::new(0.2).expect("a share"));
        assert!((high.bits_per_second() - 10e6).abs() < 1.0);
    }
}
