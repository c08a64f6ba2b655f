//! `linerate shape plot LOG`: draws a log as a self-contained HTML page.

mod chart;
mod log_parser;

use linerate_model::direction::Direction;
use std::path::Path;

use linerate_operate::shaping::error::ShapeError;
use linerate_sys::describe_os_error;

use self::chart::{ChartSeries, LogChart};
use self::log_parser::LogPoint;

/// Draws the log `log` into the file `page`.
pub(in crate::cmd::shape) fn draw(log: &Path, page: &Path) -> Result<(), ShapeError> {
    let text = std::fs::read_to_string(log)
        .map_err(|cause| ShapeError::impossible(format!("reading {}: {}", log.display(), describe_os_error(&cause))))?;
    let points = log_parser::points(&text).map_err(|line| {
        ShapeError::impossible(format!("reading {}: line {line} is not an autorate log line", log.display()))
            .with_advice("`linerate shape DEV --autorate --log FILE` writes a log")
    })?;
    let name = log.file_name().unwrap_or(log.as_os_str()).to_string_lossy();
    std::fs::write(page, html(&name, &points))
        .map_err(|cause| ShapeError::impossible(format!("writing {}: {}", page.display(), describe_os_error(&cause))))
}

/// Renders the whole page.
fn html(name: &str, points: &[LogPoint]) -> String {
    let mut charts = String::new();
    for (way, title) in [(Direction::Down, "Down"), (Direction::Up, "Up")] {
        let own: Vec<&LogPoint> = points.iter().filter(|point| point.way == way).collect();
        if !own.is_empty() {
            charts += &rate_chart(title, &own).svg();
        }
    }
    let series = |way, name, class| ChartSeries {
        name,
        class,
        steps: false,
        points: points.iter().filter(|point| point.way == way).map(|point| (point.at, point.queue)).collect(),
    };
    let queues = LogChart {
        title: "Queue in the path".to_owned(),
        unit: "ms",
        series: vec![series(Direction::Down, "down", "b"), series(Direction::Up, "up", "a")],
    };
    charts += &queues.svg();
    let title = escaped(name);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title} – linerate shape</title>\n<style>{STYLE}</style></head>\n<body><main>\n\
         <h1>Rates that follow a link</h1>\n<p class=\"log\">{title}</p>\n{charts}</main></body></html>\n"
    )
}

/// Chart of one direction's rates.
fn rate_chart(title: &str, points: &[&LogPoint]) -> LogChart {
    let series = |name, class, steps, value: fn(&LogPoint) -> Option<f64>| ChartSeries {
        name,
        class,
        steps,
        points: points.iter().map(|point| (point.at, value(point).map(|rate| rate / 1e6))).collect(),
    };
    LogChart {
        title: title.to_owned(),
        unit: "Mbit/s",
        series: vec![
            series("carried", "c", false, |point| point.achieved),
            series("estimated capacity", "d", true, |point| point.capacity),
            series("set rate", "a", true, |point| Some(point.rate)),
        ],
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "
:root { color-scheme: light dark; --background: #fafaf8; --surface: #fff; --text: #1a1f24; --muted: #59636e; --line: #e2e4e6;
  --a: #0072b2; --b: #d55e00; --c: #009e73; --d: #b0508a; }
@media (prefers-color-scheme: dark) { :root { --background: #101316; --surface: #171b1f; --text: #e6e9ec; --muted: #9aa5b0;
  --line: #2a3037; --a: #56b4e9; --b: #ff8a4c; --c: #3cc795; --d: #e08fc0; } }
body { margin: 0; background: var(--background); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 24px; }
h1 { font-size: 22px; margin: 0; } .log { color: var(--muted); margin: 0 0 20px; overflow-wrap: anywhere; }
figure { margin: 0 0 18px; padding: 14px 16px; background: var(--surface); border: 1px solid var(--line); border-radius: 10px; }
figcaption { display: flex; flex-wrap: wrap; gap: 2px 18px; align-items: baseline; } figcaption b { margin-right: auto; }
.key { font-size: 13px; color: var(--muted); } .key::before { content: ''; display: inline-block; width: 18px; height: 3px;
  vertical-align: middle; margin-right: 6px; background: var(--own); }
svg { display: block; width: 100%; height: auto; } text { fill: var(--muted); font-size: 12px; }
.grid { stroke: var(--line); } .a { --own: var(--a); } .b { --own: var(--b); } .c { --own: var(--c); } .d { --own: var(--d); }
path { fill: none; stroke: var(--own); stroke-width: 1.6; stroke-linejoin: round; } path.c { stroke-width: 1; }
";

#[cfg(test)]
mod tests {
    use linerate_shape::autorate::AutorateLogLine;

    use super::*;

    const LINES: &str = "10.000\tdown\tRunning\tHigh\t20000000\t18000000\t\t2.50\t12.00\tgrow\n\
                         10.000\tup\tRunning\tIdle\t5000000\t\t\t\t12.00\thold\n\
                         11.000\tdown\tRunning\tHigh\t5000000\t5200000\t5100000\t80.00\t12.00\tdrain\n";

    #[test]
    fn a_page_has_both_directions_and_the_queue() {
        let points = log_parser::points(&format!("{}\n{LINES}", AutorateLogLine::HEADER)).expect("a log");
        assert_eq!((points.len(), points[2].capacity, points[1].queue), (3, Some(5.1e6), None));
        let page = html("a<b>.log", &points);
        assert_eq!(page.matches("<figure>").count(), 3);
        for expected in ["a&lt;b&gt;.log", "set rate", "estimated capacity", "Mbit/s", ">ms<"] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf") && !page.contains("src=") && !page.contains("http://"));
    }

    #[test]
    fn an_invalid_line_is_reported_by_its_number() {
        for (text, line) in [
            (String::new(), 1),
            ("seconds\trate\n".to_owned(), 1),
            (format!("{}\n{LINES}1.0\tup\n", AutorateLogLine::HEADER), 5),
            (format!("{}\n{}", AutorateLogLine::HEADER, LINES.replace("20000000", "fast")), 2),
        ] {
            assert_eq!(log_parser::points(&text).err(), Some(line), "{text}");
        }
        // An incomplete last line.
        let cut = format!("{}\n{}", AutorateLogLine::HEADER, &LINES[..LINES.len() - 9]);
        assert_eq!(log_parser::points(&cut).map(|points| points.len()), Ok(2));
        assert_eq!(log_parser::points(&format!("{}\n", AutorateLogLine::HEADER)).map(|points| points.len()), Ok(0));
        assert!(html("empty", &[]).contains("no values"), "empty chart");
    }
}
