//! Checks which back ends work on this host, and what the others lack. Everything that can be tried is tried: no
//! version or system name shows what a container, a filter or an administrator allows.

mod namespaces;
mod user_mode;

use serde::Serialize;

/// Result of checking this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostCheck {
    /// A kernel of the lab's own as an ordinary process, in virtual time.
    pub user_mode_linux: BackEndReport,
    /// Namespaces of this host's kernel, in real time.
    pub namespaces: BackEndReport,
}

/// Result of checking a back end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackEndReport {
    /// True when paths work with it: all required items are available.
    pub works: bool,
    /// Requirements, one by one.
    pub items: Vec<CheckItem>,
}

/// A requirement of a back end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckItem {
    /// Short description.
    pub name: &'static str,
    /// True when the back end does not work without it.
    pub required: bool,
    /// Result of the check.
    pub outcome: CheckOutcome,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    fn works(with: impl Into<String>) -> Self {
        Self::Works { with: with.into() }
    }

    fn missing(what: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), way_out: way_out.into() }
    }

    /// True when it works.
    #[must_use]
    pub fn is_working(&self) -> bool {
        matches!(self, Self::Works { .. })
    }
}

impl CheckItem {
    const fn required(name: &'static str, outcome: CheckOutcome) -> Self {
        Self { name, required: true, outcome }
    }

    const fn useful(name: &'static str, outcome: CheckOutcome) -> Self {
        Self { name, required: false, outcome }
    }
}

impl BackEndReport {
    fn of(items: Vec<CheckItem>) -> Self {
        Self { works: items.iter().all(|item| item.outcome.is_working() || !item.required), items }
    }
}

/// Runs all checks. Takes about a tenth of a second; temporary objects (a network namespace, a pair of devices) are
/// gone afterwards.
#[must_use]
pub fn check() -> HostCheck {
    HostCheck { user_mode_linux: user_mode::report(), namespaces: namespaces::report() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing() -> CheckOutcome {
        CheckOutcome::missing("x", "y")
    }

    #[test]
    fn only_required_items_keep_a_back_end_from_working() {
        let fine = CheckItem::required("a", CheckOutcome::works(""));
        assert!(BackEndReport::of(vec![fine.clone(), CheckItem::useful("b", missing())]).works);
        assert!(!BackEndReport::of(vec![fine.clone(), CheckItem::required("b", missing())]).works);
        let not_tried = CheckOutcome::NotTried { because: "b".into() };
        assert!(!BackEndReport::of(vec![fine, CheckItem::required("c", not_tried)]).works);
    }

    #[test]
    fn every_missing_item_has_a_remedy() {
        let report = check();
        for item in report.user_mode_linux.items.iter().chain(&report.namespaces.items) {
            if let CheckOutcome::Missing { what, way_out } = &item.outcome {
                assert!(!what.is_empty() && !way_out.is_empty(), "{item:?}");
            }
        }
        let text = serde_json::to_string(&report).expect("plain data");
        assert!(text.contains("\"user_mode_linux\":{\"works\":"), "{text}");
    }
}
