//! Picture of a direction over time: the spread of the delay as smoke, loss, goodput in the colour of what limits it, and marks
//! where the route changed.

use core::fmt::Write as _;
use core::time::Duration;

use linerate_units::{BitRate, WallTime, display};

use super::matrix::{CellState, DirectedResults};

/// Size of the picture, and of its margin for labels.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 70.0;

/// Vertical extents of the two panels: delay above goodput.
const DELAY: (f64, f64) = (14.0, 100.0);
const GOODPUT: (f64, f64) = (112.0, 172.0);

/// Columns into which states are gathered.
const COLUMNS: usize = 300;

/// Delay of a column in nanoseconds, and its loss.
#[derive(Clone, Copy, Default)]
struct DelayColumn {
    lowest: f64,
    median: f64,
    highest: f64,
    loss: f64,
}

/// Picture as SVG; `None` with fewer than two times.
pub(super) fn picture(
    direction: &DirectedResults<'_>,
    class: impl Fn(&CellState<'_>) -> &'static str,
) -> Option<String> {
    let states = &direction.states;
    let (first, last) = (states.first()?.at, states.last()?.at);
    let span = last.since_unix_epoch().checked_sub(first.since_unix_epoch()).filter(|span| !span.is_zero())?;
    let share = |at: WallTime| {
        (at.since_unix_epoch().saturating_sub(first.since_unix_epoch())).as_secs_f64() / span.as_secs_f64()
    };
    let mut svg = format!(
        "<svg class=\"over-time\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Delay, loss and goodput over time\">\n"
    );
    push_delay(&mut svg, states, share);
    push_goodput(&mut svg, states, share, class);
    push_routes(&mut svg, states, share);
    svg.push_str("</svg>\n");
    Some(svg)
}

fn x(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - 8.0)
}

/// Height of a value in a panel from `top` to `bottom`, the largest value at the top.
fn y((top, bottom): (f64, f64), value: f64, largest: f64) -> f64 {
    bottom - (value / largest).clamp(0.0, 1.0) * (bottom - top)
}

/// Delays by column; a column has the largest spread of its states.
fn columns(states: &[CellState<'_>], share: impl Fn(WallTime) -> f64) -> Vec<Option<DelayColumn>> {
    let mut columns: Vec<Option<DelayColumn>> = vec![None; COLUMNS];
    for state in states {
        let Some(median) = state.result.figure("rtt_idle_median") else { continue };
        let figure = |name: &str| state.result.figure(name).unwrap_or(median);
        let loss = state.loss.map_or(0.0, linerate_units::Ratio::get);
        let state_column =
            DelayColumn { lowest: figure("rtt_idle_min"), median, highest: figure("rtt_idle_p95"), loss };
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a column"
        )]
        let index = ((share(state.at) * (COLUMNS - 1) as f64).round() as usize).min(COLUMNS - 1);
        let column = columns[index].get_or_insert(state_column);
        column.lowest = column.lowest.min(state_column.lowest);
        column.highest = column.highest.max(state_column.highest);
        column.median = column.median.max(state_column.median);
        column.loss = column.loss.max(state_column.loss);
    }
    columns
}

fn push_delay(svg: &mut String, states: &[CellState<'_>], share: impl Fn(WallTime) -> f64) {
    let columns = columns(states, share);
    let largest = columns.iter().flatten().map(|column| column.highest).fold(0.0, f64::max);
    if largest <= 0.0 {
        return;
    }
    let label = Duration::try_from_secs_f64(largest / 1e9).map(display::duration).unwrap_or_default();
    push_label(svg, DELAY.0 + 8.0, &label);
    push_label(svg, DELAY.1, "delay");
    #[expect(clippy::cast_precision_loss, reason = "a column")]
    let place = |index: usize| x(index as f64 / (COLUMNS - 1) as f64);
    for (index, column) in columns.iter().enumerate() {
        let Some(column) = column else { continue };
        let (left, high, low) =
            (place(index) - 1.6, y(DELAY, column.highest, largest), y(DELAY, column.lowest, largest));
        let _ = writeln!(
            svg,
            "<rect class=\"smoke\" x=\"{left:.1}\" y=\"{high:.1}\" width=\"3.2\" height=\"{:.1}\"/>",
            (low - high).max(1.0)
        );
        let median = y(DELAY, column.median, largest);
        let _ =
            writeln!(svg, "<rect class=\"median\" x=\"{left:.1}\" y=\"{median:.1}\" width=\"3.2\" height=\"1.6\"/>");
        if column.loss > 0.0 {
            // A full bar is 10 % of loss or more.
            let height = (column.loss * 10.0).clamp(0.15, 1.0) * 12.0;
            let _ =
                writeln!(svg, "<rect class=\"lost\" x=\"{left:.1}\" y=\"0\" width=\"3.2\" height=\"{height:.1}\"/>");
        }
    }
}

fn push_goodput(
    svg: &mut String,
    states: &[CellState<'_>],
    share: impl Fn(WallTime) -> f64,
    class: impl Fn(&CellState<'_>) -> &'static str,
) {
    let rate = |state: &CellState<'_>| state.goodput.map_or(0.0, BitRate::bits_per_second);
    let largest = states.iter().map(rate).fold(0.0, f64::max);
    if largest <= 0.0 {
        return;
    }
    push_label(svg, GOODPUT.0 + 8.0, &display::rate(BitRate::from_bits_per_second(largest)));
    push_label(svg, GOODPUT.1, "goodput");
    for state in states.iter().filter(|state| state.is_judgement()) {
        let (left, class) = (x(share(state.at)) - 2.0, class(state));
        // A test without a result is a mark on the axis.
        let top = y(GOODPUT, rate(state), largest).min(GOODPUT.1 - 3.0);
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"4\" height=\"{:.1}\"/>",
            GOODPUT.1 - top
        );
    }
}

fn push_routes(svg: &mut String, states: &[CellState<'_>], share: impl Fn(WallTime) -> f64) {
    let routes: Vec<&CellState<'_>> = states.iter().filter(|state| !state.result.route.is_empty()).collect();
    for pair in routes.windows(2).filter(|pair| pair[0].result.route != pair[1].result.route) {
        let place = x(share(pair[1].at));
        let _ = writeln!(
            svg,
            "<g class=\"route\"><line x1=\"{place:.1}\" x2=\"{place:.1}\" y1=\"{}\" y2=\"{}\"/><title>another route</title></g>",
            DELAY.0, GOODPUT.1
        );
    }
}

fn push_label(svg: &mut String, height: f64, text: &str) {
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{height:.1}\">{text}</text>", LEFT - 8.0);
}
