//! Settings of autorate: control law, bounds and reflectors.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use linerate_shape::autorate::{AutorateBounds, ControlLaw};
use linerate_shape::verify::PerDirection;
use linerate_units::Port;

/// Host that answers probes, and the kind of probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReflectorAddress {
    /// A host that answers pings: round trips only.
    Echo(IpAddr),
    /// A host that answers ICMP timestamp requests: one-way delays in milliseconds.
    Timestamps(Ipv4Addr),
    /// A linerate server: one-way delays.
    Server(String, Port),
}

impl fmt::Display for ReflectorAddress {
    /// As the option takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Echo(address) => address.fmt(f),
            Self::Timestamps(address) => write!(f, "timestamp:{address}"),
            Self::Server(host, port) if host.contains(':') => write!(f, "linerate:[{host}]:{}", port.get()),
            Self::Server(host, port) => write!(f, "linerate:{host}:{}", port.get()),
        }
    }
}

impl FromStr for ReflectorAddress {
    type Err = String;

    /// `ADDRESS`, `timestamp:ADDRESS`, `linerate:HOST`, `linerate:HOST:PORT`, `linerate:[IPv6]:PORT`.
    fn from_str(text: &str) -> Result<Self, String> {
        let advice = "write an IP address, timestamp:IPV4_ADDRESS, or linerate:HOST[:PORT] for a linerate server";
        if let Some(address) = text.strip_prefix("timestamp:") {
            return address.parse().map(ReflectorAddress::Timestamps).map_err(|_| advice.to_owned());
        }
        let Some(server) = text.strip_prefix("linerate:") else {
            return text.parse().map(ReflectorAddress::Echo).map_err(|_| advice.to_owned());
        };
        let (host, port) = match server.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None if server.matches(':').count() == 1 => {
                server.split_once(':').map_or((server, None), |(h, p)| (h, Some(p)))
            }
            None => (server, None),
        };
        let port = match port {
            Some(port) => port.parse().ok().and_then(Port::new).ok_or("a port is a number from 1 to 65535")?,
            None => Port::IPERF3,
        };
        if host.is_empty() { Err(advice.to_owned()) } else { Ok(ReflectorAddress::Server(host.to_owned(), port)) }
    }
}

/// Well-known public resolvers that answer pings everywhere; several of each of four operators, so that one operator's
/// bad day is not taken for the line's. The first six are probed at first, the others take the place of those that fail.
const PUBLIC: [[u8; 4]; 12] = [
    [1, 1, 1, 1],
    [8, 8, 8, 8],
    [9, 9, 9, 9],
    [208, 67, 222, 222],
    [1, 0, 0, 1],
    [8, 8, 4, 4],
    [9, 9, 9, 10],
    [208, 67, 220, 220],
    [149, 112, 112, 112],
    [149, 112, 112, 10],
    [208, 67, 222, 220],
    [208, 67, 220, 222],
];

/// Addresses of the public resolvers, best first.
pub fn public_reflectors() -> Vec<ReflectorAddress> {
    PUBLIC.into_iter().map(|address| ReflectorAddress::Echo(IpAddr::from(address))).collect()
}

/// Public resolvers that answer ICMP timestamp requests, of four operators.
const PUBLIC_TIMESTAMPS: [[u8; 4]; 10] = [
    [9, 9, 9, 9],
    [94, 140, 14, 15],
    [208, 67, 222, 222],
    [185, 228, 168, 10],
    [9, 9, 9, 10],
    [94, 140, 15, 15],
    [208, 67, 220, 220],
    [185, 228, 169, 11],
    [149, 112, 112, 112],
    [94, 140, 14, 141],
];

/// Addresses of public resolvers with timestamps, best first.
pub fn public_timestamp_reflectors() -> Vec<ReflectorAddress> {
    PUBLIC_TIMESTAMPS.into_iter().map(|address| ReflectorAddress::Timestamps(address.into())).collect()
}

/// Settings of autorate.
#[derive(Clone, Debug)]
pub struct AutorateSettings {
    /// Law by which rates are chosen.
    pub law: ControlLaw,
    /// Bounds of the rates. A base of `None` is determined, from 2 Mbit/s on.
    pub bounds: PerDirection<AutorateBounds>,
    /// Hosts that answer, best first. The first six are probed, the others are in reserve.
    pub reflectors: Vec<ReflectorAddress>,
    /// File of the log; `None` for no log.
    pub log: Option<PathBuf>,
    /// Time after which it ends by itself; `None` for never.
    pub time: Option<Duration>,
    /// Removes the shaper at the end.
    pub off_at_end: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reflector(text: &str) -> Result<ReflectorAddress, String> {
        text.parse()
    }

    #[test]
    fn reflectors_are_read() {
        let server = |host: &str, port| Ok(ReflectorAddress::Server(host.to_owned(), Port::new(port).expect("a port")));
        assert_eq!(reflector("192.0.2.1"), Ok(ReflectorAddress::Echo([192, 0, 2, 1].into())));
        assert_eq!(reflector("timestamp:192.0.2.1"), Ok(ReflectorAddress::Timestamps([192, 0, 2, 1].into())));
        assert!(reflector("timestamp:2001:db8::1").is_err() && reflector("timestamp:").is_err());
        assert!(matches!(reflector("2001:db8::1"), Ok(ReflectorAddress::Echo(IpAddr::V6(_)))));
        assert_eq!(reflector("linerate:far"), server("far", 5201));
        assert_eq!(reflector("linerate:far:5300"), server("far", 5300));
        assert_eq!(reflector("linerate:[2001:db8::1]:5300"), server("2001:db8::1", 5300));
        assert_eq!(reflector("linerate:2001:db8::1"), server("2001:db8::1", 5201));
        for wrong in ["", "far", "linerate:", "linerate::5300", "linerate:far:0", "linerate:far:x"] {
            assert!(reflector(wrong).is_err(), "{wrong:?}");
        }
    }
}
