//! Progress line of a running test.

use core::time::Duration;

use linerate_model::direction::Direction;
use linerate_units::{BitRate, SegmentCount, StreamCount, display};

use super::style::{TextColour, TextStyle};
use crate::bars::bar;

/// Progress of a running test.
#[derive(Clone, Copy, Debug)]
pub struct TestProgress<'a> {
    /// Direction of the data.
    pub flow: Direction,
    /// Parallel streams.
    pub streams: StreamCount,
    /// Time since data began to flow.
    pub elapsed: Duration,
    /// Expected duration; `None` when it is open.
    pub total: Option<Duration>,
    /// The rate of each interval so far, the latest one last.
    pub rates: &'a [BitRate],
    /// Current round-trip time.
    pub rtt: Option<Duration>,
    /// Retransmitted segments so far.
    pub retransmits: Option<SegmentCount>,
}

/// The progress line, at most `style.width` characters wide, without a line feed. Parts that do not fit are omitted:
/// first the retransmits, then the round-trip time, then the clock; the sparkline fills the remaining width.
///
/// `↓ down  4 streams  9.41 Gbit/s  RTT 21.3 ms  12 retransmits  7/10 s  ▁▃▆██▇█`
#[must_use]
pub fn progress_line(progress: &TestProgress<'_>, style: TextStyle) -> String {
    let label = style.run_label(progress.flow, progress.streams);
    let rate = progress.rates.last().map_or_else(String::new, |rate| display::rate(*rate));
    let rate = format!("{rate:>11}");
    let available = usize::from(style.width.get());
    let used = label.chars().count() + 2 + rate.chars().count();
    if used > available {
        return label.chars().take(available).collect();
    }
    let details = details(progress, available - used, style);
    let free = available - used - details.chars().count();
    let chart = sparkline(progress.rates, free.saturating_sub(2).min(MAX_BARS), style.unicode);
    // The chart comes last: while it grows, nothing else moves.
    let chart = if chart.is_empty() { chart } else { format!("  {}", style.paint(TextColour::Cyan, &chart)) };
    format!("{label}  {}{}{chart}", style.paint(TextColour::Bold, &rate), style.paint(TextColour::Dim, &details))
}

/// As many of round-trip time, retransmits and clock as fit.
fn details(progress: &TestProgress<'_>, available: usize, style: TextStyle) -> String {
    let rtt = progress.rtt.map_or_else(String::new, |rtt| format!("  RTT {}", style.duration(rtt)));
    let retransmits = progress.retransmits.map_or_else(String::new, |count| format!("  {count} retransmits"));
    let clock = clock(progress);
    let choices = [format!("{rtt}{retransmits}{clock}"), format!("{rtt}{clock}"), clock];
    let fits = |available: usize| move |text: &&String| text.chars().count() <= available;
    let with_chart = choices.iter().find(fits(available.saturating_sub(MIN_CHART_WIDTH)));
    with_chart.or_else(|| choices.iter().find(fits(available))).cloned().unwrap_or_default()
}

/// Width reserved for the sparkline before details: two blanks and eight bars.
const MIN_CHART_WIDTH: usize = 10;

/// Maximum number of bars of the sparkline.
const MAX_BARS: usize = 30;

fn clock(progress: &TestProgress<'_>) -> String {
    let elapsed = progress.elapsed.as_secs();
    match progress.total {
        Some(total) => format!("  {elapsed}/{} s", total.as_secs_f64().ceil()),
        None => format!("  {elapsed} s"),
    }
}

/// The latest `available` rates as bars, from zero to the largest of them.
fn sparkline(rates: &[BitRate], available: usize, unicode: bool) -> String {
    let shown = &rates[rates.len().saturating_sub(available)..];
    let largest = shown.iter().copied().max().unwrap_or_default();
    shown.iter().map(|&rate| bar((rate / largest).unwrap_or_default(), unicode)).collect()
}
