//! Document of `linerate diagnose --json`: limiting causes of a transfer, with their evidence.

use std::collections::BTreeMap;

use linerate_model::diagnosis::{DiagnosisVerdict, StateShare, ThroughputBound, TransferObservation};
use linerate_model::direction::Direction;
use serde::{Deserialize, Serialize};

use linerate_model::far::{HostEvidence, KernelEvents};
use linerate_model::path::{PathDocument, UnknownValue};
use linerate_model::report::TestTermination;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Maximum length of a refusal's reason.
const MAX_REASON_LENGTH: usize = 300;

/// Diagnosed transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiagnoseDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that measured.
    pub linerate_version: String,
    /// The host as the user wrote it.
    pub host: String,
    /// Port of the host.
    pub port: u16,
    /// Start time in nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Outcome of the run.
    pub termination: TestTermination,
    /// Direction of the data.
    pub direction: Direction,
    /// Options of the transfer in iperf3's syntax; empty for its defaults.
    pub transfer: Vec<String>,
    /// Limiting causes, most important first.
    pub verdicts: Vec<DiagnosisVerdict>,
    /// Shares of the transfer's time by state of the sender.
    pub states: Vec<StateShare>,
    /// Goodput: payload that arrived.
    pub goodput_bits_per_second: Option<f64>,
    /// Upper bound of the throughput by each resource, lowest first.
    pub bounds: Vec<ThroughputBound>,
    /// Next bound without the cause of the first verdict.
    pub next: Option<ThroughputBound>,
    /// Figures that contradict the measurement, each with what refutes it.
    #[serde(default)]
    pub contradictions: Vec<String>,
    /// Figures examined by the rules: name with its unit → value; `null` where it was not observed.
    pub figures: BTreeMap<String, Option<f64>>,
    /// Idle path, where it was measured.
    pub path: Option<PathDocument>,
    /// All samples of both hosts that the rules read, where they were requested.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<BTreeMap<String, serde_json::Value>>"))]
    pub observation: Option<Box<TransferObservation>>,
    /// Events that the kernels of the hosts traced (`--kernel-events`).
    #[serde(default)]
    pub kernel_events: Vec<HostKernelEvents>,
    /// Figures that could not be observed: name → reason.
    #[serde(default)]
    pub unknown: Vec<UnknownValue>,
    /// Notes shown below the table.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Host of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TransferHost {
    /// Host that sends the data.
    Sender,
    /// Host that receives the data.
    Receiver,
}

/// Events of a host's kernel during the transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostKernelEvents {
    /// Host.
    pub host: TransferHost,
    /// Events.
    #[serde(flatten)]
    pub events: KernelEvents,
}

impl HostKernelEvents {
    /// Events of the hosts that traced them.
    #[must_use]
    pub fn of(observation: &TransferObservation) -> Vec<Self> {
        let events = |(host, evidence): (TransferHost, Option<&HostEvidence>)| {
            let events = evidence?.kernel_events.clone()?;
            events.unavailable.is_none().then_some(Self { host, events })
        };
        Self::hosts(observation).into_iter().filter_map(events).collect()
    }

    /// Reasons why hosts did not trace their events, where that was requested.
    #[must_use]
    pub fn refusals(observation: &TransferObservation) -> Vec<UnknownValue> {
        let refusal = |(host, evidence): (TransferHost, Option<&HostEvidence>)| {
            let reason = evidence?.kernel_events.as_ref()?.unavailable.clone()?;
            let name = match host {
                TransferHost::Sender => "sender",
                TransferHost::Receiver => "receiver",
            };
            // A far end may report any text.
            let reason = reason.chars().filter(|character| !character.is_control()).take(MAX_REASON_LENGTH).collect();
            Some(UnknownValue { key: format!("kernel events of the {name}"), reason })
        };
        Self::hosts(observation).into_iter().filter_map(refusal).collect()
    }

    const fn hosts(observation: &TransferObservation) -> [(TransferHost, Option<&HostEvidence>); 2] {
        [(TransferHost::Sender, observation.sender.as_ref()), (TransferHost::Receiver, observation.receiver.as_ref())]
    }
}
