//! Commands of `tc`, `ip` and `ethtool` for a plan.

use core::fmt;

use linerate_model::change::INTERMEDIATE_ALIAS;

use super::{
    AggregatedPackets, DeviceName, PlannedClass, PlannedDiscipline, PlannedFilter, PlannedObject, PlannedOffload,
    QdiscHandle, TcParent,
};

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlanCommand {
    /// `tc`, `ip`, `ethtool` or `nft`.
    pub program: &'static str,
    /// Arguments.
    pub words: Vec<String>,
}

impl PlanCommand {
    /// Creates a `tc` command.
    pub fn tc<Word: Into<String>>(words: impl IntoIterator<Item = Word>) -> Self {
        Self { program: "tc", words: words.into_iter().map(Into::into).collect() }
    }

    /// Creates an `ip` command.
    pub fn ip<Word: Into<String>>(words: impl IntoIterator<Item = Word>) -> Self {
        Self { program: "ip", words: words.into_iter().map(Into::into).collect() }
    }

    /// Creates an `nft` command.
    pub fn nft<Word: Into<String>>(words: impl IntoIterator<Item = Word>) -> Self {
        Self { program: "nft", words: words.into_iter().map(Into::into).collect() }
    }
}

/// Formats a shell command line: arguments with special characters are quoted.
impl fmt::Display for PlanCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program)?;
        self.words.iter().try_for_each(|word| write!(f, " {}", quoted(word)))
    }
}

/// Quotes an argument for the shell.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:,=@%+".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Splits `text` at spaces.
pub(crate) fn arguments(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl TcParent {
    /// `tc` arguments of the parent.
    fn split_arguments(self) -> Vec<String> {
        match self {
            Self::Root => vec!["root".to_owned()],
            Self::Ingress => vec!["parent".to_owned(), "ffff:".to_owned()],
            Self::At(handle) => vec!["parent".to_owned(), handle.to_string()],
        }
    }
}

impl PlannedObject {
    /// Command that sets it up.
    #[must_use]
    pub fn command(&self) -> PlanCommand {
        match self {
            Self::Create(DeviceName(name)) => PlanCommand::ip(["link", "add", "name", name, "type", "ifb"]),
            Self::SetUp(DeviceName(name)) => {
                PlanCommand::ip(["link", "set", "dev", name, "alias", INTERMEDIATE_ALIAS, "up"])
            }
            Self::Discipline(discipline) => discipline.command("add"),
            Self::Class(class) => class.command("add"),
            Self::Filter(filter) => filter.command(),
        }
    }
}

impl PlannedDiscipline {
    /// Builds `tc qdisc VERB …`: `add`, `change`, `replace`.
    #[must_use]
    pub fn command(&self, verb: &str) -> PlanCommand {
        let mut words = vec!["qdisc".to_owned(), verb.to_owned(), "dev".to_owned(), self.device.clone()];
        if self.parent == TcParent::Ingress {
            words.extend(["handle".to_owned(), QdiscHandle::INGRESS.to_string(), self.kind.to_owned()]);
            return PlanCommand::tc(words);
        }
        words.extend(self.parent.split_arguments());
        words.extend(["handle".to_owned(), self.handle.to_string(), self.kind.to_owned()]);
        words.extend(self.options.iter().cloned());
        PlanCommand::tc(words)
    }
}

impl PlannedClass {
    /// Builds `tc class VERB …`: `add`, `change`, `replace`.
    #[must_use]
    pub fn command(&self, verb: &str) -> PlanCommand {
        let head = ["class", verb, "dev", &self.device, "parent"].map(str::to_owned);
        let middle = [self.parent.to_string(), "classid".to_owned(), self.handle.to_string(), self.kind.to_owned()];
        PlanCommand::tc(head.into_iter().chain(middle).chain(self.options.iter().cloned()))
    }
}

impl PlannedFilter {
    /// Builds `tc filter add …`.
    #[must_use]
    pub fn command(&self) -> PlanCommand {
        let mut words = vec!["filter".to_owned(), "add".to_owned(), "dev".to_owned(), self.device.clone()];
        words.extend(self.parent.split_arguments());
        let preference = self.preference.to_string();
        words.extend(["protocol", self.protocol.keyword(), "prio", &preference].map(str::to_owned));
        // `tc` expects a handle before the kind: it is the first option then.
        match self.options.split_first() {
            Some((first, rest)) if first == "handle" => {
                words.extend([first.clone(), rest.first().cloned().unwrap_or_default(), self.kind.to_owned()]);
                words.extend(rest.iter().skip(1).cloned());
            }
            _ => {
                words.push(self.kind.to_owned());
                words.extend(self.options.iter().cloned());
            }
        }
        PlanCommand::tc(words)
    }
}

impl PlannedOffload {
    /// Builds the command that keeps the aggregated packets out.
    #[must_use]
    pub fn command(&self) -> PlanCommand {
        match self.aggregates {
            AggregatedPackets::Sent => PlanCommand::ip(["link", "set", "dev", &self.device, "gso_max_segs", "1"]),
            AggregatedPackets::Received => {
                let words = ["-K", &self.device, "gro", "off"].map(str::to_owned).to_vec();
                PlanCommand { program: "ethtool", words }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_quoted() {
        let command = PlanCommand::ip(["link", "set", "dev", "it's", "a b", ""]);
        assert_eq!(command.to_string(), r"ip link set dev 'it'\''s' 'a b' ''");
    }
}
