//! Voice quality.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use linerate_analysis::formulas::{TransmissionRating, VoiceCodec, delay_impairment};
use linerate_units::Ratio;

use super::super::answer::{CalculatorAnswer, Quantity};
use super::super::values::{factor, loss_or_zero, time_or_zero};

#[derive(Debug, Args)]
pub(crate) struct MosArguments {
    /// One-way delay from mouth to ear, with packet and buffer against jitter, for example 150ms
    #[arg(value_parser = time_or_zero)]
    delay: Duration,
    /// Packets lost, or later than their playout
    #[arg(long, default_value = "0", value_parser = loss_or_zero)]
    loss: Ratio,
    /// Mean length of bursts of loss, relative to random loss: 1 to 8
    #[arg(long, default_value = "1", value_name = "N", value_parser = factor)]
    burst_ratio: f64,
    /// Codec; g711 conceals lost packets, g711-plain does not
    #[arg(long, default_value = VoiceCodec::G711.name, value_name = "NAME", value_parser = codecs())]
    codec: VoiceCodec,
}

fn codecs() -> impl clap::builder::TypedValueParser<Value = VoiceCodec> {
    let names = PossibleValuesParser::new(VoiceCodec::ALL.map(|codec| codec.name));
    names.map(|name| VoiceCodec::named(&name).unwrap_or(VoiceCodec::G711))
}

impl MosArguments {
    pub(super) fn compute(&self) -> CalculatorAnswer {
        let burst_ratio = Ratio::new(self.burst_ratio).unwrap_or_default();
        let rating = TransmissionRating::of(&self.codec, self.delay, self.loss, burst_ratio);
        CalculatorAnswer::new("mean opinion score", Quantity::Number(rating.mean_opinion_score()))
            .result("rating R", Some(Quantity::Number(rating.get().max(0.0))))
            .input("mouth-to-ear delay", Some(self.delay))
            .input("loss", Some(Quantity::Loss(self.loss)))
            .input("burst ratio", Some(Quantity::Number(self.burst_ratio)))
            .derived("impairment by delay Id", Some(Quantity::Number(delay_impairment(self.delay))))
            .derived(
                "impairment by codec and loss Ie,eff",
                Some(Quantity::Number(self.codec.loss_impairment(self.loss, burst_ratio))),
            )
    }
}
