//! Sentences and numbers for people, and what all rules need to say a verdict.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, Verdict};
use linerate_units::{BitRate, ByteCount, Ratio, display};

use crate::tuning::Need;

pub(super) fn rate(rate: BitRate) -> String {
    display::rate(rate)
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

/// A share that may be more than one.
pub(super) fn of_whole(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// What the largest of a setting's three numbers has to be for this path.
pub(super) fn third_number(host: &str, key: &str, now: Option<ByteCount>, needed: Option<Need>) -> String {
    match needed {
        None => "measure the path's capacity (`linerate diagnose HOST`) for the value that it needs".to_owned(),
        Some(needed) if now.is_some_and(|now| now >= needed.size) => format!(
            "{key} of the {host} allows what the path needs ({}): look for what else keeps the buffer smaller, a program \
             that sets it or net.ipv4.tcp_mem",
            needed.arithmetic
        ),
        Some(needed) => format!("on the {host}, the third number of {key}: {}", needed.arithmetic),
    }
}

/// A verdict with what it rests on.
pub(super) fn verdict(cause: Cause, confidence: Confidence, text: impl Into<String>) -> Verdict {
    Verdict { cause, confidence, text: text.into(), evidence: Vec::new(), advice: Vec::new() }
}

/// Adds figures and advice to a verdict as it is built.
pub(super) trait With {
    /// One figure with its name.
    fn figure(self, name: &str, value: Option<String>) -> Self;
    /// One thing to do.
    fn advice(self, text: impl Into<String>) -> Self;
}

impl With for Verdict {
    fn figure(mut self, name: &str, value: Option<String>) -> Self {
        self.evidence.extend(value.map(|value| format!("{name}: {value}")));
        self
    }

    fn advice(mut self, text: impl Into<String>) -> Self {
        self.advice.push(text.into());
        self
    }
}
