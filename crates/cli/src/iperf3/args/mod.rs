//! Parser of iperf3's command line, from text to [`Iperf3Command`].
//!
//! Arguments are split as by `getopt_long` ([`getopt`]); each option is a row of a table ([`options`]) with its names,
//! its help and its effect on the [`draft`]; the finished draft passes the checks that need more than one option.
//! Errors carry iperf3's number and text ([`ParameterError`]), in iperf3's order: an invalid value stops at its option,
//! in the order of the command line; all other checks follow at the end.
//!
//! Nothing here reads the environment, the file system or the terminal.

pub(crate) mod command;
mod draft;
mod error;
mod getopt;
pub(crate) mod options;
#[cfg(test)]
mod tests;
mod value;

use std::ffi::OsString;

pub(crate) use error::{ArgumentsError, ParameterError};

use command::{Iperf3Command, ParsedCommand};
use draft::CommandDraft;
use error::ParseStop;

/// Parses the arguments after the program's name.
///
/// # Errors
/// [`ArgumentsError::Usage`] for unknown options, [`ArgumentsError::Parameter`] for values that iperf3 refuses.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<ParsedCommand, ArgumentsError> {
    let mut draft = CommandDraft::default();
    let mut remaining = getopt::RemainingArguments::new(arguments);
    while let Some(next) = remaining.next_option() {
        let (option, value) = next.map_err(ArgumentsError::Usage)?;
        match draft.apply(option, &value) {
            Ok(()) => {}
            Err(ParseStop::Help) => return Ok(ParsedCommand::from(Iperf3Command::Help)),
            Err(ParseStop::Version) => return Ok(ParsedCommand::from(Iperf3Command::Version)),
            Err(ParseStop::Refused(error)) => return Err(draft.refuse(error)),
        }
    }
    draft.finish(&remaining.into_operands())
}
