//! References to runs.

use core::fmt;
use core::str::FromStr;

use linerate_documents::run_list::RunId;

/// Reference to a run, as the user writes it: `17`, `last`, `last-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunReference {
    /// By its number.
    Id(RunId),
    /// By the number of runs after it.
    BeforeLast(u32),
}

/// A text that is not a reference to a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid run {0:?} (expected a number, `last`, `last-1`, …)")]
pub struct InvalidRunReference(String);

impl FromStr for RunReference {
    type Err = InvalidRunReference;

    fn from_str(text: &str) -> Result<Self, InvalidRunReference> {
        let wrong = || InvalidRunReference(text.to_owned());
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.strip_prefix("last") {
            Some("") => Ok(Self::BeforeLast(0)),
            Some(rest) => {
                let back = rest.strip_prefix('-').filter(|back| digits(back)).ok_or_else(wrong)?;
                back.parse().map(Self::BeforeLast).map_err(|_| wrong())
            }
            None if digits(text) => text.parse().map(|number| Self::Id(RunId::new(number))).map_err(|_| wrong()),
            None => Err(wrong()),
        }
    }
}

impl fmt::Display for RunReference {
    /// In the form that is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::BeforeLast(0) => f.write_str("last"),
            Self::BeforeLast(back) => write!(f, "last-{back}"),
        }
    }
}

/// Largest number of runs in one reference.
const MAX_RUNS: usize = 1000;

/// References to several runs, as the user writes them: `1,2,last` or `4..6`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReferences(Vec<RunReference>);

impl RunReferences {
    /// The references, at least one.
    #[must_use]
    pub fn as_slice(&self) -> &[RunReference] {
        &self.0
    }
}

impl FromStr for RunReferences {
    type Err = InvalidRunReference;

    fn from_str(text: &str) -> Result<Self, InvalidRunReference> {
        let wrong = || InvalidRunReference(text.to_owned());
        let mut all = Vec::new();
        for part in text.split(',') {
            match part.split_once("..") {
                Some((first, last)) => {
                    let (RunReference::Id(first), RunReference::Id(last)) = (first.parse()?, last.parse()?) else {
                        return Err(wrong());
                    };
                    let numbers = (first.get()..=last.get()).take(MAX_RUNS + 1);
                    all.extend(numbers.map(|number| RunReference::Id(RunId::new(number))));
                }
                None => all.push(part.parse()?),
            }
        }
        if all.is_empty() || all.len() > MAX_RUNS { Err(wrong()) } else { Ok(Self(all)) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_references_are_refused() {
        for text in ["", "-1", "+1", "last-", "last+1", "lastly", "Last", "1.0", "last--1", "99999999999999999999"] {
            assert_eq!(text.parse::<RunReference>(), Err(InvalidRunReference(text.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn several_runs_are_listed_or_a_range() {
        let of = |text: &str| text.parse::<RunReferences>().map(|runs| runs.0);
        let id = |number| RunReference::Id(RunId::new(number));
        assert_eq!(of("7"), Ok(vec![id(7)]));
        assert_eq!(of("1,4..6,last-1"), Ok(vec![id(1), id(4), id(5), id(6), RunReference::BeforeLast(1)]));
        for text in ["", ",", "1,", "6..4", "1..", "last..3", "1..9999999"] {
            assert!(of(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn references_round_trip(number in 0..=i64::MAX, back: u32) {
            for reference in [RunReference::Id(RunId::new(number)), RunReference::BeforeLast(back)] {
                prop_assert_eq!(reference.to_string().parse(), Ok(reference));
            }
        }
    }
}
