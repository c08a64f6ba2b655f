//! A set of neighbouring addresses.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

/// Addresses that begin alike: `192.0.2.0/24`, `2001:db8::/32`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// Text that is no prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePrefixError {
    text: String,
    why: &'static str,
}

impl fmt::Display for ParsePrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a host or prefix: {}", self.text, self.why)
    }
}

impl core::error::Error for ParsePrefixError {}

impl Prefix {
    /// The first address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits all addresses share: 0 to 32 for IPv4, 0 to 128 for IPv6.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Whether it is one of IPv6.
    #[must_use]
    pub const fn is_ipv6(&self) -> bool {
        self.address.is_ipv6()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for Prefix {
    type Err = ParsePrefixError;

    /// Strict: bits behind the prefix are an error, because one of the two was meant differently.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |why| ParsePrefixError { text: text.to_owned(), why };
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| error("write 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32"))?;
        let bits = if address.is_ipv6() { 128 } else { 32 };
        let length = match length {
            None => bits,
            Some(length) => {
                length.parse().ok().filter(|length| *length <= bits).ok_or_else(|| error("its length is not one"))?
            }
        };
        let behind = match address {
            IpAddr::V4(address) => u32::MAX.checked_shr(u32::from(length)).unwrap_or(0) & address.to_bits() != 0,
            IpAddr::V6(address) => u128::MAX.checked_shr(u32::from(length)).unwrap_or(0) & address.to_bits() != 0,
        };
        if behind { Err(error("there are bits behind its length")) } else { Ok(Self { address, length }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        for text in ["192.0.2.0/24", "2001:db8::/32", "0.0.0.0/0", "::/0", "192.0.2.7/32"] {
            assert_eq!(text.parse::<Prefix>().map(|prefix| prefix.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("192.0.2.7".parse::<Prefix>().map(|prefix| prefix.length()), Ok(32));
        for text in ["", "192.0.2.7/24", "192.0.2.0/33", "2001:db8::1/64", "host", "1.2.3.4/x", "10.0.0.0/-1"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}
