//! Slow start, pacing and sequence numbers of a connection.

use std::time::Duration;

use clap::Args;
use linerate_analysis::formulas::{
    pacing_rate, sequence_wrap_time, serialisation_time, slow_start_rounds, slow_start_volume,
};
use linerate_documents::calculation::CalculationUnit;
use linerate_units::{BitRate, ByteCount, SegmentCount};

use super::super::answer::{CalculatorAnswer, Quantity};
use super::super::values;
use super::{FullPath, SegmentSize, TOO_LONG, TOO_SMALL};

#[derive(Debug, Args)]
pub(crate) struct SlowStartArguments {
    #[command(flatten)]
    path: FullPath,
    #[command(flatten)]
    segment: SegmentSize,
    /// Initial window in segments
    #[arg(long, value_name = "COUNT", default_value = "10", value_parser = values::count)]
    initial_window: u64,
}

impl SlowStartArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let FullPath { rate, rtt } = self.path;
        let (segment, initial) = (self.segment.size, SegmentCount::new(self.initial_window));
        let rounds = slow_start_rounds(rate, rtt, segment, initial).ok_or(TOO_SMALL)?.get();
        let time = Duration::try_from_secs_f64(rtt.as_secs_f64() * rounds).map_err(|_| TOO_LONG)?;
        Ok(CalculatorAnswer::new("time of slow start", time)
            .input("rate", Some(rate))
            .input("round-trip time", Some(rtt))
            .input("segment", Some(segment.byte_count()))
            .input("initial window", Some(Quantity::Count(self.initial_window, CalculationUnit::Segments)))
            .derived("round trips", Some(Quantity::Number(rounds)))
            .derived("sent during slow start", slow_start_volume(rate, rtt, segment, initial))
            .derived("omit from a test", Some(time.saturating_mul(2)))
            .derived("shortest fair test", Some(time.saturating_mul(10))))
    }
}

#[derive(Debug, Args)]
pub(crate) struct PacingArguments {
    /// Window: bytes that may be in flight, for example 16MiB
    #[arg(value_parser = values::size)]
    window: ByteCount,
    /// Round-trip time, for example 53ms
    #[arg(value_parser = values::time)]
    rtt: Duration,
    /// 1.2 in congestion avoidance, 2 in slow start
    #[arg(long, value_name = "NUMBER", default_value = "1.2", value_parser = values::factor)]
    gain: f64,
    /// A full packet with its header
    #[arg(long, value_name = "SIZE", default_value = "1514", value_parser = values::size)]
    packet: ByteCount,
}

impl PacingArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let rate = pacing_rate(self.window, self.rtt, self.gain).ok_or(TOO_SMALL)?;
        Ok(CalculatorAnswer::new("pacing rate", rate)
            .input("window", Some(self.window))
            .input("round-trip time", Some(self.rtt))
            .input("gain", Some(Quantity::Number(self.gain)))
            .input("packet", Some(self.packet))
            .derived("a packet every", serialisation_time(self.packet, rate))
            .derived("burst of a millisecond", Some(rate * Duration::from_millis(1))))
    }
}

#[derive(Debug, Args)]
pub(crate) struct WrapArguments {
    /// Rate, for example 10G
    #[arg(value_parser = values::rate)]
    rate: BitRate,
}

impl WrapArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let time = sequence_wrap_time(self.rate).ok_or(TOO_LONG)?;
        Ok(CalculatorAnswer::new("wrap time", time)
            .input("rate", Some(self.rate))
            .derived("half the wrap time (PAWS limit)", Some(time / 2)))
    }
}
