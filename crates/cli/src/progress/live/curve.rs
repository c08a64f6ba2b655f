//! Samples over time, of bounded number, with gaps where nothing was measured.

/// Most samples of a curve; above, neighbours are merged.
const MAX_SAMPLES: usize = 1024;

/// A sampled quantity.
#[derive(Clone, Debug, Default)]
pub(super) struct SampleCurve {
    /// Samples without a gap: seconds and values.
    segments: Vec<Vec<(f64, f64)>>,
    /// True when the next sample follows a gap.
    is_interrupted: bool,
}

impl SampleCurve {
    /// Adds a sample.
    pub(super) fn push(&mut self, seconds: f64, value: f64) {
        if core::mem::take(&mut self.is_interrupted) || self.segments.is_empty() {
            self.segments.push(Vec::new());
        }
        if let Some(last) = self.segments.last_mut() {
            last.push((seconds, value));
        }
        if self.segments.iter().map(Vec::len).sum::<usize>() > MAX_SAMPLES {
            self.segments.iter_mut().for_each(|segment| *segment = merged(segment));
        }
    }

    /// Ends the line: the next sample is not connected with this one.
    pub(super) fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// Parts without a gap.
    pub(super) fn segments(&self) -> &[Vec<(f64, f64)>] {
        &self.segments
    }

    /// Largest value, without the few largest of many: an outlier must not flatten the picture.
    pub(super) fn height(&self) -> Option<f64> {
        /// Share of the samples that the picture shows in full.
        const SHOWN_PERCENT: usize = 98;
        let mut values: Vec<f64> = self.segments.iter().flatten().map(|(_, value)| *value).collect();
        values.sort_by(f64::total_cmp);
        values.get((values.len().saturating_sub(1) * SHOWN_PERCENT).div_ceil(100)).copied()
    }

    /// Largest value.
    pub(super) fn largest(&self) -> Option<f64> {
        self.segments.iter().flatten().map(|(_, value)| *value).max_by(f64::total_cmp)
    }
}

/// Mean of each two neighbours; an odd last one stays.
fn merged(segment: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mean = |pair: &[(f64, f64)]| match pair {
        [(t, a), (u, b)] => ((t + u) / 2.0, f64::midpoint(*a, *b)),
        other => other.first().copied().unwrap_or_default(),
    };
    segment.chunks(2).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_samples_is_bounded_and_keeps_its_mean_and_its_gaps() {
        let mut curve = SampleCurve::default();
        for second in 0..86_400_u32 {
            if second == 40_000 {
                curve.interrupt();
            }
            curve.push(f64::from(second), 5.0);
        }
        let count: usize = curve.segments().iter().map(Vec::len).sum();
        assert!(count <= MAX_SAMPLES && count > MAX_SAMPLES / 4, "{count}");
        assert!(curve.segments().iter().flatten().all(|(_, value)| (value - 5.0).abs() < 1e-9));
        assert_eq!(curve.segments().len(), 2);
        assert!(curve.segments()[0].last().expect("samples").0 < curve.segments()[1][0].0);
    }

    #[test]
    fn one_outlier_of_many_does_not_set_the_height() {
        let mut curve = SampleCurve::default();
        assert_eq!(curve.height(), None);
        (0..200_u32).for_each(|second| curve.push(f64::from(second), 0.02));
        curve.push(200.0, 0.2);
        assert_eq!((curve.height(), curve.largest()), (Some(0.02), Some(0.2)));
    }
}
