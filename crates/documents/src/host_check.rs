//! Document of `linerate doctor --check`: requirements of this host, each tried.

use linerate_units::CompactSort;
use serde::{Deserialize, Serialize};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Requirements of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostCheckDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that checked the host.
    pub linerate_version: String,
    /// Release of the running kernel.
    pub kernel: Option<String>,
    /// Name and version of the distribution.
    pub distribution: Option<String>,
    /// True when everything works that changes need to be rolled back after every accident.
    pub can_change_safely: bool,
    /// Requirements, in the order of their groups.
    pub items: Vec<CheckedItem>,
}

/// A requirement, and the result of trying it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckedItem {
    /// Group.
    pub group: CheckGroup,
    /// Short description.
    pub name: String,
    /// True when safe changes need it.
    pub needed: bool,
    /// True when it works.
    pub works: bool,
    /// Details for people; the error of the kernel or the program where it does not work.
    pub detail: String,
    /// Consequence where it does not work.
    pub consequence: Option<String>,
    /// Remedy where it does not work, if there is one.
    pub remedy: Option<String>,
}

/// Group of requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckGroup {
    /// Changes to this host, and their rollback.
    Changes,
    /// Queueing disciplines, filters, actions and devices.
    TrafficControl,
    /// Measurements.
    Measurement,
    /// Programs and files that some commands use.
    Commands,
}

impl CheckGroup {
    /// Title of the group.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Changes => "Changes and their rollback",
            Self::TrafficControl => "Traffic control",
            Self::Measurement => "Measurement",
            Self::Commands => "Other commands",
        }
    }
}

impl CheckedItem {
    /// A requirement that works.
    #[must_use]
    pub fn working(group: CheckGroup, name: impl Into<String>, detail: impl Into<String>) -> Self {
        let (name, detail) = (name.into(), detail.into());
        Self { group, name, needed: false, works: true, detail, consequence: None, remedy: None }
    }

    /// A requirement that does not work, with the consequence.
    #[must_use]
    pub fn missing(
        group: CheckGroup,
        name: impl Into<String>,
        detail: impl Into<String>,
        consequence: impl Into<String>,
    ) -> Self {
        let consequence = Some(consequence.into());
        Self { works: false, consequence, ..Self::working(group, name, detail) }
    }

    /// The result of a trial: its text, or its error.
    #[must_use]
    pub fn tried<E: core::fmt::Display>(
        group: CheckGroup,
        name: impl Into<String>,
        trial: Result<String, E>,
        consequence: &str,
    ) -> Self {
        match trial {
            Ok(detail) => Self::working(group, name, detail),
            Err(error) => Self::missing(group, name, error.to_string(), consequence),
        }
    }

    /// Adds the remedy, if the requirement does not work.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<Option<String>>) -> Self {
        self.remedy = remedy.into().filter(|_| !self.works);
        self
    }

    /// Marks it as needed for safe changes.
    #[must_use]
    pub const fn needed(mut self) -> Self {
        self.needed = true;
        self
    }
}

impl HostCheckDocument {
    /// Composes the document; changes are safe when all needed items work.
    #[must_use]
    pub fn new(
        linerate_version: &str,
        kernel: Option<String>,
        distribution: Option<String>,
        mut items: Vec<CheckedItem>,
    ) -> Self {
        items.sort_compactly_by_key(|item| item.group);
        let can_change_safely = items.iter().all(|item| item.works || !item.needed);
        let linerate_version = linerate_version.to_owned();
        Self { schema: SCHEMA, linerate_version, kernel, distribution, can_change_safely, items }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_needed_items_decide() {
        let document = |items| HostCheckDocument::new("0", None, None, items);
        let absent = || CheckedItem::missing(CheckGroup::TrafficControl, "cake", "unknown", "no shaper with it");
        let fine = || CheckedItem::working(CheckGroup::Changes, "root", "").needed();
        assert!(document(vec![absent(), fine()]).can_change_safely);
        assert!(!document(vec![absent().needed(), fine()]).can_change_safely);
        assert_eq!(document(vec![absent(), fine()]).items[0].name, "root", "groups are in order");
    }

    #[test]
    fn a_working_item_needs_no_remedy() {
        let tried = |trial: Result<String, String>| {
            CheckedItem::tried(CheckGroup::Changes, "x", trial, "none").with_remedy("install it".to_owned())
        };
        assert_eq!(tried(Ok("well".into())).remedy, None);
        assert_eq!(tried(Err("no".into())).remedy.as_deref(), Some("install it"));
    }
}
