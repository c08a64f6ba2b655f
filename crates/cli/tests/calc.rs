//! `linerate calc` as a person meets it: the real program.

mod support;

use std::time::Duration;

use serde_json::Value;
use support::document::{array, number, text};
use support::linerate;
use support::process::{Finished, run};

const LIMIT: Duration = Duration::from_secs(30);

fn calc(arguments: &str) -> Finished {
    let mut command = linerate();
    command.arg("calc").args(arguments.split_whitespace());
    run(command, LIMIT)
}

/// What it prints when it succeeds.
fn said(arguments: &str) -> String {
    calc(arguments).expect_code(0).stdout
}

/// What it says when it cannot.
fn refused(arguments: &str) -> String {
    calc(arguments).expect_code(2).stderr
}

fn document(arguments: &str) -> Value {
    serde_json::from_str(&said(&format!("{arguments} --json"))).expect("JSON")
}

/// The answer to a question as a number in base units.
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
        ("bdp --bdp 146.25MB --rtt 117ms", 10e9),
        ("bdp --bdp 6.625MB --rate 1G", 0.053),
        ("window --rate 1G --rtt 53ms", 6_625_000.0),
        ("window --window 16MiB --rtt 53ms", 2.5324e9),
        ("window --window 16MiB --rate 1G", 0.134_217_728),
        ("mathis --rate 256M --rtt 53ms --mss 8960 --constant 1", 2.791e-5),
        ("loss --rate 256M --rtt 53ms --mss 8960", 4.1865e-5),
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
    let text = said("bdp 10G 117ms");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("bandwidth-delay product: 146.25 MB"));
    assert_eq!(lines.next().map(str::trim), Some("139.47 MiB = 146 250 000 B"));
    for part in
        ["BDP = rate × round-trip time / 8", "RFC 6349", "10 Gbit/s = 1.25 GB/s", "117 ms", "calc buffer --window"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains('\x1b'), "colours are for terminals");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn on_a_terminal_the_answer_is_set_off() {
    let mut command = linerate();
    command.args(["calc", "bdp", "10G", "117ms"]).env("LINERATE_TERMINAL", "out").env("COLUMNS", "80");
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    let text = run(command, LIMIT).expect_code(0).stdout;
    assert!(text.starts_with("\x1b[1mbandwidth-delay product: 146.25 MB\x1b[0m\n"), "{text}");
}

#[test]
fn every_question_that_follows_can_be_asked() {
    for question in
        ["bdp 10G 117ms", "loss --rate 256M --rtt 53ms --mss 8960", "policer 100M 200kB 10s", "bbr 300M 20ms"]
    {
        let document = document(question);
        let next = array(&document, "/next");
        assert!(!next.is_empty(), "{question}");
        for follows in next {
            let command =
                text(follows, "/command").strip_prefix("linerate calc ").expect("a command of calc").to_owned();
            let there = answer(&command);
            assert!(close(there, number(follows, "/answer/value")), "{command}: {there} and {follows}");
        }
    }
}

#[test]
fn a_stated_figure_is_checked() {
    let guide = calc("bdp --rate 10G --rtt 117ms --bdp 10683760B").expect_code(1).stdout;
    assert!(guide.starts_with("bandwidth-delay product: 146.25 MB, and not 10.684 MB\n"), "{guide}");
    assert!(said("bdp 10G 117ms 146.25MB").starts_with("bandwidth-delay product: 146.25 MB is right\n"));
    let document: Value =
        serde_json::from_str(&calc("window 2473M 16MB 53ms --json").expect_code(1).stdout).expect("JSON");
    assert_eq!(document["checks"][0]["holds"], false);
    assert!(close(number(&document, "/checks/0/computed"), 2.4151e9));
    assert!(close(number(&document, "/checks/0/stated"), 2.473e9));
}

#[test]
fn words_go_where_their_unit_fits() {
    assert!(close(answer("bdp 117ms 10G"), answer("bdp 10G 117ms")));
    assert!(close(answer("window 16MiB 53ms"), 2.5324e9));
    assert!(close(answer("window 65535 1.5ms"), 349.52e6));
    assert!(close(answer("mathis 1/1000 20.2ms"), answer("mathis --loss 0.1% --rtt 20.2ms")));
    assert!(close(answer("mathis 1e-3 20.2ms"), answer("mathis --loss 0.1% --rtt 20.2ms")));
    assert!(close(answer("buffer 10G 117ms"), 231_111_112.0));
}

#[test]
fn nonsense_is_refused_with_the_way_out() {
    for (question, parts) in [
        ("bdp 10G 0", &["--rtt 0", "everything takes some time", "117ms"][..]),
        ("bdp --rate -5G --rtt 117ms", &["--rate -5G", "cannot be negative", "10G"]),
        ("bdp 10G 117", &["117 has no unit", "117ms"]),
        ("bdp --rate 10G --rtt 117", &["--rtt 117", "a time with its unit"]),
        ("bdp 10G", &["too little is given", "--bdp, --rtt", "linerate calc bdp 10G 117ms"]),
        ("bdp 10G 117ms 5MB 1448 7", &["7 is one too many"]),
        ("mathis --loss 0 --rtt 10ms", &["without loss", "0.01%"]),
        ("mathis --loss 0.01 --rtt 10ms", &["--loss 0.01", "0.01%, 1/36000"]),
        ("mathis 1bit/s 1us", &["no loss explains this rate", "calc padhye"]),
        ("rfc6349 --base-rtt 30ms --loaded-rtt 20ms", &["the loaded path was faster"]),
        ("rfc6349 --sent 1000 --retransmitted 2000", &["more was retransmitted than sent"]),
        ("scale 15", &["from 0 to 14"]),
        ("scale --window 2GiB", &["no scale is enough"]),
        ("mss 40", &["the headers fill the packet"]),
        ("bpd", &["no formula \"bpd\"", "did you mean `linerate calc bdp`?"]),
        ("xyzzy 1G", &["no formula \"xyzzy\"", "`linerate calc` lists all"]),
        ("bdp --rat 10G", &["--rat", "--rate"]),
    ] {
        let message = refused(question);
        for part in parts {
            assert!(message.contains(part), "{question}: {part:?} is not in\n{message}");
        }
    }
}

#[test]
fn the_list_has_every_formula_with_an_example_that_runs() {
    let list = said("");
    let document = document("");
    let calculators = array(&document, "/calculators");
    assert!(calculators.len() >= 24, "{}", calculators.len());
    for calculator in calculators {
        let name = text(calculator, "/calc");
        let first = text(calculator, "/examples/0");
        assert!(list.contains(first), "{first} is not in\n{list}");
        let help = said(&format!("{name} --help"));
        assert!(help.contains(first) && flat(&help).contains(text(calculator, "/formulas/0/citation")), "{help}");
        let explanation = said(&format!("{name} --explain"));
        for formula in array(calculator, "/formulas") {
            for part in ["/name", "/citation", "/explanation"] {
                assert!(flat(&explanation).contains(&flat(text(formula, part))), "{name}: {part}");
            }
        }
        assert!(number(&answer_document(first), "/answers/0/value").is_finite(), "{first}");
    }
}

/// Without line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn answer_document(command: &str) -> Value {
    document(command.strip_prefix("linerate calc ").expect("a command of calc"))
}

#[test]
fn the_mistakes_of_the_seeds_are_named() {
    let explained = |name: &str| said(&format!("{name} --explain"));
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
        page == said("--markdown"),
        "docs/formulas.md is not what linerate computes: `linerate calc --markdown > docs/formulas.md`"
    );
}
