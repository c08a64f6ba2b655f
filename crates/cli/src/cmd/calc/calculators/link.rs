//! Link goodput, framing, serialisation, queues and policers.

use std::time::Duration;

use clap::Args;
use linerate_analysis::formulas::{
    InternetProtocol, SegmentFraming, buffer_of_delay, frames_in, policed_volume, queueing_delay, serialisation_time,
};
use linerate_documents::calculation::CalculationUnit;
use linerate_units::{BitRate, ByteCount, Mtu, PacketCount};

use super::super::answer::{CalculatorAnswer, Quantity};
use super::super::values;
use super::TOO_LONG;

const SECOND: Duration = Duration::from_secs(1);
const MTU_TOO_SMALL: &str = "the headers fill the packet: the MTU is too small";

/// Link with its largest packet.
#[derive(Debug, Args)]
struct FramedLink {
    /// Rate of the link, for example 1G
    #[arg(value_parser = values::rate)]
    rate: BitRate,
    /// Largest IP packet
    #[arg(long, value_name = "SIZE", default_value = "1500", value_parser = values::mtu)]
    mtu: Mtu,
    /// Bytes around each packet: 38 on an Ethernet cable, 14 as tc and netem count, 42 with a VLAN tag
    #[arg(long, value_name = "SIZE", default_value = "38", value_parser = values::size_or_zero)]
    framing: ByteCount,
}

impl FramedLink {
    fn frames(&self) -> Quantity {
        Quantity::Count(frames_in(SECOND, self.rate, self.mtu, self.framing).get(), CalculationUnit::FramesPerSecond)
    }

    fn add_to(&self, answer: CalculatorAnswer) -> CalculatorAnswer {
        answer
            .input("rate of the link", Some(self.rate))
            .input("MTU", Some(self.mtu.byte_count()))
            .input("framing", Some(self.framing))
    }
}

/// Headers of a segment.
#[derive(Debug, Args)]
struct SegmentHeaders {
    /// With the header of IPv6 instead of IPv4
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Without TCP's timestamps option, which Linux uses
    #[arg(long)]
    no_timestamps: bool,
}

impl SegmentHeaders {
    fn framing(&self, mtu: Mtu, link: ByteCount) -> SegmentFraming {
        let protocol = if self.ipv6 { InternetProtocol::V6 } else { InternetProtocol::V4 };
        SegmentFraming { mtu, protocol, timestamps: !self.no_timestamps, link }
    }
}

#[derive(Debug, Args)]
pub(crate) struct EthernetArguments {
    #[command(flatten)]
    link: FramedLink,
    #[command(flatten)]
    headers: SegmentHeaders,
}

impl EthernetArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let framing = self.headers.framing(self.link.mtu, self.link.framing);
        let goodput = framing.goodput(self.link.rate).ok_or(MTU_TOO_SMALL)?;
        Ok(self
            .link
            .add_to(CalculatorAnswer::new("highest goodput of TCP", goodput))
            .derived("goodput share", framing.goodput_share().map(Quantity::Share))
            .derived("segment", framing.segment().map(linerate_units::Mss::byte_count))
            .derived("full frames", Some(self.link.frames())))
    }
}

#[derive(Debug, Args)]
pub(crate) struct FramesArguments {
    #[command(flatten)]
    link: FramedLink,
}

impl FramesArguments {
    pub(super) fn compute(&self) -> CalculatorAnswer {
        let frame = self.link.mtu.byte_count() + self.link.framing;
        self.link
            .add_to(CalculatorAnswer::new("full frames", self.link.frames()))
            .derived("time per frame", serialisation_time(frame, self.link.rate))
    }
}

#[derive(Debug, Args)]
pub(crate) struct MssArguments {
    /// Largest IP packet, for example 1500
    #[arg(value_parser = values::mtu)]
    mtu: Mtu,
    #[command(flatten)]
    headers: SegmentHeaders,
}

impl MssArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let segment = self.headers.framing(self.mtu, ByteCount::ZERO).segment().ok_or(MTU_TOO_SMALL)?;
        Ok(CalculatorAnswer::new("segment", segment.byte_count()).input("MTU", Some(self.mtu.byte_count())))
    }
}

#[derive(Debug, Args)]
pub(crate) struct SerialisationArguments {
    /// Rate of the link, for example 220k
    #[arg(value_parser = values::rate)]
    rate: BitRate,
    /// Size of the packet, for example 1500
    #[arg(value_parser = values::size)]
    size: ByteCount,
}

impl SerialisationArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let time = serialisation_time(self.size, self.rate).ok_or(TOO_LONG)?;
        Ok(CalculatorAnswer::new("serialisation time", time)
            .input("rate of the link", Some(self.rate))
            .input("packet", Some(self.size)))
    }
}

#[derive(Debug, Args)]
pub(crate) struct QueueArguments {
    /// Rate of the link, for example 300M
    #[arg(value_parser = values::rate)]
    rate: BitRate,
    #[command(flatten)]
    known: BufferOrDelay,
    /// A full packet with its header, for --packets
    #[arg(long, value_name = "SIZE", default_value = "1514", value_parser = values::size)]
    packet: ByteCount,
}

/// Buffer in front of a link, or its delay.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct BufferOrDelay {
    /// Buffer in front of the link: gives the delay
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    buffer: Option<ByteCount>,
    /// Buffer in full packets: gives the delay
    #[arg(long, value_name = "COUNT", value_parser = values::count)]
    packets: Option<u64>,
    /// Delay that a full buffer adds: gives the buffer
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    delay: Option<Duration>,
}

impl QueueArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let of_packets = self.known.packets.map(|packets| PacketCount::new(packets) * self.packet);
        let given = self.known.buffer.or(of_packets);
        let buffer = given.or(self.known.delay.map(|delay| buffer_of_delay(delay, self.rate))).unwrap_or_default();
        let answer = match given {
            Some(buffer) => CalculatorAnswer::new("queueing delay", queueing_delay(buffer, self.rate).ok_or(TOO_LONG)?),
            None => CalculatorAnswer::new("buffer", buffer),
        };
        let packets = buffer.get().checked_div(self.packet.get());
        Ok(answer
            .input("rate", Some(self.rate))
            .input("buffer", given)
            .input("delay", self.known.delay)
            .input("packet", Some(self.packet))
            .derived("in full packets", packets.map(|packets| Quantity::Count(packets, CalculationUnit::Packets))))
    }
}

#[derive(Debug, Args)]
pub(crate) struct PolicerArguments {
    /// Rate of the policer, for example 100M
    #[arg(value_parser = values::rate)]
    rate: BitRate,
    /// Size of the token bucket, for example 200kB
    #[arg(value_parser = values::size_or_zero)]
    burst: ByteCount,
    /// Observation time, for example 10s
    #[arg(value_parser = values::time)]
    time: Duration,
}

impl PolicerArguments {
    pub(super) fn compute(&self) -> CalculatorAnswer {
        CalculatorAnswer::new("most that passes", policed_volume(self.rate, self.burst, self.time))
            .input("rate", Some(self.rate))
            .input("burst", Some(self.burst))
            .input("time", Some(self.time))
            .derived("pace at (95 %)", Some(self.rate * 0.95))
            .derived("burst time at the rate", self.burst / self.rate)
    }
}
