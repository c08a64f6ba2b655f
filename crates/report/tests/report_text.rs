//! The report for a terminal.

use linerate_documents::run::{RunDocument, RunResult};
use linerate_model::diagnosis::{Confidence, TuneScope};
use linerate_model::load::{LatencyClass, ProbeClass};
use linerate_model::path::UnknownValue;
use linerate_model::report::TestTermination;
use linerate_report::presentation::{compare, present};
use linerate_report::text;
use linerate_report::throughput_text::{TerminalWidth, TextStyle};

use crate::runs;

fn plain(run: &RunDocument) -> String {
    text::render(&[present(run)], TextStyle::plain())
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for columns in [60, 80, 132] {
        for (name, run) in runs::all() {
            let style = TextStyle { width: TerminalWidth::new(columns), ..TextStyle::plain() };
            let text = text::render(&[present(&run)], style);
            // A command is copied as it is, so it stays on one line.
            for line in text.lines().filter(|line| !line.contains("linerate ")) {
                assert!(line.chars().count() <= usize::from(columns), "{name}, {columns} columns: {line}");
            }
        }
    }
}

#[test]
fn without_unicode_and_colours_there_is_plain_ascii_only() {
    let style = TextStyle { unicode: false, ..TextStyle::plain() };
    for (name, run) in runs::all() {
        let text = text::render(&[present(&run)], style);
        let other: String = text.chars().filter(|letter| !letter.is_ascii()).collect();
        assert!(other.is_empty(), "{name}: {other}");
        assert!(!text.contains('\u{1b}'), "{name}");
    }
}

#[test]
fn summaries_are_twelve_lines_that_fit() {
    for columns in [60, 80] {
        for (name, run) in runs::all() {
            let style = TextStyle { width: TerminalWidth::new(columns), ..TextStyle::plain() };
            let presentation = present(&run);
            let text = text::summary(&presentation, style);
            assert!(text.lines().count() <= text::MAX_SUMMARY_LINES, "{name}: {text}");
            assert!(!text.lines().any(|line| line.starts_with("  ") && line.contains("  unknown")), "{name}: {text}");
            let is_command = |line: &str| line.trim_start().starts_with("Next:");
            for line in text.lines().filter(|line| !is_command(line)) {
                assert!(line.chars().count() <= usize::from(columns), "{name}, {columns} columns: {line}");
            }
            // An early end may need a line of its own.
            let is_heading = |line: &&str| !line.starts_with(' ');
            let (heading, result): (Vec<&str>, Vec<&str>) = text.lines().partition(is_heading);
            let start: String = run.verdict.chars().take(12).collect();
            assert!(result.first().is_some_and(|line| line.contains(&start)), "the result comes first: {name}: {text}");
            assert!(heading.len() == 1 || heading.get(1).is_some_and(|line| line.contains(": ")), "{name}: {text}");
            assert_eq!(text::brief(&presentation, style).lines().count(), 1, "{name}");
        }
    }
}

/// An early end is not cut from a narrow heading; the port goes first, then the duration.
#[test]
fn the_heading_of_a_summary_has_the_early_end() {
    let mut run = runs::load(1);
    run.termination = TestTermination::Interrupted { signal: Some("Interrupt(2)".to_owned()) };
    for (host, columns, expected) in [
        ("far", 80, "Latency under load: far, port 5201 · DURATION · cut short: interrupted (SIGINT)"),
        ("far.example.net", 80, "Latency under load: far.example.net · DURATION · cut short: interrupted (SIGINT)"),
        ("far", 60, "Latency under load: far · cut short: interrupted (SIGINT)"),
        ("far.example.net", 60, "Latency under load: far.example.net\ncut short: interrupted (SIGINT)"),
    ] {
        run.host = host.to_owned();
        run.duration_ns = 3_040_000_000;
        run.port = 5201;
        let style = TextStyle { width: TerminalWidth::new(columns), ..TextStyle::plain() };
        let shown = text::summary(&present(&run), style);
        let expected = expected.replace("DURATION", "3.04 s");
        assert!(shown.starts_with(&format!("{expected}\n")), "{columns}: {expected}: {shown}");
        assert!(shown.lines().count() <= text::MAX_SUMMARY_LINES, "{shown}");
        assert!(shown.contains(&run.verdict[..12]), "{shown}");
    }
    // A reason of any length ends in two lines.
    run.termination = TestTermination::Failed { message: "connection refused ".repeat(20) };
    let style = TextStyle { width: TerminalWidth::new(60), ..TextStyle::plain() };
    let shown = text::summary(&present(&run), style);
    let second = shown.lines().nth(1).expect("a second line");
    assert!(second.ends_with('…') && second.chars().count() <= 60, "{shown}");
    assert!(shown.lines().count() <= text::MAX_SUMMARY_LINES, "{shown}");
}

#[test]
fn a_summary_of_a_bloated_link_ends_with_the_command_that_helps() {
    let text = text::summary(&present(&runs::load(1)), TextStyle::plain());
    let last = text.lines().last().expect("a line").trim();
    assert!(last.starts_with("Next: sudo linerate shape "), "{text}");
    assert!(last.contains(" --up ") && last.contains(" --down ") && last.contains(" --verify "), "{text}");
}

#[test]
fn tune_follows_a_diagnosis_only_where_it_would_try_something() {
    let next = |tune: Option<TuneScope>| {
        let mut run = runs::diagnose();
        let RunResult::Diagnose(document) = &mut run.result else { panic!("a diagnosis") };
        document.verdicts[0].tune = tune;
        let text = text::summary(&present(&run), TextStyle::plain());
        text.lines().find_map(|line| line.trim_start().strip_prefix("Next: ").map(str::to_owned))
    };
    assert_eq!(next(None), None);
    let host = "fra.example.net";
    let far = TuneScope { far: true, work_around: false };
    assert_eq!(next(Some(far)), Some(format!("sudo linerate tune {host} --far ssh:{host}")));
    let around = TuneScope { far: false, work_around: true };
    assert_eq!(next(Some(around)), Some(format!("sudo linerate tune {host} --work-around")));
}

#[test]
fn a_diagnosis_that_is_not_certain_tells_its_confidence() {
    let shown = |confidence: Confidence| {
        let mut run = runs::diagnose();
        let RunResult::Diagnose(document) = &mut run.result else { panic!("a diagnosis") };
        document.verdicts[0].confidence = confidence;
        let lines = text::summary(&present(&run), TextStyle::plain());
        lines.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(shown(Confidence::Low).contains("Confidence: low."), "{}", shown(Confidence::Low));
    assert!(!shown(Confidence::High).contains("Confidence:"), "{}", shown(Confidence::High));
}

#[test]
fn the_verdict_comes_first() {
    for (name, run) in runs::all() {
        let text = plain(&run);
        let paragraphs: Vec<&str> = text.split("\n\n").collect();
        let heading = paragraphs[1].split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(heading.ends_with(&run.verdict), "{name}: {heading}");
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    let run = runs::load(1);
    let coloured = text::render(&[present(&run)], TextStyle { colour: true, ..TextStyle::plain() });
    let mut rest = coloured.as_str();
    let mut bare = String::new();
    while let Some(start) = rest.find("\u{1b}[") {
        bare.push_str(&rest[..start]);
        let end = start + rest[start..].find('m').expect("each sequence ends");
        rest = &rest[end + 1..];
    }
    bare.push_str(rest);
    assert_eq!(bare, plain(&run));
    assert_ne!(coloured, bare);
}

#[test]
fn unknown_values_have_reasons() {
    let text = plain(&runs::path_to_bare_host());
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains("start `linerate serve` there"), "{text}");
    assert!(one_line.contains("only the far end can send large packets this way"), "{text}");
    let numbers: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("Capacity ")).collect();
    assert!(numbers.iter().any(|line| line.matches("unknown [").count() == 2), "{numbers:?}");
}

#[test]
fn the_limit_of_each_run_is_below_the_runs() {
    let text = plain(&runs::throughput());
    let (_, table) = text.split_once("\nLimiting factor\n").expect("the table");
    let (table, _) = table.split_once("\n\n").expect("more follows");
    let flat = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.starts_with("Run Limit Confidence Figures up, 1 stream loss medium 0.02 % of the"), "{table}");
    assert!(flat.ends_with("up, 1 stream: the next limit is the path, at 957 Mbit/s."), "{table}");
    // Neither further verdicts, nor runs without a diagnosis.
    assert!(!flat.contains("varies") && !flat.contains("4 streams"), "{table}");
    assert!(!plain(&runs::throughput_from_stock_server()).contains("Limiting factor"));
    let mut unsaid = runs::throughput();
    let RunResult::Throughput(document) = &mut unsaid.result else { panic!("a throughput run") };
    document.runs[0].diagnosis.iter_mut().for_each(|diagnosis| diagnosis.verdicts.clear());
    assert!(!plain(&unsaid).contains("Limiting factor"));
}

#[test]
fn the_latency_table_has_its_rows() {
    let text = plain(&runs::load(1));
    for phase in ["idle", "down", "up", "both"] {
        let label = format!("UDP best effort, {phase}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&label), "{label} in {text}");
    }
    for needed in ["[F]", "draft-ietf-ippm-responsiveness-09", "A+ below 5.00 ms", "7.52 Mbit/s", "17.2 ms"] {
        assert!(text.contains(needed), "{needed} in {text}");
    }
}

#[test]
fn profiles_have_their_grades_in_plain_words() {
    let text = plain(&runs::load(1));
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for needed in
        ["voice, up F nearly all users", "game, idle B playable", "voice, both, up 500 3 2", "whose offset is"]
    {
        assert!(flat.contains(needed), "{needed} in {text}");
    }
}

#[test]
fn many_connections_are_seen_together() {
    let text = plain(&runs::load_of_connections());
    let (_, chart) = text.split_once("\nThroughput\n").expect("the chart");
    let names: Vec<&str> =
        chart.lines().take(3).map(|line| line.trim().split("  ").next().unwrap_or_default()).collect();
    assert_eq!(names, ["together down", "together up", "and 16 more"], "{chart}");
    // A phase's samples are 0.9 to 1.02 of its rate, whatever the number of connections.
    assert!(chart.lines().next().is_some_and(|line| line.ends_with("Mbit/s") && line.contains(" to 7.6")), "{chart}");
}

#[test]
fn document_text_cannot_control_the_terminal() {
    let mut run = runs::load(1);
    run.host = runs::HOSTILE.to_owned();
    run.verdict = runs::HOSTILE.to_owned();
    run.figures[0].title = runs::HOSTILE.to_owned();
    run.series[0].name = runs::HOSTILE.to_owned();
    run.phases[0].name = runs::HOSTILE.to_owned();
    run.arguments.push(runs::HOSTILE.to_owned());
    let text = plain(&run);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
}

#[test]
fn two_runs_are_compared_with_their_uncertainty() {
    let (before, after) = (runs::load(1), runs::load(8));
    let text = text::render(&[compare(&before, &after).expect("one subject")], TextStyle::plain());
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("Added delay up better within these runs: -824 ms, -87.5 %"), "{text}");
    assert!(flat.contains("Goodput down 7.52 Mbit/s → 7.52 Mbit/s"), "{text}");
    assert!(flat.contains("undetermined"), "{text}");
}

/// The default output, not the notes alone, states that events which were asked for are missing, and why.
#[test]
fn a_summary_has_the_reason_for_missing_kernel_events() {
    let mut run = runs::all().into_iter().find_map(|(_, run)| match &run.result {
        RunResult::Diagnose(_) => Some(run),
        _ => None,
    });
    let run = run.as_mut().expect("a diagnosis");
    let RunResult::Diagnose(document) = &mut run.result else { panic!("a diagnosis") };
    let reason = "opening the kernel's tracepoints (tracefs): Permission denied (EACCES)";
    document.unknown = ["sender", "receiver"]
        .map(|host| UnknownValue { key: format!("kernel events of the {host}"), reason: reason.to_owned() })
        .into();
    let shown = text::summary(&present(run), TextStyle::plain());
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&format!("No kernel events of both hosts: {reason}.")), "{shown}");
    assert!(shown.lines().count() <= text::MAX_SUMMARY_LINES, "{shown}");
}

/// With every profile and request, the headline still ends with the figure of QUIC, on narrow terminals, too.
#[test]
fn the_headline_of_a_load_with_everything_is_not_cut() {
    let mut run = runs::load(1);
    let RunResult::Load(document) = &mut run.result else { panic!("a load") };
    let profile = document.profiles[0].clone();
    document.profiles = vec![profile; 5];
    for phase in &mut document.phases {
        let usual = phase.classes[0].clone();
        let requests = [LatencyClass::TlsRequest, LatencyClass::QuicRequest];
        phase.classes.extend(requests.map(|class| ProbeClass { class, ..usual.clone() }));
    }
    run.verdict = linerate_report::sentence::load::sentence(document);
    for columns in [60, 80] {
        let style = TextStyle { width: TerminalWidth::new(columns), ..TextStyle::plain() };
        let shown = text::summary(&present(&run), style);
        let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&run.verdict) && run.verdict.contains("requests over QUIC"), "{columns}: {shown}");
        assert!(shown.lines().count() <= text::MAX_SUMMARY_LINES, "{shown}");
    }
}
