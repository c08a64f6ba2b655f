//! The calculators, by subject.

mod capacity;
mod link;
mod loss;
mod memory;
mod rfc6349;
mod start;

use std::time::Duration;

use linerate_model::formulas::{Framing, InternetProtocol};
use linerate_units::{BitRate, ByteCount, Ratio};

use super::quantity::{Kind, Quantity, Value};
use super::solve::{Calculator, Known};

/// All, in the order in which they are listed.
pub(super) static ALL: [&Calculator; 24] = [
    &capacity::BDP,
    &capacity::WINDOW_LIMIT,
    &memory::BUFFER,
    &capacity::LITTLE,
    &capacity::TRANSFER,
    &loss::LOSS,
    &loss::MATHIS,
    &loss::PADHYE,
    &loss::CUBIC,
    &loss::BBR,
    &start::SLOW_START,
    &start::PACING,
    &link::ETHERNET,
    &link::FRAMES,
    &link::MSS,
    &link::SERIALISATION,
    &link::QUEUE,
    &link::POLICER,
    &start::WRAP,
    &memory::SCALE,
    &memory::MEMORY,
    &memory::SOCKETS,
    &memory::PAGES,
    &rfc6349::RFC6349,
];

/// The calculator of this name.
pub(super) fn named(name: &str) -> Option<&'static Calculator> {
    ALL.iter().find(|calculator| calculator.name == name).copied()
}

const RATE: Quantity = Quantity::new("rate", "rate", Kind::Rate, "10G", "Rate");
const RTT: Quantity = Quantity::new("rtt", "round-trip time", Kind::Time, "117ms", "Round-trip time");
const WINDOW: Quantity = Quantity::new("window", "window", Kind::Size, "16MiB", "Window: bytes that may be in flight");
const LOSS: Quantity = Quantity::new("loss", "loss", Kind::Loss, "0.01%", "Probability that a packet is lost");
const SEGMENT: Quantity =
    Quantity::new("mss", "segment", Kind::Size, "1448", "Payload of a full segment").default("1448");

fn rate(rate: Option<BitRate>, why: &str) -> Result<Value, String> {
    rate.map(Value::Rate).ok_or_else(|| why.to_owned())
}

fn time(time: Option<Duration>, why: &str) -> Result<Value, String> {
    time.map(Value::Time).ok_or_else(|| why.to_owned())
}

fn size(size: Option<ByteCount>, why: &str) -> Result<Value, String> {
    size.map(Value::Size).ok_or_else(|| why.to_owned())
}

fn share(share: Option<Ratio>, why: &str) -> Result<Value, String> {
    share.map(Value::Ratio).ok_or_else(|| why.to_owned())
}

fn count(count: Option<u64>, why: &str) -> Result<Value, String> {
    count.map(|count| Value::Number(ByteCount::new(count).as_f64())).ok_or_else(|| why.to_owned())
}

/// A loss that explains a rate, where there is one.
fn explaining(loss: Option<Ratio>) -> Result<Value, String> {
    match loss {
        Some(loss) if loss.get() <= 1.0 => Ok(Value::Ratio(loss)),
        _ => Err("no loss explains this rate: it is less than a segment in each round trip, where timeouts rule\n\
                  `linerate calc padhye` takes them into account"
            .to_owned()),
    }
}

/// What surrounds a segment, by the options of the calculators of links.
fn framing(known: &Known) -> Result<Framing, String> {
    let protocol = if known.choice("ip")? == "6" { InternetProtocol::V6 } else { InternetProtocol::V4 };
    Ok(Framing {
        mtu: known.mtu("mtu")?,
        protocol,
        timestamps: known.choice("timestamps")? == "yes",
        link: known.size("framing").unwrap_or(ByteCount::ZERO),
    })
}

/// Beyond what this program's clocks and numbers hold.
const TOO_LONG: &str = "the time is too long for any clock: check the units";
/// Only when rounding left nothing.
const TOO_SMALL: &str = "the figures are too small to give an answer: check the units";
