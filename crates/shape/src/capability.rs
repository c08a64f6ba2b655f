//! What a kernel has, found out by trying, and which back end that allows.

mod choice;
mod probes;

use std::collections::BTreeMap;

pub use self::choice::{Choice, Rejected, choose};
pub use self::probes::{Probe, probes};

/// Something that a kernel has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// A kind of queueing discipline.
    Discipline(&'static str),
    /// A kind of filter.
    Filter(&'static str),
    /// A kind of action.
    Action(&'static str),
    /// Intermediate devices (`ifb`).
    IntermediateDevice,
}

impl Feature {
    /// As a phrase: "the queueing discipline cake".
    #[must_use]
    pub fn phrase(self) -> String {
        match self {
            Self::Discipline(kind) => format!("the queueing discipline {kind}"),
            Self::Filter(kind) => format!("the filter {kind}"),
            Self::Action(kind) => format!("the action {kind}"),
            Self::IntermediateDevice => "intermediate devices (ifb)".to_owned(),
        }
    }
}

/// What a trial of a feature said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It works.
    Present,
    /// The kernel does not know it: in its own words.
    Absent(String),
    /// It was refused for another reason (rights, or a `tc` that does not know it): in its own words.
    Refused(String),
}

/// What trials in a scratch namespace found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    found: BTreeMap<Feature, Support>,
    /// `uname -r`: shown, never decided by.
    pub kernel: Option<String>,
}

impl Capabilities {
    /// Nothing tried yet.
    #[must_use]
    pub fn new(kernel: Option<String>) -> Self {
        Self { found: BTreeMap::new(), kernel }
    }

    /// A kernel that has everything, for scripts that are written for another machine.
    #[must_use]
    pub fn everything() -> Self {
        let mut all = Self::default();
        for probe in probes() {
            all.record(probe.feature, Support::Present);
        }
        all
    }

    /// What a trial of a feature found. Some have several trials: one that works is enough, else the first counts.
    pub fn record(&mut self, feature: Feature, support: Support) {
        let entry = self.found.entry(feature).or_insert_with(|| support.clone());
        if support == Support::Present {
            *entry = support;
        }
    }

    /// Forgets what was found of a feature and takes this instead.
    pub fn replace(&mut self, feature: Feature, support: Support) {
        self.found.insert(feature, support);
    }

    /// Whether it was tried and works.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        self.found.get(&feature) == Some(&Support::Present)
    }

    /// What was found; `None` when nobody tried.
    #[must_use]
    pub fn support(&self, feature: Feature) -> Option<&Support> {
        self.found.get(&feature)
    }

    /// Everything that was found, in a fixed order.
    pub fn all(&self) -> impl Iterator<Item = (Feature, &Support)> {
        self.found.iter().map(|(feature, support)| (*feature, support))
    }

    /// Why it cannot be used, as a phrase; `None` when it can.
    #[must_use]
    pub fn lacks(&self, feature: Feature) -> Option<String> {
        let phrase = feature.phrase();
        match self.found.get(&feature) {
            Some(Support::Present) => None,
            Some(Support::Absent(said)) => Some(format!("this kernel lacks {phrase} ({said})")),
            Some(Support::Refused(said)) => Some(format!("{phrase} could not be tried ({said})")),
            None => Some(format!("{phrase} was not tried")),
        }
    }
}
