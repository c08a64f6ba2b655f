//! All calculators: as text, as a document, and as docs/formulas.md.

use std::fmt::Write as _;

use linerate_report::throughput_text::{Columns, Style};
use serde_json::{Value as Json, json};

use super::calculators;
use super::solve::Calculator;
use super::{document, evaluate, text};

/// Each with what it answers and an example.
pub(super) fn text(style: Style) -> String {
    let mut list = String::new();
    let width = calculators::ALL.iter().map(|calculator| calculator.name.len()).max().unwrap_or(0);
    for calculator in calculators::ALL {
        let name = text::bold(style, &format!("{:<width$}", calculator.name));
        let _ = writeln!(list, "{name}  {}", calculator.about);
        let example = calculator.examples.first().unwrap_or(&"");
        let command = format!("linerate calc {} {example}", calculator.name);
        let _ = writeln!(list, "{:width$}  {}", "", text::dim(style, &command));
    }
    list.push('\n');
    list.push_str(&text::wrapped(
        "What is left out is computed: `linerate calc window --rate 1G --rtt 53ms` gives the window, `--window 16MiB --rtt \
         53ms` the rate. --explain says where a formula comes from, --help what it takes.",
        "",
        style,
    ));
    list
}

/// The same for programs.
pub(super) fn document() -> String {
    let entries: Vec<Json> = calculators::ALL.iter().map(|calculator| document::entry(calculator)).collect();
    document::lines(&json!({ "schema": 1, "calculators": entries }))
}

const INTRODUCTION: &str = "# Formulas

Everything that `linerate calc` computes, with where it comes from, what to mind, and examples with their output. In each,
what is left out is computed from the rest; where nothing is left out, the stated figure is checked. The formulas are
`crates/model/src/formulas`, one file each, with their published figures as tests. This page is the output of
`linerate calc --markdown`; a test holds it to that.
";

/// As wide as the other pages of docs.
const PAGE: Style = Style { width: Columns::new(120), colour: false, unicode: true };

/// docs/formulas.md.
pub(super) fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| calculator | answers | formulas |\n|---|---|---|\n");
    for calculator in calculators::ALL {
        let formulas: Vec<&str> = calculator.formulas().iter().map(|formula| formula.name).collect();
        let name = calculator.name;
        let _ = writeln!(page, "| [`{name}`](#{name}) | {} | {} |", calculator.about, formulas.join(", "));
    }
    let mut explained = Vec::new();
    for calculator in calculators::ALL {
        section(&mut page, calculator, &mut explained);
    }
    page
}

/// One calculator; formulas that another one has explained are only named.
fn section(page: &mut String, calculator: &'static Calculator, explained: &mut Vec<&'static str>) {
    let _ = write!(page, "\n## {}\n\n{}.\n", calculator.name, calculator.about);
    for formula in calculator.formulas() {
        let _ = write!(page, "\n**{}**: `{}`\n({})\n", formula.name, formula.text, formula.citation);
        if explained.contains(&formula.name) {
            continue;
        }
        explained.push(formula.name);
        for paragraph in formula.explanation.split("\n\n") {
            page.push('\n');
            page.push_str(&text::wrapped(paragraph, "", PAGE));
        }
    }
    page.push_str("\n```console\n");
    for (index, example) in calculator.examples.iter().enumerate() {
        let _ = writeln!(page, "$ linerate calc {} {example}", calculator.name);
        let words: Vec<&str> = [calculator.name].into_iter().chain(example.split(' ')).collect();
        let shown = evaluate(&words).map(|solution| match index {
            0 => text::answer(&solution, Style::plain()),
            _ => text::headline(&solution, Style::plain()),
        });
        page.push_str(&shown.unwrap_or_else(|why| format!("{why}\n")));
    }
    page.push_str("```\n");
}
