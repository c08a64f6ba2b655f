//! Reduces points where a chart would have more than a screen can show.
//!
//! The time is cut into slices of equal length. Of lines the minimum and the maximum of each slice are kept, each at
//! its own time: every point drawn is a true sample, and no peak is lost. Of shares, which are stacked and must add up,
//! the mean of each slice is drawn.

use crate::presentation::TimeSeries;

/// Number of time slices that each chart of a document may have, so that all points together stay within a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SliceCount(usize);

/// Maximum number of points of all series of a document together.
const MAX_POINTS: usize = 160_000;

impl SliceCount {
    /// Slices of a picture: two points for each, on a screen as on paper.
    pub(super) const PICTURE: Self = Self(240);

    /// Slices for `count` series in all: at least the width of a phone, at most the resolution of a large screen.
    pub(super) fn for_series(count: usize) -> Self {
        Self((MAX_POINTS / 2 / count.max(1)).clamp(400, 4_000))
    }

    /// Number of slices.
    pub(super) const fn count(self) -> usize {
        self.0
    }
}

/// A reduced series.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReducedSeries {
    pub(super) times_ns: Vec<u64>,
    pub(super) values: Vec<Option<f64>>,
    /// True when samples were dropped.
    pub(super) has_fewer: bool,
}

/// Time slice that `time` belongs to.
fn slice_of(time: u64, start: u64, span: u64, parts: usize) -> usize {
    let scaled = u128::from(time - start) * parts as u128 / (u128::from(span) + 1);
    usize::try_from(scaled).unwrap_or(usize::MAX)
}

/// Ranges of consecutive samples, one for each time slice that has any.
fn sample_ranges<'a>(
    series: &'a TimeSeries<'_>,
    start: u64,
    end: u64,
    parts: usize,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let times = &series.times_ns;
    let of = move |time: u64| slice_of(time.clamp(start, end), start, end - start, parts);
    let mut next = 0;
    core::iter::from_fn(move || {
        let from = next;
        let group = of(*times.get(from)?);
        while times.get(next).is_some_and(|&time| of(time) == group) {
            next += 1;
        }
        Some((from, next))
    })
}

/// Minimum and maximum of each slice; all samples where that would not be fewer.
pub(super) fn extremes(series: &TimeSeries<'_>, parts: SliceCount) -> ReducedSeries {
    let (times, values) = (&series.times_ns, &series.values);
    if times.len() <= 2 * parts.count() {
        return ReducedSeries { times_ns: times.to_vec(), values: values.to_vec(), has_fewer: false };
    }
    let (start, end) = (times.first().copied().unwrap_or(0), times.last().copied().unwrap_or(0));
    let mut reduced = ReducedSeries { times_ns: Vec::new(), values: Vec::new(), has_fewer: true };
    for (from, to) in sample_ranges(series, start, end.max(start), parts.count()) {
        let known = || (from..to).filter_map(|index| Some((index, values[index]?)));
        let smallest = known().min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(index, _)| index);
        let largest = known().max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(index, _)| index);
        // A slice of unknown values only stays a gap.
        let (first, second) = (smallest.unwrap_or(from), largest.unwrap_or(from));
        for index in [first.min(second), first.max(second)] {
            if reduced.times_ns.last() != Some(&times[index]) {
                reduced.times_ns.push(times[index]);
                reduced.values.push(values[index]);
            }
        }
    }
    reduced
}

/// Mean of each slice, at the time of its first sample; all samples where that would not be fewer.
pub(super) fn means(series: &TimeSeries<'_>, parts: SliceCount) -> ReducedSeries {
    let (times, values) = (&series.times_ns, &series.values);
    if times.len() <= parts.count() {
        return ReducedSeries { times_ns: times.to_vec(), values: values.to_vec(), has_fewer: false };
    }
    let (start, end) = (times.first().copied().unwrap_or(0), times.last().copied().unwrap_or(0));
    let mut reduced = ReducedSeries { times_ns: Vec::new(), values: Vec::new(), has_fewer: true };
    for (from, to) in sample_ranges(series, start, end.max(start), parts.count()) {
        reduced.times_ns.push(times[from]);
        reduced.values.push(mean(&values[from..to]));
    }
    reduced
}

/// Mean of the known samples.
pub(super) fn mean(values: &[Option<f64>]) -> Option<f64> {
    crate::presentation::extent(values).map(|extent| extent.mean)
}

/// Means of `parts` slices of the time from `start` to `end`, for tables: one value for each slice, `None` where there
/// is no sample.
pub(super) fn table(series: &TimeSeries<'_>, start: u64, end: u64, parts: usize) -> Vec<Option<f64>> {
    let mut table = vec![None; parts];
    for (from, to) in sample_ranges(series, start, end.max(start), parts) {
        let at = slice_of(series.times_ns[from].clamp(start, end), start, end - start, parts);
        if let Some(place) = table.get_mut(at) {
            *place = mean(&series.values[from..to]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;

    fn series(readings: Vec<(u64, Option<f64>)>) -> TimeSeries<'static> {
        let (times, values): (Vec<u64>, Vec<Option<f64>>) = readings.into_iter().unzip();
        TimeSeries { name: "x".to_owned(), times_ns: Cow::Owned(times), values: Cow::Owned(values) }
    }

    fn readings() -> impl Strategy<Value = Vec<(u64, Option<f64>)>> {
        let one = (1_u64..5_000_000, prop::option::weighted(0.9, -1e9..1e9_f64));
        prop::collection::vec(one, 0..3_000).prop_map(|steps| {
            let mut time = 0;
            steps
                .into_iter()
                .map(|(step, value)| {
                    time += step;
                    (time, value)
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn every_point_is_a_sample_and_no_extreme_is_lost(readings in readings()) {
            let all = series(readings.clone());
            let reduced = extremes(&all, SliceCount(400));
            prop_assert!(reduced.times_ns.len() <= 800);
            prop_assert_eq!(reduced.has_fewer, readings.len() > 800);
            prop_assert!(reduced.times_ns.windows(2).all(|pair| pair[0] < pair[1]));
            let kept: Vec<(u64, Option<f64>)> = reduced.times_ns.iter().copied().zip(reduced.values.iter().copied()).collect();
            prop_assert!(kept.iter().all(|point| readings.binary_search_by_key(&point.0, |reading| reading.0)
                .is_ok_and(|index| readings[index].1 == point.1)));
            let extreme = |values: &[Option<f64>]| crate::presentation::extent(values).map(|extent| (extent.min, extent.max));
            prop_assert_eq!(extreme(&reduced.values), extreme(&all.values));
        }

        #[test]
        fn means_stay_within_the_range_of_their_samples(readings in readings()) {
            let all = series(readings);
            let reduced = means(&all, SliceCount(400));
            prop_assert!(reduced.times_ns.len() <= 400);
            if let (Some(part), Some(whole)) = (crate::presentation::extent(&reduced.values), crate::presentation::extent(&all.values)) {
                prop_assert!(part.min >= whole.min && part.max <= whole.max);
            }
        }

        #[test]
        fn a_table_has_its_rows(readings in readings(), parts in 1_usize..30) {
            let all = series(readings);
            let end = all.times_ns.last().copied().unwrap_or(0);
            prop_assert_eq!(table(&all, 0, end, parts).len(), parts);
        }
    }

    #[test]
    fn few_series_may_be_long() {
        assert_eq!(SliceCount::for_series(1), SliceCount(4_000));
        assert_eq!(SliceCount::for_series(44), SliceCount(1_818));
        assert_eq!(SliceCount::for_series(100_000), SliceCount(400));
    }
}
