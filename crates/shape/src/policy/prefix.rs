//! Address prefix.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

/// Address prefix: `192.0.2.0/24`, `2001:db8::/32`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostPrefix {
    address: IpAddr,
    length: u8,
}

/// Error of a text that is not a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePrefixError {
    text: String,
    reason: &'static str,
}

impl fmt::Display for ParsePrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid host or prefix {:?}: {}", self.text, self.reason)
    }
}

impl core::error::Error for ParsePrefixError {}

impl HostPrefix {
    /// First address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Number of common bits: 0 to 32 for IPv4, 0 to 128 for IPv6.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// True for an IPv6 prefix.
    #[must_use]
    pub const fn is_ipv6(&self) -> bool {
        self.address.is_ipv6()
    }
}

impl fmt::Display for HostPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for HostPrefix {
    type Err = ParsePrefixError;

    /// Parses strictly: host bits are an error, as either address or length is wrong.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |why| ParsePrefixError { text: text.to_owned(), reason: why };
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr =
            address.parse().map_err(|_| error("expected 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32"))?;
        let bits = if address.is_ipv6() { 128 } else { 32 };
        let length = match length {
            None => bits,
            Some(length) => {
                length.parse().ok().filter(|length| *length <= bits).ok_or_else(|| error("invalid prefix length"))?
            }
        };
        let behind = match address {
            IpAddr::V4(address) => u32::MAX.checked_shr(u32::from(length)).unwrap_or(0) & address.to_bits() != 0,
            IpAddr::V6(address) => u128::MAX.checked_shr(u32::from(length)).unwrap_or(0) & address.to_bits() != 0,
        };
        if behind { Err(error("host bits are set")) } else { Ok(Self { address, length }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        for text in ["192.0.2.0/24", "2001:db8::/32", "0.0.0.0/0", "::/0", "192.0.2.7/32"] {
            assert_eq!(text.parse::<HostPrefix>().map(|prefix| prefix.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("192.0.2.7".parse::<HostPrefix>().map(|prefix| prefix.length()), Ok(32));
        for text in ["", "192.0.2.7/24", "192.0.2.0/33", "2001:db8::1/64", "host", "1.2.3.4/x", "10.0.0.0/-1"] {
            assert!(text.parse::<HostPrefix>().is_err(), "{text}");
        }
    }
}
