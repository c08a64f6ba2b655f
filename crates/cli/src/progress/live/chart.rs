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

/// Appearance of the curves.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurveLooks {
    pub(super) up: CurveLook,
    pub(super) down: CurveLook,
    pub(super) rtt: CurveLook,
    /// Marks of probes without a reply.
    pub(super) unanswered: CurveLook,
}

impl CurveLook {
    /// The same marks in another style.
    pub(super) const fn in_style(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// Appearance of the curves on this terminal.
    pub(super) fn all(look: Look) -> CurveLooks {
        let line = if look.unicode { Marker::Braille } else { Marker::Custom('*') };
        let points = if look.unicode { Marker::Dot } else { Marker::Custom('o') };
        CurveLooks {
            down: Self { style: look.colour(Color::Cyan), marker: line, sign: look.pick("⠤", "*") },
            up: Self { style: look.colour(Color::Green), marker: points, sign: look.pick("•", "o") },
            rtt: Self { style: look.colour(Color::Magenta), marker: line, sign: look.pick("⠤", "*") },
            unanswered: Self {
                style: look.colour(Color::Red),
                marker: Marker::Custom(if look.unicode { '×' } else { 'x' }),
                sign: look.pick("×", "x"),
            },
        }
    }
}

/// A chart with its title line.
pub(super) struct Panel<'a> {
    pub(super) title: String,
    /// Latest figure of each curve.
    pub(super) legend: Vec<(String, CurveLook)>,
    pub(super) curves: Vec<(&'a SampleCurve, CurveLook)>,
    /// Times marked at the upper edge.
    pub(super) marks: (&'a [f64], CurveLook),
    /// Text of a value at the axis.
    pub(super) format: fn(f64) -> String,
    pub(super) times: TimeAxis,
    /// Text without any sample.
    pub(super) without_samples: &'static str,
}

/// Axis of time: its ends in seconds, and their texts.
pub(super) struct TimeAxis {
    pub(super) bounds: [f64; 2],
    pub(super) labels: [String; 2],
}

impl TimeAxis {
    /// Time from the start until `now`.
    pub(super) fn since_start(now: Duration) -> Self {
        let span = now.max(MIN_SPAN);
        Self { bounds: [0.0, span.as_secs_f64()], labels: ["0:00".to_owned(), label::clock(span)] }
    }
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
    let mut spans = vec![Span::styled(panel.title.clone(), Look::bold())];
    for (text, curve) in &panel.legend {
        spans.extend([Span::raw("   "), Span::styled(curve.sign, curve.style), Span::raw(format!(" {text}"))]);
    }
    frame.render_widget(Line::from(spans), title);
    let height = panel.curves.iter().filter_map(|(curve, _)| curve.height()).max_by(f64::total_cmp);
    let largest = panel.curves.iter().filter_map(|(curve, _)| curve.largest()).max_by(f64::total_cmp);
    let Some(height) = height.filter(|height| *height > 0.0) else {
        let text = format!("{:>LABEL_WIDTH$}  {}", "", panel.without_samples);
        frame.render_widget(Line::styled(text, Look::dim()), area);
        return;
    };
    let top = label::round_up(height.max(largest.unwrap_or_default().min(height * 2.0)));
    let label = |value: f64| format!("{:>LABEL_WIDTH$}", (panel.format)(value));
    let middle = (area.height >= 5).then(|| label(top / 2.0));
    let labels: Vec<String> = [Some(label(0.0)), middle, Some(label(top))].into_iter().flatten().collect();
    let mut times = Axis::default().bounds(panel.times.bounds).style(Look::dim());
    if area.height >= MIN_HEIGHT_WITH_TIMES {
        times = times.labels(panel.times.labels.clone()).labels_alignment(Alignment::Right);
    }
    let (marks, look) = panel.marks;
    let marks: Vec<(f64, f64)> = marks.iter().map(|time| (*time, top)).collect();
    let mut sets = datasets(&panel.curves);
    sets.push(Dataset::default().data(&marks).marker(look.marker).graph_type(GraphType::Scatter).style(look.style));
    let chart = Chart::new(sets)
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
