//! Choice of a back end.

use linerate_model::direction::Direction;

use crate::back_ends::{self, BACK_ENDS, BackEnd, BackEndId, PlanInputs};
use crate::plan::ShaperPlan;
use crate::refusal::ShaperRefusal;

/// Chosen back end.
#[derive(Clone, Debug)]
pub struct ChosenBackEnd {
    /// Back end.
    pub back_end: &'static BackEnd,
    /// Plan.
    pub plan: ShaperPlan,
    /// Preferred back ends that were rejected, with reasons.
    pub rejected: Vec<BackEndRejection>,
}

/// Rejected back end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackEndRejection {
    /// Back end.
    pub back_end: BackEndId,
    /// Reason, as a phrase without a full stop.
    pub reason: String,
}

/// Refuses what is wrong on any kernel, before one is probed: rates of classes above the link's, and options that the
/// requested back end, or all that are chosen automatically, cannot have together.
pub fn check_request(inputs: &PlanInputs<'_>, wanted: Option<BackEndId>) -> Result<(), ShaperRefusal> {
    back_ends::input_refusal(inputs)?;
    if let Some(id) = wanted {
        return back_ends::option_refusal(id, inputs);
    }
    let has_dual_options = |direction| !inputs.policy.queues.dual.of(direction).is_default();
    if Direction::BOTH.into_iter().any(has_dual_options) {
        let reason = "--dualpi2 has options of a back end that is chosen by name only".to_owned();
        return Err(ShaperRefusal { back_end: None, reason, way_out: "add --back-end htb+dualpi2".to_owned() });
    }
    let mut refusals = Vec::new();
    for back_end in automatic() {
        match back_ends::option_refusal(back_end.id, inputs) {
            Ok(()) => return Ok(()),
            Err(refusal) => refusals.push(refusal),
        }
    }
    Err(no_choice("no back end has these options together", &refusals, "leave one of them out"))
}

/// Chooses the first available back end, or the requested one. Availability is decided by probes, never by the kernel's
/// version.
pub fn choose(inputs: &PlanInputs<'_>, wanted: Option<BackEndId>) -> Result<ChosenBackEnd, ShaperRefusal> {
    check_request(inputs, wanted)?;
    if let Some(id) = wanted {
        let back_end = id.back_end();
        return back_end.plan(inputs).map(|plan| ChosenBackEnd { back_end, plan, rejected: vec![] });
    }
    let mut refusals: Vec<ShaperRefusal> = Vec::new();
    for back_end in automatic() {
        let tried = match (back_end.unsuitable)(inputs) {
            Some(reason) => Err(ShaperRefusal { back_end: Some(back_end.id), reason, way_out: String::new() }),
            None => back_end.plan(inputs),
        };
        match tried {
            Ok(plan) => {
                let rejected = refusals
                    .into_iter()
                    .filter_map(|one| Some(BackEndRejection { back_end: one.back_end?, reason: one.reason }));
                return Ok(ChosenBackEnd { back_end, plan, rejected: rejected.collect() });
            }
            Err(refusal) => refusals.push(refusal),
        }
    }
    // Where the kernel has a back end, and lacks only what an option of the request needs, that is the reason.
    let only_for_option = refusals.iter().find(|refusal| {
        let id = refusal.back_end.filter(|id| back_ends::option_refusal(*id, inputs).is_ok());
        id.is_some_and(|id| id.back_end().is_present(inputs)) && !refusal.way_out.is_empty()
    });
    if let Some(refusal) = only_for_option {
        return Err(ShaperRefusal { back_end: None, ..refusal.clone() });
    }
    Err(no_choice("no back end can shape this link", &refusals, &kernel_advice(inputs)))
}

/// Kernels that can shape the link with these options.
fn kernel_advice(inputs: &PlanInputs<'_>) -> String {
    let suits = |back_end: &&BackEnd| back_ends::option_refusal(back_end.id, inputs).is_ok();
    let names: Vec<_> = automatic().filter(suits).map(|back_end| back_end.id.name()).collect();
    if names.len() == automatic().count() {
        return "use a kernel with the queueing discipline htb or tbf".to_owned();
    }
    format!("use a kernel that has {}, or leave out the option that all others lack", names.join(" or "))
}

fn automatic() -> impl Iterator<Item = &'static BackEnd> {
    BACK_ENDS.iter().copied().filter(|back_end| back_end.automatic)
}

/// Refusal with the reasons of all back ends, each once. A reason that all have is the whole refusal.
fn no_choice(text: &str, refusals: &[ShaperRefusal], way_out: &str) -> ShaperRefusal {
    let mut groups: Vec<(&ShaperRefusal, Vec<&str>)> = Vec::new();
    for one in refusals {
        let name = one.back_end.map_or("", BackEndId::name);
        match groups.iter_mut().find(|(known, _)| known.reason == one.reason) {
            Some((_, names)) => names.push(name),
            None => groups.push((one, vec![name])),
        }
    }
    if let [(one, _)] = &groups[..] {
        return ShaperRefusal { back_end: None, ..(*one).clone() };
    }
    let reasons: Vec<_> = groups.iter().map(|(one, names)| format!("{}: {}", names.join(", "), one.reason)).collect();
    ShaperRefusal { back_end: None, reason: format!("{text}: {}", reasons.join("; ")), way_out: way_out.to_owned() }
}
