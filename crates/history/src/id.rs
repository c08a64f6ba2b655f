//! How a run is named.

use core::fmt;
use core::str::FromStr;

/// The number of a run: given when it is stored, never given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(i64);

impl RunId {
    /// The run of that number, which may or may not exist.
    #[must_use]
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for RunId {
    /// The bare number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A run as a person names it: `17`, `last`, `last-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunReference {
    /// By its number.
    Id(RunId),
    /// That many runs before the latest one.
    BeforeLast(u32),
}

/// A text that names no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no run: runs are named by their number, or as `last`, `last-1` and so on")]
pub struct NotARun(String);

impl FromStr for RunReference {
    type Err = NotARun;

    fn from_str(text: &str) -> Result<Self, NotARun> {
        let wrong = || NotARun(text.to_owned());
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.strip_prefix("last") {
            Some("") => Ok(Self::BeforeLast(0)),
            Some(rest) => {
                let back = rest.strip_prefix('-').filter(|back| digits(back)).ok_or_else(wrong)?;
                back.parse().map(Self::BeforeLast).map_err(|_| wrong())
            }
            None if digits(text) => text.parse().map(|number| Self::Id(RunId(number))).map_err(|_| wrong()),
            None => Err(wrong()),
        }
    }
}

impl fmt::Display for RunReference {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::BeforeLast(0) => f.write_str("last"),
            Self::BeforeLast(back) => write!(f, "last-{back}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_run_is_refused() {
        for text in ["", "-1", "+1", "last-", "last+1", "lastly", "Last", "1.0", "last--1", "99999999999999999999"] {
            assert_eq!(text.parse::<RunReference>(), Err(NotARun(text.to_owned())), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn references_are_read_as_they_are_written(number in 0..=i64::MAX, back: u32) {
            for reference in [RunReference::Id(RunId::new(number)), RunReference::BeforeLast(back)] {
                prop_assert_eq!(reference.to_string().parse(), Ok(reference));
            }
        }
    }
}
