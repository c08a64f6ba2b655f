//! Running kernel.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::fact::Fact;

/// Running kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunningKernel {
    /// Release as printed by `uname -r`, for example `6.12.38-amd64`.
    pub release: Fact<String>,
}

impl RunningKernel {
    /// Version number at the start of the release. Distributions backport later changes into older versions, so
    /// conclusions from the number are assumptions about such a kernel.
    #[must_use]
    pub fn version(&self) -> Option<KernelVersion> {
        self.release.known().and_then(|release| KernelVersion::parse(release))
    }

    /// True for the kernels of enterprise distributions, which take many later changes into an older version.
    #[must_use]
    pub fn carries_changes_back(&self) -> bool {
        let release = self.release.known().map_or("", String::as_str);
        ENTERPRISE_MARKS.iter().any(|mark| release.contains(mark))
    }

    /// Third number of the release, which counts those of a stable branch; `None` where a distribution leaves it at zero
    /// (`6.1.0-18-amd64`, `5.15.0-91-generic`).
    #[must_use]
    pub fn stable_release(&self) -> Option<u32> {
        let third = self.release.known()?.splitn(3, '.').nth(2)?;
        let digits = third.find(|character: char| !character.is_ascii_digit()).unwrap_or(third.len());
        let number: u32 = third[..digits].parse().ok()?;
        (number > 0 || digits == third.len()).then_some(number)
    }
}

/// Parts of the releases of enterprise kernels: Red Hat and its rebuilds, Oracle's own, SUSE.
const ENTERPRISE_MARKS: [&str; 4] = [".el", "uek", "-default", ".amzn"];

/// First two numbers of a kernel's release, which determine its features; a pair in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub struct KernelVersion {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl KernelVersion {
    /// Creates a version from its numbers.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Parses the numbers at the start of a release; `None` when it does not begin with two.
    #[must_use]
    pub fn parse(release: &str) -> Option<Self> {
        let (major, rest) = release.split_once('.')?;
        let minor = rest.split(|character: char| !character.is_ascii_digit()).next()?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl From<(u32, u32)> for KernelVersion {
    fn from((major, minor): (u32, u32)) -> Self {
        Self { major, minor }
    }
}

impl From<KernelVersion> for (u32, u32) {
    fn from(version: KernelVersion) -> Self {
        (version.major, version.minor)
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_branches_and_enterprise_kernels() {
        for (release, third, carried) in [
            ("6.6.47", Some(47), false),
            ("6.6.0", Some(0), false),
            ("6.1.0-18-amd64", None, false),
            ("5.15.0-91-generic", None, false),
            ("6.12.38+deb13-amd64", Some(38), false),
            ("5.14.0-427.el9.x86_64", None, true),
            ("6.4.0-150600.23-default", None, true),
            ("6.1", None, false),
        ] {
            let kernel = RunningKernel { release: Fact::Known(release.to_owned()) };
            assert_eq!((kernel.stable_release(), kernel.carries_changes_back()), (third, carried), "{release}");
        }
    }

    #[test]
    fn releases_of_distributions() {
        for (release, expected) in [
            ("6.12.38-amd64", Some((6, 12))),
            ("6.18-rc3", Some((6, 18))),
            ("5.14.0-427.el9.x86_64", Some((5, 14))),
            ("6.1", Some((6, 1))),
            ("generic", None),
            ("6", None),
            ("", None),
        ] {
            let found = KernelVersion::parse(release).map(|version| (version.major, version.minor));
            assert_eq!(found, expected, "{release}");
        }
        assert!(
            KernelVersion::new(6, 9) < KernelVersion::new(6, 16)
                && KernelVersion::new(5, 19) < KernelVersion::new(6, 0)
        );
    }
}
