//! Pages of the history: list, report of a run, comparison of two, trend of a figure. They only read.

use core::fmt::Write as _;
use core::num::NonZeroU32;

use hyper::StatusCode;
use jiff::tz::TimeZone;
use linerate_documents::run::RunDocument;
use linerate_fleet::unusual_figures;
use linerate_history::result_log::{RecentPage, ResultLog};
use linerate_history::{FigureSample, History, HistoryError, HistoryLocation, RunFilter, RunId, RunSummary, utc_time};
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

fn row(run: &RunSummary) -> String {
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
fn time_text(run: &RunSummary) -> String {
    utc_time::rfc3339(run.started_at).replace(['T', 'Z'], " ").trim_end().to_owned()
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
            sample.id.get(),
            escaped(&utc_time::rfc3339(sample.started_at)),
            escaped(&sample.host),
            escaped(&value),
        );
    }
    content.push_str("</tbody>\n</table></div>\n");
    Ok(framed(&title, &content))
}

/// Values from the oldest to the latest, from zero up.
fn picture(samples: &[FigureSample]) -> String {
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
