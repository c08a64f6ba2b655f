//! Lines of a log, read back.

use linerate_shape::autorate::LogLine;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Sent.
    Up,
    /// Received.
    Down,
}

/// What a line says: seconds, bit/s, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) at: f64,
    pub(super) way: Way,
    pub(super) rate: f64,
    pub(super) achieved: Option<f64>,
    pub(super) capacity: Option<f64>,
    pub(super) queue: Option<f64>,
}

/// The lines of a log; else the number of the first that is not one. A last line without its end is left out.
pub(super) fn points(text: &str) -> Result<Vec<Point>, usize> {
    let mut lines = text.split_inclusive('\n');
    if lines.next().map(str::trim_end) != Some(LogLine::HEADER) {
        return Err(1);
    }
    lines
        .enumerate()
        .filter(|(_, line)| line.ends_with('\n'))
        .map(|(number, line)| point(line.trim_end_matches('\n')).ok_or(number + 2))
        .collect()
}

fn point(line: &str) -> Option<Point> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [at, way, _, _, rate, achieved, capacity, queue, _, _] = *<&[&str; 10]>::try_from(columns.as_slice()).ok()?;
    let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    let optional = |text: &str| if text.is_empty() { Some(None) } else { number(text).map(Some) };
    Some(Point {
        at: number(at)?,
        way: match way {
            "up" => Way::Up,
            "down" => Way::Down,
            _ => return None,
        },
        rate: number(rate)?,
        achieved: optional(achieved)?,
        capacity: optional(capacity)?,
        queue: optional(queue)?,
    })
}
