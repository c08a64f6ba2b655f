//! Series of Linux versions, such as 5.10.

use core::fmt;
use core::str::FromStr;

/// Major and minor number of Linux, as in the names of source packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeriesVersion {
    major: u32,
    minor: u32,
}

impl SeriesVersion {
    /// Creates the series.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Series of a version, such as 7.2 of `7.2.13`; `None` where it does not begin with two numbers.
    #[must_use]
    pub fn of(version: &str) -> Option<Self> {
        let mut numbers = version.split(['.', '-']).map(|number| number.parse::<u32>().ok());
        Some(Self { major: numbers.next()??, minor: numbers.next()?? })
    }

    /// True for a version of this series, such as `5.10.262` of 5.10.
    #[must_use]
    pub fn includes(self, version: &str) -> bool {
        Self::of(version) == Some(self)
    }
}

impl fmt::Display for SeriesVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for SeriesVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        text.split_once('.')
            .and_then(|(major, minor)| Some(Self { major: number(major)?, minor: number(minor)? }))
            .ok_or_else(|| format!("invalid version '{text}' (expected MAJOR.MINOR, such as 6.1)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_includes_its_versions_only() {
        let series: SeriesVersion = "5.10".parse().expect("a version");
        assert_eq!(series.to_string(), "5.10");
        assert!(series.includes("5.10.262") && series.includes("5.10-rc3"));
        assert!(!series.includes("5.1.0") && !series.includes("5.100.1") && !series.includes("x"));
        for wrong in ["", "5", "5.", "5.10.1", "+5.10", "five.ten", "/boot/linux"] {
            assert!(wrong.parse::<SeriesVersion>().is_err(), "{wrong}");
        }
    }
}
