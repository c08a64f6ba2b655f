//! A drawn path with its truth and its verdict, kept in a file from run to run.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use linerate_model::diagnosis::{Cause, CauseLocation, Confidence, GoodputEstimate};
use linerate_units::BitRate;
use serde_json::{Value, json};

use super::arguments::KeptParts;
use super::cause::RemovableCause;
use super::generator::RandomPath;
use super::judge::{Counterfactuals, TrueCause, UNEXPLAINED};
use super::judged::{FirstVerdict, JudgedPath, StatedCapacity};
use super::measured::{self, PathLab};
use super::text;

/// Measured case.
#[derive(Clone, Debug)]
pub(super) struct TruthCase {
    pub(super) seed: u64,
    pub(super) index: u64,
    pub(super) injected: Vec<RemovableCause>,
    pub(super) measured: Counterfactuals,
    pub(super) verdict: Option<FirstVerdict>,
    /// First verdict on the same transfer where nothing but the transfer is measured.
    pub(super) of_transfer: Option<FirstVerdict>,
    /// Figures that contradict each other.
    pub(super) contradictions: Vec<String>,
    /// Stated capacity, and the true one in bit/s of IP packets.
    pub(super) capacity: Option<(StatedCapacity, f64)>,
}

/// Causes that are tried where the injected ones do not explain the goodput, in this order.
const LIKELY_OTHERS: [RemovableCause; 3] =
    [RemovableCause::CongestionControl, RemovableCause::BufferTooSmall, RemovableCause::ReceiveWindow];

impl TruthCase {
    /// Measures the path, or takes from `file` what was measured before.
    pub(super) fn obtain(
        (seed, index): (u64, u64),
        path: &RandomPath,
        lab: &PathLab<'_>,
        file: &Path,
        reuse: KeptParts,
    ) -> Result<Self> {
        let description = text::text(&path.description);
        let kept = fs::read_to_string(file).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let kept = kept.filter(|document| document["description"] == description.as_str()).unwrap_or_default();
        let measured = Counterfactuals::read(&kept["measured"]);
        let diagnosis = Some(&kept["diagnosis"]).filter(|diagnosis| !diagnosis.is_null() && reuse != KeptParts::Truth);
        if reuse == KeptParts::Only {
            let kept = measured.zip(diagnosis).context("nothing was kept of it: run it without --replay")?;
            return Self::of((seed, index), path, kept.0, kept.1);
        }
        let mut measured = match measured {
            Some(measured) => measured,
            None => lab.counterfactuals(&path.description, &path.injected)?,
        };
        measured.ceiling = measured::ceiling(&path.description);
        add_others(&mut measured, path, lab)?;
        let diagnosis = match diagnosis {
            Some(diagnosis) => diagnosis.clone(),
            None => lab.diagnosis(&path.description)?,
        };
        let document = json!({ "description": description, "measured": measured.json(), "diagnosis": diagnosis });
        fs::write(file, document.to_string()).with_context(|| format!("cannot write {}", file.display()))?;
        Self::of((seed, index), path, measured, &diagnosis)
    }

    fn of((seed, index): (u64, u64), path: &RandomPath, measured: Counterfactuals, diagnosis: &Value) -> Result<Self> {
        let judged = JudgedPath::read(diagnosis)?;
        let ceiling = measured::ceiling(&path.description);
        let measured = Counterfactuals { ceiling, diagnosed: judged.goodput, ..measured };
        let capacity = judged.capacity.map(|stated| (stated, measured::capacity(&path.description, stated.packet)));
        Ok(Self {
            seed,
            index,
            injected: path.injected.clone(),
            measured,
            verdict: judged.first,
            of_transfer: judged.of_transfer,
            contradictions: judged.contradictions,
            capacity: capacity.and_then(|(stated, truth)| Some((stated, truth?))),
        })
    }

    pub(super) fn truth(&self) -> TrueCause {
        self.measured.true_cause()
    }

    /// True when the truth was found, so that a verdict can be compared with it.
    pub(super) fn counts(&self) -> bool {
        self.truth().first != UNEXPLAINED
    }

    pub(super) fn is_right(&self) -> bool {
        self.accepts(self.verdict.as_ref())
    }

    /// True for a verdict that is right.
    pub(super) fn accepts(&self, verdict: Option<&FirstVerdict>) -> bool {
        verdict.is_some_and(|verdict| self.truth().accepted.contains(&verdict.cause.as_str()))
    }

    /// True for a verdict of the same location as a right one. `linerate test` prints the location.
    pub(super) fn accepts_location(&self, verdict: Option<&FirstVerdict>) -> bool {
        let locations: Vec<_> = self.truth().accepted.iter().filter_map(|name| location(name)).collect();
        verdict.and_then(|verdict| location(&verdict.cause)).is_some_and(|found| locations.contains(&found))
    }

    /// Seed and number: `1/17`.
    pub(super) fn place(&self) -> String {
        format!("{}/{}", self.seed, self.index)
    }

    pub(super) fn confidence(&self) -> Option<Confidence> {
        self.verdict.as_ref().map(|verdict| verdict.confidence)
    }

    pub(super) fn said(&self) -> &str {
        self.verdict.as_ref().map_or("no verdict", |verdict| &verdict.cause)
    }

    /// Estimated and true goodput without the cause of a right verdict, where there is an estimate.
    pub(super) fn estimate(&self) -> Option<(GoodputEstimate, f64)> {
        let verdict = self.verdict.as_ref().filter(|_| self.is_right())?;
        let names = |cause: RemovableCause, name: &str| cause.verdicts().contains(&name);
        let without = &self.measured.without;
        let single = || without.iter().find(|(cause, _)| names(*cause, &verdict.cause)).map(|(_, rate)| *rate);
        let is_same = |(one, other): (RemovableCause, RemovableCause)| {
            let second = verdict.together_with.as_deref();
            second.is_some_and(|second| {
                names(one, &verdict.cause) && names(other, second) || names(other, &verdict.cause) && names(one, second)
            })
        };
        let both = self.measured.without_pair.filter(|pair| is_same(pair.causes)).map(|pair| pair.goodput);
        Some((verdict.without?, both.or_else(single)?))
    }

    /// One line for the terminal.
    pub(super) fn line(&self) -> String {
        let mark = match (self.counts(), self.is_right()) {
            (false, _) => "?",
            (true, true) => "✓",
            (true, false) => "✗",
        };
        let without = self.verdict.as_ref().and_then(|verdict| verdict.without);
        let mbit = |rate: BitRate| rate.bits_per_second() / 1e6;
        let without = without.map_or(String::new(), |estimate| {
            let [expected, low, high] = [estimate.expected, estimate.low, estimate.high].map(mbit);
            format!(", without it {expected:.2} ({low:.2} to {high:.2})")
        });
        let of_transfer = match &self.of_transfer {
            Some(verdict) if self.counts() && !self.accepts(Some(verdict)) => {
                format!("; of the transfer alone {} ({})", verdict.cause, verdict.confidence.name())
            }
            _ => String::new(),
        };
        format!("{mark} case {}: {}; reported {}{without}{of_transfer}", self.index, self.figures(), self.said())
    }

    /// Truth with the goodputs that show it.
    pub(super) fn figures(&self) -> String {
        let mbit = |rate: f64| format!("{:.2}", rate / 1e6);
        let mut parts: Vec<String> = self
            .measured
            .without
            .iter()
            .map(|(cause, rate)| format!("without {} {}", cause.name(), mbit(*rate)))
            .collect();
        parts.extend(self.measured.without_pair.map(|pair| pair.text()));
        parts.extend(self.measured.ceiling.map(|rate| format!("link {}", mbit(rate))));
        let as_is = &self.measured.as_is;
        format!(
            "{}: {} ({} steady) Mbit/s; {}",
            self.truth().first,
            mbit(as_is.whole),
            mbit(as_is.steady),
            parts.join(", ")
        )
    }
}

/// Location of a cause by its name; a full path has its limit in the network.
fn location(cause: &str) -> Option<CauseLocation> {
    let known = Cause::ALL.iter().find(|known| known.name() == cause)?.location();
    Some(if known == CauseLocation::Nowhere { CauseLocation::Network } else { known })
}

/// Measures further causes where none of those that were measured explains the goodput or its slow start, or where a part of
/// the path is left that counts.
fn add_others(measured: &mut Counterfactuals, path: &RandomPath, lab: &PathLab<'_>) -> Result<()> {
    for cause in LIKELY_OTHERS {
        let first = measured.true_cause().first;
        let is_open = first == UNEXPLAINED || first == RemovableCause::ShortTransfer.name() || measured.leaves_a_part();
        if is_open && !measured.without.iter().any(|(known, _)| *known == cause) {
            lab.add(measured, &path.description, cause)?;
        }
    }
    Ok(())
}
