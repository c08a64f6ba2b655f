//! What calculators take and give: quantities by name, read from words, shown with their units.

use std::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio, parse};

use super::figure;

/// What kind of quantity it is, which says how it is read and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Rate,
    Size,
    Time,
    /// A share of a whole, in percent.
    Share,
    /// In percent of another quantity, perhaps more than that.
    Excess,
    /// A probability of loss: in percent, or as one in so many.
    Loss,
    /// A whole number of these.
    Count(&'static str),
    /// A number without a unit.
    Factor,
    /// One of some words.
    Choice(&'static [&'static str]),
}

/// A value of one of these kinds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Rate(BitRate),
    Size(ByteCount),
    Time(Duration),
    Ratio(Ratio),
    Number(f64),
    Choice(&'static str),
}

/// A quantity of a calculator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantity {
    /// Name of its option.
    pub(super) name: &'static str,
    /// What it is called in a sentence.
    pub(super) title: &'static str,
    pub(super) kind: Kind,
    /// A value of it, for errors.
    pub(super) example: &'static str,
    pub(super) help: &'static str,
    /// The value where none is given.
    pub(super) default: Option<&'static str>,
    /// Whether it may be nothing.
    zero: bool,
}

impl Quantity {
    pub(super) const fn new(
        name: &'static str,
        title: &'static str,
        kind: Kind,
        example: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, title, kind, example, help, default: None, zero: false }
    }

    pub(super) const fn default(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    pub(super) const fn or_zero(self) -> Self {
        Self { zero: true, ..self }
    }

    /// Reads it from a word.
    ///
    /// # Errors
    /// Words that are not of its kind, and values that make no sense: what is wrong, and what would be right.
    pub(super) fn read(&self, word: &str) -> Result<Value, String> {
        if word.trim_start().starts_with('-') {
            return Err(format!(
                "--{} {word}: a {} cannot be negative; an example is {}",
                self.name, self.title, self.example
            ));
        }
        let value = self.kind.read(word).map_err(|why| format!("--{} {word}: {why}", self.name))?;
        if value.is_zero() && !self.zero {
            return Err(format!("--{} {word}: {}; an example is {}", self.name, self.kind.of_nothing(), self.example));
        }
        if matches!(self.kind, Kind::Loss | Kind::Share) && value.number() > 1.0 {
            return Err(format!("--{} {word}: more than all; an example is {}", self.name, self.example));
        }
        Ok(value)
    }

    /// Whether a word without an option can mean this quantity. A number without any unit is never a rate: 65535 is
    /// likelier a window.
    pub(super) fn takes(&self, word: &str) -> bool {
        let bare = plain(word).is_some();
        !(bare && self.kind == Kind::Rate) && self.kind.read(word).is_ok()
    }

    /// Whether the word is a value of it that makes sense.
    pub(super) fn takes_well(&self, word: &str) -> bool {
        self.takes(word) && self.read(word).is_ok()
    }
}

impl Kind {
    fn read(self, word: &str) -> Result<Value, String> {
        match self {
            Self::Rate => parse::rate(word).map(Value::Rate).map_err(|error| error.expected().to_owned()),
            Self::Size => parse::size(word).map(Value::Size).map_err(|error| error.expected().to_owned()),
            Self::Time => parse::time(word).map(Value::Time).map_err(|error| error.expected().to_owned()),
            Self::Share | Self::Excess | Self::Loss => {
                probability(word).map(Value::Ratio).ok_or_else(|| PROBABILITIES.to_owned())
            }
            Self::Count(unit) => {
                count(word).ok_or_else(|| format!("expected a whole number of {unit}, such as 10 or 1M"))
            }
            Self::Factor => factor(word).ok_or_else(|| "expected a number, such as 2 or 1.2247".to_owned()),
            Self::Choice(words) => words
                .iter()
                .find(|known| known.eq_ignore_ascii_case(word))
                .map(|known| Value::Choice(known))
                .ok_or_else(|| format!("expected {}", words.join(" or "))),
        }
    }

    /// The word for it in a synopsis.
    pub(super) const fn placeholder(self) -> &'static str {
        match self {
            Self::Rate => "RATE",
            Self::Size => "SIZE",
            Self::Time => "TIME",
            Self::Share | Self::Excess => "SHARE",
            Self::Loss => "LOSS",
            Self::Count(_) => "COUNT",
            Self::Factor => "NUMBER",
            Self::Choice(_) => "WORD",
        }
    }

    /// Why nothing of it makes no sense.
    const fn of_nothing(self) -> &'static str {
        match self {
            Self::Rate => "nothing moves at a rate of nothing",
            Self::Time => "everything takes some time",
            Self::Loss => "without loss, loss sets no bound",
            _ => "it must be more than nothing",
        }
    }

    /// The unit of its number in a document.
    pub(super) const fn unit(self) -> Option<&'static str> {
        match self {
            Self::Rate => Some("bit/s"),
            Self::Size => Some("B"),
            Self::Time => Some("s"),
            Self::Share | Self::Excess | Self::Loss | Self::Factor => Some("1"),
            Self::Count(unit) => Some(unit),
            Self::Choice(_) => None,
        }
    }
}

const PROBABILITIES: &str =
    "expected a share in percent or as a fraction, such as 0.01%, 1/36000 or 2.8e-5 (0.01 alone could be either)";

/// `0.01%`, `1/36000`, `2.8e-5`. A bare decimal might be meant in percent; with an exponent nobody means that.
fn probability(word: &str) -> Option<Ratio> {
    if let Some((part, whole)) = word.split_once('/') {
        return Ratio::of(plain(part)?, plain(whole)?);
    }
    if let Some((digits, exponent)) = word.split_once(['e', 'E']) {
        let exponent = exponent.strip_prefix('-')?;
        let is_number = plain(digits).is_some() && exponent.bytes().all(|byte| byte.is_ascii_digit());
        return is_number.then(|| word.parse().ok().and_then(Ratio::new)).flatten();
    }
    match word {
        "0" => Some(Ratio::ZERO),
        _ => parse::ratio(word).ok(),
    }
}

/// Digits, perhaps a point and more digits.
pub(super) fn plain(word: &str) -> Option<f64> {
    let is_number = word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(|c: char| c.is_ascii_digit())
        && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_number.then(|| word.parse().ok()).flatten().filter(|number: &f64| number.is_finite())
}

fn factor(word: &str) -> Option<Value> {
    plain(word).map(Value::Number)
}

/// A whole number, perhaps with an SI prefix: `10`, `1M`.
fn count(word: &str) -> Option<Value> {
    let (digits, factor) = match word.char_indices().next_back()? {
        (at, 'k' | 'K') => (&word[..at], 1e3),
        (at, 'M') => (&word[..at], 1e6),
        (at, 'G') => (&word[..at], 1e9),
        _ => (word, 1.0),
    };
    plain(digits)
        .map(|number| number * factor)
        .filter(|number| number.fract() == 0.0 && *number < 1e18)
        .map(Value::Number)
}

impl Value {
    /// In the base unit: bit/s, bytes, seconds, shares of one.
    pub(super) fn number(self) -> f64 {
        match self {
            Self::Rate(rate) => rate.bits_per_second(),
            Self::Size(size) => size.as_f64(),
            Self::Time(time) => time.as_secs_f64(),
            Self::Ratio(ratio) => ratio.get(),
            Self::Number(number) => number,
            Self::Choice(_) => f64::NAN,
        }
    }

    pub(super) fn is_zero(self) -> bool {
        self.number() == 0.0
    }

    /// With its unit: `146.25 MB`.
    pub(super) fn text(self, kind: Kind) -> String {
        match (self, kind) {
            (Self::Rate(rate), _) => figure::rate(rate),
            (Self::Size(size), _) => figure::size(size),
            (Self::Time(time), _) => figure::time(time),
            (Self::Ratio(ratio), _) => figure::percent(ratio),
            (Self::Number(number), Kind::Count(unit)) => format!("{} {unit}", figure::number(number)),
            (Self::Number(number), _) => figure::number(number),
            (Self::Choice(word), _) => word.to_owned(),
        }
    }

    /// The same in other units, where that helps.
    pub(super) fn other_forms(self, kind: Kind) -> Vec<String> {
        match (self, kind) {
            (Self::Rate(rate), _) if rate.bits_per_second() >= 8000.0 => vec![figure::rate_in_bytes(rate)],
            (Self::Size(size), _) => size_forms(size),
            (Self::Ratio(ratio), Kind::Loss) => figure::one_in(ratio).into_iter().collect(),
            (Self::Time(time), _) if time >= Duration::from_secs(60) => {
                vec![format!("{} s", figure::number(time.as_secs_f64()))]
            }
            _ => Vec::new(),
        }
    }

    /// As a word of a command line that is read as the same value.
    pub(super) fn word(self, kind: Kind) -> String {
        match (self, kind) {
            (Self::Rate(rate), _) => figure::rate_word(rate),
            (Self::Size(size), _) => figure::size_word(size),
            (Self::Time(time), _) => figure::time_word(time),
            (Self::Ratio(ratio), _) if ratio == Ratio::ZERO => "0".to_owned(),
            (Self::Ratio(ratio), _) if ratio.get() < 1e-7 => format!("{:.4e}", ratio.get()),
            (Self::Ratio(ratio), _) => format!("{}%", figure::significant(ratio.percent())),
            (Self::Number(number), Kind::Count(_)) => format!("{number:.0}"),
            (Self::Number(number), _) => figure::significant(number),
            (Self::Choice(word), _) => word.to_owned(),
        }
    }
}

/// In binary units and to the byte, where that says something new.
fn size_forms(size: ByteCount) -> Vec<String> {
    if size.get() < figure::SMALL {
        return Vec::new();
    }
    vec![figure::size_binary(size), format!("{} B", figure::grouped(size.get()))]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSS: Quantity = Quantity::new("loss", "loss", Kind::Loss, "0.01%", "");

    #[test]
    fn probabilities_in_three_forms() {
        for (word, value) in
            [("0.01%", 1e-4), ("1/36000", 1.0 / 36_000.0), ("2.8e-5", 2.8e-5), ("3E-6", 3e-6), ("100%", 1.0)]
        {
            let read = LOSS.read(word).expect(word).number();
            assert!((read - value).abs() <= value * 1e-12, "{word}: {read}");
        }
        for word in
            ["0.01", "1/0", "1/", "/2", "1e5", "e-5", "1e-", "-1%", "0", "0%", "101%", "2/1", "NaN", "inf", "", "1/2/3"]
        {
            let why = LOSS.read(word).expect_err(word);
            assert!(why.starts_with(&format!("--loss {word}: ")), "{why}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        let rtt = Quantity::new("rtt", "round-trip time", Kind::Time, "117ms", "");
        assert_eq!(rtt.read("0").expect_err("zero"), "--rtt 0: everything takes some time; an example is 117ms");
        assert!(rtt.read("-5ms").expect_err("negative").contains("cannot be negative"));
        assert!(rtt.read("117").expect_err("no unit").contains("a time with its unit"));
        let segments = Quantity::new("segments", "segments", Kind::Count("segments"), "10", "");
        assert_eq!(segments.read("1M").map(Value::number), Ok(1e6));
        assert_eq!(segments.read("1.5k").map(Value::number), Ok(1500.0));
        assert!(segments.read("1.5").is_err());
        let choice = Quantity::new("ip", "version", Kind::Choice(&["4", "6"]), "4", "");
        assert_eq!(choice.read("6"), Ok(Value::Choice("6")));
        assert_eq!(choice.read("5").expect_err("no such word"), "--ip 5: expected 4 or 6");
    }

    #[test]
    fn values_are_shown_in_the_units_that_people_use() {
        let size = Value::Size(ByteCount::new(146_250_000));
        assert_eq!(size.text(Kind::Size), "146.25 MB");
        assert_eq!(size.other_forms(Kind::Size), ["139.47 MiB", "146 250 000 B"]);
        assert_eq!(Value::Rate(BitRate::from_bits_per_second(10e9)).other_forms(Kind::Rate), ["1.25 GB/s"]);
        assert_eq!(Value::Number(81_274.0).text(Kind::Count("frames/s")), "81 274 frames/s");
    }
}
