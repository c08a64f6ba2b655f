//! Options and values of a command line, split as in glibc's `getopt_long`.
//!
//! Short options may be joined (`-RVt5`), a value may be attached (`-P4`, `--time=5`) or follow, long names may be
//! abbreviated unambiguously, an optional value must be attached with `=`, operands may appear anywhere, and `--` ends
//! the options.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::options::{CommandOption, OptionArgument, OptionSection, SECTIONS};
use super::value::ArgumentValue;

/// Option and its value, or `getopt`'s error message.
type ParsedOption = Result<(&'static CommandOption, ArgumentValue), String>;

/// Arguments not yet parsed.
pub(super) struct RemainingArguments {
    remaining: std::vec::IntoIter<OsString>,
    /// Remainder of a group of short options, as in `-RVt5`.
    group: Vec<u8>,
    operands: Vec<OsString>,
}

impl RemainingArguments {
    pub(super) fn new(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let remaining = arguments.into_iter().collect::<Vec<_>>().into_iter();
        Self { remaining, group: Vec::new(), operands: Vec::new() }
    }

    /// Returns the next option; `None` at the end.
    pub(super) fn next_option(&mut self) -> Option<ParsedOption> {
        loop {
            if !self.group.is_empty() {
                return Some(self.short());
            }
            let argument = self.remaining.next()?;
            match argument.as_bytes() {
                b"--" => {
                    self.operands.extend(self.remaining.by_ref());
                    return None;
                }
                [b'-', b'-', name @ ..] => return Some(self.long(name)),
                [b'-', group @ ..] if !group.is_empty() => self.group = group.to_vec(),
                _ => self.operands.push(argument),
            }
        }
    }

    /// Returns the operands: arguments that are neither options nor their values.
    pub(super) fn into_operands(self) -> Vec<OsString> {
        self.operands
    }

    fn short(&mut self) -> ParsedOption {
        let letter = char::from(self.group.remove(0));
        let option = every_option()
            .map(|(_, option)| option)
            .find(|option| option.short == Some(letter))
            .ok_or_else(|| format!("invalid option -- '{letter}'"))?;
        let OptionArgument::Required(_) = option.argument else {
            return Ok((option, ArgumentValue::none()));
        };
        let value = if self.group.is_empty() {
            self.remaining.next().ok_or_else(|| format!("option requires an argument -- '{letter}'"))?
        } else {
            OsString::from_vec(std::mem::take(&mut self.group))
        };
        Ok((option, ArgumentValue::from(value)))
    }

    fn long(&mut self, argument: &[u8]) -> ParsedOption {
        let mut parts = argument.splitn(2, |byte| *byte == b'=');
        let name = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        let attached = parts.next().map(|value| OsStr::from_bytes(value).to_owned());
        let option = find_option(&name, &String::from_utf8_lossy(argument))?;
        let value = match (&option.argument, attached) {
            (OptionArgument::None, Some(_)) => {
                return Err(format!("option '--{}' doesn't allow an argument", option.long));
            }
            (_, Some(value)) => ArgumentValue::from(value),
            (OptionArgument::Required(_), None) => {
                let next = self.remaining.next();
                ArgumentValue::from(next.ok_or_else(|| format!("option '--{}' requires an argument", option.long))?)
            }
            (OptionArgument::None | OptionArgument::Optional(_), None) => ArgumentValue::none(),
        };
        Ok((option, value))
    }
}

fn every_option() -> impl Iterator<Item = (&'static OptionSection, &'static CommandOption)> {
    SECTIONS.iter().flat_map(|section| section.options.iter().map(move |option| (section, option)))
}

/// Finds the option of this name, or of an unambiguous abbreviation.
///
/// Names of iperf3 have precedence: no abbreviation that works with iperf3 may become ambiguous here.
fn find_option(name: &str, argument: &str) -> Result<&'static CommandOption, String> {
    if let Some((_, option)) = every_option().find(|(_, option)| option.names().any(|known| known == name)) {
        return Ok(option);
    }
    for from_iperf3 in [true, false] {
        let candidates: Vec<_> = every_option()
            .filter(|(section, _)| section.from_iperf3 == from_iperf3)
            .filter_map(|(_, option)| option.names().find(|known| known.starts_with(name)).map(|known| (known, option)))
            .collect();
        match candidates.as_slice() {
            [] => {}
            [(_, option)] => return Ok(option),
            several => {
                let names: Vec<_> = several.iter().map(|(known, _)| format!("'--{known}'")).collect();
                return Err(format!("option '--{argument}' is ambiguous; possibilities: {}", names.join(" ")));
            }
        }
    }
    Err(format!("unrecognized option '--{argument}'"))
}
