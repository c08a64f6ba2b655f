//! Samples of a long test in bounded memory.

use core::time::Duration;

use linerate_model::report::RttRange;
use linerate_model::summary::DurationDistribution;

/// Keeps a bounded number of round-trip times, evenly spread over the test: when full, it drops every other one and
/// halves its rate.
#[derive(Debug)]
pub(crate) struct SampleReservoir {
    /// In microseconds, the kernel's unit (`tcpi_rtt`).
    kept: Vec<u32>,
    capacity: usize,
    stride: u64,
    seen: u64,
}

/// Samples of a client's stream: 80 seconds at the default cadence before the first thinning.
pub(crate) const CLIENT_SAMPLES: usize = 8192;

/// Samples of a server's stream, which has many of them.
pub(crate) const SERVER_SAMPLES: usize = 4096;

impl SampleReservoir {
    /// A reservoir of up to `capacity` samples.
    pub(crate) const fn new(capacity: usize) -> Self {
        Self { kept: Vec::new(), capacity, stride: 1, seen: 0 }
    }

    pub(crate) fn push(&mut self, reading: Duration) {
        if self.seen.is_multiple_of(self.stride) {
            if self.kept.len() >= self.capacity {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride *= 2;
            }
            if self.seen.is_multiple_of(self.stride) {
                self.kept.push(u32::try_from(reading.as_micros()).unwrap_or(u32::MAX));
            }
        }
        self.seen += 1;
    }

    pub(crate) fn distribution(&self) -> Option<DurationDistribution> {
        let micros = |sample: &u32| Duration::from_micros(u64::from(*sample));
        DurationDistribution::of(&mut self.kept.iter().map(micros).collect::<Vec<_>>())
    }

    /// Returns the distribution so far and starts anew.
    pub(crate) fn take_distribution(&mut self) -> Option<DurationDistribution> {
        let distribution = self.distribution();
        self.kept.clear();
        (self.stride, self.seen) = (1, 0);
        distribution
    }
}

/// Range of samples, without storing them.
#[derive(Debug, Default)]
pub(crate) struct RunningRange {
    extremes: Option<(Duration, Duration)>,
    total: Duration,
    count: u32,
}

impl RunningRange {
    pub(crate) fn push(&mut self, reading: Duration) {
        let (min, max) = self.extremes.unwrap_or((reading, reading));
        self.extremes = Some((min.min(reading), max.max(reading)));
        self.total = self.total.saturating_add(reading);
        self.count = self.count.saturating_add(1);
    }

    pub(crate) fn range(&self) -> Option<RttRange> {
        let (min, max) = self.extremes?;
        Some(RttRange { min, mean: self.total / self.count, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_samples_are_evenly_spread() {
        let mut reservoir = SampleReservoir::new(SERVER_SAMPLES);
        for reading in 0..1_000_000 {
            reservoir.push(Duration::from_micros(reading));
        }
        assert!(reservoir.kept.len() <= SERVER_SAMPLES && reservoir.kept.len() > SERVER_SAMPLES / 4);
        let gaps: Vec<_> = reservoir.kept.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        assert!(gaps.iter().all(|gap| *gap == gaps[0]), "the samples are not evenly spread");
        let median = reservoir.distribution().expect("samples").median;
        assert!(median.abs_diff(Duration::from_millis(500)) < Duration::from_millis(1));
    }

    #[test]
    fn taking_the_distribution_begins_anew() {
        let mut reservoir = SampleReservoir::new(CLIENT_SAMPLES);
        for reading in 0..=CLIENT_SAMPLES as u64 {
            reservoir.push(Duration::from_micros(reading));
        }
        assert!(reservoir.take_distribution().is_some());
        assert!(reservoir.take_distribution().is_none());
        reservoir.push(Duration::from_micros(7));
        assert_eq!(reservoir.take_distribution().map(|one| one.median), Some(Duration::from_micros(7)));
    }

    #[test]
    fn a_range_stores_no_samples() {
        let mut range = RunningRange::default();
        assert_eq!(range.range(), None);
        let ms = Duration::from_millis;
        for reading in [4, 1, 7] {
            range.push(ms(reading));
        }
        assert_eq!(range.range(), Some(RttRange { min: ms(1), mean: ms(4), max: ms(7) }));
    }
}
