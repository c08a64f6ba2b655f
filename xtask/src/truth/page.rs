//! Results of all cases as a Markdown page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::arguments::TruthArguments;
use super::case::TruthCase;

/// Largest relative error of an estimate that counts as close.
const CLOSE: f64 = 0.25;

/// Formats the page of these cases; `failed` are the numbers of cases without a result, and their reasons.
pub(super) fn page(cases: &[TruthCase], failed: &[(u64, String)], arguments: &TruthArguments) -> String {
    let mut page = format!(
        "# Verdicts of `linerate diagnose` on random paths\n\n\
         Paths are drawn from a seed: rate (1 Mbit/s to 10 Gbit/s), round trip (0.2 to 300 ms), buffer (0.05 to 4 \
         bandwidth-delay products), queue, and none, one or two causes. What limits such a path is not declared: the lab \
         measures the goodput as it is and with each cause removed in turn, and the cause whose removal gains most is the \
         true one. Causes that gain the same within 5 % are both right; where none gains 5 %, the path itself is the limit, \
         if at least nine tenths of it are used. \
         Where the second half of the transfer fills 95 % of the path, no removal can gain more than 5 % of that: then the path is \
         right too, whatever a removal gains at the start. Paths on which a transfer would be more packets than the budget of a case \
         are drawn anew. Written by `cargo xtask truth --random N --seed {}{}`; `--show K` prints a path, `--only K` repeats \
         it.\n\n",
        arguments.seed,
        if arguments.quick { " --quick" } else { "" },
    );
    page.push_str(&counts(cases, failed));
    page.push_str(&matrix(cases));
    page.push_str(&calibration(cases));
    page.push_str(&gains(cases));
    page.push_str(&exceptions(cases, failed, arguments));
    page
}

fn counts(cases: &[TruthCase], failed: &[(u64, String)]) -> String {
    let counted = cases.iter().filter(|case| case.counts()).count();
    let right = cases.iter().filter(|case| case.counts() && case.is_right()).count();
    format!(
        "**{right} of {counted}** first verdicts are right{}. {} paths are not counted: they are not full, and no removal \
         gains anything. {} paths have no result.\n",
        percent(right, counted),
        cases.len() - counted,
        failed.len(),
    )
}

fn percent(part: usize, all: usize) -> String {
    let number = |count: usize| u32::try_from(count).map_or(0.0, f64::from);
    if all == 0 { String::new() } else { format!(" ({:.1} %)", 100.0 * number(part) / number(all)) }
}

/// Confusion matrix: for each true cause, the verdicts and how often each was said.
fn matrix(cases: &[TruthCase]) -> String {
    let mut rows: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut right: BTreeMap<&str, usize> = BTreeMap::new();
    for case in cases.iter().filter(|case| case.counts()) {
        let truth = case.truth().first;
        *rows.entry(truth).or_default().entry(case.said()).or_default() += 1;
        *right.entry(truth).or_default() += usize::from(case.is_right());
    }
    let mut text =
        String::from("\n## By true cause\n\n| true cause | paths | right | verdicts |\n|---|---:|---:|---|\n");
    for (truth, said) in rows {
        let paths: usize = said.values().sum();
        let mut said: Vec<(&str, usize)> = said.into_iter().collect();
        said.sort_by_key(|(name, count)| (usize::MAX - count, *name));
        let said: Vec<String> = said.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let right = right.get(truth).copied().unwrap_or_default();
        let _ = writeln!(text, "| {truth} | {paths} | {right} | {} |", said.join(", "));
    }
    text
}

fn calibration(cases: &[TruthCase]) -> String {
    let mut text = String::from("\n## By confidence\n\n| confidence | verdicts | right |\n|---|---:|---:|\n");
    for level in ["high", "medium", "low"] {
        let of_level = cases
            .iter()
            .filter(|case| case.counts() && case.verdict.as_ref().is_some_and(|verdict| verdict.confidence == level));
        let (all, right) = of_level.fold((0, 0), |(all, right), case| (all + 1, right + usize::from(case.is_right())));
        let _ = writeln!(text, "| {level} | {all} | {right}{} |", percent(right, all));
    }
    text
}

fn gains(cases: &[TruthCase]) -> String {
    let estimates: Vec<(u64, f64, f64)> =
        cases.iter().filter_map(|case| case.estimate().map(|(said, truth)| (case.index, said, truth))).collect();
    let is_close = |(_, said, truth): &&(u64, f64, f64)| (said / truth.max(1.0) - 1.0).abs() <= CLOSE;
    let close = estimates.iter().filter(is_close).count();
    let mut text = String::from("\n## Goodput without the cause, estimated and true\n\n");
    if estimates.is_empty() {
        text.push_str("No document has an estimate.\n");
        return text;
    }
    let _ = writeln!(
        text,
        "Of the right verdicts, {} have an estimate; {close} of them{} are within {:.0} % of the goodput that was measured \
         without the cause.\n\n| path | estimated | true | ratio |\n|---:|---:|---:|---:|",
        estimates.len(),
        percent(close, estimates.len()),
        CLOSE * 100.0,
    );
    for (index, said, truth) in &estimates {
        let _ = writeln!(text, "| {index} | {:.2} | {:.2} | {:.2} |", said / 1e6, truth / 1e6, said / truth.max(1.0));
    }
    text
}

/// Wrong verdicts, paths that are not counted, and paths without a result.
fn exceptions(cases: &[TruthCase], failed: &[(u64, String)], arguments: &TruthArguments) -> String {
    let mut text = String::from("\n## Not as measured\n\nRates in Mbit/s.\n\n");
    for case in cases.iter().filter(|case| case.counts() && !case.is_right()) {
        let injected: Vec<&str> = case.injected.iter().map(|cause| cause.name()).collect();
        let verdict = case.verdict.as_ref();
        let _ = writeln!(
            text,
            "* **{}** ({}) was reported with confidence {}, but {}. “{}” Built in: {}. `cargo xtask truth {}`",
            case.said(),
            case.index,
            verdict.map_or("none", |verdict| &verdict.confidence),
            case.figures(),
            verdict.map_or("", |verdict| &verdict.text),
            if injected.is_empty() { "nothing".to_owned() } else { injected.join(", ") },
            arguments.repeat(case.index),
        );
    }
    for case in cases.iter().filter(|case| !case.counts()) {
        let _ = writeln!(text, "* not counted: {} ({}); reported {}", case.figures(), case.index, case.said());
    }
    for (index, reason) in failed {
        let _ = writeln!(text, "* no result: {index}: {}", reason.replace('\n', " "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::cause::RemovableCause;
    use super::super::judge::{Counterfactuals, FirstVerdict, MeasuredGoodput};
    use super::*;

    fn case(index: u64, said: &str, confidence: &str, without: f64) -> TruthCase {
        TruthCase {
            index,
            injected: vec![RemovableCause::Loss],
            measured: Counterfactuals {
                as_is: MeasuredGoodput { whole: 10e6, steady: 10e6 },
                without: vec![(RemovableCause::Loss, without)],
                without_pair: None,
                ceiling: Some(90e6),
            },
            verdict: Some(FirstVerdict {
                cause: said.to_owned(),
                confidence: confidence.to_owned(),
                without: Some(80e6),
                text: "So it is.".to_owned(),
            }),
        }
    }

    #[test]
    fn the_page_counts_what_is_right_by_cause_and_by_confidence() {
        let cases = [
            case(0, "loss", "high", 85e6),
            case(1, "link-rate", "high", 85e6),
            case(2, "loss", "low", 40e6),
            case(3, "loss", "low", 10e6),
        ];
        let line = ["--random", "5", "--seed", "9"].map(str::to_owned);
        let arguments = TruthArguments::parse(&line).expect("valid");
        let page = page(&cases, &[(4, "no\nkernel".to_owned())], &arguments);
        for part in [
            "**2 of 3** first verdicts are right (66.7 %). 1 paths are not counted",
            "| loss | 3 | 2 | loss 2, link-rate 1 |",
            "| high | 2 | 1 (50.0 %) |",
            "| medium | 0 | 0 |",
            "| low | 1 | 1 (100.0 %) |",
            "2 have an estimate; 1 of them (50.0 %) are within 25 %",
            "* **link-rate** (1) was reported with confidence high, but loss: 10.00 (10.00 steady) Mbit/s; without loss 85.00, link 90.00.",
            "`cargo xtask truth --random 2 --seed 9 --only 1`",
            "* not counted: unexplained: 10.00",
            "* no result: 4: no kernel",
        ] {
            assert!(page.contains(part), "'{part}' in\n{page}");
        }
    }
}
