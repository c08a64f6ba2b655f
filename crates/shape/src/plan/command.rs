//! Plans as words of `tc`, `ip` and `ethtool`.

use core::fmt;

use super::{Class, Device, Discipline, Filter, Handle, Offload, Parent, Part};

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    /// `tc`, `ip` or `ethtool`.
    pub program: &'static str,
    /// Its arguments, one each.
    pub words: Vec<String>,
}

impl Command {
    /// A command of `tc`.
    pub fn tc<Word: Into<String>>(words: impl IntoIterator<Item = Word>) -> Self {
        Self { program: "tc", words: words.into_iter().map(Into::into).collect() }
    }

    /// A command of `ip`.
    pub fn ip<Word: Into<String>>(words: impl IntoIterator<Item = Word>) -> Self {
        Self { program: "ip", words: words.into_iter().map(Into::into).collect() }
    }
}

/// As a line of a shell script: words with unusual letters are quoted.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program)?;
        self.words.iter().try_for_each(|word| write!(f, " {}", quoted(word)))
    }
}

/// A word as the shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:,=@%+".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// `text` cut at spaces.
pub(crate) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl Parent {
    /// `tc`'s words for it.
    fn words(self) -> Vec<String> {
        match self {
            Self::Root => vec!["root".to_owned()],
            Self::Ingress => vec!["parent".to_owned(), "ffff:".to_owned()],
            Self::At(handle) => vec!["parent".to_owned(), handle.to_string()],
        }
    }
}

impl Part {
    /// The command that sets it up.
    #[must_use]
    pub fn command(&self) -> Command {
        match self {
            Self::Create(Device(name)) => Command::ip(["link", "add", "name", name, "type", "ifb"]),
            Self::SetUp(Device(name)) => Command::ip(["link", "set", "dev", name, "up"]),
            Self::Discipline(discipline) => discipline.command("add"),
            Self::Class(class) => class.command("add"),
            Self::Filter(filter) => filter.command(),
        }
    }
}

impl Discipline {
    /// `tc qdisc VERB …`: `add`, `change`, `replace`.
    #[must_use]
    pub fn command(&self, verb: &str) -> Command {
        let mut words = vec!["qdisc".to_owned(), verb.to_owned(), "dev".to_owned(), self.device.clone()];
        if self.parent == Parent::Ingress {
            words.extend(["handle".to_owned(), Handle::INGRESS.to_string(), self.kind.to_owned()]);
            return Command::tc(words);
        }
        words.extend(self.parent.words());
        words.extend(["handle".to_owned(), self.handle.to_string(), self.kind.to_owned()]);
        words.extend(self.options.iter().cloned());
        Command::tc(words)
    }
}

impl Class {
    /// `tc class VERB …`: `add`, `change`, `replace`.
    #[must_use]
    pub fn command(&self, verb: &str) -> Command {
        let head = ["class", verb, "dev", &self.device, "parent"].map(str::to_owned);
        let middle = [self.parent.to_string(), "classid".to_owned(), self.handle.to_string(), self.kind.to_owned()];
        Command::tc(head.into_iter().chain(middle).chain(self.options.iter().cloned()))
    }
}

impl Filter {
    /// `tc filter add …`.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut words = vec!["filter".to_owned(), "add".to_owned(), "dev".to_owned(), self.device.clone()];
        words.extend(self.parent.words());
        let preference = self.preference.to_string();
        words.extend(["protocol", self.protocol.word(), "prio", &preference].map(str::to_owned));
        // `tc` wants a handle before the kind: it is the first of the options then.
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
        Command::tc(words)
    }
}

impl Offload {
    /// `ethtool -K …`.
    #[must_use]
    pub fn command(&self) -> Command {
        let words = ["-K", &self.device, self.feature, "off"].map(str::to_owned).to_vec();
        Command { program: "ethtool", words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusual_words_are_quoted() {
        let command = Command::ip(["link", "set", "dev", "it's", "a b", ""]);
        assert_eq!(command.to_string(), r"ip link set dev 'it'\''s' 'a b' ''");
    }
}
