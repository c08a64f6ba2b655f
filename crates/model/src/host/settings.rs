//! The kernel's settings: what they are now, and which lines of which files set them.

pub mod order;
pub mod syntax;

use std::collections::{BTreeMap, BTreeSet};

use crate::fact::Fact;
pub use order::{Order, Source};
pub use syntax::{Assignment, Nonsense};

/// Settings of the calling process's network namespace, and the files from which they are set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// By sysctl's names: those of the catalogue ([`super::catalogue`]), and every other that a file sets.
    pub values: BTreeMap<String, Setting>,
    /// Every name that this kernel has here below `net`, without the settings of single interfaces.
    pub names: Fact<BTreeSet<String>>,
    /// Files of settings that were found, read or not, in no order.
    pub files: Vec<SettingsFile>,
    /// Directories of such files that could not be listed, each with the reason.
    pub directories_unread: Vec<(String, Fact<()>)>,
    /// What the kernel's own command line sets.
    pub command_line: Fact<Vec<Assignment>>,
    /// Whether systemd started this host, and so its systemd-sysctl reads the files at boot.
    pub systemd: Fact<bool>,
}

/// One setting as it is now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// Its value, with one blank between numbers.
    pub value: Fact<String>,
    /// Whether it can be written from here.
    pub writing: Writing,
}

/// Whether a setting can be written by this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Writing {
    /// Nobody has looked.
    #[default]
    Unknown,
    /// It can.
    Possible,
    /// Root could.
    NeedsPrivilege,
    /// Not even root can, here; and why.
    Impossible(String),
}

/// A file of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingsFile {
    /// Where it was found.
    pub path: String,
    /// Where it leads, if it is a link.
    pub leads_to: Option<String>,
    /// What it says.
    pub content: Fact<Content>,
}

/// What a file of settings says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// Its lines that set something.
    pub assignments: Vec<Assignment>,
    /// Its lines that nobody understands.
    pub nonsense: Vec<Nonsense>,
}

impl SettingsFile {
    /// A file with this text.
    #[must_use]
    pub fn parsed(path: impl Into<String>, text: &str) -> Self {
        let (assignments, nonsense) = syntax::parse(text);
        Self { path: path.into(), leads_to: None, content: Fact::Known(Content { assignments, nonsense }) }
    }
}

impl Settings {
    /// The value of a setting, where it is known.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.values.get(key)?.value.known().map(String::as_str)
    }

    /// The value of a setting that is one number.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<i64> {
        self.value(key)?.parse().ok()
    }

    /// The numbers of a setting that has several.
    #[must_use]
    pub fn numbers(&self, key: &str) -> Option<Vec<i64>> {
        numbers(self.value(key)?)
    }

    /// Who reads the files at boot: systemd-sysctl, unless it is known that systemd did not start this host.
    #[must_use]
    pub fn order_at_boot(&self) -> Order {
        if self.systemd.known() == Some(&false) { Order::Procps } else { Order::Systemd }
    }

    /// Every setting and what is known of its files, by name.
    #[must_use]
    pub fn listed(&self) -> Vec<(String, Fact<String>)> {
        let mut facts: Vec<(String, Fact<String>)> =
            self.values.iter().map(|(key, setting)| (key.clone(), setting.value.clone())).collect();
        facts.extend(self.files.iter().map(|file| {
            let count = file.content.clone().map(|content| format!("{} lines", content.assignments.len()));
            (format!("files.{}", file.path), count)
        }));
        facts.extend(
            self.directories_unread
                .iter()
                .map(|(path, why)| (format!("files.{path}"), why.clone().map(|()| String::new()))),
        );
        let early = self.command_line.clone().map(|settings| settings.len().to_string());
        facts.push(("kernel.command_line_settings".to_owned(), early));
        facts.push(("host.systemd".to_owned(), self.systemd.clone().map(|yes| yes.to_string())));
        facts
    }
}

/// Numbers with blanks between; `None` when a word is not a number.
#[must_use]
pub fn numbers(value: &str) -> Option<Vec<i64>> {
    value.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
}
