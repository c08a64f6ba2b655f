//! The picture as a frame: a pure function of its state, the size and the terminal's capabilities.

use linerate_report::throughput_text::TextStyle;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::chart::{self, CurveLook, Panel, TimeAxis};
use super::hops;
use super::label::{self, cut};
use super::state::{LivePhase, LivePicture};

/// Smallest terminal for the picture; below, progress is a line.
pub(crate) const MIN_SIZE: (usize, usize) = (60, 16);

/// Smallest frame with charts: a terminal that has become smaller shows lines only.
const MIN_CHARTS: (u16, u16) = (40, 12);

/// Width from which the phases have a column of their own,
const MIN_WIDTH_WITH_SIDE: u16 = 100;
/// and its width.
const SIDE_WIDTH: u16 = 38;

/// Keys, shown in the last line.
const KEYS: &str = "q: stop, show the results   s: end this phase";
/// Those of a table of hops.
const HOP_KEYS: &str = "q: stop, show the results   up, down: chart of a hop";

/// Appearance of the terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) colour: bool,
    pub(super) unicode: bool,
}

impl Look {
    /// The terminal's capabilities.
    pub(super) const fn of(style: TextStyle) -> Self {
        Self { colour: style.colour, unicode: style.unicode }
    }

    pub(super) const fn pick<'a>(self, unicode: &'a str, ascii: &'a str) -> &'a str {
        if self.unicode { unicode } else { ascii }
    }

    /// This colour, if the terminal has any.
    pub(super) fn colour(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    pub(super) const fn bold() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) const fn dim() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }
}

/// Draws the picture into the whole frame.
pub(super) fn draw(frame: &mut Frame<'_>, picture: &LivePicture, style: TextStyle) {
    let look = Look::of(style);
    let area = frame.area();
    if area.width < MIN_CHARTS.0 || area.height < MIN_CHARTS.1 {
        lines_only(frame, area, picture, look);
    } else {
        whole(frame, area, picture, look);
    }
    if !look.unicode {
        to_ascii(frame);
    }
}

/// Title, phase and figures, as many lines as fit.
fn lines_only(frame: &mut Frame<'_>, area: Rect, picture: &LivePicture, look: Look) {
    let figures = picture.figures();
    let mut lines = vec![picture.title.clone(), label::present_phase(picture)];
    lines.extend(label::rates(&figures, look));
    lines.extend(figures.rtt.map(|rtt| format!("RTT {}", label::time(rtt, look))));
    lines.extend(label::limit(picture, look));
    lines.push("q: stop".to_owned());
    let width = usize::from(area.width);
    let lines: Vec<Line<'_>> = lines.into_iter().map(|line| Line::from(cut(&line, width, look))).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn whole(frame: &mut Frame<'_>, area: Rect, picture: &LivePicture, look: Look) {
    let has_side = area.width >= MIN_WIDTH_WITH_SIDE && picture.hops.is_none();
    let phases = u16::from(!has_side);
    let note = u16::from(picture.note.is_some());
    let rows = [
        Constraint::Length(1),
        Constraint::Length(phases),
        Constraint::Length(1),
        Constraint::Min(8),
        Constraint::Length(1),
        Constraint::Length(note),
        Constraint::Length(1),
    ];
    let [header, phase_row, progress, body, limit, note, keys] = Layout::vertical(rows).areas(area);
    frame.render_widget(header_line(picture, usize::from(area.width), look), header);
    if !has_side {
        frame.render_widget(phases_line(picture, usize::from(area.width), look), phase_row);
    }
    frame.render_widget(progress_line(picture, usize::from(area.width), look), progress);
    let charts = if has_side {
        let [charts, side] = Layout::horizontal([Constraint::Min(1), Constraint::Length(SIDE_WIDTH)]).areas(body);
        phases_column(frame, side, picture, look);
        charts
    } else {
        body
    };
    if let Some(view) = &picture.hops {
        hops::draw(frame, charts, view, look);
        frame.render_widget(hops::verdict_line(view, usize::from(area.width), look), limit);
    } else {
        draw_charts(frame, charts, picture, look);
        frame.render_widget(limit_line(picture, usize::from(area.width), look), limit);
    }
    if let Some(text) = &picture.note {
        let text = cut(&format!("note: {text}"), usize::from(area.width), look);
        frame.render_widget(Line::styled(text, Look::dim()), note);
    }
    let text = match &picture.hops {
        _ if picture.is_stopping => "stopping: the results follow",
        Some(_) => HOP_KEYS,
        None => KEYS,
    };
    frame.render_widget(Line::styled(text, Look::dim()), keys);
}

fn draw_charts(frame: &mut Frame<'_>, area: Rect, picture: &LivePicture, look: Look) {
    let [goodput, delay] = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
    let figures = picture.figures();
    let looks = CurveLook::all(look);
    let rate = |value: Option<f64>, name: &str| {
        let text = value.map_or_else(|| "-".to_owned(), label::rate);
        format!("{name} {text}")
    };
    let mut legend = Vec::new();
    for (curve, value, name, curve_look) in [
        (&picture.down, figures.down, look.pick("↓ down", "down"), looks.down),
        (&picture.up, figures.up, look.pick("↑ up", "up"), looks.up),
    ] {
        if curve.largest().is_some() {
            legend.push((rate(value, name), curve_look));
        }
    }
    let curves = vec![(&picture.down, looks.down), (&picture.up, looks.up)];
    let panel = |title: &str, legend, curves, format| Panel {
        title: title.to_owned(),
        legend,
        curves,
        marks: (&[], looks.unanswered),
        format,
        times: TimeAxis::since_start(picture.now),
        without_samples: "nothing measured yet",
    };
    chart::draw(frame, goodput, &panel("Goodput", legend, curves, label::axis_rate));
    let mut text = figures.rtt.map_or_else(|| "RTT -".to_owned(), |rtt| format!("RTT {}", label::time(rtt, look)));
    if let Some(added) = picture.queueing() {
        text = format!("{text}, {} more than idle", label::time(added, look));
    }
    let legend = vec![(text, looks.rtt)];
    let curves = vec![(&picture.rtt, looks.rtt)];
    chart::draw(frame, delay, &panel("Delay", legend, curves, label::axis_time));
}

fn header_line(picture: &LivePicture, width: usize, look: Look) -> Line<'static> {
    let clock = label::clock(picture.now);
    let title = cut(&picture.title, width.saturating_sub(clock.len() + 1), look);
    let gap = width.saturating_sub(title.chars().count() + clock.len());
    Line::from(vec![Span::styled(title, Look::bold()), Span::raw(" ".repeat(gap)), Span::raw(clock)])
}

fn mark(phase: &LivePhase, look: Look) -> &'static str {
    match (phase.begun.is_some(), phase.ended.is_some()) {
        (_, true) => look.pick("✓", "x"),
        (true, _) => look.pick("▶", ">"),
        _ => look.pick("·", "-"),
    }
}

/// All phases in a line; where they do not fit, those that are done become a number.
fn phases_line(picture: &LivePicture, width: usize, look: Look) -> Line<'static> {
    const GAP: &str = "   ";
    let texts: Vec<(String, Style)> = picture
        .phases
        .iter()
        .enumerate()
        .map(|(index, phase)| {
            let style = if picture.current == Some(index) { Look::bold() } else { Look::dim() };
            (format!("{} {}", mark(phase, look), phase.name), style)
        })
        .collect();
    let all: usize = texts.iter().map(|(text, _)| text.chars().count() + GAP.len()).sum();
    let done = picture.phases.iter().filter(|phase| phase.ended.is_some()).count();
    let mut shown = texts;
    if all > width + GAP.len() && done > 0 {
        let number = (format!("{} {done}", look.pick("✓", "x")), Look::dim());
        shown = core::iter::once(number).chain(shown.into_iter().skip(done)).collect();
    }
    let mut left = width;
    let mut spans = Vec::new();
    for (text, style) in shown {
        let text = cut(&text, left, look);
        left = left.saturating_sub(text.chars().count() + GAP.len());
        spans.extend([Span::styled(text, style), Span::raw(GAP)]);
    }
    Line::from(spans)
}

/// A bar for the running phase, and its remaining time.
fn progress_line(picture: &LivePicture, width: usize, look: Look) -> Line<'static> {
    let Some(phase) = picture.current.and_then(|index| picture.phases.get(index)) else { return Line::default() };
    let (share, text) = label::phase_progress(phase, picture.now);
    let text = format!("{}  {text}", phase.name);
    let bar = width.saturating_sub(text.chars().count() + 2);
    let (full, empty) = (look.pick("█", "#"), look.pick("░", "."));
    let filled = label::part_of(bar, share.unwrap_or_default());
    let bar = match share {
        Some(_) => format!("{}{}", full.repeat(filled), empty.repeat(bar - filled)),
        None => empty.repeat(bar),
    };
    Line::from(vec![Span::raw(text), Span::raw("  "), Span::styled(bar, look.colour(Color::Blue))])
}

fn phases_column(frame: &mut Frame<'_>, area: Rect, picture: &LivePicture, look: Look) {
    let width = usize::from(area.width).saturating_sub(2);
    let mut lines = vec![Line::styled("  Phases", Look::bold())];
    for (index, phase) in picture.phases.iter().enumerate() {
        let is_current = picture.current == Some(index);
        let style = if is_current { Look::bold() } else { Look::dim() };
        let text = cut(&format!("{} {}", mark(phase, look), phase.name), width, look);
        lines.push(Line::styled(format!("  {text}"), style));
        let result = phase.result.clone().unwrap_or_else(|| label::figures(&phase.latest, look));
        if !result.is_empty() {
            lines.push(Line::from(format!("    {}", cut(&result, width.saturating_sub(2), look))));
        }
    }
    // The present phase stays in view.
    let excess = lines.len().saturating_sub(usize::from(area.height));
    let lines = if picture.current.is_some() && excess > 0 { lines.split_off(excess) } else { lines };
    frame.render_widget(Paragraph::new(lines), area);
}

fn limit_line(picture: &LivePicture, width: usize, look: Look) -> Line<'static> {
    const TITLE: &str = "LIMITED BY  ";
    let text = label::limit(picture, look).unwrap_or_else(|| "-".to_owned());
    let text = cut(&text, width.saturating_sub(TITLE.len()), look);
    Line::from(vec![Span::styled(TITLE, Look::bold()), Span::styled(text, look.colour(Color::Yellow))])
}

/// Replaces what a terminal without Unicode cannot show.
fn to_ascii(frame: &mut Frame<'_>) {
    for cell in &mut frame.buffer_mut().content {
        if !cell.symbol().is_ascii() {
            let ascii = match cell.symbol() {
                "│" => "|",
                "─" => "-",
                "└" => "+",
                "µ" => "u",
                "━" => "=",
                "●" => "o",
                "…" => "~",
                "▸" => ">",
                _ => "?",
            };
            cell.set_symbol(ascii);
        }
    }
}
