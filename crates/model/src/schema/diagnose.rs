//! The document of `linerate diagnose --json`: what limits a transfer, and what that rests on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::path::{PathDocument, Unknown};
use super::throughput::{Direction, Termination};
use crate::diagnosis;

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// A diagnosed transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiagnoseDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that measured.
    pub linerate_version: String,
    /// The host as the user wrote it.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// When it began: nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// How it ended.
    pub termination: Termination,
    /// Which way the data flowed.
    pub direction: Direction,
    /// The transfer's options, as iperf3 has them; empty for its defaults.
    pub transfer: Vec<String>,
    /// What limits, most important first.
    pub verdicts: Vec<Verdict>,
    /// Shares of the transfer's time by what the sender was doing.
    pub states: Vec<StateShare>,
    /// What arrived, payload.
    pub goodput_bits_per_second: Option<f64>,
    /// What each resource allows at most, lowest first.
    pub bounds: Vec<Bound>,
    /// The bound that would come next without the first verdict's cause.
    pub next: Option<Bound>,
    /// The figures that the rules looked at: name with its unit → value; `null` where it was not seen.
    pub figures: BTreeMap<String, Option<f64>>,
    /// The path without the transfer, where it was measured.
    pub path: Option<PathDocument>,
    /// What could not be seen: name → why.
    #[serde(default)]
    pub unknown: Vec<Unknown>,
    /// What a reader should know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Its identifier, for example `receive-window`.
    pub cause: String,
    /// Where it lies: `application`, `sender`, `receiver`, `hosts`, `network`, `nowhere`, `unknown`.
    pub place: String,
    /// `high`, `medium`, `low`.
    pub confidence: String,
    /// In one sentence.
    pub text: String,
    /// The figures that it rests on.
    pub evidence: Vec<String>,
    /// What to do; empty where nothing on a host would help.
    pub advice: Vec<String>,
}

/// Share of the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StateShare {
    /// What the sender was doing, for example `receive_window`.
    pub state: String,
    /// Share of one.
    pub share: f64,
}

/// What a resource allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bound {
    /// Which.
    pub name: String,
    /// Payload bits per second.
    pub bits_per_second: f64,
    /// How that was computed.
    pub arithmetic: String,
}

impl From<&diagnosis::Verdict> for Verdict {
    fn from(verdict: &diagnosis::Verdict) -> Self {
        Self {
            cause: verdict.cause.name().to_owned(),
            place: verdict.cause.place().name().to_owned(),
            confidence: verdict.confidence.name().to_owned(),
            text: verdict.text.clone(),
            evidence: verdict.evidence.clone(),
            advice: verdict.advice.clone(),
        }
    }
}

impl From<&diagnosis::Bound> for Bound {
    fn from(bound: &diagnosis::Bound) -> Self {
        Self {
            name: bound.name.clone(),
            bits_per_second: bound.rate.bits_per_second(),
            arithmetic: bound.arithmetic.clone(),
        }
    }
}

impl StateShare {
    /// The shares of a diagnosis.
    #[must_use]
    pub fn all(diagnosis: &diagnosis::Diagnosis) -> Vec<Self> {
        let share = |(state, share): &(diagnosis::State, linerate_units::Ratio)| Self {
            state: state.name().to_owned(),
            share: share.get(),
        };
        diagnosis.states.iter().map(share).collect()
    }
}
