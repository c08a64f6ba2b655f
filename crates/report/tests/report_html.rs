//! The report as HTML, checked without a browser; `tests/browser` checks it with one.

use core::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linerate_documents::run::RunDocument;
use linerate_report::html;
use linerate_report::presentation::{compare, present};

use crate::runs;

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let rest = &text[text.find(start).expect(start) + start.len()..];
    &rest[..rest.find(end).expect(end)]
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(digest(&SHA256, text.as_bytes())))
}

#[test]
fn the_policy_has_the_hashes_of_script_and_style() {
    let page = html::render(&[present(&runs::throughput())]);
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    for (name, content) in
        [("script-src", between(&page, "<script>", "</script>")), ("style-src", between(&page, "<style>", "</style>"))]
    {
        let wanted = format!("{name} {};", hash(content));
        assert!(policy.contains(&wanted), "crates/report/src/html/policy.rs must contain: {wanted}");
    }
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
}

#[test]
fn vendored_files_match_their_recorded_hashes() {
    let files = [
        ("dist/uPlot.iife.min.js", &include_bytes!("../vendor/uplot/uPlot.iife.min.js")[..]),
        ("dist/uPlot.min.css", &include_bytes!("../vendor/uplot/uPlot.min.css")[..]),
        ("LICENSE", &include_bytes!("../vendor/uplot/LICENSE")[..]),
    ];
    let record = include_str!("../vendor/uplot/VERSION");
    for (name, bytes) in files {
        let mut hex = String::new();
        for byte in digest(&SHA256, bytes).as_ref() {
            write!(hex, "{byte:02x}").expect("writing to a String never fails");
        }
        assert!(record.lines().any(|line| line == format!("{name} {hex}")), "{name} {hex}");
    }
}

#[test]
fn pages_are_well_formed_with_the_verdict_first() {
    for (name, run) in runs::all() {
        let page = html::render(&[present(&run)]);
        for element in
            ["article", "section", "figure", "details", "table", "tr", "td", "div", "dl", "svg", "span", "script"]
        {
            let opened = page.matches(&format!("<{element} ")).count() + page.matches(&format!("<{element}>")).count();
            // The library's text has no such elements; the page's script makes its own by name.
            assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{name}: {element}");
        }
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(at("class=\"verdict\"") < at("class=\"figures\""), "{name}");
        assert!(at("class=\"figures\"") < at("class=\"table\""), "{name}");
    }
}

#[test]
fn ids_are_unique_also_with_several_runs() {
    let (one, other) = (runs::load(1), runs::load(8));
    let page = html::render(&[present(&one), present(&other), compare(&one, &other).expect("one subject")]);
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn hostile_text_stays_text() {
    let mut run = runs::load(1);
    run.host = runs::HOSTILE.to_owned();
    run.verdict = runs::HOSTILE.to_owned();
    run.arguments.push(runs::HOSTILE.to_owned());
    run.figures[0].title = runs::HOSTILE.to_owned();
    run.figures[0].name = runs::HOSTILE.to_owned();
    run.series[0].name = runs::HOSTILE.to_owned();
    run.phases[0].name = runs::HOSTILE.to_owned();
    let page = html::render(&[present(&run)]);
    assert!(!page.contains("<img"), "markup came through");
    assert_eq!(
        page.matches("</script>").count(),
        html::render(&[present(&runs::load(1))]).matches("</script>").count()
    );
    assert!(!page.contains('\u{202e}') && !page.contains('\u{1b}'));
    let page = html::render(&[present(&runs::hostile_diagnose())]);
    assert!(page.contains("onerror") && !page.contains("<img"));
}

#[test]
fn ten_minutes_of_eight_streams_fit_into_five_megabytes_and_are_marked_as_reduced() {
    let run = runs::big();
    assert_eq!(run.series.iter().map(|series| series.times_ns.len()).max(), Some(60_000));
    let page = html::render(&[present(&run)]);
    assert!(page.len() <= 5_000_000, "{} bytes", page.len());
    assert_eq!(page.matches("class=\"reduced\"").count(), 6);
    let short = html::render(&[present(&runs::throughput())]);
    assert!(!short.contains("class=\"reduced\""));
}

#[test]
fn pages_make_no_network_requests() {
    let (before, after) = (runs::load(1), runs::load(4));
    let page = html::render(&[compare(&before, &after).expect("one subject")]);
    assert_eq!(page.matches("url(").count(), page.matches("url(#look-").count());
    for request in ["src=", "href=\"http", "@import", "srcset", "<link", "<iframe", "<object"] {
        assert!(!page.contains(request), "{request}");
    }
}

/// Markup of each chart of a page, with its name.
fn figures(page: &str) -> Vec<(&str, &str)> {
    let figures = page.split("<figure ").skip(1).filter_map(|rest| rest.split("</figure>").next());
    figures.map(|figure| (between(figure, "data-chart=\"", "\""), figure)).collect()
}

#[test]
fn each_chart_is_a_picture_with_a_legend_of_at_most_eight() {
    for (name, run) in runs::all() {
        let page = html::render(&[present(&run)]);
        for (chart, figure) in figures(&page) {
            let bars = figure.matches("class=\"bar-row\"").count();
            let lines = figure.matches("<path class=\"line ").count() + figure.matches("<path class=\"area\"").count();
            assert!(bars + lines > 0, "{name}: {chart}");
            assert!(figure.matches("class=\"swatch\"").count() <= 8, "{name}: {chart}");
        }
    }
}

#[test]
fn the_first_picture_answers_the_question_of_its_kind() {
    let firsts = [
        (runs::throughput(), "overview"),
        (runs::load(1), "overview"),
        (runs::path(), "latency"),
        (runs::rfc6349(), "transfers"),
        (runs::rr(), "histogram"),
        (runs::diagnose(), "comparison"),
        (runs::tune(), "comparison"),
        (runs::doctor(), "comparison"),
    ];
    for (run, expected) in firsts {
        let page = html::render(&[present(&run)]);
        assert_eq!(figures(&page).first().map(|figure| figure.0), Some(expected), "{:?}", run.kind);
    }
}

#[test]
fn the_picture_of_a_load_has_the_delay_of_each_phase_over_the_goodput() {
    let page = html::render(&[present(&runs::load(1))]);
    let (_, overview) = figures(&page)[0];
    for level in ["idle median 18.1 ms", "down median 396 ms", "up median 883 ms", "both median 1.03 s"] {
        assert!(overview.contains(level), "{level}");
    }
    assert!(overview.contains(">396 ms</text>"), "the level is named in the picture");
    assert!(overview.find("Round-trip time of probes, ms") < overview.find("Throughput, Mbit/s"));
}

#[test]
fn no_line_crosses_a_phase_without_samples() {
    let page = html::render(&[present(&runs::load_of_connections())]);
    let (_, throughput) = *figures(&page).iter().find(|figure| figure.0 == "throughput").expect("it is drawn");
    let stretches = |path: &str| between(path, "d=\"", "\"").matches('M').count();
    let paths: Vec<usize> = throughput.split("<path class=\"line ").skip(1).map(stretches).collect();
    // Down is loaded in the second and in the fourth phase, up in the last two, with other connections in each: the
    // samples of both, then the curves, and the legend's two lines.
    assert_eq!(paths, [2, 2, 2, 1, 1, 1]);
}

#[test]
fn settings_and_the_way_back_are_above_the_charts() {
    let tuned = RunDocument { host: "far.example".to_owned(), ..runs::tune() };
    let page = html::render(&[present(&tuned)]);
    let top = &page[..page.find("<figure ").expect("charts")];
    assert!(top.contains("To undo: <code>linerate rollback 7</code>"), "{}", &top[top.find("<article").unwrap_or(0)..]);
    assert!(top.contains("net.ipv4.tcp_rmem"));
    let page = html::render(&[present(&runs::load(1))]);
    let top = &page[..page.find("<figure ").expect("charts")];
    assert!(top.contains("<dt>Congestion control</dt><dd>cubic</dd>"));
    assert!(top.contains("Next: <code>sudo linerate shape eth0 "));
}

#[test]
fn better_and_worse_differ_by_a_sign() {
    let (before, after) = (runs::load(1), runs::load(8));
    let page = html::render(&[compare(&before, &after).expect("one subject")]);
    assert!(page.contains("<dd class=\"remark good\">✓ better"));
    let page = html::render(&[compare(&after, &before).expect("one subject")]);
    assert!(page.contains("<dd class=\"remark bad\">✗ worse"));
}
