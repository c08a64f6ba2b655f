//! Results of monitors and agents in `linerate history`: each test, and the light ones summed up by hour.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use linerate_documents::civil_time;
use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_documents::result_list::{self, ListedResult, ResultListDocument};
use linerate_documents::run::FigureUnit;
use linerate_fleet::TestWeight;
use linerate_history::HistoryError;
use linerate_history::result_log::ResultLog;
use linerate_report::escape;
use linerate_report::presentation::Quantity;
use linerate_report::text::wrap_text;
use linerate_report::throughput_text::TextStyle;
use linerate_units::WallTime;

use super::arguments::FilterArguments;
use super::list::{MAX_HOST_WIDTH, truncate_text};
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

/// Number of rows shown without a limit.
const DEFAULT_ROW_LIMIT: usize = 20;

const HOUR_NS: u64 = 3_600_000_000_000;

/// Test, or the light tests of an hour.
struct ResultRow<'a> {
    /// Results, the earliest first; never empty.
    results: Vec<&'a FleetResult>,
    is_hour: bool,
}

/// Lists the results of a log, or of the usual one.
pub(super) fn list(directory: Option<&Path>, filter: &FilterArguments, json: bool) -> Result<ExitStatus, HistoryError> {
    let Some(results) = read(directory, filter)? else { return Ok(ExitStatus::Unable) };
    let mut rows = rows(&results);
    let limit = filter.limit.map_or(DEFAULT_ROW_LIMIT, |limit| limit.get() as usize);
    let total = rows.len();
    if !json || filter.limit.is_some() {
        rows.truncate(limit);
    }
    if json {
        print_json(DocumentKind::ResultList, &document(&rows));
    } else if rows.is_empty() {
        console::note("no result matches");
    } else {
        console::data(&table(&rows, console::data_style()));
        if total > rows.len() {
            console::note(&format!("these are the latest {limit} of {total}; --limit N shows more"));
        }
    }
    Ok(ExitStatus::Success)
}

/// Results of a directory or a file, or of the usual directory, that match, the earliest first; `None` after an error message.
pub(super) fn read(
    directory: Option<&Path>,
    filter: &FilterArguments,
) -> Result<Option<Vec<FleetResult>>, HistoryError> {
    let path = directory.map_or_else(ResultLog::usual_directory, |directory| Ok(PathBuf::from(directory)))?;
    let mut read = match ResultLog::read(std::slice::from_ref(&path)) {
        Ok(read) => read,
        Err(error) => {
            console::error(&format!("{error}\n`linerate monitor` and `linerate fleet agent` write results"), None);
            return Ok(None);
        }
    };
    if read.unreadable > 0 {
        console::note(&format!("{} lines are no results, and were passed over", read.unreadable));
    }
    read.results.retain(|result| matches(result, filter));
    Ok(Some(read.results))
}

fn matches(result: &FleetResult, filter: &FilterArguments) -> bool {
    let is_at = |host: &String| result.source == *host || result.destination == *host;
    filter.host.as_ref().is_none_or(is_at)
        && filter.since.is_none_or(|since| result.at() >= since)
        && filter.until.is_none_or(|until| result.at() < until)
        && (!filter.failed || result.outcome != SessionOutcome::Done)
}

/// Rows, the latest first.
fn rows(results: &[FleetResult]) -> Vec<ResultRow<'_>> {
    let mut hours: BTreeMap<(u64, &str, &str, &str), Vec<&FleetResult>> = BTreeMap::new();
    let mut rows = Vec::new();
    for result in results {
        if TestWeight::of(&result.test) == Some(TestWeight::Light) {
            let key = (result.at_unix_ns / HOUR_NS, &*result.source, &*result.destination, &*result.task);
            hours.entry(key).or_default().push(result);
        } else {
            rows.push(ResultRow { results: vec![result], is_hour: false });
        }
    }
    rows.extend(hours.into_values().map(|results| ResultRow { results, is_hour: true }));
    rows.sort_by_key(|row| core::cmp::Reverse(row.at_unix_ns()));
    rows
}

impl ResultRow<'_> {
    fn at_unix_ns(&self) -> u64 {
        let first = self.results.first().map_or(0, |result| result.at_unix_ns);
        if self.is_hour { first / HOUR_NS * HOUR_NS } else { first }
    }

    fn values(&self, name: &str) -> Vec<f64> {
        let mut values: Vec<f64> = self.results.iter().filter_map(|result| result.figure(name)).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn text(&self) -> String {
        match self.results.as_slice() {
            [result] if !self.is_hour => match (result.outcome, &result.reason) {
                (SessionOutcome::Done, _) => result.verdict.clone(),
                (outcome, reason) => {
                    format!("{}: {}", outcome.name(), reason.as_deref().unwrap_or("no reason is known"))
                }
            },
            _ => self.sum(),
        }
    }

    /// Number of light tests of the hour, and their round trips and losses.
    fn sum(&self) -> String {
        let mut parts = vec![format!("{} in this hour", self.results.len())];
        let of = |outcome| self.results.iter().filter(|result| result.outcome == outcome).count();
        for (count, name) in [(of(SessionOutcome::Failed), "failed"), (of(SessionOutcome::Skipped), "skipped")] {
            parts.extend((count > 0).then(|| format!("{count} {name}")));
        }
        let shown = |value: f64, unit| Quantity::new(value, unit).display_text();
        if let rtt @ [least, .., most] = &*self.values("rtt_idle_median") {
            let [median, least, most] =
                [rtt[rtt.len() / 2], *least, *most].map(|value| shown(value, FigureUnit::Nanoseconds));
            parts.push(format!("round trip {median} ({least} to {most})"));
        } else if let [only] = &*self.values("rtt_idle_median") {
            parts.push(format!("round trip {}", shown(*only, FigureUnit::Nanoseconds)));
        }
        for (name, title) in [("loss_up", "loss up"), ("loss_down", "loss down")] {
            let values = self.values(name);
            #[expect(clippy::cast_precision_loss, reason = "a count")]
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            parts.extend((mean > 0.0).then(|| format!("{title} {}", shown(mean, FigureUnit::Share))));
        }
        parts.join(", ")
    }
}

fn document(rows: &[ResultRow<'_>]) -> ResultListDocument {
    ResultListDocument { schema: result_list::SCHEMA, results: rows.iter().filter_map(listed_result).collect() }
}

fn listed_result(row: &ResultRow<'_>) -> Option<ListedResult> {
    let first = row.results.first()?;
    Some(ListedResult {
        id: (!row.is_hour).then(|| first.id.clone()),
        at: time(row),
        task: first.task.clone(),
        test: first.test.clone(),
        source: first.source.clone(),
        destination: first.destination.clone(),
        count: row.results.len(),
        outcome: (!row.is_hour).then_some(first.outcome),
        verdict: row.text(),
    })
}

fn time(row: &ResultRow<'_>) -> WallTime {
    WallTime::from_unix(std::time::Duration::from_nanos(row.at_unix_ns()))
}

/// Smallest width of the results; below it they have lines of their own.
const MIN_RESULT_WIDTH: usize = 30;

/// Table of columns that fit the terminal; the result takes the remaining width.
fn table(rows: &[ResultRow<'_>], style: TextStyle) -> String {
    let (bold, plain) = if style.colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let column = |text: &dyn Fn(&FleetResult) -> String| -> Vec<String> {
        let short = |row: &ResultRow<'_>| {
            row.results.first().map(|result| truncate_text(&escape::line(&text(result)), MAX_HOST_WIDTH, style))
        };
        rows.iter().map(|row| short(row).unwrap_or_default()).collect()
    };
    let width = |texts: &[String]| texts.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(5);
    let (tests, pairs) =
        (column(&|one| one.test.to_string()), column(&|one| format!("{} -> {}", one.source, one.destination)));
    let (test_width, pair_width) = (width(&tests), width(&pairs));
    let remaining = usize::from(style.width.get()).saturating_sub(16 + 2 + test_width + 2 + pair_width + 2);
    let is_narrow = remaining < MIN_RESULT_WIDTH;
    let last = if is_narrow { "" } else { "RESULT" };
    let mut text = String::new();
    let heading = format!("{:<16}  {:<test_width$}  {:<pair_width$}  {last}", "TIME (UTC)", "TEST", "HOSTS");
    let _ = writeln!(text, "{bold}{}{plain}", heading.trim_end());
    for ((row, test), pair) in rows.iter().zip(&tests).zip(&pairs) {
        let verdict = row.text();
        let result = escape::line(&verdict);
        let at = civil_time::format_minutes(time(row));
        let head = format!("{at}  {test:<test_width$}  {pair:<pair_width$}");
        if is_narrow {
            let _ = writeln!(text, "{}", head.trim_end());
            for line in wrap_text(&result, usize::from(style.width.get()).saturating_sub(2)) {
                let _ = writeln!(text, "  {line}");
            }
        } else {
            let _ = writeln!(text, "{}", format!("{head}  {}", truncate_text(&result, remaining, style)).trim_end());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_documents::run::{ImprovementDirection, RunFigure};

    use super::*;

    fn result(task: &str, test: &str, minutes: u64, outcome: SessionOutcome, rtt: Option<f64>) -> FleetResult {
        let at = WallTime::from_unix(Duration::from_secs(1_795_161_600 + minutes * 60));
        let mut figure =
            RunFigure::new("rtt_idle_median", "Round trip", FigureUnit::Nanoseconds, ImprovementDirection::Lower);
        figure.value = rtt;
        FleetResult {
            outcome,
            verdict: "940 Mbit/s up; the path is full".to_owned(),
            figures: vec![figure],
            ..FleetResult::unstarted(task, test, ["here", "there"], at)
        }
    }

    #[test]
    fn light_tests_are_summed_up_by_hour_and_others_are_not() {
        let (done, failed) = (SessionOutcome::Done, SessionOutcome::Failed);
        let mut results: Vec<FleetResult> = (0..90)
            .map(|minute| {
                result("probe", "rtt", minute, done, Some(f64::from(u32::try_from(minute).expect("small")) * 1e6))
            })
            .collect();
        results.push(result("probe", "rtt", 90, failed, None));
        results.push(result("test", "throughput", 30, done, None));
        results.push(result("test", "throughput", 65, SessionOutcome::Skipped, None));
        let rows = rows(&results);
        let texts: Vec<String> = rows.iter().map(|row| row.text().replace('\u{202f}', " ")).collect();
        assert_eq!(
            texts,
            [
                "skipped: no reason is known",
                "31 in this hour, 1 failed, round trip 75.0 ms (60.0 ms to 89.0 ms)",
                "940 Mbit/s up; the path is full",
                "60 in this hour, round trip 30.0 ms (0 s to 59.0 ms)",
            ]
        );
        for width in [60, 80] {
            let style =
                TextStyle { width: linerate_report::throughput_text::TerminalWidth::new(width), ..TextStyle::plain() };
            let text = table(&rows, style);
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
            assert_eq!(text.lines().count() > 5, width == 60, "{text}");
        }
    }
}
