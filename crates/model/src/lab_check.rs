//! Requirements of the lab's back ends, each tried on a host.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Result of checking a back end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackEndReport {
    /// True when paths work with it: all required items are available.
    pub works: bool,
    /// Requirements, one by one.
    pub items: Vec<CheckItem>,
}

/// A requirement of a back end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckItem {
    /// Short description.
    pub name: Cow<'static, str>,
    /// True when the back end does not work without it.
    pub required: bool,
    /// Result of the check.
    pub outcome: CheckOutcome,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// Works.
    Works {
        /// Details for people: how, where, or how much.
        with: String,
    },
    /// Missing or refused.
    Missing {
        /// Missing item, with the error of the kernel or the program.
        what: String,
        /// Remedy.
        way_out: String,
    },
    /// Not tried, as a prerequisite is missing.
    NotTried {
        /// The missing prerequisite.
        because: String,
    },
}

impl CheckOutcome {
    /// A requirement that works, with details for people.
    #[must_use]
    pub fn works(with: impl Into<String>) -> Self {
        Self::Works { with: with.into() }
    }

    /// A missing requirement, with its remedy.
    #[must_use]
    pub fn missing(what: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), way_out: way_out.into() }
    }

    /// True when it works.
    #[must_use]
    pub fn is_working(&self) -> bool {
        matches!(self, Self::Works { .. })
    }
}

impl CheckItem {
    /// A requirement without which the back end does not work.
    #[must_use]
    pub const fn required(name: &'static str, outcome: CheckOutcome) -> Self {
        Self { name: Cow::Borrowed(name), required: true, outcome }
    }

    /// A requirement of some paths only.
    #[must_use]
    pub const fn useful(name: &'static str, outcome: CheckOutcome) -> Self {
        Self { name: Cow::Borrowed(name), required: false, outcome }
    }
}

impl BackEndReport {
    /// Report of these requirements.
    #[must_use]
    pub fn of(items: Vec<CheckItem>) -> Self {
        Self { works: items.iter().all(|item| item.outcome.is_working() || !item.required), items }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_required_items_keep_a_back_end_from_working() {
        let missing = || CheckOutcome::missing("x", "y");
        let fine = CheckItem::required("a", CheckOutcome::works(""));
        assert!(BackEndReport::of(vec![fine.clone(), CheckItem::useful("b", missing())]).works);
        assert!(!BackEndReport::of(vec![fine.clone(), CheckItem::required("b", missing())]).works);
        let not_tried = CheckOutcome::NotTried { because: "b".into() };
        assert!(!BackEndReport::of(vec![fine, CheckItem::required("c", not_tried)]).works);
    }
}
