//! The SYN of a TCP connection as it arrived. A comparison with the one that the other end sent shows the changes by
//! routers and firewalls on the path.

use std::net::{IpAddr, SocketAddr};

use linerate_units::{ByteCount, Mss, TypeOfService};

/// A SYN (RFC 9293 §3.1) with fields of its IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syn {
    /// Source address: another one than the sender's shows an address translator.
    pub source: SocketAddr,
    /// Destination address.
    pub destination: SocketAddr,
    /// Type-of-service octet (IPv6: traffic class).
    pub type_of_service: TypeOfService,
    /// Remaining hop limit (time to live).
    pub hop_limit: u8,
    /// True with both ECN flags (ECE and CWR): the sender wants explicit congestion notification (RFC 3168 §6.1.1).
    pub asks_for_ecn: bool,
    /// True with the flag AE in addition: the sender wants Accurate ECN (RFC 9768 §3.1.1).
    pub asks_for_accurate_ecn: bool,
    /// The window, unscaled.
    pub window: ByteCount,
    /// Maximum segment size option.
    pub mss: Option<Mss>,
    /// Window scale option: its shift count (RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// SACK-permitted option (RFC 2018 §2).
    pub selective_acknowledgements: bool,
    /// Timestamps option (RFC 7323 §3).
    pub timestamps: bool,
    /// Fast Open option (RFC 7413 §4.1.1).
    pub fast_open: bool,
    /// Multipath option (RFC 8684 §3.1).
    pub multipath: bool,
    /// Length of its payload: more than nothing only with Fast Open.
    pub payload: ByteCount,
}

/// TCP's number among the protocols over IP.
const TCP: u8 = 6;
const TCP_HEADER: usize = 20;
/// ECE and CWR in the octet of the flags.
const ECN_FLAGS: u8 = 0xc0;
/// AE in the octet before, which also has the header's length.
const ACCURATE_ECN_FLAG: u8 = 1;

/// Fields of the IP header.
struct IpHeader {
    source: IpAddr,
    destination: IpAddr,
    type_of_service: u8,
    hop_limit: u8,
    header: usize,
    length: usize,
}

impl Syn {
    /// Reads a packet that begins with its IP header; `None` when it is not a TCP packet or is truncated.
    #[must_use]
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let internet = match packet.first()? >> 4 {
            4 => IpHeader::parse_ipv4(packet)?,
            6 => IpHeader::version_6(packet)?,
            _ => return None,
        };
        let tcp = packet.get(internet.header..)?;
        let fixed: &[u8; TCP_HEADER] = tcp.first_chunk()?;
        let header = usize::from(fixed[12] >> 4) * 4;
        let options = tcp.get(TCP_HEADER..header)?;
        let port = |place| u16::from_be_bytes([fixed[place], fixed[place + 1]]);
        let mut syn = Self {
            source: SocketAddr::new(internet.source, port(0)),
            destination: SocketAddr::new(internet.destination, port(2)),
            type_of_service: TypeOfService::new(internet.type_of_service),
            hop_limit: internet.hop_limit,
            asks_for_ecn: fixed[13] & ECN_FLAGS == ECN_FLAGS,
            asks_for_accurate_ecn: fixed[13] & ECN_FLAGS == ECN_FLAGS && fixed[12] & ACCURATE_ECN_FLAG != 0,
            window: ByteCount::new(port(14).into()),
            mss: None,
            window_scale: None,
            selective_acknowledgements: false,
            timestamps: false,
            fast_open: false,
            multipath: false,
            payload: ByteCount::from_usize(internet.length.saturating_sub(internet.header + header)),
        };
        for (kind, content) in tcp_options(options) {
            syn.note_option(kind, content);
        }
        Some(syn)
    }

    fn note_option(&mut self, kind: u8, content: &[u8]) {
        match (kind, content) {
            (2, [high, low]) => self.mss = Some(Mss::new(u16::from_be_bytes([*high, *low]).into())),
            (3, [shift]) => self.window_scale = Some(*shift),
            (4, []) => self.selective_acknowledgements = true,
            (8, [_, _, _, _, _, _, _, _]) => self.timestamps = true,
            (30, _) => self.multipath = true,
            (34, _) => self.fast_open = true,
            _ => {}
        }
    }
}

impl IpHeader {
    fn parse_ipv4(packet: &[u8]) -> Option<Self> {
        let fixed: &[u8; 20] = packet.first_chunk()?;
        (fixed[9] == TCP).then(|| Self {
            source: IpAddr::from(<[u8; 4]>::try_from(&fixed[12..16]).unwrap_or_default()),
            destination: IpAddr::from(<[u8; 4]>::try_from(&fixed[16..20]).unwrap_or_default()),
            type_of_service: fixed[1],
            hop_limit: fixed[8],
            header: usize::from(fixed[0] & 0xf) * 4,
            length: usize::from(u16::from_be_bytes([fixed[2], fixed[3]])),
        })
    }

    /// Headers between this one and TCP's (RFC 8200 §4.3, §4.4, §4.6) are passed over.
    fn version_6(packet: &[u8]) -> Option<Self> {
        let fixed: &[u8; 40] = packet.first_chunk()?;
        let (mut next, mut header) = (fixed[6], fixed.len());
        while next != TCP {
            let &[following, length] = packet.get(header..)?.first_chunk()?;
            matches!(next, 0 | 43 | 60).then_some(())?;
            (next, header) = (following, header + (usize::from(length) + 1) * 8);
        }
        Some(Self {
            source: IpAddr::from(<[u8; 16]>::try_from(&fixed[8..24]).unwrap_or_default()),
            destination: IpAddr::from(<[u8; 16]>::try_from(&fixed[24..40]).unwrap_or_default()),
            type_of_service: fixed[0] << 4 | fixed[1] >> 4,
            hop_limit: fixed[7],
            header,
            length: fixed.len() + usize::from(u16::from_be_bytes([fixed[4], fixed[5]])),
        })
    }
}

/// The options with their contents; 0 ends the list, 1 is padding (RFC 9293 §3.2).
fn tcp_options(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    core::iter::from_fn(move || {
        while let [1, rest @ ..] = bytes {
            bytes = rest;
        }
        let (kind, length) = (*bytes.first().filter(|kind| **kind != 0)?, usize::from(*bytes.get(1)?));
        let content = bytes.get(2..length)?;
        bytes = &bytes[length..];
        Some((kind, content))
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::options;

    /// Version 4, class 0x28, 60 octets, 57 hops, from 192.0.2.1:1000 to 192.0.2.2:5201, ECN asked for.
    const VERSION_4: [u8; 60] = [
        0x45, 0x28, 0, 60, 0, 0, 0x40, 0, 57, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, // IP
        0x03, 0xe8, 0x14, 0x51, 0, 0, 0, 1, 0, 0, 0, 0, 0xa0, 0xc2, 0xfa, 0xf0, 0, 0, 0, 0, // TCP
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7, // options
    ];

    #[test]
    fn a_syn_of_linux() {
        let syn = Syn::parse(&VERSION_4).expect("whole");
        assert_eq!(syn.source, "192.0.2.1:1000".parse().expect("valid"));
        assert_eq!(syn.destination, "192.0.2.2:5201".parse().expect("valid"));
        assert_eq!((syn.type_of_service, syn.hop_limit), (TypeOfService::new(0x28), 57));
        assert_eq!((syn.mss, syn.window_scale, syn.window), (Some(Mss::new(1460)), Some(7), ByteCount::new(64_240)));
        assert!(syn.asks_for_ecn && syn.selective_acknowledgements && syn.timestamps);
        assert!(!syn.fast_open && !syn.multipath && !syn.asks_for_accurate_ecn && syn.payload.is_zero());
        let mut accurate = VERSION_4;
        accurate[20 + 12] |= 1;
        let syn = Syn::parse(&accurate).expect("whole");
        assert!(syn.asks_for_ecn && syn.asks_for_accurate_ecn && syn.timestamps);
        // A middlebox that clears the two older flags leaves a SYN that asks for nothing.
        accurate[20 + 13] &= 0x3f;
        let syn = Syn::parse(&accurate).expect("whole");
        assert!(!syn.asks_for_ecn && !syn.asks_for_accurate_ecn);
    }

    #[test]
    fn version_6_with_a_header_in_between() {
        let mut packet = vec![0x62, 0x80, 0, 0, 0, 48, 60, 12];
        packet.extend([0x20; 32]);
        packet.extend([6, 0, 0, 0, 0, 0, 0, 0]);
        packet.extend(&VERSION_4[20..]);
        let syn = Syn::parse(&packet).expect("whole");
        assert_eq!((syn.type_of_service, syn.hop_limit, syn.mss), (TypeOfService::new(0x28), 12, Some(Mss::new(1460))));
        assert!(syn.payload.is_zero());
        packet[40] = 99;
        assert_eq!(Syn::parse(&packet), None, "not TCP");
    }

    #[test]
    fn truncated_or_broken_packets_are_survived() {
        for length in 0..VERSION_4.len() {
            assert_eq!(Syn::parse(&VERSION_4[..length]), None, "{length}");
        }
        for place in 0..VERSION_4.len() {
            for value in [0, 1, 2, 0x0f, 0x60, 0x7f, 0xf0, 0xff] {
                let mut packet = VERSION_4;
                packet[place] = value;
                let _ = Syn::parse(&packet);
                let mut behind = vec![0x60; 40];
                behind[6] = TCP;
                behind.extend(packet);
                let _ = Syn::parse(&behind);
            }
        }
    }

    #[test]
    fn the_kernel_keeps_the_syn_of_a_connection() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).expect("bind");
            options::set_save_syn(&listener, true).expect("Linux 4.2");
            let client = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
            let (accepted, from) = listener.accept().expect("accept");
            let syn = options::saved_syn(&accepted).expect("read").expect("kept");
            assert_eq!((syn.source, syn.destination), (from, accepted.local_addr().expect("address")));
            // Loopback's MTU of 65536 less both headers; IPv4's packets have no more than 65535 octets.
            assert!(syn.mss.is_some_and(|mss| mss.get() > 60_000), "{syn:?}");
            assert_eq!(options::saved_syn(&accepted).expect("read"), None, "given away once");
            assert_eq!(options::saved_syn(&client).expect("read"), None);
        }
    }
}
