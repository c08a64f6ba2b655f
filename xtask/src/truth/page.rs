//! Results of all cases as a Markdown page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use linerate_model::diagnosis::{Confidence, GoodputEstimate};

use super::arguments::TruthArguments;
use super::case::TruthCase;
use super::judged::{FirstVerdict, StatedCapacity};

/// Largest relative error of an estimate that counts as close.
const CLOSE: f64 = 0.25;

/// Formats the page of these cases; `failed` are the seeds and numbers of cases without a result, and their reasons.
pub(super) fn page(cases: &[TruthCase], failed: &[((u64, u64), String)], arguments: &TruthArguments) -> String {
    let mut page = format!(
        "# Verdicts of `linerate diagnose` on random paths\n\n\
         Paths are drawn from a seed: rate (1 Mbit/s to 10 Gbit/s), round trip (0.2 to 300 ms), buffer (0.05 to 4 \
         bandwidth-delay products), queue, and none, one or two causes. What limits such a path is not declared: the lab \
         measures the goodput as it is and with each cause removed in turn, and the cause whose removal gains most is the \
         true one. Each goodput is the mean of three transfers with other seeds of the path. Causes that gain the same within \
         5 % are both right; where none gains 5 %, the path itself is the limit, if at least nine tenths of it are used. \
         Where the second half of the transfer fills 95 % of the path, no removal can gain more than 5 % of that: then the path is \
         right too, whatever a removal gains at the start. The diagnosed transfer is a fourth one, which chance may have treated in \
         another way: what gains most from its own goodput, by the same rules, is right as well. The start of a transfer counts as \
         a cause (`short-transfer`), but nothing removes it: the cause whose removal saves half of what it costs is right as well. \
         `slow-start-exit` is right for the congestion control, whose test of the delay ended slow start, and for what misled it: \
         a delay that varies, or packets out of order. \
         Where no removal gains, the path is measured without each pair of causes: both of the pair that gains most are right. \
         Causes that were not built in (congestion control, buffer, receive window) are measured where those that were explain \
         nothing, or only the start, or leave more than a twentieth of the path. Paths on which a transfer would be more packets \
         than the budget of a case are drawn anew. Written by `cargo xtask truth {}`; `--show K` prints a path, `--only K` \
         repeats it.\n\n",
        arguments.selection(),
    );
    page.push_str(&counts(cases, failed));
    if arguments.seeds.len() > 1 {
        page.push_str(&by_seed(cases, &arguments.seeds));
    }
    page.push_str(&matrix(cases));
    page.push_str("\n## By confidence\n\n");
    page.push_str(&calibration(cases, |case| case.verdict.as_ref()));
    page.push_str(&of_transfers(cases));
    page.push_str(&gains(cases));
    page.push_str(&capacities(cases));
    page.push_str(&exceptions(cases, failed, arguments));
    page
}

fn counts(cases: &[TruthCase], failed: &[((u64, u64), String)]) -> String {
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

/// Counts of right verdicts of each seed, of all and of those with high confidence.
fn by_seed(cases: &[TruthCase], seeds: &[u64]) -> String {
    let mut text =
        String::from("\n## By seed\n\n| seed | paths | right | high | of these right |\n|---:|---:|---:|---:|---:|\n");
    for seed in seeds {
        let of_seed = || cases.iter().filter(|case| case.seed == *seed && case.counts());
        let high = || of_seed().filter(|case| case.confidence() == Some(Confidence::High));
        let right = |cases: &mut dyn Iterator<Item = &TruthCase>| cases.filter(|case| case.is_right()).count();
        let (all, certain) = (of_seed().count(), high().count());
        let (right, certainly) = (right(&mut of_seed()), right(&mut high()));
        let _ = writeln!(
            text,
            "| {seed} | {all} | {right}{} | {certain} | {certainly}{} |",
            percent(right, all),
            percent(certainly, certain)
        );
    }
    text
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

/// Right verdicts by confidence.
fn calibration(cases: &[TruthCase], verdict: fn(&TruthCase) -> Option<&FirstVerdict>) -> String {
    let mut text = String::from("| confidence | verdicts | right |\n|---|---:|---:|\n");
    for level in [Confidence::High, Confidence::Medium, Confidence::Low] {
        let counted = cases.iter().filter(|case| case.counts());
        let of_level = counted.filter(|case| verdict(case).is_some_and(|verdict| verdict.confidence == level));
        let (all, right) =
            of_level.fold((0, 0), |(all, right), case| (all + 1, right + usize::from(case.accepts(verdict(case)))));
        let _ = writeln!(text, "| {} | {all} | {right}{} |", level.name(), percent(right, all));
    }
    text
}

/// Verdicts on the same transfers without the path's measurement.
fn of_transfers(cases: &[TruthCase]) -> String {
    let counted = || cases.iter().filter(|case| case.counts());
    let right = counted().filter(|case| case.accepts(case.of_transfer.as_ref())).count();
    let located = counted().filter(|case| case.accepts_location(case.of_transfer.as_ref())).count();
    let all = counted().count();
    let mut text = format!(
        "\n## By the transfer alone\n\n\
         `linerate test` measures transfers and handshakes, and no capacity. The rules come to these verdicts on the same \
         transfers without what else `diagnose` measures of the path: **{right} of {all}**{} name a right cause, and \
         {located}{} the location of one.\n\n{}",
        percent(right, all),
        percent(located, all),
        calibration(cases, |case| case.of_transfer.as_ref()),
    );
    let is_certain =
        |case: &&TruthCase| case.of_transfer.as_ref().is_some_and(|one| one.confidence == Confidence::High);
    let wrong = counted().filter(is_certain).filter(|case| !case.accepts(case.of_transfer.as_ref()));
    let wrong: Vec<String> = wrong
        .map(|case| {
            format!(
                "* {}: {} with high confidence, but {}\n",
                case.place(),
                case.of_transfer.as_ref().map_or("", |verdict| &verdict.cause),
                case.figures()
            )
        })
        .collect();
    if !wrong.is_empty() {
        let _ = write!(text, "\n{}", wrong.concat());
    }
    text
}

/// Estimates against the goodput that was measured without the cause, by cause.
fn gains(cases: &[TruthCase]) -> String {
    let mut text = String::from("\n## Goodput without the cause, estimated and true\n\n");
    let mut rows: BTreeMap<&str, Accuracy> = BTreeMap::new();
    let mut all = Accuracy::default();
    for case in cases {
        let Some((estimate, truth)) = case.estimate() else { continue };
        rows.entry(case.said()).or_default().add(&estimate, truth);
        all.add(&estimate, truth);
    }
    let _ = writeln!(
        text,
        "Of the right verdicts, {} have an estimate; {}{} of them are within {:.0} % of the goodput that was measured \
         without the cause, or without both causes where the verdict names both, and {}{} of the stated \
         ranges contain it.\n\n\
         | cause | estimates | within {:.0} % | in the range |\n|---|---:|---:|---:|",
        all.count,
        all.close,
        percent(all.close, all.count),
        CLOSE * 100.0,
        all.inside,
        percent(all.inside, all.count),
        CLOSE * 100.0,
    );
    for (cause, row) in rows {
        let _ = writeln!(text, "| {cause} | {} | {} | {} |", row.count, row.close, row.inside);
    }
    text
}

/// Number of estimates, and of those that are close or whose range contains the truth.
#[derive(Default)]
struct Accuracy {
    count: usize,
    close: usize,
    inside: usize,
}

impl Accuracy {
    fn add(&mut self, estimate: &GoodputEstimate, truth: f64) {
        let [low, expected, high] =
            [estimate.low, estimate.expected, estimate.high].map(linerate_units::BitRate::bits_per_second);
        self.count += 1;
        self.close += usize::from((expected / truth.max(1.0) - 1.0).abs() <= CLOSE);
        // A measured goodput has an error of its own.
        self.inside += usize::from((low * 0.99..=high * 1.01).contains(&truth));
    }
}

/// Stated capacities against the true ones, and contradictions.
fn capacities(cases: &[TruthCase]) -> String {
    let stated: Vec<_> = cases.iter().filter_map(|case| case.capacity.map(|pair| (case, pair))).collect();
    let contains =
        |(stated, truth): &(StatedCapacity, f64)| stated.low <= *truth && stated.high.is_none_or(|high| *truth <= high);
    let inside = stated.iter().filter(|(_, pair)| contains(pair)).count();
    let refuted = cases.iter().filter(|case| !case.contradictions.is_empty()).count();
    let mut text = format!(
        "\n## Capacity\n\n{inside} of {}{} stated intervals contain the configured rate of the slowest link, policer or \
         sender's queue. In {refuted} paths a figure contradicts another one.\n\n",
        stated.len(),
        percent(inside, stated.len()),
    );
    for (case, (stated, truth)) in stated.iter().filter(|(_, pair)| !contains(pair)) {
        let high = stated.high.map_or("no end".to_owned(), |high| format!("{:.2}", high / 1e6));
        let _ = writeln!(
            text,
            "* path {}: {:.2} ({:.2} to {high}) Mbit/s, configured {:.2}",
            case.place(),
            stated.rate / 1e6,
            stated.low / 1e6,
            truth / 1e6
        );
    }
    for case in cases.iter().filter(|case| !case.contradictions.is_empty()) {
        let _ = writeln!(text, "* path {}: {}", case.place(), case.contradictions.join("; "));
    }
    text
}

/// Wrong verdicts, paths that are not counted, and paths without a result.
fn exceptions(cases: &[TruthCase], failed: &[((u64, u64), String)], arguments: &TruthArguments) -> String {
    let mut text = String::from("\n## Not as measured\n\nRates in Mbit/s.\n\n");
    for case in cases.iter().filter(|case| case.counts() && !case.is_right()) {
        let injected: Vec<&str> = case.injected.iter().map(|cause| cause.name()).collect();
        let verdict = case.verdict.as_ref();
        let _ = writeln!(
            text,
            "* **{}** ({}) was reported with confidence {}, but {}. “{}” Built in: {}. `cargo xtask truth {}`",
            case.said(),
            case.place(),
            verdict.map_or("none", |verdict| verdict.confidence.name()),
            case.figures(),
            verdict.map_or("", |verdict| &verdict.text),
            if injected.is_empty() { "nothing".to_owned() } else { injected.join(", ") },
            arguments.repeat(case.seed, case.index),
        );
    }
    for case in cases.iter().filter(|case| !case.counts()) {
        let _ = writeln!(text, "* not counted: {} ({}); reported {}", case.figures(), case.place(), case.said());
    }
    for ((seed, index), reason) in failed {
        let _ = writeln!(text, "* no result: {seed}/{index}: {}", reason.replace('\n', " "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::cause::RemovableCause;
    use linerate_units::BitRate;

    use super::super::judge::{CausePair, Counterfactuals, MeasuredGoodput};
    use super::*;

    fn case(index: u64, said: &str, confidence: Confidence, without: f64) -> TruthCase {
        TruthCase {
            seed: 9,
            index,
            injected: vec![RemovableCause::Loss],
            measured: Counterfactuals {
                as_is: MeasuredGoodput { whole: 10e6, steady: 10e6 },
                without: vec![(RemovableCause::Loss, without)],
                without_pair: None,
                ceiling: Some(90e6),
                diagnosed: None,
            },
            verdict: Some(FirstVerdict {
                cause: said.to_owned(),
                confidence,
                without: Some(GoodputEstimate {
                    low: BitRate::from_bits_per_second(70e6),
                    expected: BitRate::from_bits_per_second(80e6),
                    high: BitRate::from_bits_per_second(90e6),
                }),
                together_with: None,
                text: "So it is.".to_owned(),
            }),
            of_transfer: None,
            contradictions: Vec::new(),
            capacity: Some((StatedCapacity { rate: 90e6, low: 89e6, high: Some(91e6), packet: 1500 }, 90.5e6)),
        }
    }

    #[test]
    fn the_page_counts_what_is_right_by_cause_and_by_confidence() {
        let cases = [
            case(0, "loss", Confidence::High, 85e6),
            case(1, "link-rate", Confidence::High, 85e6),
            case(2, "loss", Confidence::Low, 40e6),
            case(3, "loss", Confidence::Low, 10e6),
        ];
        // Of its transfer alone, the first has another wrong cause of the same location, and the third a right one.
        let [mut first, second, mut third, fourth] = cases;
        first.of_transfer =
            Some(FirstVerdict { cause: "link-rate".to_owned(), ..first.verdict.clone().expect("there") });
        third.of_transfer.clone_from(&third.verdict);
        let cases = [first, second, third, fourth];
        let line = ["--random", "5", "--seed", "9"].map(str::to_owned);
        let arguments = TruthArguments::parse(&line).expect("valid");
        let page = page(&cases, &[((9, 4), "no\nkernel".to_owned())], &arguments);
        for part in [
            "**2 of 3** first verdicts are right (66.7 %). 1 paths are not counted",
            "| loss | 3 | 2 | loss 2, link-rate 1 |",
            "| high | 2 | 1 (50.0 %) |",
            "| medium | 0 | 0 |",
            "| low | 1 | 1 (100.0 %) |",
            "**1 of 3** (33.3 %) name a right cause, and 2 (66.7 %) the location of one.",
            "* 9/0: link-rate with high confidence, but loss: 10.00",
            "2 have an estimate; 1 (50.0 %) of them are within 25 %",
            "and 1 (50.0 %) of the stated ranges contain it.",
            "4 of 4 (100.0 %) stated intervals contain",
            "* **link-rate** (9/1) was reported with confidence high, but loss: 10.00 (10.00 steady) Mbit/s; without loss 85.00, link 90.00.",
            "`cargo xtask truth --random 2 --seed 9 --only 1`",
            "* not counted: unexplained: 10.00",
            "* no result: 9/4: no kernel",
        ] {
            assert!(page.contains(part), "'{part}' in\n{page}");
        }
        assert!(!page.contains("By seed"), "of one seed");
    }

    #[test]
    fn an_estimate_without_two_causes_is_compared_with_the_goodput_without_both() {
        let measured = |other: Option<&str>| {
            let mut case = case(0, "loss", Confidence::Medium, 12e6);
            let causes = (RemovableCause::Loss, RemovableCause::ReceiveWindow);
            case.measured.without_pair = Some(CausePair { causes, goodput: 85e6 });
            case.verdict.as_mut().expect("there").together_with = other.map(str::to_owned);
            case.estimate().expect("it has one").1
        };
        // With the policer another pair was measured.
        let estimates = (measured(Some("receive-window")), measured(None), measured(Some("policer")));
        assert_eq!(estimates, (85e6, 12e6, 12e6));
    }

    #[test]
    fn each_seed_has_a_row() {
        let other = TruthCase { seed: 2, ..case(0, "link-rate", Confidence::High, 85e6) };
        let cases = [case(0, "loss", Confidence::High, 85e6), case(1, "loss", Confidence::Low, 85e6), other];
        let line = ["--random", "2", "--seed", "9", "--seed", "2"].map(str::to_owned);
        let page = page(&cases, &[], &TruthArguments::parse(&line).expect("valid"));
        assert!(page.contains("| 9 | 2 | 2 (100.0 %) | 1 | 1 (100.0 %) |"), "{page}");
        assert!(page.contains("| 2 | 1 | 0 (0.0 %) | 1 | 0 (0.0 %) |"), "{page}");
    }
}
