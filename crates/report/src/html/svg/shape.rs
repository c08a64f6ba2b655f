//! Paths of lines and areas.

use core::fmt::Write as _;

use crate::html::trace::Trace;
use crate::presentation::as_f64;

use super::PLOT_WIDTH;

/// A point of a plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// A number with at most one decimal; numbers that are none are 0.
pub(super) fn decimal(number: f64) -> String {
    if !number.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{number:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Start and width of a time as percentages of the whole.
pub(super) fn percentages(start_ns: u64, end_ns: u64, whole_ns: u64) -> (String, String) {
    let share = |time: u64| as_f64(time.min(whole_ns)) / as_f64(whole_ns.max(1)) * 100.0;
    let (start, end) = (share(start_ns), share(end_ns));
    (decimal(start), decimal((end - start).max(0.0)))
}

/// Horizontal position of a time.
pub(super) fn across(time_ns: u64, end_ns: u64) -> f64 {
    as_f64(time_ns.min(end_ns)) / as_f64(end_ns.max(1)) * PLOT_WIDTH
}

/// Path of a line through `points`; `None` interrupts it, and a point without neighbours becomes a dot.
pub(super) fn line_path(points: impl Iterator<Item = Option<Point>>) -> String {
    let mut path = String::new();
    let mut length = 0_usize;
    for point in points.chain(core::iter::once(None)) {
        if let Some(Point { x, y }) = point {
            path.push_str(if length == 0 { "M" } else { " " });
            push_point(&mut path, x, y);
            length += 1;
        } else {
            if length == 1 {
                path.push_str("h.1");
            }
            length = 0;
        }
    }
    path
}

fn push_point(path: &mut String, x: f64, y: f64) {
    write!(path, "{} {}", decimal(x), decimal(y)).expect("writing to a String never fails");
}

/// Areas of `traces`, each on top of the one before, in a plot of this height; 1 fills it.
pub(super) fn stack(traces: &[Trace], end_ns: u64, height: f64) -> Vec<String> {
    let mut clock: Vec<u64> = traces.iter().flat_map(|trace| trace.samples.times_ns.iter().copied()).collect();
    clock.sort_unstable();
    clock.dedup();
    let columns: Vec<Vec<Option<f64>>> = traces.iter().map(|trace| held(trace, &clock)).collect();
    let is_known = |at: usize| columns.iter().any(|column| column[at].is_some());
    let mut below = vec![0.0; clock.len()];
    let mut paths = Vec::with_capacity(traces.len());
    for column in &columns {
        let above: Vec<f64> =
            below.iter().zip(column).map(|(sum, value)| (sum + value.unwrap_or(0.0)).min(1.0)).collect();
        let point = |at: usize, share: f64| (across(clock[at], end_ns), height * (1.0 - share));
        let mut path = String::new();
        let mut start = 0;
        for end in 0..=clock.len() {
            if end < clock.len() && is_known(end) {
                continue;
            }
            if end > start + 1 {
                let upper = (start..end).map(|at| point(at, above[at]));
                let lower = (start..end).rev().map(|at| point(at, below[at]));
                push_area(&mut path, upper.chain(lower));
            }
            start = end + 1;
        }
        paths.push(path);
        below = above;
    }
    paths
}

fn push_area(path: &mut String, points: impl Iterator<Item = (f64, f64)>) {
    for (index, (x, y)) in points.enumerate() {
        path.push_str(if index == 0 { "M" } else { " " });
        push_point(path, x, y);
    }
    path.push('Z');
}

/// Value of `trace` at each time of `clock`: that of its latest sample.
fn held(trace: &Trace, clock: &[u64]) -> Vec<Option<f64>> {
    let (times, values) = (&trace.samples.times_ns, &trace.samples.values);
    let mut next = 0;
    let mut last = None;
    let value = |&time: &u64| {
        while times.get(next).is_some_and(|sample| *sample <= time) {
            last = values[next].filter(|value| value.is_finite()).map(|value| value.clamp(0.0, 1.0));
            next += 1;
        }
        last
    };
    clock.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::reduce::ReducedSeries;

    const fn point(x: f64, y: f64) -> Point {
        Point { x, y }
    }

    #[test]
    fn a_line_is_interrupted_where_nothing_is_known() {
        let points = [Some(point(0.0, 1.0)), Some(point(1.5, 2.25)), None, Some(point(4.0, 0.0)), None];
        assert_eq!(line_path(points.into_iter()), "M0 1 1.5 2.2M4 0h.1");
        assert_eq!(line_path(core::iter::empty()), "");
    }

    #[test]
    fn areas_are_stacked_and_end_at_a_gap() {
        let trace = |values: [Option<f64>; 5]| Trace {
            name: String::new(),
            look: 0,
            samples: ReducedSeries { times_ns: vec![0, 10, 11, 50, 100], values: values.to_vec(), has_fewer: false },
            curve: None,
        };
        let lower = trace([Some(0.5), Some(0.5), None, Some(0.25), Some(0.25)]);
        let upper = trace([Some(0.5), Some(0.25), None, Some(0.75), Some(0.9)]);
        let paths = stack(&[lower, upper], 100, 100.0);
        assert_eq!(paths[0], "M0 50 100 50 100 100 0 100ZM500 75 1000 75 1000 100 500 100Z");
        assert_eq!(paths[1], "M0 0 100 25 100 50 0 50ZM500 0 1000 0 1000 75 500 75Z");
    }

    #[test]
    fn times_become_percentages() {
        assert_eq!(percentages(10, 30, 40), ("25".to_owned(), "50".to_owned()));
        assert_eq!(percentages(30, 90, 40), ("75".to_owned(), "25".to_owned()));
        assert_eq!(percentages(30, 10, 0), ("0".to_owned(), "0".to_owned()));
    }
}
