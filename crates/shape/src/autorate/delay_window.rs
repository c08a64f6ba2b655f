use super::constants::{JITTER_SMOOTHING, MAX_JITTER};

/// Number of samples in the filter.
const FILTER_SAMPLES: usize = 4;
/// The same, as a divisor.
const FILTER_COUNT: f64 = 4.0;
/// Number of remembered samples.
const KEPT: usize = 8;

/// Last samples of one direction: send time and delay above idle, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DelayWindow {
    samples: [(f64, f64); KEPT],
    filled: usize,
    /// Mean difference from the mean of the neighbours.
    jitter: f64,
}

impl DelayWindow {
    /// Adds a sample.
    pub(super) fn push(&mut self, sent: f64, delay: f64) {
        self.samples.copy_within(1.., 0);
        self.samples[KEPT - 1] = (sent, delay);
        self.filled = (self.filled + 1).min(KEPT);
        // Relative to the mean of its neighbours: a steadily growing queue is no jitter.
        let [.., before, middle, after] = self.samples.map(|(_, delay)| delay);
        let difference = (middle - f64::midpoint(before, after)).abs();
        if self.filled > 2 && difference < MAX_JITTER {
            self.jitter += JITTER_SMOOTHING * (difference - self.jitter);
        }
    }

    /// Removes all samples.
    pub(super) fn clear(&mut self) {
        self.filled = 0;
    }

    /// Mean deviation of a sample from its neighbours, in seconds.
    pub(super) fn jitter(&self) -> f64 {
        self.jitter
    }

    /// Shifts all samples after a change of the idle delay.
    pub(super) fn shift(&mut self, by: f64) {
        for sample in &mut self.samples {
            sample.1 = (sample.1 + by).max(0.0);
        }
    }

    /// Queue: second smallest of the last four samples. All probes meet the same queue and jitter only adds, so small
    /// values are right; the smallest alone may be from a reflector of unknown idle delay. A value on which the last
    /// two agree counts at once.
    pub(super) fn queue(&self) -> Option<f64> {
        let agreed = self.samples[KEPT - 1].1.min(self.samples[KEPT - 2].1);
        (self.filled >= FILTER_SAMPLES).then(|| second_smallest(&self.samples[KEPT - FILTER_SAMPLES..]).max(agreed))
    }

    /// Last sample, unfiltered.
    pub(super) fn last(&self) -> Option<f64> {
        (self.filled > 0).then(|| self.samples[KEPT - 1].1)
    }

    /// Growth of the queue in seconds per second, and the interval that it covers.
    pub(super) fn growth(&self) -> Option<(f64, f64, f64)> {
        if self.filled < KEPT {
            return None;
        }
        let (early, late) = self.samples.split_at(KEPT - FILTER_SAMPLES);
        let (from, to) = (mean_time(early), mean_time(late));
        let time = to - from;
        (time > 0.02)
            .then(|| ((second_smallest(late) - second_smallest(early)) / time, early[0].0, late[FILTER_SAMPLES - 1].0))
    }
}

fn second_smallest(samples: &[(f64, f64)]) -> f64 {
    let (mut first, mut second) = (f64::INFINITY, f64::INFINITY);
    for (_, delay) in samples {
        if *delay < first {
            (first, second) = (*delay, first);
        } else if *delay < second {
            second = *delay;
        }
    }
    second
}

fn mean_time(samples: &[(f64, f64)]) -> f64 {
    let sum: f64 = samples.iter().map(|(sent, _)| sent).sum();
    sum / FILTER_COUNT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sample_alone_is_ignored() {
        let mut window = DelayWindow::default();
        for (sent, delay) in [(0.0, 0.004), (0.05, 0.9), (0.1, 0.0)] {
            window.push(sent, delay);
        }
        assert_eq!(window.queue(), None);
        window.push(0.15, 0.005);
        assert_eq!(window.queue(), Some(0.004));
    }

    #[test]
    fn growth_of_a_queue_that_fills() {
        let mut window = DelayWindow::default();
        // A quarter of a second per second: 25 % more goes in than comes out.
        for step in 0..8_u8 {
            window.push(f64::from(step) * 0.05, f64::from(step) * 0.0125);
        }
        let (growth, from, to) = window.growth().expect("eight samples");
        assert!((growth - 0.25).abs() < 1e-9 && from == 0.0 && (to - 0.35).abs() < 1e-9, "{growth} {from} {to}");
    }
}
