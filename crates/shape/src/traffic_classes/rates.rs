//! Rates of a traffic class.

use linerate_units::{BitRate, display, parse};

use crate::verify::PerDirection;

/// Rates of a class in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassRates {
    /// Guaranteed rate.
    pub guaranteed: BitRate,
    /// Rate up to which it uses what others leave.
    pub ceiling: BitRate,
}

/// Range of rates that `tc` computes with, in bit/s.
const RATE_RANGE: core::ops::RangeInclusive<f64> = 1e3..=1e12;

fn parse_rate(text: &str) -> Result<BitRate, String> {
    let rate = parse::rate(text).map_err(|error| error.to_string())?;
    if RATE_RANGE.contains(&rate.bits_per_second()) {
        Ok(rate)
    } else {
        Err(format!("the rate {text} is outside of 1 kbit/s to 1 Tbit/s"))
    }
}

/// Parses `RATE` or `RATE:CEILING`; without a ceiling the rate is the ceiling.
pub fn parse_rates(text: &str) -> Result<ClassRates, String> {
    let (rate, ceiling) = text.split_once(':').map_or((text, None), |(rate, ceiling)| (rate, Some(ceiling)));
    let guaranteed = parse_rate(rate.trim())?;
    let ceiling = ceiling.map_or(Ok(guaranteed), |ceiling| parse_rate(ceiling.trim()))?;
    if ceiling < guaranteed {
        let (rate, ceiling) = (display::rate(guaranteed), display::rate(ceiling));
        return Err(format!("the ceiling {ceiling} is below the guaranteed rate {rate}"));
    }
    Ok(ClassRates { guaranteed, ceiling })
}

/// Parses `RATES` for both directions, or `DOWN,UP`.
pub(super) fn parse_both(text: &str) -> Result<PerDirection<Option<ClassRates>>, String> {
    let (down, up) = text.split_once(',').unwrap_or((text, text));
    Ok(PerDirection { up: Some(parse_rates(up)?), down: Some(parse_rates(down)?) })
}
