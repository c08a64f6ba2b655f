//! A number with its unit, and its display text.

use core::time::Duration;

use linerate_documents::run::FigureUnit;
use linerate_units::{BitRate, ByteCount, Ratio, display};

/// A number with its unit, as stored in a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// The number, in [`Quantity::unit`].
    pub value: f64,
    /// Unit.
    pub unit: FigureUnit,
}

impl Quantity {
    /// `value` in `unit`.
    #[must_use]
    pub const fn new(value: f64, unit: FigureUnit) -> Self {
        Self { value, unit }
    }

    /// A time.
    #[must_use]
    pub fn nanoseconds(nanoseconds: u64) -> Self {
        Self::new(as_f64(nanoseconds), FigureUnit::Nanoseconds)
    }

    /// A time.
    #[must_use]
    pub fn duration(time: Duration) -> Self {
        Self::nanoseconds(linerate_units::serde::nanoseconds(time))
    }

    /// A time difference, which may be negative.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "exact for differences below 104 days")]
    pub const fn signed_nanoseconds(nanoseconds: i64) -> Self {
        Self::new(nanoseconds as f64, FigureUnit::Nanoseconds)
    }

    /// A rate in bit/s.
    #[must_use]
    pub const fn bits_per_second(rate: f64) -> Self {
        Self::new(rate, FigureUnit::BitsPerSecond)
    }

    /// A size.
    #[must_use]
    pub fn bytes(bytes: u64) -> Self {
        Self::new(as_f64(bytes), FigureUnit::Bytes)
    }

    /// A number of packets.
    #[must_use]
    pub fn packets(packets: u64) -> Self {
        Self::new(as_f64(packets), FigureUnit::Packets)
    }

    /// A number of TCP segments.
    #[must_use]
    pub fn segments(segments: u64) -> Self {
        Self::new(as_f64(segments), FigureUnit::Segments)
    }

    /// A number without a unit.
    #[must_use]
    pub fn count(count: u64) -> Self {
        Self::new(as_f64(count), FigureUnit::One)
    }

    /// A share from 0 to 1.
    #[must_use]
    pub const fn share(share: f64) -> Self {
        Self::new(share, FigureUnit::Share)
    }

    /// Display text: three significant digits and the unit, for example `18.5 ms`; counts are written out. Negative
    /// numbers have a hyphen as their sign, which programs can parse.
    #[must_use]
    pub fn display_text(self) -> String {
        if !self.value.is_finite() {
            return "unknown".to_owned();
        }
        let sign = if self.value < 0.0 { "-" } else { "" };
        format!("{sign}{}", self.magnitude())
    }

    /// As [`Quantity::display_text`], with a plus sign for positive values: for differences.
    #[must_use]
    pub fn signed_text(self) -> String {
        if self.value > 0.0 { format!("+{}", self.display_text()) } else { self.display_text() }
    }

    /// Exact number as in the document, for programs: `18500000`, `0.25`.
    #[must_use]
    pub fn exact(self) -> String {
        self.value.to_string()
    }

    /// Unit name as in the document.
    #[must_use]
    pub const fn unit_name(self) -> &'static str {
        unit_name(self.unit)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; larger is the largest")]
    fn magnitude(self) -> String {
        let value = self.value.abs();
        match self.unit {
            FigureUnit::BitsPerSecond => display::rate(BitRate::from_bits_per_second(value)),
            // Packet sizes differ by single bytes.
            FigureUnit::Bytes if value < 9_999.5 => format!("{value:.0} B"),
            FigureUnit::Bytes => display::size(ByteCount::from_f64(value)),
            FigureUnit::Nanoseconds => display::duration(Duration::from_nanos(value.round() as u64)),
            FigureUnit::Share => display::percent(Ratio::new(value).unwrap_or_default()),
            FigureUnit::Packets => count_text(value, "packet"),
            FigureUnit::Segments => count_text(value, "segment"),
            FigureUnit::RoundTripsPerMinute => format!("{} RPM", number_text(value)),
            FigureUnit::PerSecond => format!("{}/s", number_text(value)),
            FigureUnit::One => number_text(value),
        }
    }
}

/// Unit name as in the document.
pub(crate) const fn unit_name(unit: FigureUnit) -> &'static str {
    match unit {
        FigureUnit::BitsPerSecond => "bit/s",
        FigureUnit::Bytes => "B",
        FigureUnit::Nanoseconds => "ns",
        FigureUnit::Share => "share",
        FigureUnit::Packets => "packets",
        FigureUnit::Segments => "segments",
        FigureUnit::RoundTripsPerMinute => "round-trips/min",
        FigureUnit::PerSecond => "1/s",
        FigureUnit::One => "1",
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53: 104 days, 9 PB")]
pub(crate) const fn as_f64(number: u64) -> f64 {
    number as f64
}

/// Whole part of a number that is not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub(crate) const fn whole(number: f64) -> u64 {
    number as u64
}

fn count_text(value: f64, noun: &str) -> String {
    let plural = if (value - 1.0).abs() < f64::EPSILON { "" } else { "s" };
    format!("{} {noun}{plural}", number_text(value))
}

/// Whole numbers with their thousands apart, others with three significant digits.
fn number_text(value: f64) -> String {
    if value.fract() == 0.0 || value >= 999.5 {
        return group_digits(&format!("{value:.0}"));
    }
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$}")
}

/// `1234567` as `1 234 567`, with narrow no-break spaces; four digits stay together.
fn group_digits(digits: &str) -> String {
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
        let shown = |value, unit| Quantity::new(value, unit).display_text();
        assert_eq!(shown(9.41e9, FigureUnit::BitsPerSecond), "9.41 Gbit/s");
        assert_eq!(shown(1492.0, FigureUnit::Bytes), "1492 B");
        assert_eq!(shown(65_536.0, FigureUnit::Bytes), "65.5 kB");
        assert_eq!(shown(18_500_000.0, FigureUnit::Nanoseconds), "18.5 ms");
        assert_eq!(shown(-1_200_000.0, FigureUnit::Nanoseconds), "-1.20 ms");
        assert_eq!(shown(0.0028, FigureUnit::Share), "0.28 %");
        assert_eq!(shown(1.0, FigureUnit::Packets), "1 packet");
        assert_eq!(shown(12_345.0, FigureUnit::Segments), "12\u{202f}345 segments");
        assert_eq!(shown(431.0, FigureUnit::RoundTripsPerMinute), "431 RPM");
        assert_eq!(shown(43_100.4, FigureUnit::PerSecond), "43\u{202f}100/s");
        assert_eq!(shown(0.333_333, FigureUnit::One), "0.33");
        assert_eq!(shown(f64::NAN, FigureUnit::One), "unknown");
    }

    #[test]
    fn a_difference_has_its_sign() {
        assert_eq!(Quantity::bits_per_second(1e6).signed_text(), "+1.00 Mbit/s");
        assert_eq!(Quantity::bits_per_second(-1e6).signed_text(), "-1.00 Mbit/s");
        assert_eq!(Quantity::bits_per_second(0.0).signed_text(), "0 bit/s");
    }

    #[test]
    fn the_exact_number_reads_back() {
        for value in [0.1 + 0.2, 941_234_567.891, 1e300, 5e-324, -0.0] {
            assert_eq!(Quantity::new(value, FigureUnit::One).exact().parse(), Ok(value));
        }
    }

    #[test]
    fn digits_are_grouped_from_the_right() {
        assert_eq!(group_digits("999"), "999");
        assert_eq!(group_digits("1234"), "1234");
        assert_eq!(group_digits("1234567"), "1\u{202f}234\u{202f}567");
    }
}
