//! iperf3's command line, as text in and [`Iperf3Command`] out.
//!
//! Arguments are split as `getopt_long` splits them ([`getopt`]), each option is a row of a table ([`options`]) that
//! knows its names, its help and what it does to the [`draft`], and the finished draft passes the checks that need more
//! than one option. Errors carry iperf3's number and text ([`ParameterError`]), and the same one comes first: what an
//! option's own value does wrong stops at that option, in the order of the command line; the rest is checked at the end.
//!
//! Nothing here reads the environment, the file system or the terminal.

pub(crate) mod command;
mod draft;
mod error;
mod getopt;
pub(super) mod options;
#[cfg(test)]
mod tests;
mod value;

use std::ffi::OsString;

pub(crate) use error::{ArgumentsError, ParameterError};

use command::{Iperf3Command, Parsed};
use draft::Draft;
use error::Stop;

/// Reads the arguments after the program's name.
///
/// # Errors
/// [`ArgumentsError::Usage`] for what is not an option, [`ArgumentsError::Parameter`] for what iperf3 refuses.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Parsed, ArgumentsError> {
    let mut draft = Draft::default();
    let mut remaining = getopt::Arguments::new(arguments);
    while let Some(next) = remaining.next_option() {
        let (option, value) = next.map_err(ArgumentsError::Usage)?;
        match draft.apply(option, &value) {
            Ok(()) => {}
            Err(Stop::Help) => return Ok(Parsed::from(Iperf3Command::Help)),
            Err(Stop::Version) => return Ok(Parsed::from(Iperf3Command::Version)),
            Err(Stop::Refused(error)) => return Err(draft.refuse(error)),
        }
    }
    draft.finish(&remaining.into_operands())
}
