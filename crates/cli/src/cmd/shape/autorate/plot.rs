//! `linerate shape plot LOG`: a log as a page that needs nothing else.

mod chart;
mod reading;

use std::path::Path;

use linerate_sys::describe_os_error;

use self::chart::{Chart, Series};
use self::reading::{Point, Way};
use crate::cmd::shape::error::ShapeError;

/// Draws the log `log` into the file `page`.
pub(in crate::cmd::shape) fn draw(log: &Path, page: &Path) -> Result<(), ShapeError> {
    let text = std::fs::read_to_string(log)
        .map_err(|cause| ShapeError::unable(format!("reading {}: {}", log.display(), describe_os_error(&cause))))?;
    let points = reading::points(&text).map_err(|line| {
        ShapeError::unable(format!("reading {}: line {line} is not one of a log", log.display()))
            .with_advice("`linerate shape DEV --autorate --log FILE` writes one")
    })?;
    let name = log.file_name().unwrap_or(log.as_os_str()).to_string_lossy();
    std::fs::write(page, html(&name, &points))
        .map_err(|cause| ShapeError::unable(format!("writing {}: {}", page.display(), describe_os_error(&cause))))
}

/// The whole page.
fn html(name: &str, points: &[Point]) -> String {
    let mut charts = String::new();
    for (way, title) in [(Way::Down, "Down"), (Way::Up, "Up")] {
        let own: Vec<&Point> = points.iter().filter(|point| point.way == way).collect();
        if !own.is_empty() {
            charts += &rates(title, &own).svg();
        }
    }
    let series = |way, name, class| Series {
        name,
        class,
        steps: false,
        points: points.iter().filter(|point| point.way == way).map(|point| (point.at, point.queue)).collect(),
    };
    let queues = Chart {
        title: "Queue in the path".to_owned(),
        unit: "ms",
        series: vec![series(Way::Down, "down", "b"), series(Way::Up, "up", "a")],
    };
    charts += &queues.svg();
    let title = escaped(name);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title} – linerate shape</title>\n<style>{STYLE}</style></head>\n<body><main>\n\
         <h1>Rates that follow a line</h1>\n<p class=\"log\">{title}</p>\n{charts}</main></body></html>\n"
    )
}

/// The chart of one direction's rates.
fn rates(title: &str, points: &[&Point]) -> Chart {
    let series = |name, class, steps, value: fn(&Point) -> Option<f64>| Series {
        name,
        class,
        steps,
        points: points.iter().map(|point| (point.at, value(point).map(|rate| rate / 1e6))).collect(),
    };
    Chart {
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
    use linerate_shape::autorate::LogLine;

    use super::*;

    const LINES: &str = "10.000\tdown\tRunning\tHigh\t20000000\t18000000\t\t2.50\t12.00\tgrow\n\
                         10.000\tup\tRunning\tIdle\t5000000\t\t\t\t12.00\thold\n\
                         11.000\tdown\tRunning\tHigh\t5000000\t5200000\t5100000\t80.00\t12.00\tdrain\n";

    #[test]
    fn a_page_has_both_directions_and_the_queue() {
        let points = reading::points(&format!("{}\n{LINES}", LogLine::HEADER)).expect("a log");
        assert_eq!((points.len(), points[2].capacity, points[1].queue), (3, Some(5.1e6), None));
        let page = html("a<b>.log", &points);
        assert_eq!(page.matches("<figure>").count(), 3);
        for expected in ["a&lt;b&gt;.log", "set rate", "estimated capacity", "Mbit/s", ">ms<"] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf") && !page.contains("src=") && !page.contains("http://"));
    }

    #[test]
    fn what_is_no_log_is_told_by_its_line() {
        for (text, line) in [
            (String::new(), 1),
            ("seconds\trate\n".to_owned(), 1),
            (format!("{}\n{LINES}1.0\tup\n", LogLine::HEADER), 5),
            (format!("{}\n{}", LogLine::HEADER, LINES.replace("20000000", "fast")), 2),
        ] {
            assert_eq!(reading::points(&text).err(), Some(line), "{text}");
        }
        // The last line of a file that is still being written, or that was cut off.
        let cut = format!("{}\n{}", LogLine::HEADER, &LINES[..LINES.len() - 9]);
        assert_eq!(reading::points(&cut).map(|points| points.len()), Ok(2));
        assert_eq!(reading::points(&format!("{}\n", LogLine::HEADER)).map(|points| points.len()), Ok(0));
        assert!(html("empty", &[]).contains("nothing"), "says so");
    }
}
