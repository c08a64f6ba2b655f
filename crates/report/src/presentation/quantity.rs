//! A number with its unit, and how a person reads it.

use core::time::Duration;

use linerate_model::schema::run::Unit;
use linerate_units::{BitRate, ByteCount, Ratio, display};

/// A number with its unit, as a document holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// The number, in [`Quantity::unit`].
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

impl Quantity {
    /// `value` in `unit`.
    #[must_use]
    pub const fn new(value: f64, unit: Unit) -> Self {
        Self { value, unit }
    }

    /// A time.
    #[must_use]
    pub fn nanoseconds(nanoseconds: u64) -> Self {
        Self::new(real(nanoseconds), Unit::Nanoseconds)
    }

    /// A time difference, which may be negative.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "exact for differences below 104 days")]
    pub const fn signed_nanoseconds(nanoseconds: i64) -> Self {
        Self::new(nanoseconds as f64, Unit::Nanoseconds)
    }

    /// A rate in bit/s.
    #[must_use]
    pub const fn bits_per_second(rate: f64) -> Self {
        Self::new(rate, Unit::BitsPerSecond)
    }

    /// A size.
    #[must_use]
    pub fn bytes(bytes: u64) -> Self {
        Self::new(real(bytes), Unit::Bytes)
    }

    /// A number of packets.
    #[must_use]
    pub fn packets(packets: u64) -> Self {
        Self::new(real(packets), Unit::Packets)
    }

    /// A number of TCP segments.
    #[must_use]
    pub fn segments(segments: u64) -> Self {
        Self::new(real(segments), Unit::Segments)
    }

    /// A number without a unit.
    #[must_use]
    pub fn count(count: u64) -> Self {
        Self::new(real(count), Unit::One)
    }

    /// A share from 0 to 1.
    #[must_use]
    pub const fn share(share: f64) -> Self {
        Self::new(share, Unit::Share)
    }

    /// Three significant digits and the unit, for example `18.5 ms`; what is countable is written out. Negative numbers
    /// have a hyphen as their sign, which a program can read, too.
    #[must_use]
    pub fn shown(self) -> String {
        if !self.value.is_finite() {
            return "unknown".to_owned();
        }
        let sign = if self.value < 0.0 { "-" } else { "" };
        format!("{sign}{}", self.magnitude())
    }

    /// As [`Quantity::shown`], with a plus sign before what is positive: for differences.
    #[must_use]
    pub fn shown_with_sign(self) -> String {
        if self.value > 0.0 { format!("+{}", self.shown()) } else { self.shown() }
    }

    /// As it stands in the document, for programs: `18500000`, `0.25`.
    #[must_use]
    pub fn exact(self) -> String {
        self.value.to_string()
    }

    /// The unit as the document names it.
    #[must_use]
    pub const fn unit_name(self) -> &'static str {
        unit_name(self.unit)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; larger is the largest")]
    fn magnitude(self) -> String {
        let value = self.value.abs();
        match self.unit {
            Unit::BitsPerSecond => display::rate(BitRate::from_bits_per_second(value)),
            // Sizes of packets are told apart by single bytes.
            Unit::Bytes if value < 9_999.5 => format!("{value:.0} B"),
            Unit::Bytes => display::size(ByteCount::from_f64(value)),
            Unit::Nanoseconds => display::duration(Duration::from_nanos(value.round() as u64)),
            Unit::Share => display::percent(Ratio::new(value).unwrap_or_default()),
            Unit::Packets => counted(value, "packet"),
            Unit::Segments => counted(value, "segment"),
            Unit::RoundTripsPerMinute => format!("{} RPM", plain(value)),
            Unit::One => plain(value),
        }
    }
}

/// The unit as the document names it.
pub(crate) const fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::BitsPerSecond => "bit/s",
        Unit::Bytes => "B",
        Unit::Nanoseconds => "ns",
        Unit::Share => "share",
        Unit::Packets => "packets",
        Unit::Segments => "segments",
        Unit::RoundTripsPerMinute => "round-trips/min",
        Unit::One => "1",
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53: 104 days, 9 PB")]
pub(crate) const fn real(number: u64) -> f64 {
    number as f64
}

fn counted(value: f64, noun: &str) -> String {
    let plural = if (value - 1.0).abs() < f64::EPSILON { "" } else { "s" };
    format!("{} {noun}{plural}", plain(value))
}

/// Whole numbers with their thousands apart, others with three significant digits.
fn plain(value: f64) -> String {
    if value.fract() == 0.0 || value >= 999.5 {
        return grouped(&format!("{value:.0}"));
    }
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$}")
}

/// `1234567` as `1 234 567`, with narrow no-break spaces; four digits stay together.
fn grouped(digits: &str) -> String {
    if digits.len() <= 4 {
        return digits.to_owned();
    }
    let mut text = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_shown() {
        let shown = |value, unit| Quantity::new(value, unit).shown();
        assert_eq!(shown(9.41e9, Unit::BitsPerSecond), "9.41 Gbit/s");
        assert_eq!(shown(1492.0, Unit::Bytes), "1492 B");
        assert_eq!(shown(65_536.0, Unit::Bytes), "65.5 kB");
        assert_eq!(shown(18_500_000.0, Unit::Nanoseconds), "18.5 ms");
        assert_eq!(shown(-1_200_000.0, Unit::Nanoseconds), "-1.20 ms");
        assert_eq!(shown(0.0028, Unit::Share), "0.28 %");
        assert_eq!(shown(1.0, Unit::Packets), "1 packet");
        assert_eq!(shown(12_345.0, Unit::Segments), "12\u{202f}345 segments");
        assert_eq!(shown(431.0, Unit::RoundTripsPerMinute), "431 RPM");
        assert_eq!(shown(0.333_333, Unit::One), "0.33");
        assert_eq!(shown(f64::NAN, Unit::One), "unknown");
    }

    #[test]
    fn a_difference_has_its_sign() {
        assert_eq!(Quantity::bits_per_second(1e6).shown_with_sign(), "+1.00 Mbit/s");
        assert_eq!(Quantity::bits_per_second(-1e6).shown_with_sign(), "-1.00 Mbit/s");
        assert_eq!(Quantity::bits_per_second(0.0).shown_with_sign(), "0 bit/s");
    }

    #[test]
    fn the_exact_number_reads_back() {
        for value in [0.1 + 0.2, 941_234_567.891, 1e300, 5e-324, -0.0] {
            assert_eq!(Quantity::new(value, Unit::One).exact().parse(), Ok(value));
        }
    }

    #[test]
    fn digits_are_grouped_from_the_right() {
        assert_eq!(grouped("999"), "999");
        assert_eq!(grouped("1234"), "1234");
        assert_eq!(grouped("1234567"), "1\u{202f}234\u{202f}567");
    }
}
