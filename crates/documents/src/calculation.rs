//! Documents of `linerate calc --json`: the answer of a calculator, and the list of calculators.

use linerate_analysis::formulas::FormulaDescription;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// Version of the schema of both documents.
pub const SCHEMA: u32 = 1;

/// Answer of a calculator.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalculationDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Calculator.
    pub calc: CalculatorName,
    /// Results; the first one answers the question.
    pub answers: Vec<CalculatedFigure>,
    /// Given figures and assumed ones.
    pub inputs: Vec<CalculatedFigure>,
    /// Figures that follow from the results.
    pub derived: Vec<CalculatedFigure>,
    /// Formulas of the calculator.
    pub formulas: Vec<FormulaDescription>,
}

/// Figure of a calculation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalculatedFigure {
    /// Display title.
    pub title: String,
    /// Value in `unit`, unrounded; `null` where it is infinite.
    pub value: Option<Number>,
    /// Unit of `value`.
    pub unit: CalculationUnit,
    /// Rounded value with its unit for people: `146.25 MB`.
    pub text: String,
}

/// List of all calculators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalculatorsDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Calculators, in display order.
    pub calculators: Vec<CalculatorDescription>,
}

/// Calculator with its formulas and examples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalculatorDescription {
    /// Calculator.
    pub calc: CalculatorName,
    /// Purpose, as in the help.
    pub about: String,
    /// Formulas.
    pub formulas: Vec<FormulaDescription>,
    /// Examples as command lines.
    pub examples: Vec<String>,
}

/// Unit of the figures of calculators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum CalculationUnit {
    /// bit/s.
    #[serde(rename = "bit/s")]
    BitsPerSecond,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// A number without a unit; of a share, 1 is the whole.
    #[serde(rename = "1")]
    One,
    /// Bits.
    #[serde(rename = "bits")]
    Bits,
    /// TCP segments.
    #[serde(rename = "segments")]
    Segments,
    /// Packets.
    #[serde(rename = "packets")]
    Packets,
    /// Frames per second.
    #[serde(rename = "frames/s")]
    FramesPerSecond,
    /// Sockets.
    #[serde(rename = "sockets")]
    Sockets,
    /// Pages of memory.
    #[serde(rename = "pages")]
    Pages,
    /// A factor.
    #[serde(rename = "times")]
    Times,
}

impl CalculationUnit {
    /// Name in documents and texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BitsPerSecond => "bit/s",
            Self::Bytes => "B",
            Self::Seconds => "s",
            Self::One => "1",
            Self::Bits => "bits",
            Self::Segments => "segments",
            Self::Packets => "packets",
            Self::FramesPerSecond => "frames/s",
            Self::Sockets => "sockets",
            Self::Pages => "pages",
            Self::Times => "times",
        }
    }
}

/// Name of a calculator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CalculatorName {
    /// Bandwidth-delay product: bytes in flight on a full path.
    Bdp,
    /// Rate that a window allows, and window that a rate needs.
    Window,
    /// Receive buffer that a window needs, and rate that a buffer allows.
    Buffer,
    /// Rate, bytes in flight and round-trip time: the third from two.
    Little,
    /// Duration of a transfer, or its rate.
    Transfer,
    /// Loss that explains a rate, or rate that remains under a loss.
    Loss,
    /// Reno's rate under random loss (Mathis et al.).
    Mathis,
    /// Reno's rate under loss, timeouts included (Padhye et al.).
    Padhye,
    /// CUBIC's rate under random loss (RFC 9438).
    Cubic,
    /// Window that BBR needs, and its goodput under loss.
    Bbr,
    /// Duration of slow start until a path is full, and its volume.
    SlowStart,
    /// Pacing rate of a window on Linux, and its packet gaps.
    Pacing,
    /// Highest goodput of TCP on a link.
    Ethernet,
    /// Full frames that a link carries per second.
    Frames,
    /// Payload of a full segment.
    Mss,
    /// Time to send a packet on a link.
    Serialisation,
    /// Delay of a full buffer, and buffer size of a delay.
    Queue,
    /// Volume that passes a policer.
    Policer,
    /// Time until TCP's sequence numbers wrap.
    Wrap,
    /// Window scale that a window needs, and window that a scale allows.
    Scale,
    /// Send buffer that Linux aims at, and rate that a buffer allows.
    Memory,
    /// Highest memory use of the buffers of many sockets.
    Sockets,
    /// Memory in pages, as `tcp_mem` and `udp_mem` count it.
    Pages,
    /// Transfer time ratio, TCP efficiency and buffer delay (RFC 6349).
    Rfc6349,
    /// Mean opinion score of a call under delay and loss (E-model).
    Mos,
}

impl CalculatorName {
    /// Name of the subcommand of `linerate calc`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bdp => "bdp",
            Self::Window => "window",
            Self::Buffer => "buffer",
            Self::Little => "little",
            Self::Transfer => "transfer",
            Self::Loss => "loss",
            Self::Mathis => "mathis",
            Self::Padhye => "padhye",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::SlowStart => "slow-start",
            Self::Pacing => "pacing",
            Self::Ethernet => "ethernet",
            Self::Frames => "frames",
            Self::Mss => "mss",
            Self::Serialisation => "serialisation",
            Self::Queue => "queue",
            Self::Policer => "policer",
            Self::Wrap => "wrap",
            Self::Scale => "scale",
            Self::Memory => "memory",
            Self::Sockets => "sockets",
            Self::Pages => "pages",
            Self::Rfc6349 => "rfc6349",
            Self::Mos => "mos",
        }
    }
}
