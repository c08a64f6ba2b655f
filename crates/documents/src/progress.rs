//! Events of `--json-stream`: one JSON object per line while a command measures. All have the same keys.

use linerate_model::limit::LimitShares;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Kind of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The command begins; its name and its target are the text.
    #[default]
    Start,
    /// A phase begins; again, when its expected duration changes.
    Phase,
    /// Current figures.
    Sample,
    /// A run of several has ended; its figures are means.
    Run,
    /// A note for the user.
    Note,
    /// An error.
    Error,
    /// An interval of a command that does not end by itself, as a document.
    Interval,
    /// The result, as the document that `--json` prints. Comes last.
    Result,
}

/// Event of a running command. Keys that do not belong to its kind are `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProgressEvent {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Kind.
    pub event: EventKind,
    /// Time since the start of the command.
    pub at_ns: u64,
    /// Name of the phase.
    pub phase: Option<String>,
    /// Expected duration of the phase from now on; `null` when it depends on what is measured.
    pub left_ns: Option<u64>,
    /// Goodput to the remote host.
    pub up_bits_per_second: Option<f64>,
    /// Goodput from the remote host.
    pub down_bits_per_second: Option<f64>,
    /// Round-trip time.
    pub rtt_ns: Option<u64>,
    /// Transactions per second since the last sample.
    pub transactions_per_second: Option<f64>,
    /// Segments retransmitted since the last sample of the phase.
    pub retransmitted_segments: Option<u64>,
    /// Limits of the sender since the last sample; `null` when this host does not know them yet.
    pub limits: Option<LimitShares>,
    /// Text of a start, a note or an error; in one line, a run's result.
    pub text: Option<String>,
    /// Document of an interval or of the result.
    pub document: Option<Value>,
}

impl ProgressEvent {
    /// An event of this kind.
    #[must_use]
    pub fn new(event: EventKind) -> Self {
        Self { schema: SCHEMA, event, ..Self::default() }
    }

    /// An event with a text.
    #[must_use]
    pub fn with_text(event: EventKind, text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::new(event) }
    }

    /// The beginning of a phase.
    #[must_use]
    pub fn phase(name: impl Into<String>, left_ns: Option<u64>) -> Self {
        Self { phase: Some(name.into()), left_ns, ..Self::new(EventKind::Phase) }
    }
}
