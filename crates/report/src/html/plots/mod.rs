//! Kinds of plots, one file each: the picture, the data for the page's script, and the script that replaces the
//! picture by a chart that can be zoomed and read.

mod bars;
mod distribution;
mod lines;
mod overview;
mod ribbon;

use serde_json::{Value, json};

use super::markup::{HtmlWriter as _, escaped, json};
use super::pack;
use super::reduce::{ReducedSeries, SliceCount};
use super::trace::Trace;
use crate::presentation::{Chart, ChartPhase, ChartPlot, OverviewPanel, TimeSeries};

/// A kind of plot.
pub(super) struct PlotKind {
    /// Name, also in the page's script.
    pub(super) name: &'static str,
    /// JavaScript that draws it; empty where the picture is all there is.
    pub(super) script: &'static str,
    /// Draws a chart, if it is of this kind.
    draw: fn(&Chart<'_>, &DrawingContext) -> Option<ChartMarkup>,
}

/// Bounds that the charts of a run have in common.
pub(super) struct DrawingContext {
    /// Slices of the data for the script.
    pub(super) parts: SliceCount,
    /// Slices of pictures.
    pub(super) picture_parts: SliceCount,
    /// End of the time axis in nanoseconds since the run began.
    pub(super) end_ns: u64,
}

/// All kinds.
pub(super) const PLOTS: &[PlotKind] = &[overview::KIND, lines::KIND, ribbon::KIND, distribution::KIND, bars::KIND];

/// A chart prepared for the page.
struct ChartMarkup {
    /// Data for the script; `None` where it adds nothing to the picture.
    data: Option<Value>,
    /// Markup of the picture.
    picture: String,
    /// Notes on what is drawn.
    notes: Vec<String>,
    /// Note that the chart is reduced, and how.
    reduced: Option<String>,
    /// Markup of the tables with the same data.
    tables: String,
}

/// Markup of `chart`; `id` is unique within the page.
pub(super) fn figure(chart: &Chart<'_>, id: &str, context: &DrawingContext) -> String {
    let drawn = PLOTS.iter().find_map(|kind| Some((kind.name, (kind.draw)(chart, context)?)));
    let Some((kind, drawing)) = drawn else { return String::new() };
    let mut html = String::new();
    let (title, summary) = (escaped(&chart.title), escaped(&chart.summary));
    html.push_fmt(format_args!(
        "<figure class=\"chart\" id=\"{id}\" data-plot=\"{kind}\" data-chart=\"{}\" aria-labelledby=\"{id}-title\">\n\
         <figcaption><h3 id=\"{id}-title\">{title}</h3><span class=\"unit\"></span>\
         <p class=\"summary\">{summary}</p></figcaption>\n",
        escaped(&chart.name)
    ));
    html.push_str(&drawing.picture);
    if let Some(data) = &drawing.data {
        html.push_fmt(format_args!(
            "<div class=\"place\" hidden></div>\n<script type=\"application/json\">{}</script>\n",
            json(data)
        ));
    }
    let notes = drawing.notes.iter().map(|note| ("remark", note));
    for (class, note) in notes.chain(drawing.reduced.iter().map(|note| ("reduced", note))) {
        html.push_fmt(format_args!("<p class=\"{class}\">{}</p>\n", escaped(note)));
    }
    html.push_fmt(format_args!(
        "<details class=\"data\"><summary>Data of this chart as a table</summary>\n{}</details>\n</figure>\n",
        drawing.tables
    ));
    html
}

/// Number of series that `chart` draws over time.
pub(super) fn series_of(chart: &Chart<'_>) -> usize {
    match &chart.plot {
        ChartPlot::Lines(lines) => lines.shown,
        ChartPlot::Ribbon(ribbon) => ribbon.series.len(),
        ChartPlot::Overview(_) | ChartPlot::Distribution(_) | ChartPlot::Bars(_) => 0,
    }
}

/// Time of the last sample of `charts` or the end of their last phase; at least 1.
pub(super) fn end_of(charts: &[Chart<'_>]) -> u64 {
    let of = |series: &[TimeSeries<'_>], phases: &[ChartPhase]| {
        let last = series.iter().filter_map(|series| series.times_ns.iter().max().copied());
        last.chain(phases.iter().map(|phase| phase.end_ns)).max().unwrap_or(0)
    };
    let of_panel = |panel: &OverviewPanel<'_>, phases: &[ChartPhase]| {
        panel.series.iter().map(|(_, series)| of(core::slice::from_ref(series), phases)).max().unwrap_or(0)
    };
    let ends = charts.iter().map(|chart| match &chart.plot {
        ChartPlot::Lines(lines) => of(&lines.series, &lines.phases),
        ChartPlot::Ribbon(ribbon) => of(&ribbon.series, &ribbon.phases),
        ChartPlot::Overview(overview) => {
            overview.panels.iter().map(|panel| of_panel(panel, &overview.phases)).max().unwrap_or(0)
        }
        ChartPlot::Distribution(_) | ChartPlot::Bars(_) => 0,
    });
    ends.max().unwrap_or(0).max(1)
}

/// Packs traces for the script. Series that were sampled at the same times share them.
fn packed(traces: &[Trace]) -> Value {
    let mut clocks: Vec<&[u64]> = Vec::new();
    let mut packed = Vec::new();
    for trace in traces {
        let mut one = timed(&mut clocks, &trace.samples);
        one["name"] = json!(crate::escape::line(&trace.name));
        if let Some(curve) = &trace.curve {
            one["curve"] = timed(&mut clocks, curve);
        }
        packed.push(one);
    }
    let clocks: Vec<Value> = clocks.into_iter().map(pack::pack_times).collect();
    json!({ "clocks": clocks, "series": packed })
}

fn timed<'a>(clocks: &mut Vec<&'a [u64]>, series: &'a ReducedSeries) -> Value {
    let known = clocks.iter().position(|clock| *clock == series.times_ns);
    let clock = known.unwrap_or_else(|| {
        clocks.push(&series.times_ns);
        clocks.len() - 1
    });
    json!({ "clock": clock, "values": pack::pack_values(&series.values) })
}

fn phases(phases: &[ChartPhase]) -> Value {
    let phase = |phase: &ChartPhase| json!({ "name": crate::escape::line(&phase.name), "start": phase.start_ns, "end": phase.end_ns });
    phases.iter().map(phase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Modules next to this file, as its `mod` lines name them.
    fn files() -> Vec<&'static str> {
        let own = include_str!("mod.rs").lines();
        own.filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect()
    }

    #[test]
    fn each_kind_has_its_file_and_each_file_its_kind() {
        let names: Vec<&str> = files();
        let mut kinds: Vec<&str> = PLOTS.iter().map(|kind| kind.name).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, names);
    }

    #[test]
    fn each_script_registers_its_kind_and_nothing_else() {
        for kind in PLOTS.iter().filter(|kind| !kind.script.is_empty()) {
            let registered: Vec<&str> =
                kind.script.lines().filter(|line| line.starts_with("linerate.plots.")).collect();
            assert_eq!(registered.len(), 1, "{}", kind.name);
            assert!(registered[0].starts_with(&format!("linerate.plots.{} = ", kind.name)), "{}", registered[0]);
        }
    }

    #[test]
    fn no_script_asks_for_anything_or_runs_text() {
        const FORBIDDEN: [&str; 12] = [
            "http",
            "fetch(",
            "XMLHttpRequest",
            "WebSocket",
            "EventSource",
            "import(",
            "eval(",
            "Function(",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
        ];
        let scripts = PLOTS.iter().map(|kind| kind.script).chain([crate::html::PAGE_SCRIPT]);
        for script in scripts {
            for word in FORBIDDEN {
                assert!(!script.contains(word), "{word}");
            }
        }
    }

    #[test]
    fn scripts_are_short_enough_to_be_read() {
        for kind in PLOTS {
            assert!(kind.script.lines().count() <= 200, "{}", kind.name);
        }
    }
}
