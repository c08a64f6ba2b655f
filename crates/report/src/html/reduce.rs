//! Fewer points where a chart would have more than a screen can show.
//!
//! The time is cut into parts of equal length. Of lines the smallest and the largest reading of each part are kept, each at
//! its own time: every point drawn is a true reading, and no peak is lost. Of shares, which are stacked and must add up, the
//! mean of each part is drawn.

use crate::presentation::TimeSeries;

/// How many parts of time the charts of a document may have, so that all points together stay within a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts(usize);

/// Points of all series of a document together.
const POINTS: usize = 160_000;

impl Parts {
    /// For that many series in all. At least as many as a phone is wide, at most what a large screen can tell apart.
    pub(super) fn for_series(count: usize) -> Self {
        Self((POINTS / 2 / count.max(1)).clamp(400, 4_000))
    }

    /// How many.
    pub(super) const fn count(self) -> usize {
        self.0
    }
}

/// What is left of a series.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reduced {
    pub(super) times_ns: Vec<u64>,
    pub(super) values: Vec<Option<f64>>,
    /// Whether this is less than there was.
    pub(super) has_fewer: bool,
}

/// The part of time that `time` belongs to.
fn part(time: u64, start: u64, span: u64, parts: usize) -> usize {
    let scaled = u128::from(time - start) * parts as u128 / (u128::from(span) + 1);
    usize::try_from(scaled).unwrap_or(usize::MAX)
}

/// Groups of consecutive readings, one for each part of time that has any.
fn groups<'a>(
    series: &'a TimeSeries<'_>,
    start: u64,
    end: u64,
    parts: usize,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let times = &series.times_ns;
    let of = move |time: u64| part(time.clamp(start, end), start, end - start, parts);
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

/// The smallest and the largest reading of each part; all readings where that would not be fewer.
pub(super) fn extremes(series: &TimeSeries<'_>, parts: Parts) -> Reduced {
    let (times, values) = (&series.times_ns, &series.values);
    if times.len() <= 2 * parts.count() {
        return Reduced { times_ns: times.to_vec(), values: values.to_vec(), has_fewer: false };
    }
    let (start, end) = (times.first().copied().unwrap_or(0), times.last().copied().unwrap_or(0));
    let mut reduced = Reduced { times_ns: Vec::new(), values: Vec::new(), has_fewer: true };
    for (from, to) in groups(series, start, end.max(start), parts.count()) {
        let known = || (from..to).filter_map(|index| Some((index, values[index]?)));
        let smallest = known().min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(index, _)| index);
        let largest = known().max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(index, _)| index);
        // A part of unknown readings only stays a gap.
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

/// The mean of each part, at the time of its first reading; all readings where that would not be fewer.
pub(super) fn means(series: &TimeSeries<'_>, parts: Parts) -> Reduced {
    let (times, values) = (&series.times_ns, &series.values);
    if times.len() <= parts.count() {
        return Reduced { times_ns: times.to_vec(), values: values.to_vec(), has_fewer: false };
    }
    let (start, end) = (times.first().copied().unwrap_or(0), times.last().copied().unwrap_or(0));
    let mut reduced = Reduced { times_ns: Vec::new(), values: Vec::new(), has_fewer: true };
    for (from, to) in groups(series, start, end.max(start), parts.count()) {
        reduced.times_ns.push(times[from]);
        reduced.values.push(mean(&values[from..to]));
    }
    reduced
}

/// Of the readings that are there.
pub(super) fn mean(values: &[Option<f64>]) -> Option<f64> {
    crate::presentation::extent(values).map(|extent| extent.mean)
}

/// The means of `parts` parts of the time from `start` to `end`, for tables: one value for each part, also where there is
/// none.
pub(super) fn table(series: &TimeSeries<'_>, start: u64, end: u64, parts: usize) -> Vec<Option<f64>> {
    let mut table = vec![None; parts];
    for (from, to) in groups(series, start, end.max(start), parts) {
        let at = part(series.times_ns[from].clamp(start, end), start, end - start, parts);
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
        fn every_point_is_a_reading_and_no_extreme_is_lost(readings in readings()) {
            let all = series(readings.clone());
            let reduced = extremes(&all, Parts(400));
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
        fn means_stay_within_what_they_are_means_of(readings in readings()) {
            let all = series(readings);
            let reduced = means(&all, Parts(400));
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
        assert_eq!(Parts::for_series(1), Parts(4_000));
        assert_eq!(Parts::for_series(44), Parts(1_818));
        assert_eq!(Parts::for_series(100_000), Parts(400));
    }
}
