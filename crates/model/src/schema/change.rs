//! Changes to a host as files have them: the plan that `linerate tune` writes and reads, and what journals record.
//!
//! Unknown keys are refused: a plan with a key that this version does not know would be carried out without it.

use core::fmt;
use core::time::Duration;

use linerate_units::WallTime;
use serde::{Deserialize, Serialize};

use super::nanoseconds;
use crate::change::{Change, DeviceAttribute, Group, LinkAttribute, Plan, Reason, TakesEffect, Target};

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlanDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// When it was made: nanoseconds since 1970-01-01 00:00 UTC.
    pub made_at_unix_ns: u64,
    /// In the order in which they are to be applied.
    pub changes: Vec<ChangeDocument>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeDocument {
    /// Where.
    pub target: TargetDocument,
    /// What stands there; `null` where nothing does.
    pub from: Option<String>,
    /// What is to stand there.
    pub to: String,
    /// The group, by [`Group::name`].
    pub group: String,
    /// When it takes effect, by [`TakesEffect::name`].
    pub takes_effect: String,
    /// Why.
    pub reason: ReasonDocument,
}

/// A place on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TargetDocument {
    /// [`Target::Setting`].
    Setting {
        /// Its name.
        key: String,
    },
    /// [`Target::Link`].
    Link {
        /// The interface.
        interface: String,
        /// By [`LinkAttribute::name`].
        attribute: String,
    },
    /// [`Target::Offload`].
    Offload {
        /// The interface.
        interface: String,
        /// ethtool's name.
        feature: String,
    },
    /// [`Target::Device`].
    Device {
        /// The interface.
        interface: String,
        /// By [`DeviceAttribute::name`].
        attribute: String,
    },
    /// [`Target::Queueing`].
    Queueing {
        /// The interface.
        interface: String,
    },
    /// [`Target::TrafficControl`].
    TrafficControl {
        /// The interface.
        interface: String,
    },
    /// [`Target::Route`].
    Route {
        /// The destination.
        destination: String,
    },
    /// [`Target::File`].
    File {
        /// Its path.
        path: String,
    },
}

/// Why a change is proposed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ReasonDocument {
    /// The rule.
    pub rule: String,
    /// The reason.
    pub text: String,
    /// The formula with its inputs.
    pub arithmetic: Option<String>,
    /// What was measured.
    pub evidence: Vec<String>,
    /// What it may cost.
    pub risk: String,
}

/// A document that is no plan of this version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAPlan {
    /// Another version of the shape.
    Schema(u32),
    /// A word that this version does not know, and what it should name.
    Word(String, &'static str),
}

impl fmt::Display for NotAPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schema(found) => write!(formatter, "the plan has schema {found}, and this linerate knows {SCHEMA}"),
            Self::Word(word, what) => write!(formatter, "{word:?} is no {what} that this linerate knows"),
        }
    }
}

impl core::error::Error for NotAPlan {}

impl From<&Plan> for PlanDocument {
    fn from(plan: &Plan) -> Self {
        Self {
            schema: SCHEMA,
            made_at_unix_ns: nanoseconds(plan.made_at.since_unix_epoch()),
            changes: plan.changes.iter().map(ChangeDocument::from).collect(),
        }
    }
}

impl TryFrom<&PlanDocument> for Plan {
    type Error = NotAPlan;

    fn try_from(document: &PlanDocument) -> Result<Self, NotAPlan> {
        if document.schema != SCHEMA {
            return Err(NotAPlan::Schema(document.schema));
        }
        let changes = document.changes.iter().map(Change::try_from).collect::<Result<_, _>>()?;
        Ok(Self { made_at: WallTime::from_unix(Duration::from_nanos(document.made_at_unix_ns)), changes })
    }
}

impl From<&Change> for ChangeDocument {
    fn from(change: &Change) -> Self {
        let Reason { rule, text, arithmetic, evidence, risk } = change.reason.clone();
        Self {
            target: (&change.target).into(),
            from: change.from.clone(),
            to: change.to.clone(),
            group: change.group.name().to_owned(),
            takes_effect: change.takes_effect.name().to_owned(),
            reason: ReasonDocument { rule, text, arithmetic, evidence, risk },
        }
    }
}

impl TryFrom<&ChangeDocument> for Change {
    type Error = NotAPlan;

    fn try_from(document: &ChangeDocument) -> Result<Self, NotAPlan> {
        let ReasonDocument { rule, text, arithmetic, evidence, risk } = document.reason.clone();
        Ok(Self {
            target: (&document.target).try_into()?,
            from: document.from.clone(),
            to: document.to.clone(),
            group: known(Group::from_name(&document.group), &document.group, "group of changes")?,
            takes_effect: known(
                TakesEffect::from_name(&document.takes_effect),
                &document.takes_effect,
                "time at which a change takes effect",
            )?,
            reason: Reason { rule, text, arithmetic, evidence, risk },
        })
    }
}

impl From<&Target> for TargetDocument {
    fn from(target: &Target) -> Self {
        match target.clone() {
            Target::Setting { key } => Self::Setting { key },
            Target::Link { interface, attribute } => Self::Link { interface, attribute: attribute.name().to_owned() },
            Target::Offload { interface, feature } => Self::Offload { interface, feature },
            Target::Device { interface, attribute } => {
                Self::Device { interface, attribute: attribute.name().to_owned() }
            }
            Target::Queueing { interface } => Self::Queueing { interface },
            Target::TrafficControl { interface } => Self::TrafficControl { interface },
            Target::Route { destination } => Self::Route { destination },
            Target::File { path } => Self::File { path },
        }
    }
}

impl TryFrom<&TargetDocument> for Target {
    type Error = NotAPlan;

    fn try_from(document: &TargetDocument) -> Result<Self, NotAPlan> {
        Ok(match document.clone() {
            TargetDocument::Setting { key } => Self::Setting { key },
            TargetDocument::Link { interface, attribute } => {
                let attribute = known(LinkAttribute::from_name(&attribute), &attribute, "attribute of a link")?;
                Self::Link { interface, attribute }
            }
            TargetDocument::Offload { interface, feature } => Self::Offload { interface, feature },
            TargetDocument::Device { interface, attribute } => {
                let attribute = known(DeviceAttribute::from_name(&attribute), &attribute, "attribute of a device")?;
                Self::Device { interface, attribute }
            }
            TargetDocument::Queueing { interface } => Self::Queueing { interface },
            TargetDocument::TrafficControl { interface } => Self::TrafficControl { interface },
            TargetDocument::Route { destination } => Self::Route { destination },
            TargetDocument::File { path } => Self::File { path },
        })
    }
}

fn known<T>(found: Option<T>, word: &str, what: &'static str) -> Result<T, NotAPlan> {
    found.ok_or_else(|| NotAPlan::Word(word.to_owned(), what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(target: Target) -> Change {
        Change {
            target,
            from: None,
            to: "1".into(),
            group: Group::Device,
            takes_effect: TakesEffect::LinkBounce,
            reason: Reason { text: "why".into(), evidence: vec!["3 drops".into()], ..Reason::default() },
        }
    }

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        let interface = || "eth0".to_owned();
        let mut changes = vec![
            change(Target::Setting { key: "net.ipv4.tcp_sack".into() }),
            change(Target::Offload { interface: interface(), feature: "rx-gro".into() }),
            change(Target::Queueing { interface: interface() }),
            change(Target::TrafficControl { interface: interface() }),
            change(Target::Route { destination: "default".into() }),
            change(Target::File { path: "/sys/x".into() }),
        ];
        changes.extend(
            LinkAttribute::ALL
                .iter()
                .map(|attribute| change(Target::Link { interface: interface(), attribute: *attribute })),
        );
        changes.extend(
            DeviceAttribute::ALL
                .iter()
                .map(|attribute| change(Target::Device { interface: interface(), attribute: *attribute })),
        );
        let plan = Plan { made_at: WallTime::from_unix(Duration::from_secs(5)), changes };
        let text = serde_json::to_string(&PlanDocument::from(&plan)).expect("JSON");
        let read: PlanDocument = serde_json::from_str(&text).expect("a plan");
        assert_eq!(Plan::try_from(&read), Ok(plan));
        let newer = PlanDocument { schema: 2, ..read.clone() };
        assert_eq!(Plan::try_from(&newer), Err(NotAPlan::Schema(2)));
        let mut odd = read;
        odd.changes[0].group = "luck".into();
        assert!(Plan::try_from(&odd).expect_err("unknown").to_string().contains("\"luck\" is no group"));
        assert!(serde_json::from_str::<PlanDocument>(&text.replace("\"from\"", "\"form\"")).is_err());
    }
}
