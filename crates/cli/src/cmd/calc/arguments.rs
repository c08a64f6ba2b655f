//! The command line of the calculators, made from their tables.

use clap::{Arg, ArgAction, ArgMatches, Args, Command as CommandLine, FromArgMatches};

use super::calculators;
use super::quantity::{Kind, Quantity};
use super::solve::Calculator;

/// `linerate calc`.
#[derive(Debug)]
pub(crate) struct CalcArguments {
    /// What is asked; without it, the calculators are listed.
    pub(super) question: Option<Question>,
    /// A name that no calculator has.
    pub(super) unknown: Option<String>,
    pub(super) json: bool,
    pub(super) markdown: bool,
}

/// A calculator and what it is given.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) calculator: &'static Calculator,
    /// Words, with the option that each belongs to where there is one.
    pub(super) given: Vec<(Option<String>, String)>,
    pub(super) explain: bool,
}

const ABOUT_NUMBERS: &str = "Rates: 10G, 10Gbit/s, 1.25GB/s. Sizes: 16MiB (by 1024), 16MB or 16M (by 1000), 1448. Times: \
                             117ms, 250us, 1.5s. Loss: 0.01%, 1/36000, 2.8e-5. What is left out is computed; where \
                             nothing is left out, the figures are checked, and the exit code is 1 when they differ by \
                             more than 1 %.";

impl Args for CalcArguments {
    fn augment_args(command: CommandLine) -> CommandLine {
        let command = command
            .arg(json().global(true))
            .arg(
                Arg::new("markdown")
                    .long("markdown")
                    .action(ArgAction::SetTrue)
                    .conflicts_with("json")
                    .help("Print all formulas with their explanations and examples as Markdown"),
            )
            .subcommand_value_name("FORMULA")
            .subcommand_help_heading("Formulas")
            .disable_help_subcommand(true)
            // A name that is unknown is ours to answer: clap finds nothing near to short ones.
            .allow_external_subcommands(true)
            .after_help(format!(
                "{ABOUT_NUMBERS}\n\nExamples:\n  linerate calc bdp 10G 117ms\n  linerate calc loss --rate 256M --rtt 53ms \
                 --mss 8960\n  linerate calc window --explain"
            ));
        calculators::ALL.iter().fold(command, |command, calculator| command.subcommand(subcommand(calculator)))
    }

    fn augment_args_for_update(command: CommandLine) -> CommandLine {
        Self::augment_args(command)
    }
}

fn json() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print a JSON document (schema 1) instead of text")
}

fn subcommand(calculator: &'static Calculator) -> CommandLine {
    let examples: Vec<String> =
        calculator.examples.iter().map(|example| format!("  linerate calc {} {example}", calculator.name)).collect();
    let formulas: Vec<String> =
        calculator.formulas().iter().map(|formula| format!("  {}\n  ({})", formula.text, formula.citation)).collect();
    let command = CommandLine::new(calculator.name)
        .about(calculator.about)
        .arg(
            Arg::new("values")
                .value_name("VALUE")
                .num_args(0..)
                .help("Values without their option: each goes to the first option that fits its unit"),
        )
        .arg(
            Arg::new("explain")
                .long("explain")
                .action(ArgAction::SetTrue)
                .help("Say what the formula means, where it comes from, and where published figures of it are wrong"),
        )
        .after_help(format!(
            "{ABOUT_NUMBERS}\n\nExamples:\n{}\n\nFormula:\n{}",
            examples.join("\n"),
            formulas.join("\n")
        ));
    calculator.quantities.iter().fold(command, |command, quantity| command.arg(option(quantity)))
}

fn option(quantity: &'static Quantity) -> Arg {
    let help = match quantity.default {
        Some(default) => {
            let choice = match quantity.kind {
                Kind::Choice(words) => format!(": {}", words.join(" or ")),
                _ => String::new(),
            };
            format!("{}{choice} [default: {}]", quantity.help, shown_default(default))
        }
        None => format!("{}, for example {}", quantity.help, quantity.example),
    };
    Arg::new(quantity.name)
        .long(quantity.name)
        .value_name(quantity.kind.placeholder())
        .allow_hyphen_values(true)
        .help(help)
}

/// Enough digits of a constant for a help text.
fn shown_default(default: &'static str) -> &'static str {
    default.get(..6).filter(|_| default.contains('.')).unwrap_or(default)
}

impl FromArgMatches for CalcArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let named = matches.subcommand().map(|(name, matches)| (name, calculators::named(name), matches));
        let (question, unknown) = match named {
            Some((_, Some(calculator), matches)) => (Some(asked(calculator, matches)), None),
            Some((name, None, _)) => (None, Some(name.to_owned())),
            None => (None, None),
        };
        Ok(Self { question, unknown, json: matches.get_flag("json"), markdown: matches.get_flag("markdown") })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn asked(calculator: &'static Calculator, matches: &ArgMatches) -> Question {
    let options = calculator.quantities.iter().filter_map(|quantity| {
        matches.get_one::<String>(quantity.name).map(|word| (Some(quantity.name.to_owned()), word.clone()))
    });
    let words = matches.get_many::<String>("values").into_iter().flatten().map(|word| (None, word.clone()));
    Question { calculator, given: options.chain(words).collect(), explain: matches.get_flag("explain") }
}
