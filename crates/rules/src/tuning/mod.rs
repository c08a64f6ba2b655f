//! What to change on a host, and why: the smallest set of changes for what limits.
//!
//! [`propose`] asks those rules of [`TUNING_RULES`] that are about the measured cause, or, without a measurement, those that
//! can be computed of a rate and a round trip alone. A rule that may speak about a cause names it in its list, so that no
//! rule can propose anything where the path, the application or nothing is the limit.
//!
//! Proposals keep to hard rules, which tests hold against every rule: no feature of TCP is ever switched off, nothing goes
//! below what stands there or what the kernel sets by itself without a measured cause, all of it fits into memory, and
//! what was applied is not proposed again.

mod buffers;
mod cases;
pub mod comparison;
mod goal;
mod inputs;
mod lid;
#[cfg(test)]
mod properties;
mod proposal;
mod refusals;
mod rules;
mod support;
#[cfg(test)]
mod tests;

use linerate_model::change::Group;
use linerate_model::diagnosis::Cause;

pub(crate) use buffers::{Buffer, Need, measured_need};
pub use goal::{Aim, Goal, Objective};
pub use inputs::{Data, Host, Inputs, Interface, Path, Receiving, RouteText, Seen, Way};
pub use lid::{lid, tightened};
pub use proposal::{Answer, End, Proposal, Proposed, Refusal};
pub use rules::TUNING_RULES;

/// A rule of `linerate tune`.
#[derive(Clone, Copy, Debug)]
pub struct TuningRule {
    /// Identifier, in words joined by hyphens.
    pub id: &'static str,
    /// The group of its changes.
    pub group: Group,
    /// Why it helps and when it does not; an empty line between paragraphs.
    pub explanation: &'static str,
    /// Who says so.
    pub citation: &'static str,
    /// The causes for which it is asked.
    pub causes: &'static [Cause],
    /// Whether it is asked where no transfer was measured.
    pub unmeasured: bool,
    /// Looks. What is not known leads to no change, and to a refusal where the reader can do something about it.
    pub propose: fn(&Inputs) -> Vec<Answer>,
    /// Inputs for which it proposes something, for the tests that walk the list.
    pub fires: fn() -> Inputs,
    /// Inputs much like them for which it proposes nothing.
    pub silent: fn() -> Inputs,
}

impl TuningRule {
    /// Whether it may speak about these inputs.
    #[must_use]
    pub fn is_asked(&self, inputs: &Inputs) -> bool {
        let for_goal = inputs.goal.ends_connections() || matches!(self.group, Group::Processors | Group::Queueing);
        for_goal && inputs.cause().map_or(self.unmeasured, |cause| self.causes.contains(&cause))
    }
}

/// What is proposed for both hosts.
#[must_use]
pub fn propose(inputs: &Inputs) -> Proposal {
    let mut proposal = Proposal { cause: inputs.cause(), ..Proposal::default() };
    for rule in TUNING_RULES.iter().filter(|rule| rule.is_asked(inputs)) {
        for answer in (rule.propose)(inputs) {
            match answer {
                Answer::Change(proposed) => add(&mut proposal, *proposed),
                Answer::Refusal(refusal) => proposal.refusals.push(refusal),
            }
        }
    }
    // Where a rule has said why its change cannot be made, nothing more general is true.
    let is_refused = inputs.cause().is_some_and(Cause::is_of_a_host) && !proposal.refusals.is_empty();
    if proposal.changes.is_empty() && !is_refused {
        proposal
            .refusals
            .insert(0, Refusal { rule: None, end: None, cause: inputs.cause(), text: why_nothing(inputs) });
    }
    proposal
}

/// Adds a change; of two for the same place (both directions of one path) the later, larger one stays.
fn add(proposal: &mut Proposal, proposed: Proposed) {
    let same = |other: &&mut Proposed| other.end == proposed.end && other.change.target == proposed.change.target;
    match proposal.changes.iter_mut().find(same) {
        Some(earlier) if larger(&proposed.change.to, &earlier.change.to) => *earlier = proposed,
        Some(_) => {}
        None => proposal.changes.push(proposed),
    }
}

/// Whether the last number of a value is larger.
fn larger(one: &str, other: &str) -> bool {
    let last = |value: &str| value.split_ascii_whitespace().last().and_then(|word| word.parse::<u64>().ok());
    last(one).zip(last(other)).is_some_and(|(one, other)| one > other)
}

fn why_nothing(inputs: &Inputs) -> String {
    if !inputs.goal.ends_connections() {
        return "A router's own TCP settings do not touch what it forwards, and nothing was dropped in it: see `linerate \
                shape` for its queues."
            .to_owned();
    }
    match inputs.cause() {
        Some(cause) => refusals::reason(cause).to_owned(),
        None => "The settings that are known are enough for this path.".to_owned(),
    }
}
