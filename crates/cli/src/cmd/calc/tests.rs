//! What must hold of every calculator.

use linerate_model::formulas;
use linerate_report::throughput_text::Style;

use super::solve::{Known, Origin, Relation};
use super::{calculators, document, evaluate, list, solve, text};

fn words<'a>(name: &'a str, example: &'a str) -> Vec<&'a str> {
    [name].into_iter().chain(example.split(' ')).collect()
}

#[test]
fn every_formula_has_a_calculator_an_example_an_explanation_and_a_citation() {
    let all: Vec<formulas::Formula> = calculators::ALL.iter().flat_map(|calculator| calculator.formulas()).collect();
    for formula in formulas::ALL {
        assert!(all.contains(&formula), "no calculator has {}", formula.name);
        assert!(formula.explanation.len() > 100 && formula.citation.len() > 5, "{}", formula.name);
    }
    let page = list::markdown().replace('\n', " ");
    for formula in formulas::ALL {
        assert!(
            page.contains(&formula.explanation.replace("\n\n", "  ")) && page.contains(formula.citation),
            "{}",
            formula.name
        );
    }
}

#[test]
fn every_calculator_has_a_name_of_its_own_and_examples_that_run() {
    for (index, calculator) in calculators::ALL.iter().enumerate() {
        assert!(calculators::ALL[..index].iter().all(|other| other.name != calculator.name), "{}", calculator.name);
        assert!(calculator.examples.len() >= 2, "{}", calculator.name);
        for example in calculator.examples {
            let solution = evaluate(&words(calculator.name, example));
            let solution = solution.unwrap_or_else(|why| panic!("{} {example}: {why}", calculator.name));
            let json: serde_json::Value = serde_json::from_str(&document::answer(&solution)).expect("JSON");
            assert_eq!(json["schema"], 1);
        }
    }
}

#[test]
fn every_question_that_follows_is_asked_and_answered_in_some_example() {
    for calculator in calculators::ALL {
        for (index, ask) in calculator.next.iter().enumerate() {
            let answered = calculator.examples.iter().any(|example| {
                let solution = evaluate(&words(calculator.name, example)).expect("runs");
                ask(&solution.known).is_ok_and(|words| evaluate(&words).is_ok_and(|next| !next.answers.is_empty()))
            });
            assert!(answered, "question {index} of {}", calculator.name);
        }
    }
}

#[test]
fn every_figure_that_comes_with_an_answer_is_there_in_some_example() {
    for calculator in calculators::ALL {
        for derived in calculator.derived {
            let there = calculator.examples.iter().any(|example| {
                let solution = evaluate(&words(calculator.name, example)).expect("runs");
                solution.derived.iter().any(|(title, ..)| *title == derived.title)
            });
            assert!(there, "{} of {}", derived.title, calculator.name);
        }
    }
}

#[test]
fn lines_fit_on_a_terminal_of_80_columns() {
    let fits = |text: &str| {
        for line in text.lines().filter(|line| !line.contains("linerate calc")) {
            assert!(line.chars().count() <= 80, "{} characters: {line}", line.chars().count());
        }
    };
    fits(&list::text(Style::plain()));
    for calculator in calculators::ALL {
        fits(&text::explanation(calculator, Style::plain()));
        for example in calculator.examples {
            fits(&text::answer(&evaluate(&words(calculator.name, example)).expect("runs"), Style::plain()));
        }
    }
}

#[test]
fn without_unicode_only_ascii_is_shown() {
    let style = Style { unicode: false, ..Style::plain() };
    for calculator in calculators::ALL {
        for example in calculator.examples {
            let solution = evaluate(&words(calculator.name, example)).expect("runs");
            let shown = [text::answer(&solution, style), text::explanation(calculator, style)].concat();
            let foreign: String = shown.chars().filter(|character| !character.is_ascii()).collect();
            assert!(foreign.is_empty(), "{}: {foreign}", calculator.name);
        }
    }
}

/// Of each relation, each quantity is left out in turn, and must come back from the others.
#[test]
fn any_unknown_can_be_solved_for() {
    let mut tried = 0;
    for calculator in calculators::ALL {
        for example in calculator.examples {
            let solution = evaluate(&words(calculator.name, example)).expect("runs");
            if !solution.checks.is_empty() {
                continue;
            }
            for relation in calculator.relations {
                tried += returns(&solution, relation);
            }
        }
    }
    assert!(tried > 100, "only {tried} inverses were tried");
}

fn returns(solution: &solve::Solution, relation: &Relation) -> usize {
    let calculator = solution.calculator;
    let value = |name: &str| solution.known.get(name);
    if relation.solve.iter().any(|(name, _)| value(name).is_none()) {
        return 0;
    }
    for (left_out, _) in relation.solve {
        // All that the relation has but this one, and the parameters.
        let given: Vec<(Option<String>, String)> = solution
            .known
            .all()
            .filter(|(quantity, _, origin)| {
                let in_relation = relation.solve.iter().any(|(name, _)| *name == quantity.name);
                let elsewhere =
                    calculator.relations.iter().any(|other| other.solve.iter().any(|(name, _)| *name == quantity.name));
                quantity.name != *left_out && (in_relation || (*origin == Origin::Given && !elsewhere))
            })
            .map(|(quantity, value, _)| (Some(quantity.name.to_owned()), value.word(quantity.kind)))
            .collect();
        let again = Known::read(calculator, &given).and_then(|known| solve::solve(calculator, known));
        let again = again.unwrap_or_else(|why| panic!("{} without {left_out} ({given:?}): {why}", calculator.name));
        let (before, after) = (value(left_out), again.known.get(left_out));
        let (Some((before, _)), Some((after, _))) = (before, after) else {
            panic!("{} without {left_out} ({given:?}): nothing came back", calculator.name);
        };
        let (before, after) = (before.number(), after.number());
        let off = (after - before).abs() / before.abs().max(1e-12);
        let allowed = if calculator.name == "scale" { 1.0 } else { 0.01 };
        assert!(off <= allowed, "{} without {left_out} ({given:?}): {after}, and it was {before}", calculator.name);
    }
    relation.solve.len()
}

#[test]
fn published_figures_come_out() {
    for (question, figure) in [
        ("bdp 10G 117ms", "146.25 MB"),
        ("bdp 1G 53ms", "6.625 MB"),
        ("bdp --bdp 146.25MB --rtt 117ms", "10 Gbit/s"),
        ("bdp 117ms 10G", "146.25 MB"),
        ("window 65535 1.5ms", "349.52 Mbit/s"),
        ("window 16MiB 53ms", "2.5324 Gbit/s"),
        ("window 16MB 53ms", "2.4151 Gbit/s"),
        ("window 1G 53ms", "6.625 MB"),
        ("window --window 1.25MB --rate 10G", "1 ms"),
        ("mathis 0.1% 20.2ms", "22.21 Mbit/s"),
        ("padhye 0.1% 20.2ms", "21.726 Mbit/s"),
        ("cubic 0.01% 117ms", "20.874 Mbit/s"),
        ("loss --rate 256M --rtt 53ms --mss 8960", "1 in 23 8"),
        ("mathis --rate 256M --rtt 53ms --mss 8960 --constant 1", "1 in 35 829"),
        ("mathis --rate 780M --rtt 53ms --mss 8960 --constant 1", "1 in 332 "),
        ("bbr 300M 20ms", "1.5 MB"),
        ("slow-start 10G 117ms", "1.55"),
        ("serialisation 220k 1500", "54.545 ms"),
        ("ethernet 1G", "941.48 Mbit/s"),
        ("ethernet 100M --timestamps no", "94.928 Mbit/s"),
        ("frames 10G", "812 743 frames/s"),
        ("mss 1500", "1448 B"),
        ("queue 240k --packets 45", "2.271 s"),
        ("policer 100M 200kB 10s", "125.2 MB"),
        ("wrap 8G", "4.295 s"),
        ("little --in-flight 2.48MB --rate 17.9MB/s", "138.55 ms"),
        ("memory --segments 10", "87.04 kB"),
        ("sockets 1M 256KiB", "524.29 GB"),
        ("pages 16777216", "64 GiB"),
        ("scale --buffer 6MiB", "window scale: 7 bits"),
        ("rfc6349 --actual 12s --ideal 8s", "transfer time ratio: 1.5"),
        ("rfc6349 --sent 102000 --retransmitted 2000", "98.039 %"),
        ("rfc6349 --base-rtt 25ms --loaded-rtt 32ms", "28 %"),
        ("transfer 101GiB 60s", "14.46 Gbit/s"),
        ("pacing --window 6.625MB --rtt 53ms", "1.2 Gbit/s"),
        ("buffer 10G 117ms", "231"),
    ] {
        let question: Vec<&str> = question.split(' ').collect();
        let solution = evaluate(&question).unwrap_or_else(|why| panic!("{question:?}: {why}"));
        let shown = text::headline(&solution, Style::plain());
        assert!(shown.contains(figure), "{question:?}: {figure} is not in\n{shown}");
    }
}
