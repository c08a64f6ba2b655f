//! `linerate calc`: every formula, with units, in each direction.
//!
//! A calculator is a table of quantities and of relations between them (`solve`): what is left out is computed, and where
//! nothing is left out the stated figure is checked. The formulas themselves are `linerate_model::formulas`.

mod arguments;
mod calculators;
mod document;
mod figure;
mod list;
mod nearest;
mod quantity;
mod solve;
#[cfg(test)]
mod tests;
mod text;

use std::process::ExitCode;

pub(crate) use arguments::CalcArguments;
use arguments::Question;
use nearest::nearest;
use solve::{Calculator, Check, Known, Solution};

use crate::console;
use crate::exit::Exit;

/// Does what was asked for.
pub(crate) fn run(arguments: &CalcArguments) -> ExitCode {
    let style = console::data_style();
    if let Some(name) = &arguments.unknown {
        let advice = match nearest(name) {
            Some(known) => format!("did you mean `linerate calc {known}`? "),
            None => String::new(),
        };
        console::error(&format!("calc: there is no formula {name:?}\n{advice}`linerate calc` lists all"), None);
        return Exit::Unable.into();
    }
    let exit = match &arguments.question {
        None if arguments.json => show(&list::document()),
        None if arguments.markdown => show(&list::markdown()),
        None => show(&list::text(style)),
        Some(question) if question.explain && arguments.json => show(&document::explanation(question.calculator)),
        Some(question) if question.explain => show(&text::explanation(question.calculator, style)),
        Some(question) => match answer(question) {
            Ok(solution) => {
                show(&if arguments.json { document::answer(&solution) } else { text::answer(&solution, style) });
                if solution.checks.iter().all(Check::holds) { Exit::Success } else { Exit::Missed }
            }
            Err(why) => {
                console::error(&format!("calc {}: {why}", question.calculator.name), None);
                Exit::Unable
            }
        },
    };
    exit.into()
}

fn show(text: &str) -> Exit {
    console::data(text);
    Exit::Success
}

fn answer(question: &Question) -> Result<Solution, String> {
    solve::solve(question.calculator, Known::read(question.calculator, &question.given)?)
}

/// Answers a question that is written as words after `calc`.
fn evaluate<S: AsRef<str>>(words: &[S]) -> Result<Solution, String> {
    let (name, rest) = words.split_first().ok_or("no calculator is named")?;
    let calculator: &'static Calculator =
        calculators::named(name.as_ref()).ok_or_else(|| format!("there is no calculator {}", name.as_ref()))?;
    let mut given = Vec::new();
    let mut words = rest.iter().map(AsRef::as_ref);
    while let Some(word) = words.next() {
        given.push(match word.strip_prefix("--") {
            Some(option) => {
                let value = words.next().ok_or_else(|| format!("--{option} needs a value"))?;
                (Some(option.to_owned()), value.to_owned())
            }
            None => (None, word.to_owned()),
        });
    }
    solve::solve(calculator, Known::read(calculator, &given)?)
}

/// The questions that follow a solution, each with its own; those that cannot be asked are left out.
fn following(solution: &Solution) -> Vec<(Vec<String>, Solution)> {
    let asked = solution.calculator.next.iter().filter_map(|ask| ask(&solution.known).ok());
    asked.filter_map(|words| evaluate(&words).ok().map(|solution| (words, solution))).collect()
}
