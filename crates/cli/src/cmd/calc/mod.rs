//! `linerate calc`: every formula of `linerate_analysis::formulas`, with units.

mod answer;
mod calculators;
mod catalogue;
mod figure;
mod list;
#[cfg(test)]
mod tests;
mod values;

use std::process::ExitCode;

use clap::{Args, Command as CommandLine, FromArgMatches};

use answer::CalculatorAnswer;
use calculators::Calculator;
use catalogue::CatalogueEntry;

use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

const ABOUT_NUMBERS: &str = "Rates: 10G, 10Gbit/s, 1.25GB/s. Sizes: 16MiB (by 1024), 16MB or 16M (by 1000), 1448. Times: \
                             117ms, 250us, 1.5s. Loss: 0.01%, 1/36000, 2.8e-5.";

/// `linerate calc`.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "CALCULATOR", subcommand_help_heading = "Calculators", after_help = ABOUT_NUMBERS)]
#[command(disable_help_subcommand = true, mut_subcommands = with_formulas)]
pub(crate) struct CalcArguments {
    /// Calculator; without one, all are listed.
    #[command(subcommand)]
    calculator: Option<Calculator>,
    /// Print a JSON document (schema 1) instead of text
    #[arg(long, global = true)]
    json: bool,
    /// Print all inputs and derived figures, in every unit
    #[arg(short, long, global = true, conflicts_with = "json")]
    verbose: bool,
    /// Print all formulas with their explanations and examples as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// Adds the formulas and examples of a calculator to its help.
fn with_formulas(command: CommandLine) -> CommandLine {
    let Some(entry) = CatalogueEntry::named(command.get_name()) else { return command };
    let examples: Vec<String> = entry.commands().map(|example| format!("  {example}")).collect();
    let end = format!("{ABOUT_NUMBERS}\n\nExamples:\n{}", examples.join("\n"));
    let formula = |explained: bool| {
        let texts = entry.formulas.iter().map(|formula| {
            let explanation = if explained { format!("\n\n{}", formula.explanation) } else { String::new() };
            format!("  {}\n  ({}){explanation}", formula.text, formula.citation)
        });
        format!("{end}\n\nFormula:\n{}", texts.collect::<Vec<_>>().join("\n\n"))
    };
    command.after_help(formula(false)).after_long_help(formula(true))
}

/// Runs the selected calculator, or lists them all.
pub(crate) fn run(arguments: &CalcArguments) -> ExitCode {
    let style = console::data_style();
    let Some(calculator) = &arguments.calculator else {
        match (arguments.json, arguments.markdown) {
            (true, _) => print_json(DocumentKind::Calculators, &list::document()),
            (_, true) => console::data(&list::markdown()),
            _ => console::data(&list::text(style)),
        }
        return ExitStatus::Success.into();
    };
    let (name, answer) = calculator.compute();
    let name = name.name();
    match (answer, CatalogueEntry::named(name)) {
        (Ok(answer), Some(entry)) if arguments.json => print_json(DocumentKind::Calculation, &answer.document(entry)),
        (Ok(answer), Some(entry)) if arguments.verbose => console::data(&answer.text(entry, style)),
        (Ok(answer), Some(entry)) => console::data(&answer.summary(entry, style)),
        (answer, _) => {
            let reason = answer.err().unwrap_or_default();
            let advice = format!("`linerate calc {name} --help` has its arguments and examples");
            console::error(&format!("calc {name}: {reason}\n{advice}"), None);
            return ExitStatus::Unable.into();
        }
    }
    ExitStatus::Success.into()
}

/// Command line of the calculators alone.
fn command_line() -> CommandLine {
    CalcArguments::augment_args(CommandLine::new("calc").no_binary_name(true))
}

/// Evaluates a query in the form of the arguments of `calc`.
fn evaluate(query: &str) -> Result<CalculatorAnswer, String> {
    let matches = command_line().try_get_matches_from(query.split_whitespace()).map_err(|error| error.to_string())?;
    let arguments = CalcArguments::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    arguments.calculator.ok_or("no calculator given")?.compute().1
}
