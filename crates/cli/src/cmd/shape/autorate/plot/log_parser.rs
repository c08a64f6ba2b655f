//! Parser of autorate logs.

use linerate_model::direction::Direction;
use linerate_shape::autorate::AutorateLogLine;

/// Values of a log line, in seconds, bit/s and milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LogPoint {
    pub(super) at: f64,
    pub(super) way: Direction,
    pub(super) rate: f64,
    pub(super) achieved: Option<f64>,
    pub(super) capacity: Option<f64>,
    pub(super) queue: Option<f64>,
}

/// Parses a log; the error is the number of the first invalid line. An incomplete last line is skipped.
pub(super) fn points(text: &str) -> Result<Vec<LogPoint>, usize> {
    let mut lines = text.split_inclusive('\n');
    if lines.next().map(str::trim_end) != Some(AutorateLogLine::HEADER) {
        return Err(1);
    }
    lines
        .enumerate()
        .filter(|(_, line)| line.ends_with('\n'))
        .map(|(number, line)| point(line.trim_end_matches('\n')).ok_or(number + 2))
        .collect()
}

fn point(line: &str) -> Option<LogPoint> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [at, way, _, _, rate, achieved, capacity, queue, _, _] = *<&[&str; 10]>::try_from(columns.as_slice()).ok()?;
    let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    let optional = |text: &str| if text.is_empty() { Some(None) } else { number(text).map(Some) };
    Some(LogPoint {
        at: number(at)?,
        way: match way {
            "up" => Direction::Up,
            "down" => Direction::Down,
            _ => return None,
        },
        rate: number(rate)?,
        achieved: optional(achieved)?,
        capacity: optional(capacity)?,
        queue: optional(queue)?,
    })
}
