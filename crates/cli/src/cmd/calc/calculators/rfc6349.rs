//! Metrics of RFC 6349.

use std::time::Duration;

use clap::Args;
use linerate_analysis::formulas::{buffer_delay, tcp_efficiency, transfer_time, transfer_time_ratio};
use linerate_units::{BitRate, ByteCount, Ratio};

use super::super::answer::{CalculatorAnswer, Quantity};
use super::super::values::{rate, size, size_or_zero, time};
use super::{TOO_LONG, TOO_SMALL};

#[derive(Debug, Args)]
pub(crate) struct Rfc6349Arguments {
    /// Duration of the transfer, for the transfer time ratio
    #[arg(long, value_name = "TIME", value_parser = time)]
    actual: Option<Duration>,
    /// Duration at the highest rate
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["rate", "volume"])]
    ideal: Option<Duration>,
    /// Highest rate that TCP can have on the path, instead of --ideal
    #[arg(long, value_parser = rate, requires = "volume")]
    rate: Option<BitRate>,
    /// Bytes transferred, with --rate
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "rate")]
    volume: Option<ByteCount>,
    /// Bytes sent, retransmissions included, for the TCP efficiency
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "retransmitted")]
    sent: Option<ByteCount>,
    /// Bytes retransmitted
    #[arg(long, value_name = "SIZE", value_parser = size_or_zero, requires = "sent")]
    retransmitted: Option<ByteCount>,
    /// Least round-trip time of the idle path, for the buffer delay
    #[arg(long, value_name = "TIME", value_parser = time, requires = "loaded_rtt")]
    base_rtt: Option<Duration>,
    /// Mean round-trip time during the transfer
    #[arg(long, value_name = "TIME", value_parser = time, requires = "base_rtt")]
    loaded_rtt: Option<Duration>,
}

impl Rfc6349Arguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let at_rate = self.volume.zip(self.rate).map(|(volume, rate)| transfer_time(volume, rate).ok_or(TOO_LONG));
        let at_rate = at_rate.transpose()?;
        let answer = CalculatorAnswer::default()
            .result("transfer time ratio", self.time_ratio(self.ideal.or(at_rate))?)
            .result("TCP efficiency", self.efficiency()?.map(Quantity::Share))
            .result("buffer delay", self.delay()?.map(Quantity::Share))
            .result("ideal time", at_rate);
        if answer.is_empty() {
            let missing = "give --actual and --ideal (or --volume and --rate), or --sent and --retransmitted, or \
                           --base-rtt and --loaded-rtt";
            return Err(missing.to_owned());
        }
        Ok(answer
            .input("actual time", self.actual)
            .input("ideal time", self.ideal)
            .input("highest rate of TCP", self.rate)
            .input("volume", self.volume)
            .input("bytes sent", self.sent)
            .input("bytes retransmitted", self.retransmitted)
            .input("baseline round-trip time", self.base_rtt)
            .input("loaded round-trip time", self.loaded_rtt))
    }

    fn time_ratio(&self, ideal: Option<Duration>) -> Result<Option<Quantity>, String> {
        match (self.actual, ideal) {
            (Some(actual), Some(ideal)) => {
                let ratio = transfer_time_ratio(actual, ideal).ok_or(TOO_SMALL)?;
                Ok(Some(Quantity::Number(ratio.get())))
            }
            (Some(_), None) => Err("--actual needs --ideal, or --volume and --rate".to_owned()),
            (None, Some(_)) if self.ideal.is_some() => Err("--ideal needs --actual".to_owned()),
            (None, _) => Ok(None),
        }
    }

    fn efficiency(&self) -> Result<Option<Ratio>, String> {
        let Some((sent, retransmitted)) = self.sent.zip(self.retransmitted) else { return Ok(None) };
        let reason = "more was retransmitted than sent: --sent counts retransmissions too";
        tcp_efficiency(sent, retransmitted).map(Some).ok_or_else(|| reason.to_owned())
    }

    fn delay(&self) -> Result<Option<Ratio>, String> {
        let Some((loaded, base)) = self.loaded_rtt.zip(self.base_rtt) else { return Ok(None) };
        let reason = "the loaded path was faster than the idle one: the baseline was not its least round-trip time";
        buffer_delay(loaded, base).map(Some).ok_or_else(|| reason.to_owned())
    }
}
