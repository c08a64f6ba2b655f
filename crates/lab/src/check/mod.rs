//! Which back ends work on this host, and what the others lack. Everything that can be tried is tried: no version or
//! name of a system tells what a container, a filter or an administrator allows.

mod namespaces;
mod user_mode;

use serde::Serialize;

/// What there is to say of this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// A kernel of the lab's own as an ordinary process, in virtual time.
    pub user_mode_linux: BackEndReport,
    /// Namespaces of this host's kernel, in real time.
    pub namespaces: BackEndReport,
}

/// What there is to say of a back end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackEndReport {
    /// Whether paths work with it: everything that it cannot do without is there.
    pub works: bool,
    /// What it needs, one by one.
    pub items: Vec<Item>,
}

/// Something that a back end needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// What it is, in a few words.
    pub name: &'static str,
    /// Whether the back end does not work without it.
    pub required: bool,
    /// What came of looking or trying.
    pub outcome: Outcome,
}

/// What came of looking or trying.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It works.
    Works {
        /// How, where, or how much: for people.
        with: String,
    },
    /// It is missing or refused.
    Missing {
        /// What, and what the kernel or the program said.
        what: String,
        /// What to do about it.
        way_out: String,
    },
    /// It was not tried, as something before it is missing.
    NotTried {
        /// What.
        because: String,
    },
}

impl Outcome {
    fn works(with: impl Into<String>) -> Self {
        Self::Works { with: with.into() }
    }

    fn missing(what: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), way_out: way_out.into() }
    }

    /// Whether it works.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        matches!(self, Self::Works { .. })
    }
}

impl Item {
    const fn required(name: &'static str, outcome: Outcome) -> Self {
        Self { name, required: true, outcome }
    }

    const fn useful(name: &'static str, outcome: Outcome) -> Self {
        Self { name, required: false, outcome }
    }
}

impl BackEndReport {
    fn of(items: Vec<Item>) -> Self {
        Self { works: items.iter().all(|item| item.outcome.is_fine() || !item.required), items }
    }
}

/// Looks and tries. Takes about a tenth of a second; what is made on the way (a network namespace, a pair of devices) is
/// gone afterwards.
#[must_use]
pub fn check() -> Report {
    Report { user_mode_linux: user_mode::report(), namespaces: namespaces::report() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing() -> Outcome {
        Outcome::missing("x", "y")
    }

    #[test]
    fn only_what_is_required_keeps_a_back_end_from_working() {
        let fine = Item::required("a", Outcome::works(""));
        assert!(BackEndReport::of(vec![fine.clone(), Item::useful("b", missing())]).works);
        assert!(!BackEndReport::of(vec![fine.clone(), Item::required("b", missing())]).works);
        let not_tried = Outcome::NotTried { because: "b".into() };
        assert!(!BackEndReport::of(vec![fine, Item::required("c", not_tried)]).works);
    }

    #[test]
    fn every_item_that_is_missing_has_a_way_out() {
        let report = check();
        for item in report.user_mode_linux.items.iter().chain(&report.namespaces.items) {
            if let Outcome::Missing { what, way_out } = &item.outcome {
                assert!(!what.is_empty() && !way_out.is_empty(), "{item:?}");
            }
        }
        let text = serde_json::to_string(&report).expect("plain data");
        assert!(text.contains("\"user_mode_linux\":{\"works\":"), "{text}");
    }
}
