//! Choice of a back end.

use crate::back_ends::{BACK_ENDS, BackEnd, BackEndId, PlanInputs};
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

/// Chooses the first available back end, or the requested one. Availability is decided by probes, never by the kernel's
/// version.
pub fn choose(inputs: &PlanInputs<'_>, wanted: Option<BackEndId>) -> Result<ChosenBackEnd, ShaperRefusal> {
    if let Some(id) = wanted {
        let back_end = id.back_end();
        return back_end.plan(inputs).map(|plan| ChosenBackEnd { back_end, plan, rejected: vec![] });
    }
    let (mut rejected, mut ways_out) = (Vec::new(), Vec::new());
    for back_end in BACK_ENDS.iter().copied().filter(|back_end| back_end.automatic) {
        if let Some(reason) = (back_end.unsuitable)(inputs) {
            rejected.push(BackEndRejection { back_end: back_end.id, reason });
            ways_out.push(String::new());
            continue;
        }
        match back_end.plan(inputs) {
            Ok(plan) => return Ok(ChosenBackEnd { back_end, plan, rejected }),
            Err(refusal) => {
                rejected.push(BackEndRejection { back_end: back_end.id, reason: refusal.reason });
                ways_out.push(refusal.way_out);
            }
        }
    }
    Err(no_choice(&rejected, &ways_out))
}

/// Refusal with the reasons of all back ends, each once, and the remedy of the reason that most of them have.
fn no_choice(rejected: &[BackEndRejection], ways_out: &[String]) -> ShaperRefusal {
    let mut groups: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for (one, way_out) in rejected.iter().zip(ways_out) {
        match groups.iter_mut().find(|(reason, ..)| *reason == one.reason) {
            Some((_, _, names)) => names.push(one.back_end.name()),
            None => groups.push((&one.reason, way_out, vec![one.back_end.name()])),
        }
    }
    let reasons: Vec<_> = groups.iter().map(|(reason, _, names)| format!("{}: {reason}", names.join(", "))).collect();
    let common = groups.iter().max_by_key(|(.., names)| names.len()).filter(|(.., names)| names.len() > 1);
    let usual = "give a rate, and use a kernel with the queueing discipline htb or tbf";
    ShaperRefusal {
        back_end: None,
        reason: format!("no back end can shape this link: {}", reasons.join("; ")),
        way_out: common.map_or(usual, |(_, way_out, _)| way_out).to_owned(),
    }
}
