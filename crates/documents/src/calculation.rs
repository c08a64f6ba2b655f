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

/// Defines an enumeration whose variants have one name, in documents and in texts.
macro_rules! named_variants {
    ($(#[$attribute:meta])* $type:ident { $(#[doc = $doc:literal] $variant:ident = $name:literal,)+ }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub enum $type {
            $(#[doc = $doc] #[serde(rename = $name)] $variant,)+
        }

        impl $type {
            /// Name in documents and in texts.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

named_variants! {
    /// Unit of the figures of calculators.
    CalculationUnit {
        /// bit/s.
        BitsPerSecond = "bit/s",
        /// Bytes.
        Bytes = "B",
        /// Seconds.
        Seconds = "s",
        /// A number without a unit; of a share, 1 is the whole.
        One = "1",
        /// Bits.
        Bits = "bits",
        /// TCP segments.
        Segments = "segments",
        /// Packets.
        Packets = "packets",
        /// Frames per second.
        FramesPerSecond = "frames/s",
        /// Sockets.
        Sockets = "sockets",
        /// Pages of memory.
        Pages = "pages",
        /// A factor.
        Times = "times",
    }
}

named_variants! {
    /// Name of a calculator.
    CalculatorName {
        /// Bandwidth-delay product: bytes in flight on a full path.
        Bdp = "bdp",
        /// Rate that a window allows, and window that a rate needs.
        Window = "window",
        /// Receive buffer that a window needs, and rate that a buffer allows.
        Buffer = "buffer",
        /// Rate, bytes in flight and round-trip time: the third from two.
        Little = "little",
        /// Duration of a transfer, or its rate.
        Transfer = "transfer",
        /// Loss that explains a rate, or rate that remains under a loss.
        Loss = "loss",
        /// Reno's rate under random loss (Mathis et al.).
        Mathis = "mathis",
        /// Reno's rate under loss, timeouts included (Padhye et al.).
        Padhye = "padhye",
        /// CUBIC's rate under random loss (RFC 9438).
        Cubic = "cubic",
        /// Window that BBR needs, and its goodput under loss.
        Bbr = "bbr",
        /// Duration of slow start until a path is full, and its volume.
        SlowStart = "slow-start",
        /// Pacing rate of a window on Linux, and its packet gaps.
        Pacing = "pacing",
        /// Highest goodput of TCP on a link.
        Ethernet = "ethernet",
        /// Full frames that a link carries per second.
        Frames = "frames",
        /// Payload of a full segment.
        Mss = "mss",
        /// Time to send a packet on a link.
        Serialisation = "serialisation",
        /// Delay of a full buffer, and buffer size of a delay.
        Queue = "queue",
        /// Volume that passes a policer.
        Policer = "policer",
        /// Time until TCP's sequence numbers wrap.
        Wrap = "wrap",
        /// Window scale that a window needs, and window that a scale allows.
        Scale = "scale",
        /// Send buffer that Linux aims at, and rate that a buffer allows.
        Memory = "memory",
        /// Highest memory use of the buffers of many sockets.
        Sockets = "sockets",
        /// Memory in pages, as `tcp_mem` and `udp_mem` count it.
        Pages = "pages",
        /// Transfer time ratio, TCP efficiency and buffer delay (RFC 6349).
        Rfc6349 = "rfc6349",
        /// Mean opinion score of a call under delay and loss (E-model).
        Mos = "mos",
    }
}
