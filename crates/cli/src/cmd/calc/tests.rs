//! Invariants of every calculator.

use linerate_analysis::formulas;
use linerate_report::throughput_text::{TerminalWidth, TextStyle};

use super::catalogue::{CATALOGUE, CatalogueEntry};
use super::{command_line, evaluate, list};

#[test]
fn every_formula_has_a_calculator_and_its_place_on_the_page() {
    let page = list::markdown().replace('\n', " ");
    for formula in formulas::ALL {
        assert!(CATALOGUE.iter().any(|entry| entry.formulas.contains(&formula)), "no calculator has {}", formula.name);
        let explanation = formula.explanation.replace("\n\n", "  ");
        assert!(page.contains(&explanation) && page.contains(formula.citation), "{}", formula.name);
    }
}

#[test]
fn the_catalogue_has_every_calculator_and_examples_that_run() {
    let names: Vec<String> = command_line().get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let listed: Vec<&str> = CATALOGUE.iter().map(CatalogueEntry::name).collect();
    assert_eq!(names, listed);
    let style = TextStyle { unicode: false, ..TextStyle::plain() };
    for entry in CATALOGUE {
        assert!(entry.examples.len() >= 2, "{}", entry.name());
        for example in entry.examples {
            let answer = evaluate(&format!("{} {example}", entry.name()));
            let answer = answer.unwrap_or_else(|reason| panic!("{} {example}: {reason}", entry.name()));
            assert!(!answer.is_empty(), "{} {example}", entry.name());
            let text = answer.text(entry, style);
            assert!(text.is_ascii(), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            for width in [60, 80] {
                let style = TextStyle { width: TerminalWidth::new(width), ..style };
                let summary = answer.summary(entry, style);
                assert!(summary.lines().count() <= 12, "{width} columns:\n{summary}");
                assert!(
                    summary.lines().all(|line| line.chars().count() <= usize::from(width)),
                    "{width} columns:\n{summary}"
                );
            }
        }
    }
    assert!(list::text(TextStyle::plain()).lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn published_figures_come_out() {
    for (query, figure) in [
        ("bdp 10G 117ms", "146.25 MB"),
        ("bdp 1G 53ms", "6.625 MB"),
        ("window --window 65535 --rtt 1.5ms", "349.52 Mbit/s"),
        ("window --window 16MiB --rtt 53ms", "2.5324 Gbit/s"),
        ("window --window 16MB --rtt 53ms", "2.4151 Gbit/s"),
        ("window --rate 1G --rtt 53ms", "6.625 MB"),
        ("window --window 1.25MB --rate 10G", "1 ms"),
        ("mathis --loss 0.1% --rtt 20.2ms", "22.21 Mbit/s"),
        ("padhye --loss 0.1% --rtt 20.2ms", "21.726 Mbit/s"),
        ("cubic --loss 0.01% --rtt 117ms", "20.874 Mbit/s"),
        ("loss --rate 256M --rtt 53ms --mss 8960", "1 in 23 8"),
        ("mathis --rate 256M --rtt 53ms --mss 8960 --constant 1", "1 in 35 829"),
        ("mathis --rate 780M --rtt 53ms --mss 8960 --constant 1", "1 in 332 "),
        ("bbr 300M 20ms", "1.5 MB"),
        ("slow-start 10G 117ms", "1.55"),
        ("serialisation 220k 1500", "54.545 ms"),
        ("ethernet 1G", "941.48 Mbit/s"),
        ("ethernet 100M --no-timestamps", "94.928 Mbit/s"),
        ("frames 10G", "812 743 frames/s"),
        ("mss 1500", "1448 B"),
        ("queue 240k --packets 45", "2.271 s"),
        ("policer 100M 200kB 10s", "125.2 MB"),
        ("wrap 8G", "4.295 s"),
        ("little --in-flight 2.48MB --rate 17.9MB/s", "138.55 ms"),
        ("memory --segments 10", "87.04 kB"),
        ("sockets 1M 256KiB", "524.29 GB"),
        ("pages --pages 16777216", "64 GiB"),
        ("scale --buffer 6MiB", "window scale: 7 bits"),
        ("rfc6349 --actual 12s --ideal 8s", "transfer time ratio: 1.5"),
        ("rfc6349 --sent 102000 --retransmitted 2000", "98.039 %"),
        ("rfc6349 --base-rtt 25ms --loaded-rtt 32ms", "28 %"),
        ("transfer --volume 101GiB --time 60s", "14.46 Gbit/s"),
        ("pacing 6.625MB 53ms", "1.2 Gbit/s"),
        ("buffer --rate 10G --rtt 117ms", "231"),
        ("mos 0s", "mean opinion score: 4.409"),
        ("mos 0s --loss 1% --codec g711-plain", "rating R: 75.2"),
    ] {
        let answer = evaluate(query).unwrap_or_else(|reason| panic!("{query}: {reason}"));
        let shown = answer.headline(TextStyle::plain());
        assert!(shown.contains(figure), "{query}: {figure} is not in\n{shown}");
    }
}
