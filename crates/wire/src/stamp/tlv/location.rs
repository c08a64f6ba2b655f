//! Where a packet arrived (RFC 8972 §4.2).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Flags, HEADER_LENGTH, places};

/// The Location option: the ports, and what else the sender asks for. A sender asks with ports of `None` and parts of
/// `None`; the reflector fills in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The port at which the packet arrived.
    pub destination_port: Option<linerate_units::Port>,
    /// The port from which it arrived.
    pub source_port: Option<linerate_units::Port>,
    /// What else is asked or answered.
    pub parts: Vec<LocationPart>,
}

/// A part of a [`Location`] (RFC 8972 §4.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocationPart {
    /// The link-layer address from which the packet arrived: that of the last router.
    SourceHardware(Option<HardwareAddress>),
    /// The address at which the packet arrived.
    Destination(Option<IpAddr>),
    /// The address from which the packet arrived, behind any translation.
    Source(Option<IpAddr>),
    /// One that is not known here, or whose length is none that it has.
    Unknown {
        /// Its type.
        kind: u8,
        /// Its value.
        value: Vec<u8>,
    },
}

/// A link-layer address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HardwareAddress {
    /// Of 48 bits.
    Eui48([u8; 6]),
    /// Of 64 bits; all zero where the packet had none (RFC 8972 §4.2.2).
    Eui64([u8; 8]),
}

/// Types of the parts (registry "STAMP Sub-TLV Types").
pub(in crate::stamp) mod kind {
    pub(in crate::stamp) const SOURCE_HARDWARE: u8 = 1;
    pub(in crate::stamp) const SOURCE_EUI48: u8 = 2;
    pub(in crate::stamp) const SOURCE_EUI64: u8 = 3;
    pub(in crate::stamp) const DESTINATION: u8 = 4;
    pub(in crate::stamp) const DESTINATION_IPV4: u8 = 5;
    pub(in crate::stamp) const DESTINATION_IPV6: u8 = 6;
    pub(in crate::stamp) const SOURCE: u8 = 7;
    pub(in crate::stamp) const SOURCE_IPV4: u8 = 8;
    pub(in crate::stamp) const SOURCE_IPV6: u8 = 9;
}

/// Bytes of the two ports.
pub(in crate::stamp) const PORTS_LENGTH: usize = 4;

impl Location {
    /// The whole question: ports, and both addresses.
    #[must_use]
    pub fn request() -> Self {
        let parts = vec![LocationPart::Destination(None), LocationPart::Source(None)];
        Self { destination_port: None, source_port: None, parts }
    }

    pub(super) fn decode(value: &[u8]) -> Option<Self> {
        let ([high, low, source_high, source_low], rest) = value.split_first_chunk()?;
        let parts = places(rest).map(|place| {
            let place = place.ok()?;
            Some(LocationPart::decode(place.kind, &rest[place.header + HEADER_LENGTH..place.end]))
        });
        Some(Self {
            destination_port: linerate_units::Port::new(u16::from_be_bytes([*high, *low])),
            source_port: linerate_units::Port::new(u16::from_be_bytes([*source_high, *source_low])),
            parts: parts.collect::<Option<_>>()?,
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let port = |port: Option<linerate_units::Port>| port.map_or(0, linerate_units::Port::get).to_be_bytes();
        let mut value = [port(self.destination_port), port(self.source_port)].concat();
        for part in &self.parts {
            let (kind, content) = part.encode();
            value.extend([Flags::REQUEST.octet(), kind]);
            value.extend(u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes());
            value.extend(content);
        }
        value
    }
}

impl LocationPart {
    fn decode(kind: u8, value: &[u8]) -> Self {
        Self::decode_known(kind, value).unwrap_or_else(|| Self::Unknown { kind, value: value.to_vec() })
    }

    fn decode_known(kind: u8, value: &[u8]) -> Option<Self> {
        let hardware = || <[u8; 8]>::try_from(value).ok();
        let address = || <[u8; 16]>::try_from(value).ok();
        let ipv4 = || address().map(|[a, b, c, d, ..]| IpAddr::from(Ipv4Addr::new(a, b, c, d)));
        let ipv6 = || address().map(|octets| IpAddr::from(Ipv6Addr::from(octets)));
        Some(match kind {
            kind::SOURCE_HARDWARE => hardware().map(|_| Self::SourceHardware(None))?,
            kind::SOURCE_EUI48 => {
                let octets = *hardware()?.first_chunk()?;
                Self::SourceHardware(Some(HardwareAddress::Eui48(octets)))
            }
            kind::SOURCE_EUI64 => Self::SourceHardware(Some(HardwareAddress::Eui64(hardware()?))),
            kind::DESTINATION => address().map(|_| Self::Destination(None))?,
            kind::DESTINATION_IPV4 => Self::Destination(Some(ipv4()?)),
            kind::DESTINATION_IPV6 => Self::Destination(Some(ipv6()?)),
            kind::SOURCE => address().map(|_| Self::Source(None))?,
            kind::SOURCE_IPV4 => Self::Source(Some(ipv4()?)),
            kind::SOURCE_IPV6 => Self::Source(Some(ipv6()?)),
            _ => return None,
        })
    }

    fn encode(&self) -> (u8, Vec<u8>) {
        match self {
            Self::SourceHardware(None) => (kind::SOURCE_HARDWARE, vec![0; 8]),
            Self::SourceHardware(Some(HardwareAddress::Eui48(address))) => {
                (kind::SOURCE_EUI48, [&address[..], &[0, 0]].concat())
            }
            Self::SourceHardware(Some(HardwareAddress::Eui64(address))) => (kind::SOURCE_EUI64, address.to_vec()),
            Self::Destination(None) => (kind::DESTINATION, vec![0; 16]),
            Self::Destination(Some(address @ IpAddr::V4(_))) => (kind::DESTINATION_IPV4, address_octets(*address)),
            Self::Destination(Some(address)) => (kind::DESTINATION_IPV6, address_octets(*address)),
            Self::Source(None) => (kind::SOURCE, vec![0; 16]),
            Self::Source(Some(address @ IpAddr::V4(_))) => (kind::SOURCE_IPV4, address_octets(*address)),
            Self::Source(Some(address)) => (kind::SOURCE_IPV6, address_octets(*address)),
            Self::Unknown { kind, value } => (*kind, value.clone()),
        }
    }
}

/// The 16 octets of an address in a part: IPv4 is followed by zeros.
pub(in crate::stamp) fn address_octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => {
            let mut octets = address.octets().to_vec();
            octets.resize(16, 0);
            octets
        }
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
