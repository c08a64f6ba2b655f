//! The Location TLV (RFC 8972 §4.2).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{HEADER_LENGTH, TlvFlags, tlv_spans};

/// The Location option: the ports, and the addresses that the sender requests. A sender sets ports and addresses to
/// `None`; the reflector fills them in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocationTlv {
    /// Destination port of the packet on arrival.
    pub destination_port: Option<linerate_units::Port>,
    /// Source port of the packet on arrival.
    pub source_port: Option<linerate_units::Port>,
    /// Sub-TLVs.
    pub parts: Vec<LocationSubTlv>,
}

/// A sub-TLV of a [`LocationTlv`] (RFC 8972 §4.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocationSubTlv {
    /// Source link-layer address of the packet on arrival: that of the last router.
    SourceHardware(Option<HardwareAddress>),
    /// Destination address of the packet on arrival.
    Destination(Option<IpAddr>),
    /// Source address of the packet on arrival, after any address translation.
    Source(Option<IpAddr>),
    /// An unknown type, or a known one with a wrong length.
    Unknown {
        /// Type of the sub-TLV.
        kind: u8,
        /// Value of the sub-TLV.
        value: Vec<u8>,
    },
}

/// A link-layer address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HardwareAddress {
    /// 48 bits.
    Eui48([u8; 6]),
    /// 64 bits; all zero when the packet had none (RFC 8972 §4.2.2).
    Eui64([u8; 8]),
}

/// Types of the sub-TLVs (registry "STAMP Sub-TLV Types").
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

impl LocationTlv {
    /// Request for the ports and both addresses.
    #[must_use]
    pub fn request() -> Self {
        let parts = vec![LocationSubTlv::Destination(None), LocationSubTlv::Source(None)];
        Self { destination_port: None, source_port: None, parts }
    }

    pub(super) fn decode(value: &[u8]) -> Option<Self> {
        let ([high, low, source_high, source_low], rest) = value.split_first_chunk()?;
        let parts = tlv_spans(rest).map(|place| {
            let place = place.ok()?;
            Some(LocationSubTlv::decode(place.kind, &rest[place.header + HEADER_LENGTH..place.end]))
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
            value.extend([TlvFlags::REQUEST.octet(), kind]);
            value.extend(u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes());
            value.extend(content);
        }
        value
    }
}

impl LocationSubTlv {
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

/// The 16 octets of an address in a sub-TLV: IPv4 is padded with zeros.
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
