//! What is proposed, for which end, and what is not, with the reason.

use linerate_model::change::{Change, Group, Plan};
use linerate_model::diagnosis::{Cause, Place};
use linerate_units::WallTime;

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// The host on which linerate runs.
    Near,
    /// The other one.
    Far,
}

impl End {
    /// Its name for people and in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Near => Self::Far,
            Self::Far => Self::Near,
        }
    }
}

/// One change of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposed {
    /// Which host.
    pub end: End,
    /// The change: the narrowest form that can be made there.
    pub change: Change,
    /// Other forms of it, any of which does the same, and other values, each of which may do as well.
    pub alternatives: Vec<Change>,
}

impl Proposed {
    /// The alternatives that are another thing to try, and not another form of the same.
    pub fn other_values(&self) -> impl Iterator<Item = &Change> {
        let value = |change: &Change| change.to.split_ascii_whitespace().next_back().map(str::to_owned);
        let own = value(&self.change);
        let is_tried = self.change.group == Group::CongestionControl;
        self.alternatives.iter().filter(move |other| is_tried && value(other) != own)
    }
}

/// Why something is not proposed, or less of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule that has looked; `None` where none was asked.
    pub rule: Option<&'static str>,
    /// The host that it is about; `None` for both.
    pub end: Option<End>,
    /// The cause that it is about.
    pub cause: Option<Cause>,
    /// The reason, and what could be done instead.
    pub text: String,
}

/// What a rule answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Change this.
    Change(Box<Proposed>),
    /// Do not, or not as far as it would take.
    Refusal(Refusal),
}

/// Everything that is proposed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// What limits, where it was measured.
    pub cause: Option<Cause>,
    /// In the order in which groups are to be tried, and within a group in which they are to be applied.
    pub changes: Vec<Proposed>,
    /// What is not proposed, and why. Never empty when there are no changes.
    pub refusals: Vec<Refusal>,
}

impl Proposal {
    /// Whether nothing is to be changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Whether the changes live with a cause that is on the path, instead of removing it. Whoever looks after the path
    /// can do better.
    #[must_use]
    pub fn lives_with_the_path(&self) -> bool {
        !self.is_empty() && self.cause.is_some_and(|cause| cause.place() == Place::Network)
    }

    /// The groups that have changes, in the order in which they are to be tried.
    #[must_use]
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = self.changes.iter().map(|proposed| proposed.change.group).collect();
        groups.dedup();
        groups
    }

    /// The changes of one host, of one group or of all.
    #[must_use]
    pub fn of(&self, end: End, group: Option<Group>) -> Vec<&Change> {
        let wanted =
            |proposed: &&Proposed| proposed.end == end && group.is_none_or(|group| proposed.change.group == group);
        self.changes.iter().filter(wanted).map(|proposed| &proposed.change).collect()
    }

    /// The same as a plan for that host; without changes where there is nothing to do.
    #[must_use]
    pub fn plan(&self, end: End, group: Option<Group>, made_at: WallTime) -> Plan {
        Plan { made_at, changes: self.of(end, group).into_iter().cloned().collect() }
    }
}
