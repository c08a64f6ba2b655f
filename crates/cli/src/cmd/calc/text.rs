//! Answers for people.

use std::fmt::Write as _;

use linerate_model::formulas::Formula;
use linerate_report::throughput_text::Style;

use super::following;
use super::quantity::{Kind, Value};
use super::solve::{Calculator, Check, Origin, Solution};

/// The answer first, then the formula, what went in, what else comes out, and what may be asked next.
pub(super) fn answer(solution: &Solution, style: Style) -> String {
    let mut text = headline(solution, style);
    text.push('\n');
    for formula in formulas(solution) {
        text.push_str(&wrapped(formula.text, "", style));
        text.push_str(&wrapped(&format!("({})", formula.citation), "", style));
    }
    table(&mut text, "given", &inputs(solution), style);
    let derived: Vec<(String, String)> = solution
        .derived
        .iter()
        .map(|(title, kind, value)| ((*title).to_owned(), with_other_forms(*value, *kind)))
        .collect();
    table(&mut text, "with it", &derived, style);
    next(&mut text, solution, style);
    let _ =
        write!(text, "\n{}\n", dim(style, &format!("linerate calc {} --explain says more", solution.calculator.name)));
    plain_where_needed(text, style)
}

/// The answers themselves.
pub(super) fn headline(solution: &Solution, style: Style) -> String {
    let mut text = String::new();
    for (quantity, value, _) in &solution.answers {
        let line = format!("{}: {}", quantity.title, value.text(quantity.kind));
        let _ = writeln!(text, "{}", bold(style, &line));
        let forms = value.other_forms(quantity.kind);
        if !forms.is_empty() {
            let _ = writeln!(text, "{:width$}{}", "", forms.join(" = "), width = quantity.title.chars().count() + 2);
        }
    }
    for check in &solution.checks {
        checked(&mut text, check, style);
    }
    plain_where_needed(text, style)
}

fn checked(text: &mut String, check: &Check, style: Style) {
    let kind = check.quantity.kind;
    let (computed, stated) = (check.computed.text(kind), check.stated.text(kind));
    let title = check.quantity.title;
    if check.holds() {
        let _ = writeln!(text, "{}", bold(style, &format!("{title}: {stated} is right")));
    } else {
        let _ = writeln!(text, "{}", bold(style, &format!("{title}: {computed}, and not {stated}")));
    }
    let indent = title.chars().count() + 2;
    if let Some(factor) = check.factor().filter(|_| !check.holds()) {
        let factor = super::figure::number(factor.get());
        let _ = writeln!(text, "{:indent$}what is stated is {factor} times that", "");
    }
    let forms = check.computed.other_forms(kind);
    if !forms.is_empty() {
        let _ = writeln!(text, "{:indent$}{}", "", forms.join(" = "));
    }
}

/// The formulas of the answers and checks, or all where only figures were checked.
fn formulas(solution: &Solution) -> Vec<Formula> {
    let mut formulas: Vec<Formula> = Vec::new();
    for (_, _, formula) in &solution.answers {
        if !formulas.contains(formula) {
            formulas.push(*formula);
        }
    }
    if formulas.is_empty() { solution.calculator.formulas() } else { formulas }
}

/// What went in, as it was understood.
fn inputs(solution: &Solution) -> Vec<(String, String)> {
    solution
        .known
        .all()
        .filter(|(_, _, origin)| *origin != Origin::Computed)
        .map(|(quantity, value, origin)| {
            let mut shown = with_other_forms(value, quantity.kind);
            if origin == Origin::Default {
                let _ = write!(shown, "  (unless --{} says otherwise)", quantity.name);
            }
            (quantity.title.to_owned(), shown)
        })
        .collect()
}

fn with_other_forms(value: Value, kind: Kind) -> String {
    let mut forms = vec![value.text(kind)];
    forms.extend(value.other_forms(kind));
    forms.join(" = ")
}

fn table(text: &mut String, title: &str, rows: &[(String, String)], style: Style) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(text, "\n{}\n", dim(style, title));
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in rows {
        let _ = writeln!(text, "  {name:<width$}  {value}");
    }
}

fn next(text: &mut String, solution: &Solution, style: Style) {
    let questions = following(solution);
    if questions.is_empty() {
        return;
    }
    let _ = write!(text, "\n{}\n", dim(style, "and then"));
    for (words, solution) in questions {
        let Some((quantity, value, _)) = solution.answers.first() else { continue };
        let forms: Vec<String> = [value.text(quantity.kind)]
            .into_iter()
            .chain(value.other_forms(quantity.kind).into_iter().take(1))
            .collect();
        let _ = writeln!(text, "  {}: {}", quantity.title, forms.join(" = "));
        let _ = writeln!(text, "  {}", dim(style, &format!("  linerate calc {}", words.join(" "))));
    }
}

/// What its formulas mean, and where they come from.
pub(super) fn explanation(calculator: &Calculator, style: Style) -> String {
    let mut text = String::new();
    for formula in calculator.formulas() {
        let _ = writeln!(text, "{}", bold(style, formula.name));
        text.push_str(&wrapped(formula.text, "  ", style));
        text.push_str(&wrapped(&format!("({})", formula.citation), "  ", style));
        for paragraph in formula.explanation.split("\n\n") {
            text.push('\n');
            text.push_str(&wrapped(paragraph, "", style));
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{}", dim(style, "examples"));
    for example in calculator.examples {
        let _ = writeln!(text, "  linerate calc {} {example}", calculator.name);
    }
    plain_where_needed(text, style)
}

pub(super) fn bold(style: Style, text: &str) -> String {
    if style.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

pub(super) fn dim(style: Style, text: &str) -> String {
    if style.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
}

/// Breaks `text` between words into lines that begin with `indent`.
pub(super) fn wrapped(text: &str, indent: &str, style: Style) -> String {
    let width = usize::from(style.width.get());
    let (mut lines, mut line) = (String::new(), indent.to_owned());
    for word in text.split(' ') {
        let is_empty = line.len() == indent.len();
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            lines.push_str(&line);
            lines.push('\n');
            indent.clone_into(&mut line);
        } else if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push_str(&line);
    lines.push('\n');
    lines
}

/// What stands for characters that a terminal without Unicode cannot show.
const PLAIN: [(&str, &str); 19] = [
    ("2³²", "2^32"),
    ("√", "sqrt "),
    ("×", "*"),
    ("−", "-"),
    ("≤", "<="),
    ("⌊", "floor("),
    ("⌋", ")"),
    ("²", "^2"),
    ("³", "^3"),
    ("⁷", "^7"),
    ("^¼", "^(1/4)"),
    ("^¾", "^(3/4)"),
    ("¾", "3/4"),
    ("₂", "2"),
    ("µ", "u"),
    ("β", "beta"),
    ("λ", "lambda "),
    ("§", "section "),
    ("…", "..."),
];

fn plain_where_needed(text: String, style: Style) -> String {
    if style.unicode {
        return text;
    }
    PLAIN.iter().fold(text, |text, (character, plain)| text.replace(character, plain))
}
