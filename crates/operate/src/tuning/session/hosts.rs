//! Changes at both ends of a session: plan, apply, roll back and keep.

use std::time::Duration;

use linerate_change::{KeepOptions, KeptChanges};
use linerate_model::change::{ChangeGroup, ChangePlan};
use linerate_rules::tuning::{HostEnd, TuningProposal};
use linerate_sys::clock;

use super::super::tuned_host::{TunedHost, TunedHostError};
use super::{TuningEvent, TuningFailure, TuningSession};

/// Watchdog time in addition to the transfers.
const PATIENCE: Duration = Duration::from_secs(120);

impl TuningSession<'_> {
    /// Records a group's changes at the accessible ends.
    pub(super) fn plan(
        &mut self,
        group: ChangeGroup,
        proposal: &TuningProposal,
        each: Duration,
    ) -> Result<(), TuningFailure> {
        let made_at = clock::realtime_now();
        let mut notes = Vec::new();
        self.ends = [HostEnd::Near, HostEnd::Far]
            .into_iter()
            .filter(|end| !proposal.changes_of(*end, Some(group)).is_empty())
            .collect();
        for (end, party) in self.parties() {
            let plan: ChangePlan = proposal.plan(end, Some(group), made_at);
            if plan.changes.is_empty() {
                continue;
            }
            if party.is_on_trial() {
                party.extend(&plan)?;
            } else {
                let left = party.begin(&plan, &format!("linerate tune: {group}"), each + PATIENCE)?;
                notes.extend(left);
            }
        }
        for note in notes {
            self.guide.event(TuningEvent::Note(note));
        }
        Ok(())
    }

    pub(super) fn parties(&mut self) -> impl Iterator<Item = (HostEnd, &mut dyn TunedHost)> {
        let near: (HostEnd, &mut dyn TunedHost) = (HostEnd::Near, &mut *self.near);
        let far = self.far.as_mut().map(|far| (HostEnd::Far, &mut **far as &mut dyn TunedHost));
        core::iter::once(near).chain(far)
    }

    /// Ends with changes on trial. An end that is lost rolls its changes back itself and is not included.
    pub(super) fn begun(&mut self) -> Vec<HostEnd> {
        self.parties().filter(|(_, party)| party.is_on_trial()).map(|(end, _)| end).collect()
    }

    /// True when all ends with changes in the current plan are on trial.
    pub(super) fn are_planned_on_trial(&mut self) -> bool {
        let begun = self.begun();
        self.ends.iter().all(|end| begun.contains(end) || (*end == HostEnd::Far && self.far.is_none()))
    }

    /// Applies a group, on the far host first, so that a failure there leaves this one unchanged.
    pub(super) fn apply(&mut self, group: ChangeGroup, each: Duration) -> Result<(), TuningFailure> {
        self.renew(each)?;
        self.touched = true;
        let wanted = self.ends.clone();
        let mut ends: Vec<_> = self.parties().filter(|(end, _)| wanted.contains(end)).collect();
        ends.reverse();
        for (_, party) in ends {
            party.apply(group).map_err(|error| {
                let failure = TuningFailure::from(error);
                TuningFailure { is_refused: !failure.needs_privilege, ..failure }
            })?;
        }
        Ok(())
    }

    pub(super) fn take_back(&mut self, group: ChangeGroup) -> Result<(), TuningFailure> {
        let mut left = Vec::new();
        let planned = self.ends.clone();
        for (_, party) in self.parties().filter(|(end, party)| planned.contains(end) && party.is_on_trial()) {
            left.extend(party.roll_back_group(group)?);
        }
        if left.is_empty() { Ok(()) } else { Err(TuningFailure::of(left.join("\n"))) }
    }

    pub(super) fn renew(&mut self, time: Duration) -> Result<(), TuningFailure> {
        for (_, party) in self.parties().filter(|(_, party)| party.is_on_trial()) {
            party.renew(time + PATIENCE)?;
        }
        Ok(())
    }

    /// Deletes the kernel's cached metrics of earlier connections to the address. Where that fails, both kinds of
    /// transfers are affected alike, and a note says so.
    pub(super) fn forget_metrics(&mut self) {
        let Some(connection) = self.connection else { return };
        let mut failed = Vec::new();
        for (end, party) in self.parties() {
            let forgotten = party.forget_metrics(if end == HostEnd::Near { connection.peer } else { connection.own });
            // Without privilege nothing is tried either.
            if let Some(error) = forgotten.err().filter(|error| !error.needs_privilege()) {
                failed.push(format!(
                    "{} host: each connection starts with what the kernel remembers of earlier ones, which could not be \
                     deleted: {error}",
                    end.name()
                ));
            }
        }
        for text in failed {
            self.note(text);
        }
    }

    /// Keeps the changes in effect, at the near end last, so that a failing or lost far end leaves nothing half done
    /// here. An end without confirmed changes keeps nothing.
    pub(crate) fn keep(
        &mut self,
        keep: &dyn Fn(HostEnd) -> KeepOptions,
    ) -> Result<Vec<(HostEnd, KeptChanges)>, TuningFailure> {
        let with_changes: Vec<HostEnd> = self.in_force.iter().map(|(end, _)| *end).collect();
        let mut kept: Vec<(HostEnd, KeptChanges)> = Vec::new();
        let mut ends: Vec<_> = self.parties().collect();
        ends.reverse();
        for (end, party) in ends {
            if with_changes.contains(&end) {
                let set = party.keep(&keep(end)).map_err(|error| half_kept(&error, &kept))?;
                kept.push((end, set));
            } else if party.is_on_trial() {
                party.roll_back("not confirmed by measurement")?;
            }
        }
        kept.reverse();
        Ok(kept)
    }

    /// Rolls everything back; returns the failures.
    pub(crate) fn roll_back(&mut self, reason: &str) -> Vec<String> {
        let mut left = Vec::new();
        for (end, party) in self.parties().filter(|(_, party)| party.is_on_trial()) {
            match party.roll_back(reason) {
                Ok(one) => left.extend(one.into_iter().map(|text| format!("{} host: {text}", end.name()))),
                Err(error) => left.push(format!("{} host: {error}", end.name())),
            }
        }
        left
    }
}

/// Error of keeping, with the changes already kept at the other end, which stay until rolled back.
fn half_kept(error: &TunedHostError, kept: &[(HostEnd, KeptChanges)]) -> TuningFailure {
    let stay = |(end, set): &(HostEnd, KeptChanges)| {
        format!("the {} host has kept change set {}; roll it back there", end.name(), set.id)
    };
    let failure = TuningFailure::from(error.clone());
    let lines: Vec<String> = core::iter::once(failure.text.clone()).chain(kept.iter().map(stay)).collect();
    TuningFailure { text: lines.join("\n"), ..failure }
}
