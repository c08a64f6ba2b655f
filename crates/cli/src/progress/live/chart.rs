//! Charts of the live picture.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType};

use super::curve::SampleCurve;
use super::draw::Look;
use super::label;

/// Appearance of a curve: its colour, and a mark that distinguishes it without one.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurveLook {
    style: Style,
    marker: Marker,
    /// Sign of the mark in the legend.
    sign: &'static str,
}

/// Appearance of the three curves.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurveLooks {
    pub(super) up: CurveLook,
    pub(super) down: CurveLook,
    pub(super) rtt: CurveLook,
}

impl CurveLook {
    /// Appearance of the curves on this terminal.
    pub(super) fn all(look: Look) -> CurveLooks {
        let line = if look.unicode { Marker::Braille } else { Marker::Custom('*') };
        let points = if look.unicode { Marker::Dot } else { Marker::Custom('o') };
        CurveLooks {
            down: Self { style: look.colour(Color::Cyan), marker: line, sign: look.pick("⠤", "*") },
            up: Self { style: look.colour(Color::Green), marker: points, sign: look.pick("•", "o") },
            rtt: Self { style: look.colour(Color::Magenta), marker: line, sign: look.pick("⠤", "*") },
        }
    }
}

/// A chart with its title line.
pub(super) struct Panel<'a> {
    pub(super) title: &'static str,
    /// Latest figure of each curve.
    pub(super) legend: Vec<(String, CurveLook)>,
    pub(super) curves: Vec<(&'a SampleCurve, CurveLook)>,
    /// Text of a value at the axis.
    pub(super) format: fn(f64) -> String,
    /// Right end of the time axis.
    pub(super) now: Duration,
}

/// Width of the values at the axis, the same in both charts, so that their times are aligned.
const LABEL_WIDTH: usize = 6;

/// Smallest height with values of time.
const MIN_HEIGHT_WITH_TIMES: u16 = 8;

/// Shortest time that a chart spans.
const MIN_SPAN: Duration = Duration::from_secs(10);

/// Draws the title line and, below, the chart.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, panel: &Panel<'_>) {
    let [title, area] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    let mut spans = vec![Span::styled(panel.title, Look::bold())];
    for (text, curve) in &panel.legend {
        spans.extend([Span::raw("   "), Span::styled(curve.sign, curve.style), Span::raw(format!(" {text}"))]);
    }
    frame.render_widget(Line::from(spans), title);
    let height = panel.curves.iter().filter_map(|(curve, _)| curve.height()).max_by(f64::total_cmp);
    let largest = panel.curves.iter().filter_map(|(curve, _)| curve.largest()).max_by(f64::total_cmp);
    let Some(height) = height.filter(|height| *height > 0.0) else {
        frame.render_widget(Line::styled(format!("{:>LABEL_WIDTH$}  nothing measured yet", ""), Look::dim()), area);
        return;
    };
    let top = label::round_up(height.max(largest.unwrap_or_default().min(height * 2.0)));
    let span = panel.now.max(MIN_SPAN).as_secs_f64();
    let label = |value: f64| format!("{:>LABEL_WIDTH$}", (panel.format)(value));
    let middle = (area.height >= 5).then(|| label(top / 2.0));
    let labels: Vec<String> = [Some(label(0.0)), middle, Some(label(top))].into_iter().flatten().collect();
    let mut times = Axis::default().bounds([0.0, span]).style(Look::dim());
    if area.height >= MIN_HEIGHT_WITH_TIMES {
        let end = label::clock(Duration::from_secs_f64(span));
        times = times.labels(["0:00".to_owned(), end]).labels_alignment(Alignment::Right);
    }
    let chart = Chart::new(datasets(&panel.curves))
        .x_axis(times)
        .y_axis(Axis::default().bounds([0.0, top]).labels(labels).style(Look::dim()))
        .legend_position(None);
    frame.render_widget(chart, area);
}

/// A data set for each part without a gap.
fn datasets<'a>(curves: &[(&'a SampleCurve, CurveLook)]) -> Vec<Dataset<'a>> {
    let of_curve = |(curve, look): &(&'a SampleCurve, CurveLook)| {
        let look = *look;
        let set = move |segment: &'a Vec<(f64, f64)>| {
            let graph = if segment.len() == 1 { GraphType::Scatter } else { GraphType::Line };
            Dataset::default().data(segment).marker(look.marker).graph_type(graph).style(look.style)
        };
        curve.segments().iter().map(set).collect::<Vec<_>>()
    };
    curves.iter().flat_map(of_curve).collect()
}
