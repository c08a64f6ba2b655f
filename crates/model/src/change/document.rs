//! Changes to a host in files: the plan that `linerate tune` writes and reads, and the entries of journals.
//!
//! Unknown keys are rejected: a plan with a key that this version does not support would be applied without it.

use core::fmt;
use core::time::Duration;

use linerate_units::WallTime;
use serde::{Deserialize, Serialize};

use crate::change::{ChangePlan, HostChange};
use linerate_units::serde::nanoseconds;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Plan of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlanDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Creation time in nanoseconds since 1970-01-01 00:00 UTC.
    pub made_at_unix_ns: u64,
    /// Changes in the order of application.
    pub changes: Vec<HostChange>,
}

/// Schema version that this version of linerate does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsupportedPlan(pub u32);

impl fmt::Display for UnsupportedPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unsupported plan schema {} (expected {SCHEMA})", self.0)
    }
}

impl core::error::Error for UnsupportedPlan {}

impl From<&ChangePlan> for PlanDocument {
    fn from(plan: &ChangePlan) -> Self {
        Self {
            schema: SCHEMA,
            made_at_unix_ns: nanoseconds(plan.made_at.since_unix_epoch()),
            changes: plan.changes.clone(),
        }
    }
}

impl TryFrom<&PlanDocument> for ChangePlan {
    type Error = UnsupportedPlan;

    fn try_from(document: &PlanDocument) -> Result<Self, UnsupportedPlan> {
        if document.schema != SCHEMA {
            return Err(UnsupportedPlan(document.schema));
        }
        let made_at = WallTime::from_unix(Duration::from_nanos(document.made_at_unix_ns));
        Ok(Self { made_at, changes: document.changes.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{ChangeGroup, ChangeReason, ChangeTarget, DeviceAttribute, EffectTiming, LinkAttribute};

    fn change(target: ChangeTarget) -> HostChange {
        HostChange {
            target,
            from: None,
            to: "1".into(),
            group: ChangeGroup::Device,
            takes_effect: EffectTiming::LinkBounce,
            reason: ChangeReason { text: "why".into(), evidence: vec!["3 drops".into()], ..ChangeReason::default() },
        }
    }

    #[test]
    fn a_plan_survives_a_round_trip() {
        let interface = || "eth0".to_owned();
        let mut changes = vec![
            change(ChangeTarget::Setting { key: "net.ipv4.tcp_sack".into() }),
            change(ChangeTarget::Offload { interface: interface(), feature: "rx-gro".into() }),
            change(ChangeTarget::Queueing { interface: interface() }),
            change(ChangeTarget::TrafficControl { interface: interface() }),
            change(ChangeTarget::FirewallTable { name: "marks".into() }),
            change(ChangeTarget::Route { destination: "default".into() }),
            change(ChangeTarget::File { path: "/sys/x".into() }),
        ];
        changes.extend(
            LinkAttribute::ALL
                .iter()
                .map(|attribute| change(ChangeTarget::Link { interface: interface(), attribute: *attribute })),
        );
        changes.extend(
            DeviceAttribute::ALL
                .iter()
                .map(|attribute| change(ChangeTarget::Device { interface: interface(), attribute: *attribute })),
        );
        let plan = ChangePlan { made_at: WallTime::from_unix(Duration::from_secs(5)), changes };
        let text = serde_json::to_string(&PlanDocument::from(&plan)).expect("JSON");
        let read: PlanDocument = serde_json::from_str(&text).expect("a plan");
        assert_eq!(ChangePlan::try_from(&read), Ok(plan));
        let newer = PlanDocument { schema: 2, ..read };
        assert_eq!(ChangePlan::try_from(&newer), Err(UnsupportedPlan(2)));
        let odd = text.replacen("\"device\"", "\"luck\"", 1);
        let refused = serde_json::from_str::<PlanDocument>(&odd).expect_err("unknown group").to_string();
        assert!(refused.contains("luck") && refused.contains("buffers"), "{refused}");
        assert!(serde_json::from_str::<PlanDocument>(&text.replace("\"from\"", "\"form\"")).is_err());
    }
}
