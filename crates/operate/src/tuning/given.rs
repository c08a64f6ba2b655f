//! Tuning for a path that is given by its rate and round trip: nothing is measured.

use std::collections::BTreeSet;
use std::time::Duration;

use linerate_change::{ChangeStore, KeptChanges, RollbackGuard};
use linerate_documents::{nanoseconds, tune};
use linerate_model::change::{ChangeGroup, ChangePlan};
use linerate_model::report::TestTermination;
use linerate_rules::tuning::{TuningGoal, TuningHost, TuningInputs, TuningProposal, propose};
use linerate_sys::facts;
use linerate_sys::host_access::RealHost;
use linerate_sys::process::own_program;
use linerate_units::{BitRate, CompactCollect, Port, StreamCount};

use super::near::NearHost;
use super::tuned_host::{TunedHost, TunedHostError};
use super::{document, keeping};
use crate::diagnose::RunStart;

/// Beyond the time for the confirmation, the watchdog leaves this much.
const WATCHDOG_MARGIN: Duration = Duration::from_secs(30);

/// Path and purpose of the hosts.
#[derive(Clone, Copy, Debug)]
pub struct GivenPath {
    /// Purpose of the hosts.
    pub goal: TuningGoal,
    /// Connections that are expected.
    pub flows: Option<StreamCount>,
    /// Rate of the path.
    pub rate: BitRate,
    /// Round trip without load.
    pub round_trip: Duration,
}

impl GivenPath {
    /// Computes what this host needs for it.
    pub fn propose(&self) -> TuningProposal {
        let near = TuningHost::from_facts(&facts::read());
        let mut inputs = TuningInputs::from_rate_and_rtt(self.goal, near, None, self.rate, self.round_trip);
        inputs.flows = self.flows;
        propose(&inputs)
    }
}

/// Presenter of a plan that is tried without measurements.
pub trait Confirmation {
    /// Reports a target that was, or could not be, rolled back.
    fn note(&mut self, text: &str);
    /// Asks whether to keep what is in force now; `false` after this time.
    fn confirms(&mut self, within: Duration) -> bool;
}

/// The plan as a document.
pub fn planned(
    path: &GivenPath,
    port: Port,
    begun: &RunStart,
    proposal: &TuningProposal,
    kept: &[tune::KeptSet],
) -> tune::TuneDocument {
    let outcome = match (proposal.is_empty(), kept.is_empty()) {
        (true, _) => tune::TuneOutcome::NothingToChange,
        (false, true) => tune::TuneOutcome::Planned,
        (false, false) => tune::TuneOutcome::Kept,
    };
    tune::TuneDocument {
        schema: tune::SCHEMA,
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: String::new(),
        port: port.get(),
        started_at_unix_ns: nanoseconds(begun.at.since_unix_epoch()),
        duration_ns: nanoseconds(begun.lasted()),
        termination: TestTermination::Complete,
        role: path.goal,
        transfer: Vec::new(),
        seed: None,
        outcome,
        sentence: "Computed for a path that was given, not measured.".to_owned(),
        before: None,
        rounds: vec![document::planned(proposal)],
        after: None,
        effects: Vec::new(),
        contributions: Vec::new(),
        kept: kept.to_vec(),
        unknown: Vec::new(),
        notes: Vec::new(),
    }
}

/// Applies a plan to this host; `None` when it was not confirmed within this time, and rolled back.
pub fn apply(
    plan: &ChangePlan,
    within: Duration,
    until_reboot: bool,
    guide: &mut dyn Confirmation,
) -> Result<Option<KeptChanges>, TunedHostError> {
    let (store, host) = (ChangeStore::from_environment()?, RealHost);
    let mut near = NearHost::new(&store, &host, RollbackGuard::Program(own_program()?));
    let left = near.begin(plan, "linerate tune, computed for a given path", within + WATCHDOG_MARGIN)?;
    for text in &left {
        guide.note(text);
    }
    let groups: BTreeSet<ChangeGroup> = plan.changes.iter().map(|change| change.group).collect_compactly();
    for group in groups {
        near.apply(group)?;
    }
    if !guide.confirms(within) {
        let left = near.roll_back("not confirmed")?;
        for text in &left {
            guide.note(text);
        }
        return Ok(None);
    }
    near.keep(&keeping::keep(plan, "computed, not measured", until_reboot)).map(Some)
}
