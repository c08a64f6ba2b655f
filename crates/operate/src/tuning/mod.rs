//! Tuning of one host or both ends of a path: tries the change that the limit calls for, and keeps it only if the
//! measurements confirm it.

pub mod agent;
pub mod document;
mod far;
pub mod given;
mod in_force;
mod keeping;
mod measure;
mod near;
mod protocol;
#[cfg(test)]
mod scratch;
pub mod session;
mod tuned_host;

use linerate_change::{ChangeStore, KeepOptions, KeptChanges, RollbackGuard};
use linerate_model::change::ChangePlan;
use linerate_rules::judge::TrialDecision;
use linerate_rules::tuning::HostEnd;
use linerate_sys::host_access::RealHost;
use linerate_sys::process::own_program;
use linerate_sys::signals::InterruptSignals;

pub use in_force::{ChangesInForce, changes_in_force};
pub use tuned_host::TunedHostError;

use far::FarHost;
use near::NearHost;
use session::{TuningEnd, TuningFailure, TuningInterface, TuningOutcome, TuningSession, TuningSettings};
use tuned_host::TunedHost;

use crate::diagnose::RunStart;
use crate::far::FarAddress;

/// Access to the hosts, and the limits of what is changed there.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// Address of the far end's host; `None` when only this one can be changed.
    pub far: Option<FarAddress>,
    /// linerate over there, with what precedes it on the command line.
    pub far_program: String,
    /// Ends with the plan.
    pub dry_run: bool,
    /// Keeps changes until the next boot only.
    pub until_reboot: bool,
}

/// A session that came to its end, and what stays.
pub struct CompletedTuning {
    /// Outcome of the session.
    pub outcome: TuningOutcome,
    /// Kept changes of each host.
    pub kept: Vec<(HostEnd, KeptChanges)>,
}

/// Opens both ends, runs the session, and keeps what has earned it.
pub fn carry_out(
    how: &HostOptions,
    settings: &TuningSettings,
    guide: &mut dyn TuningInterface,
    stop: InterruptSignals,
) -> Result<CompletedTuning, TuningFailure> {
    let store = ChangeStore::from_environment().map_err(TunedHostError::from)?;
    let host = RealHost;
    let program = own_program().map_err(TunedHostError::from)?;
    let mut near = NearHost::new(&store, &host, RollbackGuard::Program(program));
    let mut far = match &how.far {
        Some(address) => Some(start_far(address, &how.far_program, stop)?),
        None => None,
    };
    let far: Option<&mut dyn TunedHost> = far.as_mut().map(|far| far as &mut dyn TunedHost);
    let mut session = TuningSession::new(settings, &mut near, far, guide, stop, how.dry_run);
    let mut outcome = session.run();
    let mut kept = Vec::new();
    if outcome.ended == TuningEnd::Kept {
        let keep = |end| keep_of(&outcome, end, how);
        match session.keep(&keep) {
            Ok(sets) => kept = sets,
            Err(failure) => {
                outcome.left = session.roll_back("it could not be kept");
                outcome.ended = TuningEnd::BrokenOff;
                outcome.failure = Some(failure);
            }
        }
    }
    Ok(CompletedTuning { outcome, kept })
}

/// Starts the far host; an interruption of that is none of its errors.
fn start_far(address: &FarAddress, program: &str, stop: InterruptSignals) -> Result<FarHost, TuningFailure> {
    FarHost::start(address, program).map_err(|error| match stop.pending() {
        Some(signal) => TuningFailure::of_signal(signal),
        None => error.into(),
    })
}

/// Options with which the changes in effect at this end are kept.
fn keep_of(outcome: &TuningOutcome, end: HostEnd, how: &HostOptions) -> KeepOptions {
    let tried = outcome.rounds.iter().flat_map(|round| &round.tried);
    let kept: Vec<_> = tried.filter(|tried| tried.judgement.decision == TrialDecision::Keep).collect();
    let sentences: Vec<&str> = kept.iter().map(|tried| tried.judgement.sentence.as_str()).collect();
    let changes = kept.iter().flat_map(|tried| &tried.changes).filter(|one| one.end == end);
    let made_at = linerate_sys::clock::realtime_now();
    let plan = ChangePlan { made_at, changes: changes.map(|one| one.change.clone()).collect() };
    let keep = keeping::keep(&plan, sentences.join(" ").trim_end_matches('.'), how.until_reboot);
    // The files that were looked at are this host's.
    if end == HostEnd::Far { KeepOptions { warnings: Vec::new(), ..keep } } else { keep }
}

/// Everything that was proposed for an end, the latest last.
pub fn plan_of(outcome: &TuningOutcome, end: HostEnd, begun: &RunStart) -> ChangePlan {
    let changes = outcome.rounds.iter().flat_map(|round| round.proposal.changes_of(end, None)).cloned();
    ChangePlan { made_at: begun.at, changes: changes.collect() }
}

/// Notes shown below the result.
pub fn notes(done: &CompletedTuning, how: &HostOptions, has_no_terminal: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let last = done.outcome.rounds.last();
    let far = last.is_some_and(|round| !round.proposal.changes_of(HostEnd::Far, None).is_empty());
    if done.outcome.ended == TuningEnd::Planned && far && how.far.is_none() {
        notes.push(
            "Part of the plan is for the far host, which linerate changes only over your own ssh: --far ssh:USER@HOST, or run \
             `linerate tune` there."
                .to_owned(),
        );
    }
    if has_no_terminal {
        notes.push("Nothing was touched, as there was no terminal to ask at: --yes goes on without asking.".to_owned());
    }
    notes
}
