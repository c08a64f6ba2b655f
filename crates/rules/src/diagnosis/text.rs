//! Formatting of figures, and helpers to build a verdict.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_units::{BitRate, ByteCount, Ratio, display};

use crate::tuning::BufferNeed;

pub(super) fn rate(rate: BitRate) -> String {
    display::rate(rate)
}

/// Rate of this number of bits per second.
pub(super) fn bit_rate(bits_per_second: u64) -> BitRate {
    BitRate::from_bits_per_second(ByteCount::new(bits_per_second).as_f64())
}

pub(super) fn size(size: ByteCount) -> String {
    display::size(size)
}

pub(super) fn time(time: Duration) -> String {
    display::duration(time)
}

pub(super) fn percent(share: Ratio) -> String {
    display::percent(share)
}

/// Characters of a name that are safe to print: a far end reports any text.
pub(super) fn printable(name: &str) -> String {
    name.chars().filter(char::is_ascii_graphic).filter(|character| *character != '`').take(MAX_NAME_LENGTH).collect()
}

/// Maximum length of a device's name, and more than that of a handle (`IFNAMSIZ`).
const MAX_NAME_LENGTH: usize = 16;

/// Formats a share that may exceed one.
pub(super) fn percent_of(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Advice for the third number of a setting: the value that this path needs; `holder` is what keeps a buffer small that
/// may grow.
pub(super) fn third_number_advice(
    (host, key): (&str, &str),
    now: Option<ByteCount>,
    needed: Option<BufferNeed>,
    holder: &str,
) -> String {
    match needed {
        None => "measure the path's capacity (`linerate diagnose HOST`) to compute the value that it needs".to_owned(),
        Some(needed) if now.is_some_and(|now| now >= needed.size) => format!(
            "{key} of the {host} covers the path's need ({}): another limit keeps the buffer smaller, {holder}",
            needed.arithmetic
        ),
        Some(needed) => format!("on the {host}, the third number of {key}: {}", needed.arithmetic),
    }
}

/// Returns a verdict without evidence and advice.
pub(super) fn verdict(cause: Cause, confidence: Confidence, text: impl Into<String>) -> DiagnosisVerdict {
    DiagnosisVerdict {
        cause,
        confidence,
        text: text.into(),
        share: None,
        without: None,
        together_with: None,
        evidence: Vec::new(),
        advice: Vec::new(),
        tune: None,
    }
}

/// Builder methods of a verdict.
pub(super) trait VerdictBuilder {
    /// Adds a figure with its name, if known.
    fn figure(self, name: &str, value: Option<String>) -> Self;
    /// Adds one piece of advice.
    fn advice(self, text: impl Into<String>) -> Self;
}

impl VerdictBuilder for DiagnosisVerdict {
    fn figure(mut self, name: &str, value: Option<String>) -> Self {
        self.evidence.extend(value.map(|value| format!("{name}: {value}")));
        self
    }

    fn advice(mut self, text: impl Into<String>) -> Self {
        self.advice.push(text.into());
        self
    }
}
