//! Every option, one row each: names, argument, help, and what it does.
//!
//! A new option is one row here; parsing, abbreviation, the check of roles and `--help` follow from it.

mod both;
mod client;
mod linerate;
mod server;

use super::draft::Draft;
use super::error::Stop;
use super::value::Value;

/// Options under one heading of the help.
pub(crate) struct Section {
    /// The heading.
    pub(crate) heading: &'static str,
    /// The rows.
    pub(crate) options: &'static [CommandOption],
    /// Whether iperf3 knows these options too.
    pub(crate) from_iperf3: bool,
}

/// All options in the order of the help.
pub(crate) const SECTIONS: &[Section] = &[
    Section { heading: "Server or Client:", options: both::OPTIONS, from_iperf3: true },
    Section { heading: "Server specific:", options: server::OPTIONS, from_iperf3: true },
    Section { heading: "Client specific:", options: client::OPTIONS, from_iperf3: true },
    Section { heading: "Server specific, not in iperf3:", options: linerate::OPTIONS, from_iperf3: false },
];

/// Whether an option takes a value, and how the help calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    /// No value.
    None,
    /// A value, attached or as the next argument. The text follows the name in the help, with its separator.
    Required(&'static str),
    /// A value attached with `=` to the long name, or none.
    Optional(&'static str),
}

/// The role that an option commits the command line to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commitment {
    /// Neither, or decided later.
    Any,
    /// `-s`, else error 3.
    Server,
    /// `-c`, else error 4.
    Client,
}

/// What an option does to the draft.
type Apply = fn(&mut Draft, &Value) -> Result<(), Stop>;

/// One option.
pub(crate) struct CommandOption {
    /// The letter.
    pub(crate) short: Option<char>,
    /// The name.
    pub(crate) long: &'static str,
    /// A second name, not shown in the help.
    pub(crate) alias: Option<&'static str>,
    /// Its value.
    pub(crate) argument: Argument,
    /// The role it needs.
    pub(crate) commitment: Commitment,
    /// One or two sentences for the help.
    pub(crate) help: &'static str,
    /// What it does.
    pub(crate) apply: Apply,
}

impl CommandOption {
    const fn new(
        short: &'static str,
        long: &'static str,
        argument: Argument,
        help: &'static str,
        apply: Apply,
    ) -> Self {
        let short = match short.as_bytes() {
            [letter] => Some(*letter as char),
            _ => None,
        };
        Self { short, long, alias: None, argument, commitment: Commitment::Any, help, apply }
    }

    const fn committed_to(self, commitment: Commitment) -> Self {
        Self { commitment, ..self }
    }

    const fn with_alias(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    /// Its long names.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.long).chain(self.alias)
    }
}

/// An option of either role.
const fn either(
    short: &'static str,
    long: &'static str,
    argument: Argument,
    help: &'static str,
    apply: Apply,
) -> CommandOption {
    CommandOption::new(short, long, argument, help, apply)
}

/// An option that only a server may have.
const fn server(
    short: &'static str,
    long: &'static str,
    argument: Argument,
    help: &'static str,
    apply: Apply,
) -> CommandOption {
    CommandOption::new(short, long, argument, help, apply).committed_to(Commitment::Server)
}

/// An option that only a client may have.
const fn client(
    short: &'static str,
    long: &'static str,
    argument: Argument,
    help: &'static str,
    apply: Apply,
) -> CommandOption {
    CommandOption::new(short, long, argument, help, apply).committed_to(Commitment::Client)
}
