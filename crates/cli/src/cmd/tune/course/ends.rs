//! Both ends of a course: what is planned, applied, taken back and kept there.

use std::time::Duration;

use linerate_change::{Keep, Kept};
use linerate_model::change::{Group, Plan};
use linerate_rules::tuning::{End, Proposal};
use linerate_sys::clock;

use super::super::party::{Party, PartyError};
use super::{Course, CourseEvent, Failure};

/// Beyond the transfers themselves, the watchdog leaves this much time.
const PATIENCE: Duration = Duration::from_secs(120);

impl Course<'_> {
    /// Records a group's changes at the ends that can be changed.
    pub(super) fn plan(&mut self, group: Group, proposal: &Proposal, each: Duration) -> Result<(), Failure> {
        let made_at = clock::realtime_now();
        let mut notes = Vec::new();
        self.ends =
            [End::Near, End::Far].into_iter().filter(|end| !proposal.of(*end, Some(group)).is_empty()).collect();
        for (end, party) in self.parties() {
            let plan: Plan = proposal.plan(end, Some(group), made_at);
            if plan.changes.is_empty() {
                continue;
            }
            if party.has_begun() {
                party.extend(&plan)?;
            } else {
                let left = party.begin(&plan, &format!("linerate tune: {group}"), each + PATIENCE)?;
                notes.extend(left);
            }
        }
        for note in notes {
            self.guide.event(CourseEvent::Note(note));
        }
        Ok(())
    }

    pub(super) fn parties(&mut self) -> impl Iterator<Item = (End, &mut dyn Party)> {
        let near: (End, &mut dyn Party) = (End::Near, &mut *self.near);
        let far = self.far.as_mut().map(|far| (End::Far, &mut **far as &mut dyn Party));
        core::iter::once(near).chain(far)
    }

    /// The ends at which changes are being tried. One that is lost takes its changes back itself, and is not among them any
    /// more.
    pub(super) fn begun(&mut self) -> Vec<End> {
        self.parties().filter(|(_, party)| party.has_begun()).map(|(end, _)| end).collect()
    }

    /// The far host first: what fails there has not touched this one.
    pub(super) fn apply(&mut self, group: Group, each: Duration) -> Result<(), Failure> {
        self.renew(each)?;
        self.touched = true;
        let wanted = self.ends.clone();
        let mut ends: Vec<_> = self.parties().filter(|(end, _)| wanted.contains(end)).collect();
        ends.reverse();
        for (_, party) in ends {
            party.apply(group)?;
        }
        Ok(())
    }

    pub(super) fn take_back(&mut self, group: Group) -> Result<(), Failure> {
        let mut left = Vec::new();
        for (_, party) in self.parties().filter(|(_, party)| party.has_begun()) {
            left.extend(party.take_back(group)?);
        }
        if left.is_empty() { Ok(()) } else { Err(Failure::of(left.join("\n"))) }
    }

    pub(super) fn renew(&mut self, time: Duration) -> Result<(), Failure> {
        for (_, party) in self.parties().filter(|(_, party)| party.has_begun()) {
            party.renew(time + PATIENCE)?;
        }
        Ok(())
    }

    /// The kernel starts a connection with what it remembers of the last one to the same address. Where that cannot be
    /// forgotten, both kinds of transfers are touched alike.
    pub(super) fn forget_metrics(&mut self) {
        let Some((near, far)) = self.addresses else { return };
        for (end, party) in self.parties() {
            let _ = party.forget_metrics(if end == End::Near { far } else { near });
        }
    }

    /// Makes what is in force stay, at both ends; the near one last, so that a far end that fails, or is lost, leaves
    /// nothing half done here. An end at which nothing has earned its keep has nothing to keep.
    pub(crate) fn keep(&mut self, keep: &dyn Fn(End) -> Keep) -> Result<Vec<(End, Kept)>, Failure> {
        let with_changes: Vec<End> = self.in_force.iter().map(|(end, _)| *end).collect();
        let mut kept: Vec<(End, Kept)> = Vec::new();
        let mut ends: Vec<_> = self.parties().collect();
        ends.reverse();
        for (end, party) in ends {
            if with_changes.contains(&end) {
                let set = party.keep(&keep(end)).map_err(|error| half_kept(&error, &kept))?;
                kept.push((end, set));
            } else if party.has_begun() {
                party.roll_back("nothing of it earned its keep")?;
            }
        }
        kept.reverse();
        Ok(kept)
    }

    /// Takes everything back; what could not be is said.
    pub(crate) fn roll_back(&mut self, reason: &str) -> Vec<String> {
        let mut left = Vec::new();
        for (end, party) in self.parties().filter(|(_, party)| party.has_begun()) {
            match party.roll_back(reason) {
                Ok(one) => left.extend(one.into_iter().map(|text| format!("{} host: {text}", end.name()))),
                Err(error) => left.push(format!("{} host: {error}", end.name())),
            }
        }
        left
    }
}

/// An error of keeping, with what the other end has kept already: that stays until somebody takes it back.
fn half_kept(error: &PartyError, kept: &[(End, Kept)]) -> Failure {
    let stay = |(end, set): &(End, Kept)| {
        format!("the {} host has kept change set {}: take it back there", end.name(), set.id)
    };
    let failure = Failure::from(error.clone());
    let lines: Vec<String> = core::iter::once(failure.text.clone()).chain(kept.iter().map(stay)).collect();
    Failure { text: lines.join("\n"), ..failure }
}
