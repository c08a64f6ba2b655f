//! Kernel settings: present values, and the lines of files that set them.

pub mod order;
pub mod syntax;

use std::collections::{BTreeMap, BTreeSet};

use crate::fact::Fact;
pub use order::{FileOwner, ReadOrder, SettingSource};
pub use syntax::{SettingAssignment, UnparsedLine};

/// Settings of the calling process's network namespace, and the files from which they are set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelSettings {
    /// Values by sysctl name: those of the catalogue ([`super::catalogue`]), and all others that a file sets.
    pub values: BTreeMap<String, KernelSetting>,
    /// Names of this kernel below `net`, without the settings of single interfaces.
    pub names: Fact<BTreeSet<String>>,
    /// Settings files that were found, readable or not, in no order.
    pub files: Vec<SettingsFile>,
    /// Directories of settings files that could not be listed, each with the reason.
    pub directories_unread: Vec<(String, Fact<()>)>,
    /// Settings from the kernel command line.
    pub command_line: Fact<Vec<SettingAssignment>>,
    /// True when systemd started this host, and so its systemd-sysctl reads the files at boot.
    pub systemd: Fact<bool>,
}

/// Present value of one setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelSetting {
    /// Value, with one blank between numbers.
    pub value: Fact<String>,
    /// Write access of this process.
    pub writability: SettingWritability,
}

/// Write access of this process to a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SettingWritability {
    /// Not examined.
    #[default]
    Unknown,
    /// Writable.
    Possible,
    /// Writable for root.
    NeedsPrivilege,
    /// Not writable here even for root, with the reason.
    Impossible(String),
}

/// Settings file.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingsFile {
    /// Path of the file.
    pub path: String,
    /// Target, if it is a symbolic link.
    pub leads_to: Option<String>,
    /// True when the file was written after the last boot (by its change time).
    pub changed_since_boot: Fact<bool>,
    /// Contents.
    pub content: Fact<SettingsContent>,
}

/// Contents of a settings file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsContent {
    /// Lines that set something.
    pub assignments: Vec<SettingAssignment>,
    /// Lines that could not be parsed.
    pub nonsense: Vec<UnparsedLine>,
}

impl SettingsFile {
    /// Creates a file with this text.
    #[must_use]
    pub fn parsed(path: impl Into<String>, text: &str) -> Self {
        let (assignments, nonsense) = syntax::parse(text);
        Self {
            path: path.into(),
            leads_to: None,
            changed_since_boot: Fact::absent("the time was not read"),
            content: Fact::Known(SettingsContent { assignments, nonsense }),
        }
    }
}

impl KernelSettings {
    /// Value of a setting, where it is known.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.values.get(key)?.value.known().map(String::as_str)
    }

    /// Value of a setting that is one number.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<i64> {
        self.value(key)?.parse().ok()
    }

    /// Numbers of a setting that has several.
    #[must_use]
    pub fn numbers(&self, key: &str) -> Option<Vec<i64>> {
        numbers(self.value(key)?)
    }

    /// Read order at boot: that of systemd-sysctl, unless it is known that systemd did not start this host.
    #[must_use]
    pub fn order_at_boot(&self) -> ReadOrder {
        if self.systemd.known() == Some(&false) { ReadOrder::Procps } else { ReadOrder::Systemd }
    }

    /// Lists every setting and the known facts of its files, by name.
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

/// Parses numbers with blanks between; `None` when one is not a number.
#[must_use]
pub fn numbers(value: &str) -> Option<Vec<i64>> {
    value.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
}
