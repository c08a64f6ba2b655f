//! Bytes in flight and the rate that they carry.

use std::time::Duration;

use clap::Args;
use linerate_analysis::formulas::{
    bandwidth_delay_product, little_in_flight, little_rate, little_round_trip, round_trip_of_product, transfer_rate,
    transfer_time, transfer_volume, window_for_rate, window_rate,
};
use linerate_documents::calculation::CalculationUnit;
use linerate_units::{BitRate, ByteCount, SegmentCount};

use super::super::answer::{CalculatorAnswer, Quantity};
use super::super::values::{count, rate, size, time};
use super::{FullPath, SegmentSize, TOO_LONG, TOO_SMALL};

#[derive(Debug, Args)]
pub(crate) struct BdpArguments {
    #[command(flatten)]
    path: FullPath,
    #[command(flatten)]
    segment: SegmentSize,
}

impl BdpArguments {
    pub(super) fn compute(&self) -> CalculatorAnswer {
        let product = bandwidth_delay_product(self.path.rate, self.path.rtt);
        let segment = self.segment.size.byte_count();
        CalculatorAnswer::new("bandwidth-delay product", product)
            .input("rate", Some(self.path.rate))
            .input("round-trip time", Some(self.path.rtt))
            .input("segment", Some(segment))
            .derived("in full segments", segments(product, segment))
            .derived("two products", Some(product * 2))
            .derived("three products", Some(product * 3))
    }
}

/// Whole segments of a size.
pub(super) fn segments(size: ByteCount, segment: ByteCount) -> Option<Quantity> {
    size.get().checked_div(segment.get()).map(|segments| Quantity::Count(segments, CalculationUnit::Segments))
}

#[derive(Debug, Args)]
pub(crate) struct WindowArguments {
    /// Rate
    #[arg(long, value_parser = rate)]
    rate: Option<BitRate>,
    /// Round-trip time
    #[arg(long, value_name = "TIME", value_parser = time)]
    rtt: Option<Duration>,
    /// Window: bytes that may be in flight
    #[arg(long, value_name = "SIZE", value_parser = size)]
    window: Option<ByteCount>,
}

impl WindowArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let answer = match (self.rate, self.rtt, self.window) {
            (None, Some(rtt), Some(window)) => {
                CalculatorAnswer::new("rate", window_rate(window, rtt).ok_or(TOO_SMALL)?)
            }
            (Some(rate), Some(rtt), None) => CalculatorAnswer::new("window", window_for_rate(rate, rtt)),
            (Some(rate), None, Some(window)) => {
                CalculatorAnswer::new("round-trip time", round_trip_of_product(window, rate).ok_or(TOO_LONG)?)
            }
            _ => return Err("give two of --rate, --rtt and --window: the third is computed".to_owned()),
        };
        Ok(answer.input("rate", self.rate).input("round-trip time", self.rtt).input("window", self.window))
    }
}

#[derive(Debug, Args)]
pub(crate) struct LittleArguments {
    /// Rate
    #[arg(long, value_parser = rate)]
    rate: Option<BitRate>,
    /// Round-trip time
    #[arg(long, value_name = "TIME", value_parser = time)]
    rtt: Option<Duration>,
    /// Bytes in flight
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "segments")]
    in_flight: Option<ByteCount>,
    /// Segments in flight (cwnd, unacked)
    #[arg(long, value_name = "COUNT", value_parser = count)]
    segments: Option<u64>,
    #[command(flatten)]
    segment: SegmentSize,
}

impl LittleArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let segment = self.segment.size.byte_count();
        let of_segments = self.segments.map(|segments| SegmentCount::new(segments) * segment);
        let in_flight = self.in_flight.or(of_segments);
        let answer = match (self.rate, self.rtt, in_flight) {
            (None, Some(rtt), Some(in_flight)) => {
                CalculatorAnswer::new("rate", little_rate(in_flight, rtt).ok_or(TOO_SMALL)?)
            }
            (Some(rate), Some(rtt), None) => {
                let in_flight = little_in_flight(rate, rtt);
                CalculatorAnswer::new("in flight", in_flight)
                    .derived("segments in flight", segments(in_flight, segment))
            }
            (Some(rate), None, Some(in_flight)) => {
                CalculatorAnswer::new("round-trip time", little_round_trip(in_flight, rate).ok_or(TOO_LONG)?)
            }
            _ => {
                let missing = "give two of --rate, --rtt and --in-flight (or --segments): the third is computed";
                return Err(missing.to_owned());
            }
        };
        Ok(answer.input("rate", self.rate).input("round-trip time", self.rtt).input("in flight", in_flight))
    }
}

#[derive(Debug, Args)]
pub(crate) struct TransferArguments {
    /// Rate
    #[arg(long, value_parser = rate)]
    rate: Option<BitRate>,
    /// Bytes transferred
    #[arg(long, value_name = "SIZE", value_parser = size)]
    volume: Option<ByteCount>,
    /// Duration of the transfer
    #[arg(long, value_parser = time)]
    time: Option<Duration>,
}

impl TransferArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let answer = match (self.rate, self.volume, self.time) {
            (Some(rate), Some(volume), None) => {
                CalculatorAnswer::new("transfer time", transfer_time(volume, rate).ok_or(TOO_LONG)?)
            }
            (None, Some(volume), Some(time)) => {
                CalculatorAnswer::new("rate", transfer_rate(volume, time).ok_or(TOO_SMALL)?)
            }
            (Some(rate), None, Some(time)) => CalculatorAnswer::new("volume", transfer_volume(rate, time)),
            _ => return Err("give two of --rate, --volume and --time: the third is computed".to_owned()),
        };
        Ok(answer.input("rate", self.rate).input("volume", self.volume).input("time", self.time))
    }
}
