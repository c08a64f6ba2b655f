//! Proposed changes per host, and refusals with their reasons.

use linerate_model::change::{ChangeGroup, ChangePlan, HostChange};
use linerate_model::diagnosis::{Cause, CauseLocation, GoodputEstimate};
use linerate_units::WallTime;
use serde::{Deserialize, Serialize};

/// Near or far host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HostEnd {
    /// Host on which linerate runs.
    Near,
    /// Other host.
    Far,
}

impl HostEnd {
    /// Returns the name in texts and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }

    /// Returns the other host.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Near => Self::Far,
            Self::Far => Self::Near,
        }
    }
}

/// Change proposed for one host.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedHostChange {
    /// Host to change.
    pub end: HostEnd,
    /// Change in its narrowest possible form.
    pub change: HostChange,
    /// Other forms with the same effect, and other values that may do as well.
    pub alternatives: Vec<HostChange>,
}

impl ProposedHostChange {
    /// Returns the alternatives with another value, not those in another form.
    pub fn other_values(&self) -> impl Iterator<Item = &HostChange> {
        let value = |change: &HostChange| change.to.split_ascii_whitespace().next_back().map(str::to_owned);
        let own = value(&self.change);
        let is_tried = self.change.group == ChangeGroup::CongestionControl;
        self.alternatives.iter().filter(move |other| is_tried && value(other) != own)
    }
}

/// Reason why a change is not proposed, or only in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuningRefusal {
    /// Rule that refused; `None` where no rule applied.
    pub rule: Option<&'static str>,
    /// Host concerned; `None` for both.
    pub end: Option<HostEnd>,
    /// Cause concerned.
    pub cause: Option<Cause>,
    /// Reason, and the alternative.
    pub text: String,
}

/// Answer of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleAnswer {
    /// Proposed change.
    Change(Box<ProposedHostChange>),
    /// No change, or less than needed.
    Refusal(TuningRefusal),
}

/// Proposed changes and refusals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TuningProposal {
    /// Measured cause to remove.
    pub cause: Option<Cause>,
    /// Goodput expected without the cause; `None` where it is unknown.
    pub expected: Option<GoodputEstimate>,
    /// True when it has the changes for several causes, which may gain only together.
    pub is_combination: bool,
    /// Changes, in the order in which groups are tried, and applied within a group.
    pub changes: Vec<ProposedHostChange>,
    /// Refusals with reasons. Never empty when there are no changes.
    pub refusals: Vec<TuningRefusal>,
}

impl TuningProposal {
    /// True when there is nothing to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// True when the changes work around a cause on the path, which only the path's operator can remove.
    #[must_use]
    pub fn lives_with_the_path(&self) -> bool {
        !self.is_empty() && self.cause.is_some_and(|cause| cause.location() == CauseLocation::Network)
    }

    /// Returns the groups with changes, in the order of their trials.
    #[must_use]
    pub fn groups(&self) -> Vec<ChangeGroup> {
        let mut groups: Vec<ChangeGroup> = self.changes.iter().map(|proposed| proposed.change.group).collect();
        groups.dedup();
        groups
    }

    /// Returns the changes of one host, of one group or of all.
    #[must_use]
    pub fn changes_of(&self, end: HostEnd, group: Option<ChangeGroup>) -> Vec<&HostChange> {
        let wanted = |proposed: &&ProposedHostChange| {
            proposed.end == end && group.is_none_or(|group| proposed.change.group == group)
        };
        self.changes.iter().filter(wanted).map(|proposed| &proposed.change).collect()
    }

    /// Returns the same changes as a plan; empty where there is nothing to do.
    #[must_use]
    pub fn plan(&self, end: HostEnd, group: Option<ChangeGroup>, made_at: WallTime) -> ChangePlan {
        ChangePlan { made_at, changes: self.changes_of(end, group).into_iter().cloned().collect() }
    }
}
