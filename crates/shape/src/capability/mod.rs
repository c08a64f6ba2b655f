//! Kernel capabilities from probes, and the choice of a back end.

mod batch;
mod choice;
mod probes;

use std::collections::BTreeMap;

pub use self::batch::ProbeBatch;
pub use self::choice::{BackEndRejection, ChosenBackEnd, check_request, choose};
pub use self::probes::{FeatureProbe, probes};

/// Kernel feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelFeature {
    /// A kind of queueing discipline.
    Discipline(&'static str),
    /// A kind of filter.
    Filter(&'static str),
    /// A kind of action.
    Action(&'static str),
    /// Intermediate devices (`ifb`).
    IntermediateDevice,
}

impl KernelFeature {
    /// Phrase such as "the queueing discipline cake".
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

/// Result of a feature probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeatureSupport {
    /// Supported.
    Present,
    /// Unknown to the kernel: error text.
    Absent(String),
    /// Refused for another reason (privilege, or unknown to `tc`): error text.
    Refused(String),
}

/// Results of feature probes in a scratch namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelCapabilities {
    found: BTreeMap<KernelFeature, FeatureSupport>,
    /// `uname -r`: for display only.
    pub kernel: Option<String>,
}

impl KernelCapabilities {
    /// Creates capabilities without probes.
    #[must_use]
    pub fn new(kernel: Option<String>) -> Self {
        Self { found: BTreeMap::new(), kernel }
    }

    /// Capabilities of a kernel with every feature, for scripts for another machine.
    #[must_use]
    pub fn all_features() -> Self {
        let mut all = Self::default();
        for probe in probes() {
            all.record(probe.feature, FeatureSupport::Present);
        }
        all
    }

    /// Records a probe's result. Of several probes of a feature one success suffices, else the first counts.
    pub fn record(&mut self, feature: KernelFeature, support: FeatureSupport) {
        let entry = self.found.entry(feature).or_insert_with(|| support.clone());
        if support == FeatureSupport::Present {
            *entry = support;
        }
    }

    /// Replaces the result of a feature.
    pub fn replace(&mut self, feature: KernelFeature, support: FeatureSupport) {
        self.found.insert(feature, support);
    }

    /// True when the feature was probed and works.
    #[must_use]
    pub fn has(&self, feature: KernelFeature) -> bool {
        self.found.get(&feature) == Some(&FeatureSupport::Present)
    }

    /// Result of a feature; `None` when not probed.
    #[must_use]
    pub fn support(&self, feature: KernelFeature) -> Option<&FeatureSupport> {
        self.found.get(&feature)
    }

    /// All results, in a fixed order.
    pub fn all(&self) -> impl Iterator<Item = (KernelFeature, &FeatureSupport)> {
        self.found.iter().map(|(feature, support)| (*feature, support))
    }

    /// Reason why a feature is unusable, as a phrase; `None` when usable.
    #[must_use]
    pub fn lacks(&self, feature: KernelFeature) -> Option<String> {
        let phrase = feature.phrase();
        match self.found.get(&feature) {
            Some(FeatureSupport::Present) => None,
            Some(FeatureSupport::Absent(said)) => Some(format!("this kernel lacks {phrase} ({said})")),
            Some(FeatureSupport::Refused(said)) => Some(format!("{phrase} could not be probed ({said})")),
            None => Some(format!("{phrase} was not probed")),
        }
    }
}
