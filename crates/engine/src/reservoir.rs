//! Samples of a long test in bounded memory.

use core::time::Duration;

use linerate_model::report::RttRange;
use linerate_model::summary::DurationDistribution;

/// Keeps up to [`CAPACITY`] samples, evenly spread over the test: when full, it drops every other one and halves its
/// rate.
#[derive(Debug)]
pub(crate) struct SampleReservoir {
    kept: Vec<Duration>,
    stride: u64,
    seen: u64,
}

/// 80 seconds at the default cadence before the first thinning; 128 KiB.
const CAPACITY: usize = 8192;

impl Default for SampleReservoir {
    fn default() -> Self {
        Self { kept: Vec::new(), stride: 1, seen: 0 }
    }
}

impl SampleReservoir {
    pub(crate) fn push(&mut self, reading: Duration) {
        if self.seen.is_multiple_of(self.stride) {
            if self.kept.len() == CAPACITY {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride *= 2;
            }
            if self.seen.is_multiple_of(self.stride) {
                self.kept.push(reading);
            }
        }
        self.seen += 1;
    }

    pub(crate) fn distribution(&self) -> Option<DurationDistribution> {
        DurationDistribution::of(&mut self.kept.clone())
    }

    /// Returns the distribution so far and starts anew.
    pub(crate) fn take_distribution(&mut self) -> Option<DurationDistribution> {
        let distribution = DurationDistribution::of(&mut self.kept);
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
        let mut reservoir = SampleReservoir::default();
        for reading in 0..1_000_000 {
            reservoir.push(Duration::from_nanos(reading));
        }
        assert!(reservoir.kept.len() <= CAPACITY && reservoir.kept.len() > CAPACITY / 4);
        let gaps: Vec<_> = reservoir.kept.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        assert!(gaps.iter().all(|gap| *gap == gaps[0]), "the samples are not evenly spread");
        let median = reservoir.distribution().expect("samples").median;
        assert!(median.abs_diff(Duration::from_micros(500)) < Duration::from_micros(1));
    }

    #[test]
    fn taking_the_distribution_begins_anew() {
        let mut reservoir = SampleReservoir::default();
        for reading in 0..=CAPACITY as u64 {
            reservoir.push(Duration::from_nanos(reading));
        }
        assert!(reservoir.take_distribution().is_some());
        assert!(reservoir.take_distribution().is_none());
        reservoir.push(Duration::from_nanos(7));
        assert_eq!(reservoir.take_distribution().map(|one| one.median), Some(Duration::from_nanos(7)));
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
