//! Pages of the history: list, report of a run, comparison of two, trend of a figure. They only read.

use core::fmt::Write as _;
use core::num::NonZeroU32;

use hyper::StatusCode;
use jiff::tz::TimeZone;
use linerate_documents::civil_time;
use linerate_documents::run::RunDocument;
use linerate_documents::trend::TrendSample;
use linerate_fleet::unusual_figures;
use linerate_history::result_log::{RecentPage, ResultLog};
use linerate_history::{History, HistoryError, HistoryLocation, ListedRun, RunFilter, RunId};
use linerate_report::fleet;
use linerate_report::html::{self, escaped};
use linerate_report::presentation::{Quantity, compare, present};
use linerate_sys::clock;

use crate::response::{self, WebResponse};
use crate::routes::{Query, Route};

/// Most runs of the list and of a trend.
const MAX_RUNS: NonZeroU32 = NonZeroU32::new(200).expect("not zero");

/// Size of a trend's picture.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 160.0;

/// Reason why a page cannot be shown.
enum PageError {
    History(HistoryError),
    Refused(StatusCode, String),
}

impl From<HistoryError> for PageError {
    fn from(error: HistoryError) -> Self {
        Self::History(error)
    }
}

/// Page of a route. Reads the disk.
pub(crate) fn page(route: Route, query: Query<'_>, recent: &RecentPage) -> WebResponse {
    let page = match route {
        Route::HistoryResults => results(recent).map(response::report),
        Route::HistoryRun => existing().and_then(|history| run(&history, query)).map(response::report),
        Route::HistoryComparison => existing().and_then(|history| comparison(&history, query)).map(response::report),
        Route::HistoryTrend => existing().and_then(|history| trend(&history, query)).map(response::html),
        _ => history().and_then(|history| list(history.as_ref(), results_link())).map(response::html),
    };
    page.unwrap_or_else(refusal)
}

fn refusal(error: PageError) -> WebResponse {
    match error {
        PageError::Refused(status, reason) => response::refuse(status, &reason),
        PageError::History(HistoryError::NoSuchRun(_)) => response::refuse(StatusCode::NOT_FOUND, "no such run"),
        // The error names a file of the server, which strangers need not know.
        PageError::History(_) => response::refuse(StatusCode::INTERNAL_SERVER_ERROR, "the history cannot be read"),
    }
}

/// The history; `None` when there is none yet.
fn history() -> Result<Option<History>, PageError> {
    match HistoryLocation::from_environment()? {
        HistoryLocation::File(file) if file.exists() => Ok(Some(History::open_existing(&file)?)),
        _ => Ok(None),
    }
}

fn existing() -> Result<History, PageError> {
    history()?.ok_or_else(|| PageError::Refused(StatusCode::NOT_FOUND, "there is no history yet".to_owned()))
}

fn stored(history: &History, query: Query<'_>, name: &str) -> Result<RunDocument, PageError> {
    let number = query.value(name).and_then(|text| text.parse().ok());
    let wrong = || PageError::Refused(StatusCode::BAD_REQUEST, format!("{name} is the number of a run"));
    Ok(history.get(RunId::new(number.ok_or_else(wrong)?))?)
}

fn run(history: &History, query: Query<'_>) -> Result<String, PageError> {
    let run = stored(history, query, "id")?;
    Ok(html::render(&[present(&run)]))
}

fn comparison(history: &History, query: Query<'_>) -> Result<String, PageError> {
    let runs = [stored(history, query, "before")?, stored(history, query, "after")?];
    let compared = compare(&runs[0], &runs[1]);
    let compared = compared.map_err(|refusal| PageError::Refused(StatusCode::BAD_REQUEST, refusal.to_string()))?;
    Ok(html::render(&[compared]))
}

/// Log of the monitors and agents of this host, next to its history.
fn log() -> Option<ResultLog> {
    ResultLog::existing(&ResultLog::usual_directory().ok()?)
}

fn results(recent: &RecentPage) -> Result<String, PageError> {
    let missing = || PageError::Refused(StatusCode::NOT_FOUND, "no monitor or agent has kept results here".to_owned());
    let log = log().ok_or_else(missing)?;
    let now = (clock::monotonic_now(), clock::realtime_now());
    let page = recent.html(&log, now, |results| {
        let unusual = unusual_figures(results, &TimeZone::system());
        fleet::page("Monitors and agents of this host, the last two days", results, &unusual)
    });
    page.map_err(|_| PageError::Refused(StatusCode::INTERNAL_SERVER_ERROR, "the results cannot be read".to_owned()))
}

/// Link to the results, where there are any.
fn results_link() -> &'static str {
    if log().is_some() {
        "<p><a href=\"/history/results\">What limits each direction over time</a>: the results of monitors and agents on this host.</p>\n"
    } else {
        ""
    }
}

/// A page with this title and content.
fn framed(title: &str, content: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{0}</title>\n\
         <link rel=\"icon\" href=\"/icon.svg\">\n<link rel=\"stylesheet\" href=\"/page.css\">\n</head>\n<body>\n\
         <header><a class=\"brand\" href=\"/\">linerate</a><nav><a href=\"/\">Test</a> \
         <a href=\"/history\">History</a></nav></header>\n<main>\n<h1>{0}</h1>\n{content}</main>\n</body>\n</html>\n",
        escaped(title)
    )
}

fn list(history: Option<&History>, results_link: &str) -> Result<String, PageError> {
    let (runs, names) = match history {
        Some(history) => (history.latest(MAX_RUNS)?, history.figure_names()?),
        None => (Vec::new(), Vec::new()),
    };
    if runs.is_empty() {
        return Ok(framed("History", &format!("{results_link}<p>No run is kept yet.</p>\n")));
    }
    let mut content = results_link.to_owned();
    content.push_str(
        "<form action=\"/history/compare\" method=\"get\">\n<div class=\"scroll\"><table class=\"runs\">\n<thead><tr><th>Run</th>\
         <th>Time (UTC)</th><th>Command</th><th>Host</th><th>Result</th><th>Compare</th></tr></thead>\n<tbody>\n",
    );
    for run in &runs {
        content.push_str(&row(run));
    }
    content.push_str("</tbody>\n</table></div>\n<p><button>Compare the two</button></p>\n</form>\n<h2>Trends</h2>\n<ul class=\"names\">\n");
    for name in &names {
        let name = escaped(name);
        let _ = writeln!(content, "<li><a href=\"/history/trend?figure={name}\">{name}</a></li>");
    }
    content.push_str("</ul>\n");
    Ok(framed("History", &content))
}

fn row(run: &ListedRun) -> String {
    let id = run.id.get();
    let choice = |side: &str| {
        format!(
            "<label><input type=\"radio\" name=\"{side}\" value=\"{id}\" aria-label=\"run {id} is {side}\"> {side}</label>"
        )
    };
    format!(
        "<tr><th scope=\"row\"><a href=\"/history/run?id={id}\">{id}</a></th><td>{}</td><td>{}</td><td>{}</td>\
         <td class=\"wide\">{}</td><td>{} {}</td></tr>\n",
        escaped(&time_text(run)),
        escaped(run.kind.command_name()),
        escaped(&run.host),
        escaped(&run.verdict),
        choice("before"),
        choice("after"),
    )
}

/// Start of a run to the second, with spaces where a line may break.
fn time_text(run: &ListedRun) -> String {
    civil_time::rfc3339(run.started_at).replace(['T', 'Z'], " ").trim_end().to_owned()
}

fn trend(history: &History, query: Query<'_>) -> Result<String, PageError> {
    let name = query.value("figure").unwrap_or_default();
    let filter = RunFilter { limit: Some(MAX_RUNS), ..RunFilter::default() };
    let samples = history.figures(name, &filter)?;
    let Some(latest) = samples.last() else {
        return Err(PageError::Refused(StatusCode::NOT_FOUND, "no run has this figure".to_owned()));
    };
    let title = latest.figure.title.clone();
    let mut content = picture(&samples);
    content.push_str(
        "<div class=\"scroll\"><table>\n<thead><tr><th>Run</th><th>Time (UTC)</th><th>Host</th><th>Value</th></tr></thead>\n<tbody>\n",
    );
    for sample in samples.iter().rev() {
        let value = sample
            .figure
            .value
            .map_or_else(|| "unknown".to_owned(), |value| Quantity::new(value, sample.figure.unit).display_text());
        let _ = writeln!(
            content,
            "<tr><th scope=\"row\"><a href=\"/history/run?id={0}\">{0}</a></th><td>{1}</td><td>{2}</td><td>{3}</td></tr>",
            sample.id.map_or_else(String::new, |id| id.to_string()),
            escaped(&civil_time::rfc3339(sample.started_at)),
            escaped(&sample.host),
            escaped(&value),
        );
    }
    content.push_str("</tbody>\n</table></div>\n");
    Ok(framed(&title, &content))
}

/// Values from the oldest to the latest, from zero up.
fn picture(samples: &[TrendSample]) -> String {
    let values: Vec<f64> = samples.iter().filter_map(|sample| sample.figure.value).collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    let least = values.iter().copied().fold(0.0, f64::min);
    if values.len() < 2 || most <= least {
        return String::new();
    }
    let steps = f64::from(u32::try_from(values.len() - 1).unwrap_or(u32::MAX));
    let point = |(index, value): (u32, &f64)| {
        let (x, y) = (f64::from(index) / steps * WIDTH, HEIGHT - (value - least) / (most - least) * HEIGHT);
        format!("{x:.1},{y:.1}")
    };
    let points: Vec<String> = (0..).zip(&values).map(point).collect();
    format!(
        "<svg class=\"trend\" viewBox=\"-4 -4 {} {}\" role=\"img\" aria-label=\"{} runs, the oldest at the left, from zero\">\
         <polyline points=\"{}\"/></svg>\n",
        WIDTH + 8.0,
        HEIGHT + 8.0,
        values.len(),
        points.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use linerate_documents::run::{FigureUnit, ImprovementDirection, RunFigure};
    use linerate_documents::web::{SCHEMA, WebDocument};
    use linerate_model::report::TestTermination;

    use super::*;
    use crate::test_support::Scratch;

    const HOSTILE: &str = "<script>alert(\"1\")</script>";

    fn figure(value: Option<f64>) -> RunFigure {
        let better = ImprovementDirection::Higher;
        RunFigure { value, ..RunFigure::new("goodput_down", "Goodput down", FigureUnit::BitsPerSecond, better) }
    }

    /// Run of a browser that calls itself and its host something hostile.
    fn document(value: Option<f64>, seconds: u64) -> RunDocument {
        let document = WebDocument {
            schema: SCHEMA,
            linerate_version: "1".to_owned(),
            host: HOSTILE.to_owned(),
            port: 80,
            started_at_unix_ns: seconds * 1_000_000_000,
            duration_ns: 1,
            termination: TestTermination::Complete,
            browser: Some(HOSTILE.to_owned()),
            congestion_control: None,
            rate_limit_bits_per_second: None,
            phases: Vec::new(),
            grade: None,
            ungraded_because: Some(HOSTILE.to_owned()),
            unknown: Vec::new(),
            notes: vec![HOSTILE.to_owned()],
        };
        RunDocument { verdict: HOSTILE.to_owned(), figures: vec![figure(value)], ..RunDocument::from(document) }
    }

    /// History of runs with these values, and its directory.
    fn history(values: &[Option<f64>]) -> (History, Scratch) {
        let scratch = Scratch::new();
        let mut history = History::open(&scratch.path().join("history.sqlite")).expect("a new history");
        for (value, seconds) in values.iter().zip(0..) {
            history.add(&document(*value, seconds)).expect("added");
        }
        (history, scratch)
    }

    fn refused(page: Result<String, PageError>) -> StatusCode {
        refusal(page.expect_err("a refusal")).status()
    }

    #[test]
    fn an_empty_history_is_a_page_and_has_the_link_to_the_results() {
        let (empty, _scratch) = history(&[]);
        for history in [None, Some(&empty)] {
            let page = list(history, "<p>link</p>").ok().expect("a page");
            assert!(page.contains("<p>link</p><p>No run is kept yet.</p>"), "{page}");
        }
    }

    #[test]
    fn no_page_has_the_code_of_a_stranger() {
        let (history, _scratch) = history(&[Some(1e6), Some(2e6)]);
        let query = |text| Query::new(Some(text));
        let pages = [
            list(Some(&history), ""),
            run(&history, query("id=1")),
            comparison(&history, query("before=1&after=2")),
            trend(&history, query("figure=goodput_down")),
        ];
        for page in pages {
            let page = page.ok().expect("a page");
            assert!(page.contains("&lt;script&gt;alert("), "the text is there: {page}");
            assert!(!page.contains("<script>alert("), "{page}");
        }
        assert!(framed(HOSTILE, "").contains("<h1>&lt;script&gt;"));
    }

    #[test]
    fn the_list_has_the_latest_run_first_and_each_figure_once() {
        let (history, _scratch) = history(&[Some(1e6), None, Some(2e6)]);
        let page = list(Some(&history), "").ok().expect("a page");
        let at = |id: u32| page.find(&format!("/history/run?id={id}\"")).expect("a row");
        assert!(at(3) < at(2) && at(2) < at(1));
        assert_eq!(page.matches("/history/trend?figure=goodput_down").count(), 1);
        assert!(page.contains("<td>1970-01-01 00:00:02"), "{page}");
    }

    #[test]
    fn runs_that_are_not_there_are_refused_without_naming_a_file() {
        let (history, _scratch) = history(&[Some(1e6)]);
        for (text, status) in [
            ("", StatusCode::BAD_REQUEST),
            ("id=", StatusCode::BAD_REQUEST),
            ("id=x", StatusCode::BAD_REQUEST),
            ("id=99999999999999999999", StatusCode::BAD_REQUEST),
            ("id=2", StatusCode::NOT_FOUND),
            ("id=-1", StatusCode::NOT_FOUND),
        ] {
            assert_eq!(refused(run(&history, Query::new(Some(text)))), status, "{text}");
        }
        assert_eq!(refused(comparison(&history, Query::new(Some("before=1")))), StatusCode::BAD_REQUEST);
        assert_eq!(refused(trend(&history, Query::new(Some("figure=x")))), StatusCode::NOT_FOUND);
        let response = refusal(PageError::History(HistoryError::NoPlace));
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.body().text_length(), Some(r#"{"error":"the history cannot be read"}"#.len() as u64));
    }

    #[test]
    fn a_trend_has_the_latest_value_first_and_what_is_unknown_as_such() {
        let (history, _scratch) = history(&[Some(1e6), None, Some(3e6)]);
        let page = trend(&history, Query::new(Some("figure=goodput_down"))).ok().expect("a page");
        let values: Vec<&str> = page.split("<td>").filter_map(|cell| Some(cell.split_once("</td></tr>")?.0)).collect();
        assert!(values.len() == 3 && values[0].starts_with('3') && values[2].starts_with('1'), "{values:?}");
        assert_eq!(values[1], "unknown");
        assert!(page.contains("<title>Goodput down</title>"));
    }

    #[test]
    fn a_picture_is_drawn_from_zero_and_within_its_frame() {
        let picture = |values: &[Option<f64>]| {
            let (history, _scratch) = history(values);
            picture(&history.figures("goodput_down", &RunFilter::default()).expect("figures"))
        };
        let drawn = picture(&[Some(50.0), None, Some(100.0), Some(25.0)]);
        assert!(drawn.contains("points=\"0.0,80.0 320.0,0.0 640.0,120.0\""), "{drawn}");
        assert!(drawn.contains("aria-label=\"3 runs,"), "{drawn}");
        let negative = picture(&[Some(-100.0), Some(100.0)]);
        assert!(negative.contains("points=\"0.0,160.0 640.0,0.0\""), "{negative}");
        for too_few in [&[][..], &[Some(1.0)], &[Some(1.0), None], &[Some(0.0), Some(0.0)]] {
            assert_eq!(picture(too_few), "", "{too_few:?}");
        }
    }
}
