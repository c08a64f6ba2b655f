//! Which back end is taken.

use crate::back_ends::{BACK_ENDS, BackEnd, Inputs, by_id};
use crate::plan::Plan;
use crate::refusal::Refusal;

/// The back end that is taken.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Which.
    pub back_end: &'static BackEnd,
    /// What it plans.
    pub plan: Plan,
    /// Those that come before it, and why they are not it.
    pub rejected: Vec<Rejected>,
}

/// A back end that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Which.
    pub back_end: &'static str,
    /// Why, as a phrase without a full stop.
    pub reason: String,
}

/// Takes the first back end that can be had, or the one that was asked for. What a kernel has is what trials found, its
/// version decides nothing.
pub fn choose(inputs: &Inputs<'_>, wanted: Option<&str>) -> Result<Choice, Refusal> {
    if let Some(id) = wanted {
        let back_end = by_id(id).ok_or_else(|| Refusal {
            back_end: None,
            reason: format!("there is no back end {id}"),
            way_out: format!("take one of {}", BACK_ENDS.iter().map(|one| one.id).collect::<Vec<_>>().join(", ")),
        })?;
        return back_end.plan(inputs).map(|plan| Choice { back_end, plan, rejected: vec![] });
    }
    let mut rejected = Vec::new();
    for back_end in BACK_ENDS.iter().copied().filter(|back_end| back_end.automatic) {
        if let Some(reason) = (back_end.unsuitable)(inputs) {
            rejected.push(Rejected { back_end: back_end.id, reason });
            continue;
        }
        match back_end.plan(inputs) {
            Ok(plan) => return Ok(Choice { back_end, plan, rejected }),
            Err(refusal) => rejected.push(Rejected { back_end: back_end.id, reason: refusal.reason }),
        }
    }
    let reasons: Vec<_> = rejected.iter().map(|one| format!("{}: {}", one.back_end, one.reason)).collect();
    Err(Refusal {
        back_end: None,
        reason: format!("nothing here can shape this line: {}", reasons.join("; ")),
        way_out: "give a rate, and use a kernel with the queueing discipline htb or tbf".to_owned(),
    })
}
