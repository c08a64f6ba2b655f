//! List of all calculators: as text, as JSON, and as docs/formulas.md.

use std::fmt::Write as _;

use linerate_documents::calculation::{self, CalculatorDescription, CalculatorsDocument};
use linerate_report::text::wrap_text;
use linerate_report::throughput_text::TextStyle;

use super::answer::paint;
use super::catalogue::{CATALOGUE, CatalogueEntry};
use super::{command_line, evaluate};

/// Purpose of a calculator, from its help.
fn purpose(entry: &CatalogueEntry) -> String {
    let about = command_line().find_subcommand(entry.name()).and_then(|command| command.get_about().cloned());
    about.map(|about| about.to_string()).unwrap_or_default()
}

/// Text list of calculators, one line each.
pub(super) fn text(style: TextStyle) -> String {
    let width = CATALOGUE.iter().map(|entry| entry.name().len()).max().unwrap_or(0);
    let mut list = String::new();
    for entry in CATALOGUE {
        let _ = writeln!(list, "{}  {}", paint(style, 1, &format!("{:<width$}", entry.name())), purpose(entry));
    }
    list.push_str("\n`linerate calc NAME --help` has the arguments, examples, formula and source\n");
    list
}

/// Document of the list of calculators.
pub(super) fn document() -> CalculatorsDocument {
    let description = |entry: &CatalogueEntry| CalculatorDescription {
        calc: entry.calculator,
        about: purpose(entry),
        formulas: entry.formulas.to_vec(),
        examples: entry.commands().collect(),
    };
    CalculatorsDocument { schema: calculation::SCHEMA, calculators: CATALOGUE.iter().map(description).collect() }
}

const INTRODUCTION: &str = "# Formulas

Everything that `linerate calc` computes, with sources, caveats, and examples with their output. The formulas are in
`crates/analysis/src/formulas`, one file each, with their published figures as tests. This page is the output of
`linerate calc --markdown`, which a test enforces.
";

/// Width of the page in characters, as of the other pages of docs.
const PAGE_WIDTH: usize = 120;

/// Contents of docs/formulas.md.
pub(super) fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| calculator | answers | formulas |\n|---|---|---|\n");
    for entry in CATALOGUE {
        let formulas: Vec<&str> = entry.formulas.iter().map(|formula| formula.name).collect();
        let name = entry.name();
        let _ = writeln!(page, "| [`{name}`](#{name}) | {} | {} |", purpose(entry), formulas.join(", "));
    }
    let mut explained = Vec::new();
    for entry in CATALOGUE {
        push_section(&mut page, entry, &mut explained);
    }
    page
}

/// Pushes one calculator; formulas explained under an earlier one are only named.
fn push_section(page: &mut String, entry: &CatalogueEntry, explained: &mut Vec<&'static str>) {
    let _ = write!(page, "\n## {}\n\n{}.\n", entry.name(), purpose(entry));
    for formula in entry.formulas {
        let _ = write!(page, "\n**{}**: `{}`\n({})\n", formula.name, formula.text, formula.citation);
        if explained.contains(&formula.name) {
            continue;
        }
        explained.push(formula.name);
        let _ = writeln!(page, "\n{}", wrap_text(formula.explanation, PAGE_WIDTH).join("\n"));
    }
    page.push_str("\n```console\n");
    for (index, example) in entry.examples.iter().enumerate() {
        let _ = writeln!(page, "$ linerate calc {} {example}", entry.name());
        let shown = evaluate(&format!("{} {example}", entry.name())).map(|answer| match index {
            0 => answer.text(entry, TextStyle::plain()),
            _ => answer.headline(TextStyle::plain()),
        });
        page.push_str(&shown.unwrap_or_else(|reason| format!("{reason}\n")));
    }
    page.push_str("```\n");
}
