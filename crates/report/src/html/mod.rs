//! A report as one self-contained HTML file: no network requests, and readable without scripts.
//!
//! The verdict comes first, then the figures, the settings, the charts, the tables, the notes and the environment. Charts
//! are pictures, drawn in `svg`; uPlot (in `vendor/uplot`) and the scripts next to this file replace those over time and
//! the distributions on a screen by charts that can be zoomed and read. Each chart also has its data as a table. The page's Content Security Policy allows
//! exactly this script and this style, by their hashes, and no requests, so that no text of a document can become
//! active even if it ended up as markup. Sizes are bounded: `reduce.rs` reduces the charts of a long run.

mod markup;
mod pack;
mod plots;
mod policy;
mod reduce;
mod sections;
mod svg;
mod trace;

pub use markup::escaped;
pub(crate) use markup::{HtmlWriter, json as embedded_json};

use plots::PLOTS;
use reduce::SliceCount;

use crate::presentation::Presentation;

/// The uPlot library, as its authors publish it.
const UPLOT_SCRIPT: &str = include_str!("../../vendor/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../vendor/uplot/uPlot.min.css");
pub(crate) const PAGE_SCRIPT: &str = include_str!("page.js");
const PAGE_STYLE: &str = include_str!("page.css");
const START: &str = "linerate.start();\n";
/// Additions of the page of a fleet.
const FLEET_SCRIPT: &str = include_str!("fleet.js");
const FLEET_STYLE: &str = include_str!("fleet.css");

/// Renders all `presentations` on one page.
#[must_use]
pub fn render(presentations: &[Presentation<'_>]) -> String {
    let title = title(presentations);
    let contents = if presentations.len() > 1 { contents(presentations) } else { String::new() };
    document(&title, (&style(), &script(), policy::POLICY), &contents, presentations)
}

/// Page of a fleet: its own part, then whole reports of some runs.
pub(crate) struct FleetPage<'a> {
    /// Title.
    pub(crate) title: &'a str,
    /// Own part, as HTML.
    pub(crate) body: &'a str,
    /// Runs.
    pub(crate) runs: &'a [Presentation<'a>],
}

/// Renders the page of a fleet.
pub(crate) fn fleet_page(page: &FleetPage<'_>) -> String {
    let style = format!("{}{FLEET_STYLE}", style());
    let script = format!("{}{FLEET_SCRIPT}", script());
    document(page.title, (&style, &script, policy::FLEET_POLICY), page.body, page.runs)
}

/// Whole page; `body` comes before the runs.
fn document(
    title: &str,
    (style, script, policy): (&str, &str, &str),
    body: &str,
    presentations: &[Presentation<'_>],
) -> String {
    let mut html = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.push_fmt(format_args!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n"));
    html.push_str(
        "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n",
    );
    html.push_fmt(format_args!("<title>{}</title>\n<style>{style}</style>\n</head>\n<body>\n", escaped(title)));
    html.push_str(&svg::definitions());
    html.push_str(
        "<header class=\"page\"><span class=\"brand\">linerate</span>\
         <button type=\"button\" class=\"theme\" hidden>Theme: system</button></header>\n<main>\n",
    );
    html.push_str(body);
    let series = presentations.iter().flat_map(|presentation| &presentation.charts).map(plots::series_of).sum();
    let parts = SliceCount::for_series(series);
    for (index, presentation) in presentations.iter().enumerate() {
        html.push_str(&sections::article(presentation, index + 1, parts));
    }
    html.push_fmt(format_args!("</main>\n<script>{script}</script>\n</body>\n</html>\n"));
    html
}

fn title(presentations: &[Presentation<'_>]) -> String {
    match presentations {
        [one] => one.title.clone(),
        several => format!("{} runs measured by linerate", several.len()),
    }
}

fn contents(presentations: &[Presentation<'_>]) -> String {
    let mut html = String::from("<nav aria-label=\"Runs\"><ol>\n");
    for (index, presentation) in presentations.iter().enumerate() {
        let title = escaped(&presentation.title);
        html.push_fmt(format_args!("<li><a href=\"#run-{}\">{title}</a></li>\n", index + 1));
    }
    html.push_str("</ol></nav>\n");
    html
}

fn style() -> String {
    format!("{}\n{PAGE_STYLE}", UPLOT_STYLE.trim_end())
}

fn script() -> String {
    let plots: Vec<&str> = PLOTS.iter().map(|kind| kind.script).collect();
    format!("{}\n{PAGE_SCRIPT}{}{START}", UPLOT_SCRIPT.trim_end(), plots.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script element ends at the first `</script`, a style at `</style`, and `<!--` changes how a script is read.
    #[test]
    fn script_and_style_do_not_end_early() {
        for text in [script(), style(), FLEET_SCRIPT.to_owned(), FLEET_STYLE.to_owned()] {
            for end in ["</script", "</style", "<!--"] {
                assert!(!text.contains(end), "{end}");
            }
        }
    }

    #[test]
    fn the_library_is_the_version_that_is_recorded() {
        let record = include_str!("../../vendor/uplot/VERSION");
        let version =
            record.lines().next().and_then(|line| line.strip_prefix("uplot ")).expect("the first line names it");
        assert!(UPLOT_SCRIPT.contains(&format!("(v{version})")), "{version}");
    }
}
