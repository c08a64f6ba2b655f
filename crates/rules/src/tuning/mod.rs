//! Tuning: the smallest set of changes of a host that removes the limit, with reasons.
//!
//! [`plan()`] orders the proposals for all measured causes by the goodput expected without each. [`propose`] applies the
//! rules of [`TUNING_RULES`] for one cause, or, without a measurement, those that need a rate and a round trip alone.
//! Each rule lists its causes, so that no rule can propose anything where the path, the application or nothing is the
//! limit.
//!
//! Proposals follow hard rules, which tests check for every rule: no TCP feature is ever switched off, no value goes
//! below the current one or the kernel's default without a measured cause, everything fits into memory, and applied
//! changes are not proposed again.

mod buffers;
pub mod comparison;
mod goal;
mod inputs;
mod plan;
#[cfg(test)]
mod properties;
mod proposal;
mod refusals;
mod rules;
mod support;
mod test_cases;
#[cfg(test)]
mod tests;
mod window_cap;

use linerate_model::change::{ChangeGroup, ChangeTarget};
use linerate_model::diagnosis::Cause;

pub(crate) use buffers::{BufferNeed, SocketBuffer, measured_buffer_need};
pub use goal::{TuningAim, TuningGoal, TuningObjective};
pub use inputs::{
    DirectionMetrics, EgressInterface, ObservedTransfer, ReceiveCounters, RouteText, TuningHost, TuningInputs,
    TuningPath,
};
pub use plan::plan;
pub use proposal::{HostEnd, ProposedHostChange, RuleAnswer, TuningProposal, TuningRefusal};
pub use rules::TUNING_RULES;
pub use window_cap::{lid, tighten_cap};

use crate::advisable::{ValueContext, refusal};

/// Rule of `linerate tune`.
#[derive(Clone, Copy, Debug)]
pub struct TuningRule {
    /// Identifier in kebab case.
    pub id: &'static str,
    /// Group of its changes.
    pub group: ChangeGroup,
    /// Reason why it helps and when it does not; an empty line between paragraphs.
    pub explanation: &'static str,
    /// Source: RFC section, kernel file, paper or lab measurement.
    pub citation: &'static str,
    /// Causes for which it applies.
    pub causes: &'static [Cause],
    /// True when it also applies without a measured transfer.
    pub unmeasured: bool,
    /// Checks the inputs. Unknown facts lead to no change, or to a refusal where the user can provide them.
    pub propose: fn(&TuningInputs) -> Vec<RuleAnswer>,
    /// Inputs for which it proposes a change, for the tests of the whole list.
    pub fires: fn() -> TuningInputs,
    /// Similar inputs for which it proposes nothing.
    pub silent: fn() -> TuningInputs,
}

impl TuningRule {
    /// True when the rule applies to these inputs.
    #[must_use]
    pub fn is_asked(&self, inputs: &TuningInputs) -> bool {
        let for_goal =
            inputs.goal.ends_connections() || matches!(self.group, ChangeGroup::Processors | ChangeGroup::Queueing);
        for_goal && inputs.cause().map_or(self.unmeasured, |cause| self.causes.contains(&cause))
    }
}

/// Returns the proposal for both hosts.
#[must_use]
pub fn propose(inputs: &TuningInputs) -> TuningProposal {
    let mut proposal = TuningProposal { cause: inputs.cause(), ..TuningProposal::default() };
    for rule in TUNING_RULES.iter().filter(|rule| rule.is_asked(inputs)) {
        for answer in (rule.propose)(inputs) {
            match answer {
                RuleAnswer::Change(proposed) => match refusal_of(inputs, &proposed) {
                    None => add_change(&mut proposal, *proposed),
                    Some(refusal) => proposal.refusals.push(refusal),
                },
                RuleAnswer::Refusal(refusal) => proposal.refusals.push(refusal),
            }
        }
    }
    // Where a rule gave the reason why its change is impossible, no general reason is added.
    let is_refused = inputs.cause().is_some_and(Cause::is_of_a_host) && !proposal.refusals.is_empty();
    if proposal.changes.is_empty() && !is_refused {
        proposal
            .refusals
            .insert(0, TuningRefusal { rule: None, end: None, cause: inputs.cause(), text: general_refusal(inputs) });
    }
    proposal
}

/// Refusal of a value that linerate never sets.
fn refusal_of(inputs: &TuningInputs, proposed: &ProposedHostChange) -> Option<TuningRefusal> {
    let ChangeTarget::Setting { key } = &proposed.change.target else { return None };
    let (_, host) = inputs.known_hosts().find(|(end, _)| *end == proposed.end)?;
    let reason = refusal(&ValueContext::from(host), key, &proposed.change.to)?;
    let text = format!("{key} = {} is not proposed: {reason}.", proposed.change.to);
    Some(TuningRefusal { rule: None, end: Some(proposed.end), cause: inputs.cause(), text })
}

/// Adds a change; of two for the same target (both directions of one path) the larger one is kept.
fn add_change(proposal: &mut TuningProposal, proposed: ProposedHostChange) {
    let same =
        |other: &&mut ProposedHostChange| other.end == proposed.end && other.change.target == proposed.change.target;
    match proposal.changes.iter_mut().find(same) {
        Some(earlier) if larger(&proposed.change.to, &earlier.change.to) => *earlier = proposed,
        Some(_) => {}
        None => proposal.changes.push(proposed),
    }
}

/// True when the last number of a value is larger.
fn larger(one: &str, other: &str) -> bool {
    let last = |value: &str| value.split_ascii_whitespace().last().and_then(|number| number.parse::<u64>().ok());
    last(one).zip(last(other)).is_some_and(|(one, other)| one > other)
}

fn general_refusal(inputs: &TuningInputs) -> String {
    if !inputs.goal.ends_connections() {
        return "A router's own TCP settings do not affect forwarded traffic, and it dropped nothing: see `linerate \
        shape` for its queues."
            .to_owned();
    }
    match inputs.cause() {
        Some(cause) => refusals::reason(cause).to_owned(),
        None => "The known settings are enough for this path.".to_owned(),
    }
}
