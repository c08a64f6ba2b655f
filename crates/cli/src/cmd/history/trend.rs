//! A figure over the runs.

use std::fmt::Write as _;

use linerate_history::{FigureReading, HistoryError, moment};
use linerate_report::escape;
use linerate_report::throughput_text::Style;
use serde_json::json;

use super::arguments::FilterArguments;
use super::compare::shown;
use crate::console;
use crate::exit::Exit;

/// At most so many of the latest readings are listed below the line.
const LISTED: usize = 20;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_BARS: [char; 8] = ['_', '.', '-', '~', '=', '+', '*', '#'];

pub(super) fn run(name: &str, filter: &FilterArguments, json: bool) -> Result<Exit, HistoryError> {
    let history = super::open_existing()?;
    let readings = history.figures(name, &filter.filter())?;
    if readings.is_empty() {
        let names = history.figure_names()?;
        let known = if names.iter().any(|known| known == name) {
            "runs with it exist, but the filters leave none of them".to_owned()
        } else {
            format!("the figures are {}", names.join(", "))
        };
        console::error(&format!("no run has the figure {name:?}\n{known}"), None);
        return Ok(Exit::Unable);
    }
    if json {
        console::data(&format!("{:#}\n", document(name, &readings)));
    } else {
        console::data(&text(&readings, console::data_style()));
    }
    Ok(Exit::Success)
}

fn document(name: &str, readings: &[FigureReading]) -> serde_json::Value {
    let readings: Vec<_> = readings
        .iter()
        .map(|reading| {
            json!({
                "id": reading.id.get(),
                "started_at": moment::rfc3339(reading.started_at),
                "host": reading.host,
                "unit": reading.figure.unit,
                "value": reading.figure.value,
                "low": reading.figure.low,
                "high": reading.figure.high,
                "count": reading.figure.count,
            })
        })
        .collect();
    json!({ "schema": 1, "figure": name, "readings": readings })
}

fn text(readings: &[FigureReading], style: Style) -> String {
    let values: Vec<Option<f64>> = readings.iter().map(|reading| reading.figure.value).collect();
    let known = || values.iter().flatten().copied();
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let Some(latest) = readings.last() else { return String::new() };
    let mut text = format!("{}\n\n", escape::line(&latest.figure.title));
    let room = usize::from(style.width.get()).saturating_sub(2).max(10);
    let chart = &values[values.len().saturating_sub(room)..];
    let _ = writeln!(text, "  {}", spark_line(chart, least, most, style));
    if least <= most {
        let [least, most] = [least, most].map(|end| shown(Some(end), latest.figure.unit, false, style));
        let _ = writeln!(text, "  from {least} to {most} over {} runs\n", readings.len());
    }
    for reading in &readings[readings.len().saturating_sub(LISTED)..] {
        let figure = &reading.figure;
        let interval = figure.low.zip(figure.high).map_or_else(String::new, |(low, high)| {
            let [low, high] = [low, high].map(|end| shown(Some(end), figure.unit, false, style));
            format!("   ({low} to {high})")
        });
        let value = shown(figure.value, figure.unit, false, style);
        let time = moment::to_the_minute(reading.started_at);
        let _ = writeln!(text, "  {:>5}  {time}  {value:>13}{interval}", reading.id.get());
    }
    text
}

/// Bars from the least value to the most; a blank where it could not be measured.
fn spark_line(values: &[Option<f64>], least: f64, most: f64, style: Style) -> String {
    let bars = if style.unicode { BARS } else { ASCII_BARS };
    let level = |value: f64| if most > least { (value - least) / (most - least) } else { 0.5 };
    values.iter().map(|value| value.map_or(' ', |value| bars[eighth(level(value))])).collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of 0 to 1")]
fn eighth(share: f64) -> usize {
    ((share * 7.0).round() as usize).min(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_go_from_the_least_to_the_most() {
        let line = |values: &[Option<f64>]| spark_line(values, 1.0, 3.0, Style::plain());
        assert_eq!(line(&[Some(1.0), None, Some(3.0), Some(2.0)]), "▁ █▅");
        assert_eq!(spark_line(&[Some(5.0); 2], 5.0, 5.0, Style::plain()), "▅▅");
    }
}
