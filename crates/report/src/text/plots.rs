//! Charts in characters: a line of blocks for each series, a bar for each value.

use linerate_documents::run::FigureUnit;

use super::title;
use super::wrap::{columns, push_line};
use crate::escape;
use crate::presentation::{BarChart, Chart, ChartPhase, ChartPlot, MAX_SERIES, Quantity, TimeSeries, extent};
use crate::throughput_text::{TextColour, TextStyle};

/// Maximum width of a name in columns.
const MAX_NAME_WIDTH: usize = 22;

/// Appends the chart; distributions are left to the tables of percentiles, as characters are too coarse for them.
pub(super) fn push(text: &mut String, chart: &Chart<'_>, style: TextStyle) {
    match &chart.plot {
        ChartPlot::Lines(lines) => {
            title(text, &chart.title, style);
            push_series(text, &lines.series, lines.shown, &lines.phases, lines.unit, style);
        }
        ChartPlot::Ribbon(ribbon) => {
            title(text, &chart.title, style);
            push_series(text, &ribbon.series, MAX_SERIES, &ribbon.phases, FigureUnit::Share, style);
        }
        ChartPlot::Bars(bars) => {
            title(text, &chart.title, style);
            push_bars(text, bars, style);
        }
        // The charts of its quantities follow.
        ChartPlot::Overview(_) | ChartPlot::Distribution(_) => {}
    }
}

fn push_series(
    text: &mut String,
    series: &[TimeSeries<'_>],
    first: usize,
    phases: &[ChartPhase],
    unit: FigureUnit,
    style: TextStyle,
) {
    let shown = &series[..series.len().min(first).min(MAX_SERIES)];
    let ranges: Vec<String> = shown.iter().map(|one| style.ascii(&range(one, unit))).collect();
    let terminal = usize::from(style.width.get());
    let label = MAX_NAME_WIDTH.min(terminal / 4);
    let widest = ranges.iter().map(|range| columns(range)).max().unwrap_or(0);
    let width = terminal.saturating_sub(label + widest + 6).clamp(6, 60);
    let last = |series: &TimeSeries<'_>| series.times_ns.last().copied().unwrap_or(0);
    let span = series.iter().map(last).max().unwrap_or(0).max(1);
    let top = series.iter().flat_map(|series| series.values.iter().flatten()).copied().fold(0.0, f64::max);
    for (one, range) in shown.iter().zip(&ranges) {
        let name = clipped(&style.ascii(&escape::line(&one.name)), label, style);
        let line = style.paint(TextColour::Cyan, &spark_line(one, span, top, width, style));
        push_line(text, &format!("  {name:<label$} {line}  {}", style.paint(TextColour::Dim, range)));
    }
    if series.len() > shown.len() {
        push_line(text, &format!("  and {} more", series.len() - shown.len()));
    }
    if !phases.is_empty() {
        let line = format!("  {:<label$} {}", "", phase_line(phases, span, width));
        push_line(text, &style.paint(TextColour::Dim, &style.ascii(&escape::line(line.trim_end()))));
    }
}

/// `57.7 Mbit/s to 126 Mbit/s`.
fn range(series: &TimeSeries<'_>, unit: FigureUnit) -> String {
    let shown = |value| Quantity::new(value, unit).display_text();
    extent(&series.values)
        .map_or_else(|| "no samples".to_owned(), |extent| format!("{} to {}", shown(extent.min), shown(extent.max)))
}

/// One character per time slice: the mean of its samples, from 0 to `top`; a blank without samples.
fn spark_line(series: &TimeSeries<'_>, span: u64, top: f64, width: usize, style: TextStyle) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII: [char; 8] = ['_', '.', ',', '-', '=', '+', '*', '#'];
    let mut sums = vec![(0.0_f64, 0.0_f64); width];
    for (time, value) in series.times_ns.iter().zip(series.values.iter()) {
        if let (Some(value), Some(sum)) = (value, sums.get_mut(column(*time, span, width))) {
            *sum = (sum.0 + value, sum.1 + 1.0);
        }
    }
    let levels = if style.unicode { BLOCKS } else { ASCII };
    let character = |&(sum, count): &(f64, f64)| {
        if count == 0.0 {
            return ' ';
        }
        let share = if top > 0.0 { sum / count / top } else { 0.0 };
        levels[level(share, levels.len())]
    };
    sums.iter().map(character).collect()
}

fn column(time: u64, span: u64, width: usize) -> usize {
    let scaled = u128::from(time) * width as u128 / u128::from(span);
    usize::try_from(scaled).unwrap_or(usize::MAX).min(width - 1)
}

/// The level of a share from 0 to 1, out of `levels`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "few levels")]
fn level(share: f64, levels: usize) -> usize {
    ((share.clamp(0.0, 1.0) * levels as f64) as usize).min(levels - 1)
}

/// Names of the phases where they begin, cut to the length of the phase.
fn phase_line(phases: &[ChartPhase], span: u64, width: usize) -> String {
    let mut line = vec![' '; width];
    for phase in phases {
        let start = column(phase.start_ns, span, width);
        let end = column(phase.end_ns, span, width);
        let name = format!("|{}", phase.name);
        let end = if end > start { end } else { width };
        for (place, letter) in line[start..end].iter_mut().zip(name.chars()) {
            *place = letter;
        }
    }
    line.into_iter().collect()
}

fn push_bars(text: &mut String, bars: &BarChart, style: TextStyle) {
    const VALUE_WIDTH: usize = 14;
    let terminal = usize::from(style.width.get());
    let name = MAX_NAME_WIDTH.min(terminal / 4);
    let width = terminal.saturating_sub(name + VALUE_WIDTH + 15).clamp(6, 50);
    let values = bars.rows.iter().flat_map(|row| row.bars.iter().filter_map(|(value, _)| *value));
    let top = values.fold(0.0, f64::max);
    for row in &bars.rows {
        for (index, (value, _)) in row.bars.iter().enumerate() {
            let label = if index == 0 { escape::line(&row.label) } else { "".into() };
            let label = clipped(&style.ascii(&label), name, style);
            let legend = bars.legend.get(index).map_or("", String::as_str);
            let shown =
                value.map_or_else(|| "unknown".to_owned(), |value| Quantity::new(value, bars.unit).display_text());
            let length = value.map_or(0, |value| if top > 0.0 { level(value / top, width + 1) } else { 0 });
            let bar = style.pick("█", "#").repeat(length);
            let paint = if index == 0 { TextColour::Dim } else { TextColour::Cyan };
            let line = format!(
                "  {label:<name$} {legend:<10}{:>VALUE_WIDTH$}  {}",
                style.ascii(&shown),
                style.paint(paint, &bar)
            );
            push_line(text, &line);
        }
    }
}

fn clipped(name: &str, width: usize, style: TextStyle) -> String {
    if columns(name) <= width {
        return name.to_owned();
    }
    let mark = style.pick("…", "~");
    name.chars().take(width - 1).collect::<String>() + mark
}
