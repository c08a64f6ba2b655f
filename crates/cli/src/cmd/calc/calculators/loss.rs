//! Rate limited by loss, and loss inferred from a rate.

use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate_analysis::formulas::{
    bbr_goodput, bbr_window, cubic_loss, cubic_rate, loss_for_rate, loss_limited_rate, mathis_loss, mathis_rate,
    padhye_loss, padhye_rate,
};
use linerate_units::{BitRate, Mss, Ratio};

use super::super::answer::{CalculatorAnswer, Quantity};
use super::super::values;
use super::capacity::segments;
use super::{FullPath, SegmentSize, TOO_SMALL};

/// Path with loss, and a rate or loss on it.
#[derive(Debug, Args)]
struct LossyPath {
    /// Round-trip time
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    rtt: Duration,
    #[command(flatten)]
    segment: SegmentSize,
    #[command(flatten)]
    known: LossOrRate,
}

/// Probability of loss, or the rate that it explains.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct LossOrRate {
    /// Probability that a packet is lost: gives the rate
    #[arg(long, value_parser = values::loss)]
    loss: Option<Ratio>,
    /// Rate: gives the loss that explains it
    #[arg(long, value_parser = values::rate)]
    rate: Option<BitRate>,
}

impl LossyPath {
    /// Answers with the missing one of rate and loss.
    fn answer(
        &self,
        rate_of: impl Fn(Mss, Duration, Ratio) -> Option<BitRate>,
        loss_of: impl Fn(Mss, Duration, BitRate) -> Option<Ratio>,
    ) -> Result<CalculatorAnswer, String> {
        let segment = self.segment.size;
        let explains = |rate| {
            loss_of(segment, self.rtt, rate).filter(|loss| loss.get() <= 1.0).ok_or(
                "no loss explains this rate: it is less than a segment in each round trip, where timeouts rule\n\
                 `linerate calc padhye` takes them into account",
            )
        };
        let (answer, rate, loss) = match (self.known.loss, self.known.rate) {
            (Some(loss), _) => {
                let rate = rate_of(segment, self.rtt, loss).ok_or(TOO_SMALL)?;
                (CalculatorAnswer::new("rate", rate), rate, loss)
            }
            (None, Some(rate)) => {
                let loss = explains(rate)?;
                (CalculatorAnswer::new("loss", Quantity::Loss(loss)), rate, loss)
            }
            (None, None) => return Err("give --loss or --rate".to_owned()),
        };
        let between_losses = f64::from(segment.get()) * 8.0 / loss.get() / rate.bits_per_second();
        Ok(answer
            .input("rate", self.known.rate)
            .input("round-trip time", Some(self.rtt))
            .input("loss", self.known.loss.map(Quantity::Loss))
            .input("segment", Some(segment.byte_count()))
            .derived("a loss every", Duration::try_from_secs_f64(between_losses).ok())
            .derived("mean window", segments(rate * self.rtt, segment.byte_count())))
    }
}

/// Congestion controls whose rate depends on the loss.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LossBased {
    Reno,
    Cubic,
}

#[derive(Debug, Args)]
pub(crate) struct LossArguments {
    #[command(flatten)]
    path: LossyPath,
    /// Congestion control
    #[arg(long, value_name = "NAME", default_value = "reno")]
    congestion: LossBased,
}

impl LossArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let congestion = match self.congestion {
            LossBased::Reno => "reno",
            LossBased::Cubic => "cubic",
        };
        self.path.answer(
            |segment, rtt, loss| loss_limited_rate(congestion, segment, rtt, loss),
            |segment, rtt, rate| loss_for_rate(congestion, segment, rtt, rate),
        )
    }
}

#[derive(Debug, Args)]
pub(crate) struct MathisArguments {
    #[command(flatten)]
    path: LossyPath,
    /// 1.2247 on Linux, 0.866 with delayed acknowledgements counted once, 1 in many slides
    #[arg(long, value_name = "NUMBER", default_value = "1.2247448713915890", value_parser = values::factor)]
    #[arg(hide_default_value = true)]
    constant: f64,
}

impl MathisArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let answer = self.path.answer(
            |segment, rtt, loss| mathis_rate(segment, rtt, loss, self.constant),
            |segment, rtt, rate| mathis_loss(segment, rtt, rate, self.constant),
        )?;
        Ok(answer.input("constant", Some(Quantity::Number(self.constant))))
    }
}

#[derive(Debug, Args)]
pub(crate) struct PadhyeArguments {
    #[command(flatten)]
    path: LossyPath,
    /// Retransmission timeout; Linux has at least 200 ms
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = values::time)]
    timeout: Duration,
    /// Segments that an acknowledgement counts for: 1 on Linux
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = values::factor)]
    segments_per_ack: f64,
}

impl PadhyeArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let answer = self.path.answer(
            |segment, rtt, loss| padhye_rate(segment, rtt, loss, self.timeout, self.segments_per_ack),
            |segment, rtt, rate| padhye_loss(segment, rtt, rate, self.timeout, self.segments_per_ack),
        )?;
        Ok(answer
            .input("retransmission timeout", Some(self.timeout))
            .input("segments per acknowledgement", Some(Quantity::Number(self.segments_per_ack))))
    }
}

#[derive(Debug, Args)]
pub(crate) struct CubicArguments {
    #[command(flatten)]
    path: LossyPath,
}

impl CubicArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        self.path.answer(cubic_rate, cubic_loss)
    }
}

#[derive(Debug, Args)]
pub(crate) struct BbrArguments {
    #[command(flatten)]
    path: FullPath,
    /// Probability that a packet is lost
    #[arg(long, default_value = "0", value_parser = values::loss_or_zero)]
    loss: Ratio,
}

impl BbrArguments {
    pub(super) fn compute(&self) -> CalculatorAnswer {
        let FullPath { rate, rtt } = self.path;
        CalculatorAnswer::new("window", bbr_window(rate, rtt))
            .input("rate", Some(rate))
            .input("round-trip time", Some(rtt))
            .input("loss", Some(Quantity::Loss(self.loss)))
            .derived("delivered", bbr_goodput(rate, self.loss))
    }
}
