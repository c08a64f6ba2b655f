//! Order of trials: the proposals for all measured causes, by the goodput expected without each.

use linerate_model::diagnosis::{Cause, DiagnosisVerdict, GoodputEstimate, TransferDiagnosis};
use linerate_units::{BitRate, CompactSort, display};

use super::goal::TuningAim;
use super::inputs::TuningInputs;
use super::proposal::{ProposedHostChange, TuningProposal, TuningRefusal};
use super::{add_change, propose};

/// Returns the proposals in the order of their trials: one for each cause that a host can remove, by expected gain, then
/// their combination, for causes that gain only together. Never empty: where there is nothing to change, the first
/// proposal has the reasons.
#[must_use]
pub fn plan(inputs: &TuningInputs) -> Vec<TuningProposal> {
    let Some(diagnosis) = &inputs.diagnosis else { return vec![propose(inputs)] };
    let mut plan = PlanBuilder::default();
    let verdicts = by_expected_goodput(diagnosis);
    for (index, verdict) in verdicts.iter().enumerate() {
        let first = if index == 0 { None } else { verdicts.first().map(|first| first.cause) };
        plan.add(inputs, diagnosis.goodput, verdict, first);
    }
    plan.finish(inputs)
}

/// Verdicts by the goodput without their cause, largest first. One without an estimate stays behind its predecessor.
fn by_expected_goodput(diagnosis: &TransferDiagnosis) -> Vec<&DiagnosisVerdict> {
    let mut last = BitRate::from_bits_per_second(f64::MAX);
    let mut keyed: Vec<(BitRate, &DiagnosisVerdict)> = Vec::new();
    for verdict in &diagnosis.verdicts {
        last = verdict.without.map_or(last, |without| without.expected);
        keyed.push((last, verdict));
    }
    keyed.sort_compactly_by(|one, other| other.0.bits_per_second().total_cmp(&one.0.bits_per_second()));
    keyed.into_iter().map(|(_, verdict)| verdict).collect()
}

#[derive(Default)]
struct PlanBuilder {
    proposals: Vec<TuningProposal>,
    /// Proposals of host causes whose gain alone is too small: they count in the combination.
    small: Vec<TuningProposal>,
    refusals: Vec<TuningRefusal>,
    /// Refusals of the first cause, where nothing is proposed for it.
    first: Option<TuningProposal>,
}

impl PlanBuilder {
    /// Adds a cause; `first` is that of the first verdict for the later ones.
    fn add(&mut self, inputs: &TuningInputs, goodput: BitRate, verdict: &DiagnosisVerdict, first: Option<Cause>) {
        let mut proposal = propose(&inputs.focused_on(verdict.cause));
        proposal.expected = verdict.without;
        if proposal.is_empty() {
            if first.is_none() {
                self.first = Some(proposal);
            } else if verdict.cause.is_of_a_host() {
                self.refusals.append(&mut proposal.refusals);
            }
            return;
        }
        if self.proposals.iter().any(|earlier| has_all(earlier, &proposal.changes)) {
            return;
        }
        let small = too_small(inputs, goodput, &proposal, first);
        let is_behind_a_host = first.is_none_or(Cause::is_of_a_host);
        // Nothing on a host removes the first cause.
        let first = first.filter(|_| self.first.is_some());
        let refused = small.or_else(|| unknown_gain(&proposal, first));
        match refused {
            Some(text) => {
                self.refusals.push(TuningRefusal { rule: None, end: None, cause: Some(verdict.cause), text });
                if verdict.cause.is_of_a_host() && is_behind_a_host {
                    self.small.push(proposal);
                }
            }
            None => self.proposals.push(proposal),
        }
    }

    fn finish(self, inputs: &TuningInputs) -> Vec<TuningProposal> {
        let Self { mut proposals, small, refusals, first } = self;
        let is_of_hosts = first.as_ref().and_then(|first| first.cause).is_none_or(Cause::is_of_a_host);
        if is_of_hosts && !proposals.is_empty() {
            proposals.extend(combination(proposals.iter().chain(&small), &proposals));
        } else if is_of_hosts && has_room(inputs) {
            proposals.extend(combination(small.iter(), &[]));
        }
        if proposals.is_empty() {
            proposals.push(first.unwrap_or_else(|| TuningProposal { cause: inputs.cause(), ..Default::default() }));
        } else if let Some(first) = first {
            proposals[0].refusals.splice(0..0, first.refusals);
        }
        proposals[0].refusals.extend(refusals);
        proposals
    }
}

/// True when the proposal includes all of these changes.
fn has_all(proposal: &TuningProposal, changes: &[ProposedHostChange]) -> bool {
    let same = |one: &ProposedHostChange, other: &ProposedHostChange| {
        (one.end, &one.change.target, &one.change.to) == (other.end, &other.change.target, &other.change.to)
    };
    changes.iter().all(|one| proposal.changes.iter().any(|other| same(one, other)))
}

/// Reason against trials of a cause that is expected to cost less than the least gain of the goal: by the upper end of the
/// estimate, or by the estimate itself where `first`, another cause that is not a host's, limits before.
fn too_small(
    inputs: &TuningInputs,
    goodput: BitRate,
    proposal: &TuningProposal,
    first: Option<Cause>,
) -> Option<String> {
    let objective = inputs.goal.objective();
    let GoodputEstimate { expected, high, .. } = proposal.expected.filter(|_| objective.aim == TuningAim::Goodput)?;
    let (most, about) = match first.filter(|first| !first.is_of_a_host()) {
        Some(_) => (expected, "about"),
        None => (high, "at most"),
    };
    let least = goodput * (1.0 + objective.least_gain.get());
    (most < least).then(|| {
        format!(
            "Without this cause ({}) alone, {about} {} of goodput are expected after {}, less than {:.0} % more: {} \
             not tried alone.",
            title(proposal),
            display::rate(most),
            display::rate(goodput),
            objective.least_gain.percent(),
            names(proposal),
        )
    })
}

/// Reason against trials of a later cause with an unknown gain, where the first one is not a host's.
fn unknown_gain(proposal: &TuningProposal, first: Option<Cause>) -> Option<String> {
    let first = first.filter(|first| !first.is_of_a_host() && proposal.expected.is_none())?;
    Some(format!(
        "The gain without this cause ({}) is unknown, and another one limits first ({}): {} not tried.",
        title(proposal),
        first.title(),
        names(proposal),
    ))
}

fn title(proposal: &TuningProposal) -> &'static str {
    proposal.cause.map_or("unknown", Cause::title)
}

fn names(proposal: &TuningProposal) -> String {
    let names: Vec<String> =
        proposal.changes.iter().map(|one| format!("{} {}", one.end.name(), one.change.target)).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", names.join(", "))
}

/// True when every bound that was computed allows the least gain of the goal: no single cause accounts for the missing
/// rate, as two that hold the same rate hide each other.
fn has_room(inputs: &TuningInputs) -> bool {
    let Some(diagnosis) = &inputs.diagnosis else { return false };
    let least = diagnosis.goodput * (1.0 + inputs.goal.objective().least_gain.get());
    !diagnosis.bounds.is_empty() && diagnosis.bounds.iter().all(|bound| bound.rate >= least)
}

/// All changes for the causes in the hosts, in one group, as they are tried together; `None` where they are the changes
/// of one of these `trials`, in one group.
fn combination<'a>(
    proposals: impl Iterator<Item = &'a TuningProposal> + Clone,
    trials: &[TuningProposal],
) -> Option<TuningProposal> {
    let of_hosts = proposals.filter(|proposal| !proposal.lives_with_the_path());
    let first = of_hosts.clone().next()?;
    let group = first.changes.first()?.change.group;
    let mut all = TuningProposal { cause: first.cause, is_combination: true, ..TuningProposal::default() };
    for change in of_hosts.clone().flat_map(|proposal| &proposal.changes) {
        add_change(&mut all, change.clone());
    }
    for one in &mut all.changes {
        one.change.group = group;
        one.alternatives.clear();
    }
    let is_of_one = |proposal: &TuningProposal| proposal.groups().len() == 1 && has_all(proposal, &all.changes);
    (!trials.iter().any(is_of_one)).then_some(all)
}

#[cfg(test)]
mod tests {
    use linerate_model::diagnosis::{BoundKind, Confidence, ThroughputBound};
    use linerate_model::direction::Direction;

    use super::super::test_cases::{host, rhel};
    use super::super::{HostEnd, TuningGoal};
    use super::*;

    /// Host with a small window and without SACK, after a transfer of 100 Mbit/s with these causes and the goodput, in
    /// Mbit/s, expected without each.
    fn inputs(causes: &[(Cause, Option<f64>)]) -> TuningInputs {
        let settings = [
            ("net.ipv4.tcp_rmem", "4096 131072 375000"),
            ("net.ipv4.tcp_wmem", "4096 16384 4194304000"),
            ("net.ipv4.tcp_sack", "0"),
        ];
        let mut inputs = rhel(host(&settings));
        inputs.data = Some(Direction::Down);
        let rate = |megabits: f64| BitRate::from_bits_per_second(megabits * 1e6);
        let verdict = |(cause, expected): &(Cause, Option<f64>)| DiagnosisVerdict {
            cause: *cause,
            confidence: Confidence::High,
            text: String::new(),
            share: None,
            together_with: None,
            without: expected.map(|expected| GoodputEstimate {
                low: rate(100.0),
                expected: rate(expected),
                high: rate(expected * 1.02),
            }),
            evidence: Vec::new(),
            advice: Vec::new(),
            tune: None,
        };
        inputs.diagnosis = Some(TransferDiagnosis {
            verdicts: causes.iter().map(verdict).collect(),
            states: Vec::new(),
            goodput: rate(100.0),
            bounds: Vec::new(),
            next: None,
            contradictions: Vec::new(),
            notes: Vec::new(),
        });
        inputs
    }

    fn causes(plan: &[TuningProposal]) -> Vec<(Option<Cause>, usize)> {
        plan.iter().map(|proposal| (proposal.cause, proposal.changes.len())).collect()
    }

    #[test]
    fn causes_are_tried_by_expected_gain_whatever_their_position() {
        let (window, sack) = (Cause::ReceiveWindow, Cause::SackOff);
        for (order, first) in [
            ([(sack, Some(110.0)), (window, Some(400.0))], window),
            ([(window, Some(110.0)), (sack, Some(400.0))], sack),
            // Without estimates, the order of the diagnosis decides.
            ([(sack, None), (window, None)], sack),
        ] {
            let plan = plan(&inputs(&order));
            assert_eq!(plan.len(), 3, "{:?}", causes(&plan));
            assert_eq!(plan[0].cause, Some(first));
            assert!(!plan[0].is_combination && !plan[1].is_combination && plan[2].is_combination);
            let all = plan[0].changes.len() + plan[1].changes.len();
            assert_eq!((plan[2].changes.len(), plan[2].groups().len()), (all, 1));
        }
    }

    #[test]
    fn a_cause_that_costs_little_is_refused_and_tried_only_in_the_combination() {
        let plan = plan(&inputs(&[(Cause::SackOff, Some(101.0)), (Cause::ReceiveWindow, Some(400.0))]));
        assert_eq!((plan[0].cause, plan.len()), (Some(Cause::ReceiveWindow), 2), "{:?}", causes(&plan));
        assert!(plan[1].is_combination && plan[1].changes.iter().any(|one| one.change.to == "1"));
        let reasons: Vec<&str> = plan[0].refusals.iter().map(|refusal| refusal.text.as_str()).collect();
        assert!(
            reasons.iter().any(|text| text.contains("no selective acknowledgements")
                && text.contains("at most 103 Mbit/s")
                && text.contains("net.ipv4.tcp_sack")),
            "{reasons:?}"
        );
    }

    #[test]
    fn a_later_cause_behind_one_of_the_path_is_not_tried_for_what_chance_may_add() {
        let estimate = |before, expected: f64, high: f64| {
            let mut inputs = inputs(&[(before, Some(400.0)), (Cause::SackOff, Some(expected))]);
            let verdict = &mut inputs.diagnosis.as_mut().expect("diagnosed").verdicts[1];
            let without = verdict.without.as_mut().expect("estimated");
            without.high = BitRate::from_bits_per_second(high * 1e6);
            inputs.diagnosis.as_mut().expect("diagnosed").bounds = vec![ThroughputBound {
                kind: BoundKind::Loss,
                rate: BitRate::from_bits_per_second(400e6),
                arithmetic: String::new(),
            }];
            let is_tried = |proposal: &TuningProposal| proposal.cause == Some(Cause::SackOff) && !proposal.is_empty();
            plan(&inputs).iter().any(is_tried)
        };
        // Another host's cause cannot remove the full path; the loss, a work-around may.
        for before in [Cause::LinkRate, Cause::Loss] {
            assert_eq!((estimate(before, 100.0, 115.0), estimate(before, 110.0, 115.0)), (false, true), "{before:?}");
        }
        // A host's cause is tried for it.
        let mut own = inputs(&[(Cause::SackOff, Some(100.0))]);
        let without = own.diagnosis.as_mut().expect("diagnosed").verdicts[0].without.as_mut().expect("estimated");
        without.high = BitRate::from_bits_per_second(115e6);
        assert_eq!(plan(&own)[0].changes.len(), 1);
    }

    #[test]
    fn a_later_cause_behind_one_of_the_path_needs_an_expected_gain() {
        let behind = |expected| plan(&inputs(&[(Cause::LinkRate, None), (Cause::SackOff, expected)]));
        for (expected, changes) in [(None, 0), (Some(102.0), 0), (Some(200.0), 1)] {
            let plan = behind(expected);
            assert_eq!((plan.len(), plan[0].changes.len()), (1, changes), "{expected:?}: {plan:?}");
            assert!(plan[0].refusals.iter().any(|refusal| refusal.text.starts_with("The path is full")));
            let is_named = plan[0].refusals.iter().any(|refusal| refusal.cause == Some(Cause::SackOff));
            assert_eq!(is_named, changes == 0, "{:?}", plan[0].refusals);
        }
    }

    /// Either alone holds the window at 64 kB (lab:autotuning-and-window-scaling-off).
    #[test]
    fn settings_that_each_hold_the_window_are_tried_together() {
        for cause in [Cause::WindowScalingOff, Cause::ReceiveWindow] {
            let mut inputs = inputs(&[(cause, Some(400.0))]);
            for key in ["net.ipv4.tcp_window_scaling", "net.ipv4.tcp_moderate_rcvbuf"] {
                inputs.near.settings.insert(key.to_owned(), "0".to_owned());
            }
            let plan = plan(&inputs);
            let [one, both] = &plan[..] else { panic!("{plan:?}") };
            assert!(!one.is_combination && both.is_combination && one.groups().len() == 2, "{plan:?}");
            assert_eq!((both.groups().len(), both.changes.len()), (1, one.changes.len()));
        }
    }

    /// Memory of all sockets that is too low holds the window, which then seems to hold the same rate
    /// (lab:tcp-memory-and-rare-loss).
    #[test]
    fn causes_that_hide_each_other_are_tried_where_the_path_has_room() {
        let small = [(Cause::SackOff, Some(101.0))];
        assert!(plan(&inputs(&small))[0].is_empty(), "no bound is known");
        for (bound, changes) in [(103.0, 0), (400.0, 1)] {
            let mut inputs = inputs(&small);
            let rate = BitRate::from_bits_per_second(bound * 1e6);
            let bounds = &mut inputs.diagnosis.as_mut().expect("known").bounds;
            bounds.push(ThroughputBound { kind: BoundKind::Path, rate, arithmetic: String::new() });
            let plan = plan(&inputs);
            assert_eq!((plan.len(), plan[0].changes.len()), (1, changes), "{plan:?}");
            assert_eq!(plan[0].is_combination, changes > 0);
        }
    }

    #[test]
    fn causes_with_the_same_change_are_one_trial() {
        let all = plan(&inputs(&[(Cause::ReceiveWindow, Some(400.0)), (Cause::SendBuffer, Some(300.0))]));
        assert_eq!(all.len(), 1, "{:?}", causes(&all));
        let mut latency = inputs(&[(Cause::SackOff, Some(101.0)), (Cause::ReceiveWindow, Some(400.0))]);
        latency.goal = TuningGoal::LowLatency;
        assert_eq!(plan(&latency).len(), 3, "goodput is not the aim there");
        assert_eq!(plan(&TuningInputs { diagnosis: None, ..latency }).len(), 1);
        assert!(all[0].changes.iter().all(|one| one.end == HostEnd::Near));
    }
}
