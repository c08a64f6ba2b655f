//! Table of all options: names, argument, help, and effect.
//!
//! A new option is one row here; parsing, abbreviation, role checks and `--help` follow from it.

mod both;
mod client;
mod linerate;
mod server;

use super::draft::CommandDraft;
use super::error::ParseStop;
use super::value::ArgumentValue;

/// Options under one heading of the help.
pub(crate) struct OptionSection {
    /// Heading of the section.
    pub(crate) heading: &'static str,
    /// Options of the section.
    pub(crate) options: &'static [CommandOption],
    /// True for options that iperf3 has, too.
    pub(crate) from_iperf3: bool,
}

/// Sections in the order of the help.
pub(crate) const SECTIONS: &[OptionSection] = &[
    OptionSection { heading: "Server or Client:", options: both::OPTIONS, from_iperf3: true },
    OptionSection { heading: "Server specific:", options: server::OPTIONS, from_iperf3: true },
    OptionSection { heading: "Client specific:", options: client::OPTIONS, from_iperf3: true },
    OptionSection { heading: "Server specific, not in iperf3:", options: linerate::SERVER_OPTIONS, from_iperf3: false },
    OptionSection { heading: "Client specific, not in iperf3:", options: linerate::CLIENT_OPTIONS, from_iperf3: false },
];

/// Presence of an option's value, and its name in the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionArgument {
    /// No value.
    None,
    /// A value, attached or as the next argument. The text follows the name in the help, with its separator.
    Required(&'static str),
    /// Value attached with `=` to the long name, or none.
    Optional(&'static str),
}

/// Role that an option requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequiredRole {
    /// Either role, or checked later.
    Any,
    /// `-s`, else error 3.
    Server,
    /// `-c`, else error 4.
    Client,
}

/// Effect of an option on the draft.
type ApplyOption = fn(&mut CommandDraft, &ArgumentValue) -> Result<(), ParseStop>;

/// Command-line option.
pub(crate) struct CommandOption {
    /// Short name.
    pub(crate) short: Option<char>,
    /// Long name.
    pub(crate) long: &'static str,
    /// Second long name, not shown in the help.
    pub(crate) alias: Option<&'static str>,
    /// Value of the option.
    pub(crate) argument: OptionArgument,
    /// Required role.
    pub(crate) commitment: RequiredRole,
    /// Help text of one or two sentences.
    pub(crate) help: &'static str,
    /// Effect on the draft.
    pub(crate) apply: ApplyOption,
}

impl CommandOption {
    const fn new(
        short: &'static str,
        long: &'static str,
        argument: OptionArgument,
        help: &'static str,
        apply: ApplyOption,
    ) -> Self {
        let short = match short.as_bytes() {
            [letter] => Some(*letter as char),
            _ => None,
        };
        Self { short, long, alias: None, argument, commitment: RequiredRole::Any, help, apply }
    }

    const fn committed_to(self, commitment: RequiredRole) -> Self {
        Self { commitment, ..self }
    }

    const fn with_alias(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    /// Long names of the option.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.long).chain(self.alias)
    }
}

/// Creates an option of either role.
const fn either(
    short: &'static str,
    long: &'static str,
    argument: OptionArgument,
    help: &'static str,
    apply: ApplyOption,
) -> CommandOption {
    CommandOption::new(short, long, argument, help, apply)
}

/// Creates a server-only option.
const fn server(
    short: &'static str,
    long: &'static str,
    argument: OptionArgument,
    help: &'static str,
    apply: ApplyOption,
) -> CommandOption {
    CommandOption::new(short, long, argument, help, apply).committed_to(RequiredRole::Server)
}

/// Creates a client-only option.
const fn client(
    short: &'static str,
    long: &'static str,
    argument: OptionArgument,
    help: &'static str,
    apply: ApplyOption,
) -> CommandOption {
    CommandOption::new(short, long, argument, help, apply).committed_to(RequiredRole::Client)
}
