//! Tests of `linerate calc` as a process.

use std::time::Duration;

use serde_json::Value;

use crate::support::document::{array, number, text};
use crate::support::linerate;
use crate::support::process::{FinishedChild, run};

const LIMIT: Duration = Duration::from_secs(300);

fn calc(arguments: &str) -> FinishedChild {
    let mut command = linerate();
    command.arg("calc").args(arguments.split_whitespace());
    run(command, LIMIT)
}

/// Output of a successful calculation.
fn output(arguments: &str) -> String {
    calc(arguments).expect_code(0).stdout
}

/// Error message of a refused calculation.
fn refused(arguments: &str) -> String {
    calc(arguments).expect_code(2).stderr
}

fn document(arguments: &str) -> Value {
    serde_json::from_str(&output(&format!("{arguments} --json"))).expect("JSON")
}

/// Answer as a number in base units.
fn answer(arguments: &str) -> f64 {
    number(&document(arguments), "/answers/0/value")
}

fn close(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= expected.abs() * 1e-3
}

#[test]
fn the_questions_of_the_seeds() {
    for (question, expected) in [
        ("bdp 10G 117ms", 146_250_000.0),
        ("window --rate 1G --rtt 53ms", 6_625_000.0),
        ("window --window 16MiB --rtt 53ms", 2.5324e9),
        ("window --window 16MiB --rate 1G", 0.134_217_728),
        ("mathis --rate 256M --rtt 53ms --mss 8960 --constant 1", 2.791e-5),
        ("mathis --loss 1/1000 --rtt 20.2ms", 22.2102e6),
        ("mathis --loss 1e-3 --rtt 20.2ms", 22.2102e6),
        ("loss --rate 256M --rtt 53ms --mss 8960", 4.1865e-5),
        ("buffer --rate 10G --rtt 117ms", 231_111_112.0),
        ("serialisation 220k 1500", 0.054_545),
        ("wrap 8G", 4.294_967),
        ("sockets 1M 256KiB", 524.288e9),
    ] {
        let value = answer(question);
        assert!(close(value, expected), "{question}: {value}");
    }
}

#[test]
fn the_answer_comes_first_and_in_both_kinds_of_units() {
    let text = output("bdp 10G 117ms");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("bandwidth-delay product: 146.25 MB"));
    assert_eq!(lines.next().map(str::trim), Some("139.47 MiB = 146 250 000 B"));
    for part in ["BDP = rate × round-trip time / 8", "RFC 6349", "10 Gbit/s = 1.25 GB/s", "117 ms", "calc bdp --help"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains('\x1b'), "colours are for terminals");
    assert!(text.lines().count() <= 12 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let all = output("bdp 10G 117ms -v");
    assert!(all.contains("two products      292.5 MB = 278.95 MiB = 292 500 000 B"), "{all}");
}

#[test]
fn on_a_terminal_the_answer_is_bold() {
    let mut command = linerate();
    command.args(["calc", "bdp", "10G", "117ms"]).env("LINERATE_TERMINAL", "out").env("COLUMNS", "80");
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    let text = run(command, LIMIT).expect_code(0).stdout;
    assert!(text.starts_with("\x1b[1mbandwidth-delay product: 146.25 MB\x1b[0m\n"), "{text}");
}

#[test]
fn invalid_input_is_refused_with_the_remedy() {
    for (question, parts) in [
        ("bdp 10G 0", &["'0' for '<RTT>'", "a time must be above zero"][..]),
        ("window --rate=-5G --rtt 117ms", &["'-5G' for '--rate <RATE>'", "expected a rate"]),
        ("bdp 10G 117", &["'117' for '<RTT>'", "a time with its unit", "117ms"]),
        ("bdp 10G", &["required arguments were not provided", "<RTT>"]),
        ("bdp 10G 117ms 5MB", &["unexpected argument '5MB'"]),
        ("window --rate 1G", &["calc window: give two of --rate, --rtt and --window", "calc window --help"]),
        ("buffer --rate 1G", &["required arguments were not provided", "--rtt <TIME>"]),
        ("buffer", &["give --rate and --rtt, or --window, or --buffer"]),
        ("loss --rtt 53ms", &["<--loss <LOSS>|--rate <RATE>>"]),
        ("mathis --loss 0 --rtt 10ms", &["without loss", "0.01%"]),
        ("mathis --loss 0.01 --rtt 10ms", &["'0.01' for '--loss <LOSS>'", "0.01%, 1/36000"]),
        ("mathis --rate 1bit/s --rtt 1us", &["no loss explains this rate", "calc padhye"]),
        ("rfc6349", &["give --actual and --ideal"]),
        ("rfc6349 --actual 12s", &["--actual needs --ideal"]),
        ("rfc6349 --base-rtt 30ms --loaded-rtt 20ms", &["the loaded path was faster"]),
        ("rfc6349 --sent 1000 --retransmitted 2000", &["more was retransmitted than sent"]),
        ("scale --scale 15", &["15 is not in 0..=14"]),
        ("scale --window 2GiB", &["no scale is sufficient"]),
        ("mss 40", &["the headers fill the packet"]),
        ("xyzzy 1G", &["unrecognized subcommand 'xyzzy'"]),
        ("window --rat 10G", &["'--rat'", "'--rate'"]),
    ] {
        let message = refused(question);
        for part in parts {
            assert!(message.contains(part), "{question}: {part:?} is not in\n{message}");
        }
    }
}

#[test]
fn the_list_has_every_calculator_and_its_help_explains_the_formulas() {
    let list = output("");
    let document = document("");
    let calculators = array(&document, "/calculators");
    assert!(calculators.len() >= 24, "{}", calculators.len());
    for calculator in calculators {
        let name = text(calculator, "/calc");
        let first = text(calculator, "/examples/0");
        let line = format!("{name:<13}  {}", text(calculator, "/about"));
        assert!(list.lines().any(|listed| listed == line), "{line} is not in\n{list}");
        let help = output(&format!("{name} --help"));
        assert!(help.contains(first), "{help}");
        for formula in array(calculator, "/formulas") {
            for part in ["/text", "/citation", "/explanation"] {
                let part = text(formula, part);
                assert!(flat(&help).contains(&flat(part)), "{name}: {part}");
            }
        }
        assert!(number(&answer_document(first), "/answers/0/value").is_finite(), "{first}");
    }
}

/// Text without line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn answer_document(command: &str) -> Value {
    document(command.strip_prefix("linerate calc ").expect("a command of calc"))
}

#[test]
fn explanations_name_the_errors_of_the_seeds() {
    let explained = |name: &str| output(&format!("{name} --help"));
    for (name, figures) in [
        ("bdp", &["10 683 760", "146 250 000", "6.75 MB", "6.625 MB"][..]),
        ("window", &["349.5", "380", "2473", "1024 × 1000"]),
        ("sockets", &["512 GB", "524 GB"]),
        ("pages", &["64 GiB"]),
    ] {
        let text = explained(name).replace('\n', " ");
        for figure in figures {
            assert!(text.contains(figure), "{name}: {figure}");
        }
    }
}

#[test]
fn the_published_page_is_current() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formulas.md"));
    let page = page.expect("docs/formulas.md");
    assert!(
        page == output("--markdown"),
        "docs/formulas.md is not what linerate computes: `linerate calc --markdown > docs/formulas.md`"
    );
}
