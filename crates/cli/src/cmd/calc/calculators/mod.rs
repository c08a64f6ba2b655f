//! Calculators, by subject.

mod capacity;
mod connection;
mod link;
mod loss;
mod memory;
mod rfc6349;
mod voice;

use std::time::Duration;

use clap::{Args, Subcommand};
use linerate_documents::calculation::CalculatorName;
use linerate_units::{BitRate, Mss};

use super::answer::CalculatorAnswer;
use super::values;

/// Calculators with their arguments.
#[derive(Debug, Subcommand)]
pub(super) enum Calculator {
    /// Bandwidth-delay product: bytes in flight on a full path
    Bdp(capacity::BdpArguments),
    /// Rate that a window allows, and window that a rate needs
    Window(capacity::WindowArguments),
    /// Receive buffer that a window needs, and rate that a buffer allows
    Buffer(memory::BufferArguments),
    /// Rate, bytes in flight and round-trip time: the third from two
    Little(capacity::LittleArguments),
    /// Duration of a transfer, or its rate
    Transfer(capacity::TransferArguments),
    /// Loss that explains a rate, or rate that remains under a loss
    Loss(loss::LossArguments),
    /// Reno's rate under random loss (Mathis et al.)
    Mathis(loss::MathisArguments),
    /// Reno's rate under loss, timeouts included (Padhye et al.)
    Padhye(loss::PadhyeArguments),
    /// CUBIC's rate under random loss (RFC 9438)
    Cubic(loss::CubicArguments),
    /// Window that BBR needs, and its goodput under loss
    Bbr(loss::BbrArguments),
    /// Duration of slow start until a path is full, and its volume
    SlowStart(connection::SlowStartArguments),
    /// Pacing rate of a window on Linux, and its packet gaps
    Pacing(connection::PacingArguments),
    /// Highest goodput of TCP on a link
    Ethernet(link::EthernetArguments),
    /// Full frames that a link carries per second
    Frames(link::FramesArguments),
    /// Payload of a full segment
    Mss(link::MssArguments),
    /// Time to send a packet on a link
    Serialisation(link::SerialisationArguments),
    /// Delay of a full buffer, and buffer size of a delay
    Queue(link::QueueArguments),
    /// Volume that passes a policer
    Policer(link::PolicerArguments),
    /// Time until TCP's sequence numbers wrap
    Wrap(connection::WrapArguments),
    /// Window scale that a window needs, and window that a scale allows
    Scale(memory::ScaleArguments),
    /// Send buffer that Linux aims at, and rate that a buffer allows
    Memory(memory::MemoryArguments),
    /// Highest memory use of the buffers of many sockets
    Sockets(memory::SocketsArguments),
    #[command(about = "Memory in pages, as tcp_mem and udp_mem count it")]
    Pages(memory::PagesArguments),
    /// Transfer time ratio, TCP efficiency and buffer delay (RFC 6349)
    Rfc6349(rfc6349::Rfc6349Arguments),
    /// Mean opinion score of a call under delay and loss (E-model)
    Mos(voice::MosArguments),
}

impl Calculator {
    /// Computes the answer, or the reason why there is none, and returns it with the calculator's name.
    pub(super) fn compute(&self) -> (CalculatorName, Result<CalculatorAnswer, String>) {
        match self {
            Self::Bdp(arguments) => (CalculatorName::Bdp, Ok(arguments.compute())),
            Self::Window(arguments) => (CalculatorName::Window, arguments.compute()),
            Self::Buffer(arguments) => (CalculatorName::Buffer, arguments.compute()),
            Self::Little(arguments) => (CalculatorName::Little, arguments.compute()),
            Self::Transfer(arguments) => (CalculatorName::Transfer, arguments.compute()),
            Self::Loss(arguments) => (CalculatorName::Loss, arguments.compute()),
            Self::Mathis(arguments) => (CalculatorName::Mathis, arguments.compute()),
            Self::Padhye(arguments) => (CalculatorName::Padhye, arguments.compute()),
            Self::Cubic(arguments) => (CalculatorName::Cubic, arguments.compute()),
            Self::Bbr(arguments) => (CalculatorName::Bbr, Ok(arguments.compute())),
            Self::SlowStart(arguments) => (CalculatorName::SlowStart, arguments.compute()),
            Self::Pacing(arguments) => (CalculatorName::Pacing, arguments.compute()),
            Self::Ethernet(arguments) => (CalculatorName::Ethernet, arguments.compute()),
            Self::Frames(arguments) => (CalculatorName::Frames, Ok(arguments.compute())),
            Self::Mss(arguments) => (CalculatorName::Mss, arguments.compute()),
            Self::Serialisation(arguments) => (CalculatorName::Serialisation, arguments.compute()),
            Self::Queue(arguments) => (CalculatorName::Queue, arguments.compute()),
            Self::Policer(arguments) => (CalculatorName::Policer, Ok(arguments.compute())),
            Self::Wrap(arguments) => (CalculatorName::Wrap, arguments.compute()),
            Self::Scale(arguments) => (CalculatorName::Scale, arguments.compute()),
            Self::Memory(arguments) => (CalculatorName::Memory, arguments.compute()),
            Self::Sockets(arguments) => (CalculatorName::Sockets, Ok(arguments.compute())),
            Self::Pages(arguments) => (CalculatorName::Pages, arguments.compute()),
            Self::Rfc6349(arguments) => (CalculatorName::Rfc6349, arguments.compute()),
            Self::Mos(arguments) => (CalculatorName::Mos, Ok(arguments.compute())),
        }
    }
}

/// Rate and round-trip time of a path.
#[derive(Debug, Args)]
struct FullPath {
    /// Rate, for example 10G
    #[arg(value_parser = values::rate)]
    rate: BitRate,
    /// Round-trip time, for example 117ms
    #[arg(value_parser = values::time)]
    rtt: Duration,
}

/// Payload of a full segment.
#[derive(Debug, Args)]
struct SegmentSize {
    /// Payload of a full segment
    #[arg(long = "mss", value_name = "SIZE", default_value = "1448", value_parser = values::segment)]
    size: Mss,
}

/// Error for times beyond the range of clocks and numbers.
const TOO_LONG: &str = "the time is too long for any clock: check the units";
/// Error for results that rounding reduced to nothing.
const TOO_SMALL: &str = "the figures are too small to give an answer: check the units";
