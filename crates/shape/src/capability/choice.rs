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
    let mut rejected = Vec::new();
    for back_end in BACK_ENDS.iter().copied().filter(|back_end| back_end.automatic) {
        if let Some(reason) = (back_end.unsuitable)(inputs) {
            rejected.push(BackEndRejection { back_end: back_end.id, reason });
            continue;
        }
        match back_end.plan(inputs) {
            Ok(plan) => return Ok(ChosenBackEnd { back_end, plan, rejected }),
            Err(refusal) => rejected.push(BackEndRejection { back_end: back_end.id, reason: refusal.reason }),
        }
    }
    let reasons: Vec<_> = rejected.iter().map(|one| format!("{}: {}", one.back_end, one.reason)).collect();
    Err(ShaperRefusal {
        back_end: None,
        reason: format!("no back end can shape this link: {}", reasons.join("; ")),
        way_out: "give a rate, and use a kernel with the queueing discipline htb or tbf".to_owned(),
    })
}
