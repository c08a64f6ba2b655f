//! Splitting arguments into options and values as glibc's `getopt_long` does.
//!
//! Short options may be joined (`-RVt5`), a value may be attached (`-P4`, `--time=5`) or follow, long names may be
//! shortened to anything unambiguous, an optional value must be attached with `=`, operands may stand anywhere, and
//! `--` ends the options.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::options::{Argument, CommandOption, SECTIONS, Section};
use super::value::Value;

/// An option and its value, or `getopt`'s complaint.
type Next = Result<(&'static CommandOption, Value), String>;

/// The arguments not yet read.
pub(super) struct Arguments {
    remaining: std::vec::IntoIter<OsString>,
    /// What is left of a group of short options, as in `-RVt5`.
    group: Vec<u8>,
    operands: Vec<OsString>,
}

impl Arguments {
    pub(super) fn new(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let remaining = arguments.into_iter().collect::<Vec<_>>().into_iter();
        Self { remaining, group: Vec::new(), operands: Vec::new() }
    }

    /// The next option; `None` at the end.
    pub(super) fn next_option(&mut self) -> Option<Next> {
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

    /// What was no option and no option's value.
    pub(super) fn into_operands(self) -> Vec<OsString> {
        self.operands
    }

    fn short(&mut self) -> Next {
        let letter = char::from(self.group.remove(0));
        let option = every_option()
            .map(|(_, option)| option)
            .find(|option| option.short == Some(letter))
            .ok_or_else(|| format!("invalid option -- '{letter}'"))?;
        let Argument::Required(_) = option.argument else {
            return Ok((option, Value::none()));
        };
        let value = if self.group.is_empty() {
            self.remaining.next().ok_or_else(|| format!("option requires an argument -- '{letter}'"))?
        } else {
            OsString::from_vec(std::mem::take(&mut self.group))
        };
        Ok((option, Value::from(value)))
    }

    fn long(&mut self, argument: &[u8]) -> Next {
        let mut parts = argument.splitn(2, |byte| *byte == b'=');
        let name = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        let attached = parts.next().map(|value| OsStr::from_bytes(value).to_owned());
        let option = named(&name, &String::from_utf8_lossy(argument))?;
        let value = match (&option.argument, attached) {
            (Argument::None, Some(_)) => return Err(format!("option '--{}' doesn't allow an argument", option.long)),
            (_, Some(value)) => Value::from(value),
            (Argument::Required(_), None) => {
                let next = self.remaining.next();
                Value::from(next.ok_or_else(|| format!("option '--{}' requires an argument", option.long))?)
            }
            (Argument::None | Argument::Optional(_), None) => Value::none(),
        };
        Ok((option, value))
    }
}

fn every_option() -> impl Iterator<Item = (&'static Section, &'static CommandOption)> {
    SECTIONS.iter().flat_map(|section| section.options.iter().map(move |option| (section, option)))
}

/// The option of this name, or of the only name that begins so.
///
/// iperf3's own names come first: no abbreviation that works with iperf3 may become ambiguous here.
fn named(name: &str, argument: &str) -> Result<&'static CommandOption, String> {
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
