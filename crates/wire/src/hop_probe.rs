//! Payload of a datagram whose hop limit ends on the path. A router quotes the beginning of the packet that it drops
//! (RFC 792, RFC 1812 §4.3.2.3): with these bytes its report names the probe, although all probes of a flow have the same
//! addresses and ports.

/// First bytes of every probe.
const MAGIC: [u8; 4] = *b"LRHP";

/// Identity of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopProbe {
    /// Number of the run on this host: another run's probes are not this one's.
    pub run: u32,
    /// Number of the round.
    pub round: u32,
    /// Index of the flow.
    pub flow: u16,
    /// Hop limit with which it was sent.
    pub distance: u8,
}

impl HopProbe {
    /// Length of a probe's payload.
    pub const LENGTH: usize = 16;

    /// Payload of the probe.
    #[must_use]
    pub fn encode(self) -> [u8; Self::LENGTH] {
        let mut payload = [0; Self::LENGTH];
        payload[..4].copy_from_slice(&MAGIC);
        payload[4..8].copy_from_slice(&self.run.to_be_bytes());
        payload[8..12].copy_from_slice(&self.round.to_be_bytes());
        payload[12..14].copy_from_slice(&self.flow.to_be_bytes());
        payload[14] = self.distance;
        payload
    }

    /// Probe that a router quotes; `None` for other bytes, and for quotes that end earlier.
    #[must_use]
    pub fn parse(quoted: &[u8]) -> Option<Self> {
        let payload = quoted.first_chunk::<{ Self::LENGTH }>()?;
        let number = |place: usize| Some(u32::from_be_bytes(*payload.get(place..)?.first_chunk()?));
        (payload[..4] == MAGIC).then_some(Self {
            run: number(4)?,
            round: number(8)?,
            flow: u16::from_be_bytes([payload[12], payload[13]]),
            distance: payload[14],
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_probe_is_read_from_its_quote(
            run in any::<u32>(), round in any::<u32>(), flow in any::<u16>(), distance in any::<u8>(), more in 0_usize..64
        ) {
            let probe = HopProbe { run, round, flow, distance };
            let mut quoted = probe.encode().to_vec();
            quoted.resize(HopProbe::LENGTH + more, 0xaa);
            prop_assert_eq!(HopProbe::parse(&quoted), Some(probe));
            for length in 0..HopProbe::LENGTH {
                prop_assert_eq!(HopProbe::parse(&quoted[..length]), None);
            }
        }

        #[test]
        fn other_payloads_are_none(mut bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(first) = bytes.first_mut() {
                *first = b'x';
            }
            prop_assert_eq!(HopProbe::parse(&bytes), None);
        }
    }
}
