//! The line that shows how a running test is doing.

use core::time::Duration;

use linerate_model::throughput::Flow;
use linerate_units::{BitRate, SegmentCount, StreamCount, display};

use super::style::{Paint, Style};

/// A running test, as far as it has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Which way the data flows.
    pub flow: Flow,
    /// Parallel streams.
    pub streams: StreamCount,
    /// Since data began to flow.
    pub elapsed: Duration,
    /// How long it will take; `None` when that is open.
    pub total: Option<Duration>,
    /// The rate of each interval so far, the latest one last.
    pub rates: &'a [BitRate],
    /// Round-trip time now.
    pub rtt: Option<Duration>,
    /// Retransmitted segments so far.
    pub retransmits: Option<SegmentCount>,
}

/// The live line, at most `style.width` characters wide, without a line feed. What does not fit is left out: first the
/// retransmits, then the round-trip time, then the clock; the sparkline takes the room that is left.
///
/// `↓ down  4 streams  9.41 Gbit/s  RTT 21.3 ms  12 retransmits  7/10 s  ▁▃▆██▇█`
#[must_use]
pub fn progress_line(progress: &Progress<'_>, style: Style) -> String {
    let label = style.run_label(progress.flow, progress.streams);
    let rate = progress.rates.last().map_or_else(String::new, |rate| display::rate(*rate));
    let rate = format!("{rate:>11}");
    let room = usize::from(style.width.get());
    let used = label.chars().count() + 2 + rate.chars().count();
    if used > room {
        return label.chars().take(room).collect();
    }
    let details = details(progress, room - used, style);
    let free = room - used - details.chars().count();
    let chart = sparkline(progress.rates, free.saturating_sub(2).min(MOST_BARS), style.unicode);
    // The chart comes last: while it grows, nothing else moves.
    let chart = if chart.is_empty() { chart } else { format!("  {}", style.paint(Paint::Cyan, &chart)) };
    format!("{label}  {}{}{chart}", style.paint(Paint::Bold, &rate), style.paint(Paint::Dim, &details))
}

/// As much of round-trip time, retransmits and clock as fits.
fn details(progress: &Progress<'_>, room: usize, style: Style) -> String {
    let rtt = progress.rtt.map_or_else(String::new, |rtt| format!("  RTT {}", style.duration(rtt)));
    let retransmits = progress.retransmits.map_or_else(String::new, |count| format!("  {count} retransmits"));
    let clock = clock(progress);
    let choices = [format!("{rtt}{retransmits}{clock}"), format!("{rtt}{clock}"), clock];
    let fits = |room: usize| move |text: &&String| text.chars().count() <= room;
    let with_chart = choices.iter().find(fits(room.saturating_sub(LEAST_CHART)));
    with_chart.or_else(|| choices.iter().find(fits(room))).cloned().unwrap_or_default()
}

/// What the sparkline gets before details do: two blanks and eight bars.
const LEAST_CHART: usize = 10;

/// More bars than this say nothing more.
const MOST_BARS: usize = 30;

fn clock(progress: &Progress<'_>) -> String {
    let elapsed = progress.elapsed.as_secs();
    match progress.total {
        Some(total) => format!("  {elapsed}/{} s", total.as_secs_f64().ceil()),
        None => format!("  {elapsed} s"),
    }
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_BARS: [char; 8] = ['_', '.', '-', '~', '=', '+', '*', '#'];

/// The latest `room` rates as bars, from zero to the largest of them.
fn sparkline(rates: &[BitRate], room: usize, unicode: bool) -> String {
    let shown = &rates[rates.len().saturating_sub(room)..];
    let largest = shown.iter().copied().max().unwrap_or_default();
    let bars = if unicode { BARS } else { ASCII_BARS };
    shown.iter().map(|&rate| bars[(rate / largest).map_or(0, |share| level(share.get()))]).collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the largest is 0 to 1")]
fn level(share: f64) -> usize {
    ((share * 7.0).round() as usize).min(7)
}
