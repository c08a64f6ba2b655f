//! Handles of queueing disciplines and classes.

use core::fmt;
use core::str::FromStr;

/// Handle `major:minor`, both hexadecimal; a discipline has minor number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QdiscHandle {
    /// Number of the discipline.
    pub major: u16,
    /// Number of the class in it, or 0.
    pub minor: u16,
}

impl QdiscHandle {
    /// Ingress hook, `ffff:`.
    pub const INGRESS: Self = Self::discipline(0xffff);

    /// Handle of a discipline.
    #[must_use]
    pub const fn discipline(major: u16) -> Self {
        Self { major, minor: 0 }
    }

    /// Handle of a class.
    #[must_use]
    pub const fn class(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for QdiscHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.minor {
            0 => write!(f, "{:x}:", self.major),
            minor => write!(f, "{:x}:{minor:x}", self.major),
        }
    }
}

/// Error of a text that is not a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseHandleError;

impl FromStr for QdiscHandle {
    type Err = ParseHandleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.split_once(':').ok_or(ParseHandleError)?;
        let number = |digits: &str| match digits {
            "" => Ok(0),
            digits => u16::from_str_radix(digits, 16).map_err(|_| ParseHandleError),
        };
        Ok(Self { major: number(major)?, minor: number(minor)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_round_trip() {
        for text in ["1:", "1:10", "ffff:", "8001:ff"] {
            assert_eq!(text.parse::<QdiscHandle>().map(|handle| handle.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("1:0".parse(), Ok(QdiscHandle::discipline(1)));
        for text in ["", "1", "1:g", "1:2:3", "12345:"] {
            assert_eq!(text.parse::<QdiscHandle>(), Err(ParseHandleError), "{text}");
        }
    }
}
