//! Trend of a figure over the runs.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use linerate_documents::civil_time;
use linerate_documents::trend::{self, TrendDocument, TrendSample};
use linerate_history::HistoryError;
use linerate_report::throughput_text::TextStyle;
use linerate_report::{bars, escape};
use linerate_units::Ratio;

use super::arguments::FilterArguments;
use super::compare::format_value;
use super::list::{MAX_HOST_WIDTH, truncate_text};
use super::results;
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

/// Largest number of samples listed below the chart.
const MAX_LISTED_SAMPLES: usize = 20;

pub(super) fn run(name: &str, filter: &FilterArguments, json: bool) -> Result<ExitStatus, HistoryError> {
    let history = super::open_existing()?;
    let samples = history.figures(name, &filter.filter())?;
    if samples.is_empty() {
        let names = history.figure_names()?;
        let known = if names.iter().any(|known| known == name) {
            "runs with this figure exist, but the filters exclude all of them".to_owned()
        } else {
            format!("the figures are {}", names.join(", "))
        };
        console::error(&format!("no run has the figure {name:?}\n{known}"), None);
        return Ok(ExitStatus::Unable);
    }
    Ok(print(name, samples, "runs", json))
}

/// Trend of a figure over the results of monitors and agents.
pub(super) fn of_results(
    directory: Option<&Path>,
    name: &str,
    filter: &FilterArguments,
    json: bool,
) -> Result<ExitStatus, HistoryError> {
    let Some(found) = results::read(directory, filter)? else { return Ok(ExitStatus::Unable) };
    let of_figure = |result: &linerate_documents::fleet_result::FleetResult| {
        let figure = result.figures.iter().find(|figure| figure.name == name)?.clone();
        let host = format!("{} -> {}", result.source, result.destination);
        Some(TrendSample { id: None, started_at: result.at(), host, figure })
    };
    let mut samples: Vec<TrendSample> = found.iter().filter_map(of_figure).collect();
    if samples.is_empty() {
        let names: BTreeSet<&str> =
            found.iter().flat_map(|result| &result.figures).map(|figure| &*figure.name).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.into_iter().collect::<Vec<_>>().join(", ") };
        console::error(&format!("no result has the figure {name:?}\nthe figures are {names}"), None);
        return Ok(ExitStatus::Unable);
    }
    if let Some(limit) = filter.limit {
        samples.drain(..samples.len().saturating_sub(limit.get() as usize));
    }
    Ok(print(name, samples, "results", json))
}

fn print(name: &str, samples: Vec<TrendSample>, noun: &str, json: bool) -> ExitStatus {
    if json {
        print_json(DocumentKind::Trend, &TrendDocument { schema: trend::SCHEMA, figure: name.to_owned(), samples });
    } else {
        console::data(&text(&samples, noun, console::data_style()));
    }
    ExitStatus::Success
}

fn text(samples: &[TrendSample], noun: &str, style: TextStyle) -> String {
    let values: Vec<Option<f64>> = samples.iter().map(|sample| sample.figure.value).collect();
    let known = || values.iter().flatten().copied();
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let Some(latest) = samples.last() else { return String::new() };
    let mut text = format!("{}\n\n", escape::line(&latest.figure.title));
    let width = usize::from(style.width.get()).saturating_sub(2).max(10);
    let chart = &values[values.len().saturating_sub(width)..];
    let _ = writeln!(text, "  {}", spark_line(chart, least, most, style));
    if least <= most {
        let [least, most] = [least, most].map(|end| format_value(Some(end), latest.figure.unit, false, style));
        let _ = writeln!(text, "  from {least} to {most} over {} {noun}\n", samples.len());
    }
    let listed = &samples[samples.len().saturating_sub(MAX_LISTED_SAMPLES)..];
    let names: Vec<String> =
        listed.iter().map(|sample| truncate_text(&escape::line(&name(sample)), MAX_HOST_WIDTH, style)).collect();
    let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(5);
    for (sample, name) in listed.iter().zip(&names) {
        let figure = &sample.figure;
        let interval = figure.low.zip(figure.high).map_or_else(String::new, |(low, high)| {
            let [low, high] = [low, high].map(|end| format_value(Some(end), figure.unit, false, style));
            format!("   ({low} to {high})")
        });
        let value = format_value(figure.value, figure.unit, false, style);
        let time = civil_time::format_minutes(sample.started_at);
        let _ = writeln!(text, "  {name:>name_width$}  {time}  {value:>13}{interval}");
    }
    text
}

/// Number of the run, or both hosts of the result.
fn name(sample: &TrendSample) -> String {
    sample.id.map_or_else(|| sample.host.clone(), |run| run.to_string())
}

/// Bars from the lowest value to the highest; a blank for an unmeasured one.
fn spark_line(values: &[Option<f64>], least: f64, most: f64, style: TextStyle) -> String {
    let share = |value: f64| if most > least { (value - least) / (most - least) } else { 0.5 };
    let bar = |value: f64| bars::bar(Ratio::new(share(value)).unwrap_or_default(), style.unicode);
    values.iter().map(|value| value.map_or(' ', bar)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_go_from_the_least_to_the_most() {
        let line = |values: &[Option<f64>]| spark_line(values, 1.0, 3.0, TextStyle::plain());
        assert_eq!(line(&[Some(1.0), None, Some(3.0), Some(2.0)]), "▁ █▅");
        assert_eq!(spark_line(&[Some(5.0); 2], 5.0, 5.0, TextStyle::plain()), "▅▅");
    }
}
