//! Verdicts of a path, derived from the observation that a diagnosis kept, by the rules of this build.

use anyhow::{Context, Result};
use linerate_model::diagnosis::{Confidence, GoodputEstimate, PathEvidence, TransferDiagnosis, TransferObservation};
use linerate_rules::diagnosis::{diagnose, figures};
use serde_json::Value;

use super::judge::MeasuredGoodput;

/// First verdict of a diagnosis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FirstVerdict {
    pub(super) cause: String,
    pub(super) confidence: Confidence,
    /// Estimated goodput without the cause.
    pub(super) without: Option<GoodputEstimate>,
    /// Cause without which it is as well.
    pub(super) together_with: Option<String>,
    /// Sentence.
    pub(super) text: String,
}

/// Capacity that a diagnosis states, in bit/s of IP packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StatedCapacity {
    pub(super) rate: f64,
    /// Ends of the interval; a missing upper one is no bound.
    pub(super) low: f64,
    pub(super) high: Option<f64>,
    /// Bytes of the packets of the search.
    pub(super) packet: u64,
}

/// Path as a diagnosis describes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JudgedPath {
    pub(super) first: Option<FirstVerdict>,
    /// First verdict on the same transfer where nothing but the transfer is measured, as by `linerate test`.
    pub(super) of_transfer: Option<FirstVerdict>,
    /// Goodput of its transfer.
    pub(super) goodput: Option<MeasuredGoodput>,
    pub(super) contradictions: Vec<String>,
    pub(super) capacity: Option<StatedCapacity>,
}

impl JudgedPath {
    /// Judges the observation in a document of `linerate diagnose --json --observation`. One without a transfer has no
    /// verdict.
    pub(super) fn read(document: &Value) -> Result<Self> {
        let kept = &document["observation"];
        if kept.is_null() {
            let contradictions = Vec::new();
            return Ok(Self { first: None, of_transfer: None, goodput: None, contradictions, capacity: None });
        }
        let observation: TransferObservation =
            serde_json::from_value(kept.clone()).context("the kept observation is of another linerate")?;
        let diagnosis = diagnose(&observation);
        let stated_figures = figures(&observation);
        let figure = |name: &str| stated_figures.iter().find(|(known, _)| *known == name).and_then(|(_, rate)| *rate);
        let goodput = figure("goodput_bits_per_second")
            .zip(figure("steady_bits_per_second"))
            .map(|(whole, steady)| MeasuredGoodput { whole, steady });
        let capacity = stated(&observation);
        // The handshakes of `linerate test` measure the round trip.
        let round_trip = observation.path.as_ref().and_then(|path| path.round_trip);
        let path = PathEvidence { round_trip, ..PathEvidence::default() };
        let of_transfer = first(diagnose(&TransferObservation { path: Some(path), ..observation }));
        let contradictions = diagnosis.contradictions.clone();
        Ok(Self { first: first(diagnosis), of_transfer, goodput, contradictions, capacity })
    }
}

fn first(diagnosis: TransferDiagnosis) -> Option<FirstVerdict> {
    diagnosis.verdicts.into_iter().next().map(|verdict| FirstVerdict {
        cause: verdict.cause.name().to_owned(),
        confidence: verdict.confidence,
        without: verdict.without,
        together_with: verdict.together_with.map(|other| other.name().to_owned()),
        text: verdict.text,
    })
}

fn stated(observation: &TransferObservation) -> Option<StatedCapacity> {
    let measured = observation.path.as_ref()?.with_data.capacity.as_ref()?;
    let low = measured.low_bits_per_second.unwrap_or(measured.bits_per_second);
    let is_open = measured.at_least || measured.shared == Some(true);
    let high = measured.high_bits_per_second.unwrap_or(measured.bits_per_second);
    Some(StatedCapacity {
        rate: measured.bits_per_second,
        low,
        high: Some(high).filter(|_| !is_open),
        packet: measured.packet_bytes,
    })
}
