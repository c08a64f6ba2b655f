//! Selectors of traffic classes: `192.0.2.7`, `2001:db8::/56`, `mark/0x10`, `dscp/34`.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use linerate_model::socket::FirewallMark;
use linerate_units::Dscp;

use crate::policy::HostPrefix;

/// Packets of a traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClassSelector {
    /// Packets from or to these addresses.
    Address(HostPrefix),
    /// Packets with this firewall mark.
    FirewallMark(FirewallMark),
    /// Packets with this codepoint, with any ECN bits.
    Codepoint(Dscp),
}

impl ClassSelector {
    /// First and last value that it selects, with the number of its kind: selectors overlap when these ranges do.
    pub(super) fn range(&self) -> (u8, u128, u128) {
        match self {
            Self::Address(prefix) => {
                let (kind, bits, first) = match prefix.address() {
                    IpAddr::V4(address) => (0, 32, u128::from(address.to_bits())),
                    IpAddr::V6(address) => (1, 128, address.to_bits()),
                };
                let free = bits - u32::from(prefix.length());
                let others = 1_u128.checked_shl(free).map_or(u128::MAX, |count| count - 1);
                (kind, first, first | others)
            }
            Self::FirewallMark(mark) => (2, mark.0.into(), mark.0.into()),
            Self::Codepoint(codepoint) => (3, codepoint.get().into(), codepoint.get().into()),
        }
    }
}

impl fmt::Display for ClassSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(prefix) if matches!((prefix.length(), prefix.is_ipv6()), (32, false) | (128, true)) => {
                write!(f, "{}", prefix.address())
            }
            Self::Address(prefix) => write!(f, "{prefix}"),
            Self::FirewallMark(mark) => write!(f, "mark/{mark}"),
            Self::Codepoint(codepoint) => write!(f, "dscp/{}", codepoint.get()),
        }
    }
}

impl FromStr for ClassSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORMS: &str = "expected ADDRESS, ADDRESS/LENGTH, mark/NUMBER or dscp/NUMBER";
        let unknown = || format!("unknown selector '{text}' ({FORMS})");
        match text.split_once('/') {
            Some(("mark", number)) => FirewallMark::parse(number).map(Self::FirewallMark),
            Some(("dscp", name)) => {
                let codepoint = name.parse().ok().and_then(Dscp::new).or_else(|| Dscp::from_name(name));
                codepoint
                    .map(Self::Codepoint)
                    .ok_or_else(|| format!("invalid DSCP '{name}' (expected 0 to 63, or a name)"))
            }
            _ if !text.starts_with(|first: char| first.is_ascii_hexdigit() || first == ':') => Err(unknown()),
            _ => text.parse().map(Self::Address).map_err(|error: crate::policy::ParsePrefixError| error.to_string()),
        }
    }
}
