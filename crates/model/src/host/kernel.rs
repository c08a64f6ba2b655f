//! Running kernel.

use core::fmt;

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
}

/// First two numbers of a kernel's release, which determine its features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

impl fmt::Display for KernelVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
