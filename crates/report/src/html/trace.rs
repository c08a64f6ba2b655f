//! Series prepared for drawing: reduced, with gaps where nothing was measured, and the curve through samples that
//! scatter.

use std::borrow::Cow;
use std::collections::VecDeque;

use linerate_analysis::statistics::percentile;
use linerate_units::Ratio;

use super::reduce::{ReducedSeries, SliceCount, extremes, means};
use crate::presentation::{ChartPhase, Smoothing, TimeSeries, as_f64, median_interval};

/// Longest interval between samples that a line crosses, in usual intervals.
const MAX_CROSSED_INTERVALS: u64 = 10;

/// Smallest number of samples in an averaging time that is worth a curve.
const MIN_SMOOTHED_SAMPLES: u64 = 3;

/// A series to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trace {
    /// Legend entry.
    pub(super) name: String,
    /// Colour and pattern, from 0.
    pub(super) look: usize,
    /// Samples.
    pub(super) samples: ReducedSeries,
    /// Curve through them.
    pub(super) curve: Option<ReducedSeries>,
}

impl Trace {
    /// Trace of `series` with the look `look`.
    pub(super) fn of(
        (look, series): (usize, &TimeSeries<'_>),
        phases: &[ChartPhase],
        parts: SliceCount,
        smoothing: Option<Smoothing>,
    ) -> Self {
        let pauses = Pauses::of(series, phases);
        let curve = smoothing.filter(|smoothing| {
            let usual = median_interval(&series.times_ns).unwrap_or(u64::MAX);
            usual.saturating_mul(MIN_SMOOTHED_SAMPLES) <= smoothing.window_ns
        });
        let curve = curve.map(|smoothing| {
            let smooth = smoothed(series, smoothing, &pauses);
            pauses.with_gaps(&means(&smooth, parts), parts, &smooth)
        });
        let samples = pauses.with_gaps(&extremes(series, parts), parts, series);
        Self { name: series.name.clone(), look: look % crate::presentation::MAX_SERIES, samples, curve }
    }

    /// Trace of shares of time, which are stacked.
    pub(super) fn stacked((look, series): (usize, &TimeSeries<'_>), phases: &[ChartPhase], parts: SliceCount) -> Self {
        let pauses = Pauses::of(series, phases);
        let samples = pauses.with_gaps(&means(series, parts), parts, series);
        Self { name: series.name.clone(), look: look % crate::presentation::MAX_SERIES, samples, curve: None }
    }
}

/// Times without samples of a series.
struct Pauses<'a> {
    /// Longest interval that a line crosses.
    longest: u64,
    phases: &'a [ChartPhase],
}

impl<'a> Pauses<'a> {
    fn of(series: &TimeSeries<'_>, phases: &'a [ChartPhase]) -> Self {
        let usual = median_interval(&series.times_ns).unwrap_or(u64::MAX);
        Self { longest: usual.saturating_mul(MAX_CROSSED_INTERVALS), phases }
    }

    /// True when nothing was measured between two samples: for long, or during a whole phase.
    fn is_between(&self, before: u64, after: u64, longest: u64) -> bool {
        after.saturating_sub(before) > longest
            || self
                .phases
                .iter()
                .any(|phase| phase.start_ns < phase.end_ns && phase.start_ns >= before && phase.end_ns <= after)
    }

    /// True when a phase begins between two samples: averages are of one load.
    fn begins_phase(&self, before: u64, after: u64) -> bool {
        self.phases.iter().any(|phase| phase.start_ns >= before && phase.start_ns < after)
    }

    /// `reduced` with an unknown value in each pause.
    fn with_gaps(&self, reduced: &ReducedSeries, parts: SliceCount, series: &TimeSeries<'_>) -> ReducedSeries {
        let span =
            series.times_ns.last().copied().unwrap_or(0).saturating_sub(series.times_ns.first().copied().unwrap_or(0));
        // Two samples of a slice, and of the next one, are at most two slices apart.
        let slice = if reduced.has_fewer { span / parts.count() as u64 * 3 } else { 0 };
        let longest = self.longest.max(slice);
        let mut gapped = ReducedSeries { times_ns: Vec::new(), values: Vec::new(), has_fewer: reduced.has_fewer };
        let mut last: Option<(u64, Option<f64>)> = None;
        for (&time, &value) in reduced.times_ns.iter().zip(&reduced.values) {
            if let Some((before, Some(_))) = last
                && value.is_some()
                && self.is_between(before, time, longest)
            {
                gapped.times_ns.push(before.saturating_add(1));
                gapped.values.push(None);
            }
            gapped.times_ns.push(time);
            gapped.values.push(value);
            last = Some((time, value));
        }
        gapped
    }
}

/// Mean or median of the samples around each sample, of the same phase and without pauses. Unknown samples are skipped.
fn smoothed<'a>(series: &TimeSeries<'_>, smoothing: Smoothing, pauses: &Pauses<'_>) -> TimeSeries<'a> {
    let known = series.times_ns.iter().zip(series.values.iter());
    let known: Vec<(u64, f64)> = known.filter_map(|(time, value)| Some((*time, (*value)?))).collect();
    let mut values = Vec::with_capacity(known.len());
    let mut start = 0;
    for end in 1..=known.len() {
        let last = known[end - 1].0;
        let goes_on = known
            .get(end)
            .is_some_and(|next| !pauses.is_between(last, next.0, pauses.longest) && !pauses.begins_phase(last, next.0));
        if !goes_on {
            smooth_stretch(&known[start..end], smoothing, &mut values);
            start = end;
        }
    }
    let times = known.into_iter().map(|(time, _)| time).collect();
    TimeSeries { name: series.name.clone(), times_ns: Cow::Owned(times), values: Cow::Owned(values) }
}

fn smooth_stretch(stretch: &[(u64, f64)], smoothing: Smoothing, values: &mut Vec<Option<f64>>) {
    let half = smoothing.window_ns / 2;
    let mut around: VecDeque<f64> = VecDeque::new();
    let mut sum = 0.0;
    let (mut from, mut to) = (0, 0);
    for &(time, _) in stretch {
        while let Some(&(_, value)) = stretch.get(to).filter(|next| next.0 <= time.saturating_add(half)) {
            around.push_back(value);
            sum += value;
            to += 1;
        }
        while stretch.get(from).is_some_and(|first| from < to && first.0 < time.saturating_sub(half)) {
            sum -= around.pop_front().unwrap_or_default();
            from += 1;
        }
        let mean = sum / as_f64(around.len().max(1) as u64);
        values.push(if smoothing.is_median { median(&mut around) } else { Some(mean) });
    }
}

fn median(values: &mut VecDeque<f64>) -> Option<f64> {
    percentile(values.make_contiguous(), Ratio::from_percent(50.0)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn series(times: &[u64], values: &[f64]) -> TimeSeries<'static> {
        let values = values.iter().copied().map(Some).collect();
        TimeSeries { name: "x".to_owned(), times_ns: Cow::Owned(times.to_vec()), values: Cow::Owned(values) }
    }

    fn phase(start: u64, end: u64) -> ChartPhase {
        ChartPhase { name: "x".to_owned(), start_ns: start * SECOND, end_ns: end * SECOND }
    }

    fn gaps(series: &TimeSeries<'_>, phases: &[ChartPhase]) -> Vec<u64> {
        let samples = Trace::of((0, series), phases, SliceCount::for_series(1), None).samples;
        samples
            .times_ns
            .iter()
            .zip(&samples.values)
            .filter(|(_, value)| value.is_none())
            .map(|(time, _)| *time)
            .collect()
    }

    #[test]
    fn a_phase_without_samples_is_a_gap() {
        let times = [1, 2, 3, 7, 8].map(|second| second * SECOND);
        let rates = series(&times, &[1.0; 5]);
        assert_eq!(gaps(&rates, &[phase(0, 3), phase(3, 6), phase(6, 9)]), [3 * SECOND + 1]);
        assert_eq!(gaps(&rates, &[phase(0, 3), phase(3, 9)]), Vec::<u64>::new());
    }

    #[test]
    fn a_long_pause_is_a_gap_without_phases() {
        let times = [1, 2, 3, 14, 15].map(|second| second * SECOND);
        assert_eq!(gaps(&series(&times, &[1.0; 5]), &[]), [3 * SECOND + 1]);
    }

    #[test]
    fn the_curve_averages_within_a_stretch_only() {
        let times: Vec<u64> = (1..=4).chain(101..=104).map(|tenth| tenth * SECOND / 10).collect();
        let rates = series(&times, &[2.0, 4.0, 2.0, 4.0, 20.0, 40.0, 20.0, 40.0]);
        let smoothing = Smoothing { window_ns: SECOND, is_median: false };
        let curve = Trace::of((0, &rates), &[], SliceCount::for_series(1), Some(smoothing)).curve.expect("scattered");
        let known: Vec<f64> = curve.values.iter().flatten().copied().collect();
        assert_eq!(known, [3.0, 3.0, 3.0, 3.0, 30.0, 30.0, 30.0, 30.0]);
        assert_eq!(curve.values.iter().filter(|value| value.is_none()).count(), 1);
    }

    #[test]
    fn the_median_ignores_an_outlier() {
        let times: Vec<u64> = (1..=5).map(|tenth| tenth * SECOND / 10).collect();
        let delays = series(&times, &[5.0, 5.0, 900.0, 5.0, 5.0]);
        let smoothing = Smoothing { window_ns: SECOND, is_median: true };
        let curve = Trace::of((0, &delays), &[], SliceCount::for_series(1), Some(smoothing)).curve.expect("scattered");
        assert_eq!(curve.values, vec![Some(5.0); 5]);
    }

    #[test]
    fn few_samples_are_their_own_curve() {
        let smoothing = Smoothing { window_ns: SECOND, is_median: false };
        let rates = series(&[SECOND, 2 * SECOND, 3 * SECOND], &[1.0, 2.0, 3.0]);
        assert_eq!(Trace::of((0, &rates), &[], SliceCount::for_series(1), Some(smoothing)).curve, None);
    }

    proptest! {
        /// A document from elsewhere may have any times, any values and any phases.
        #[test]
        fn any_series_has_a_trace_within_its_range(
            samples in prop::collection::vec((any::<u64>(), prop::option::of(-1e9..1e9_f64)), 0..200),
            spans in prop::collection::vec(any::<(u64, u64)>(), 0..4),
            window_ns: u64,
            is_median: bool,
        ) {
            let (times, values): (Vec<u64>, Vec<Option<f64>>) = samples.into_iter().unzip();
            let all = TimeSeries { name: "x".to_owned(), times_ns: Cow::Owned(times), values: Cow::Owned(values) };
            let phases: Vec<ChartPhase> = spans
                .into_iter()
                .map(|(start_ns, end_ns)| ChartPhase { name: "x".to_owned(), start_ns, end_ns })
                .collect();
            let trace = Trace::of((9, &all), &phases, SliceCount::for_series(1), Some(Smoothing { window_ns, is_median }));
            prop_assert!(trace.look < 8);
            let range = |values: &[Option<f64>]| crate::presentation::extent(values);
            if let Some((curve, whole)) = trace.curve.and_then(|curve| range(&curve.values)).zip(range(&all.values)) {
                let slack = 1e-3;
                prop_assert!(curve.min >= whole.min - slack && curve.max <= whole.max + slack);
            }
        }
    }
}
