//! Options whose values have a fixed length.

use linerate_units::Dscp;

use crate::stamp::StampTimestamp;

/// Synchronization source of a clock (RFC 8972 §4.3, registry "STAMP Synchronization Sources").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SynchronizationSource {
    /// NTP.
    Ntp,
    /// PTP.
    Ptp,
    /// A synchronization supply unit or building integrated timing supply.
    SsuBits,
    /// A satellite or radio system: GPS, GLONASS, LORAN-C, BDS, Galileo.
    Satellite,
    /// Nothing: the clock runs free.
    FreeRunning,
    /// An unknown number of the registry.
    Other(u8),
}

impl SynchronizationSource {
    const fn from_octet(octet: u8) -> Option<Self> {
        Some(match octet {
            0 => return None,
            1 => Self::Ntp,
            2 => Self::Ptp,
            3 => Self::SsuBits,
            4 => Self::Satellite,
            5 => Self::FreeRunning,
            other => Self::Other(other),
        })
    }

    const fn octet(source: Option<Self>) -> u8 {
        match source {
            None => 0,
            Some(Self::Ntp) => 1,
            Some(Self::Ptp) => 2,
            Some(Self::SsuBits) => 3,
            Some(Self::Satellite) => 4,
            Some(Self::FreeRunning) => 5,
            Some(Self::Other(octet)) => octet,
        }
    }
}

/// Timestamping method (RFC 8972 §4.3, registry "STAMP Timestamping Methods").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimestampMethod {
    /// Hardware.
    Hardware,
    /// Software on the same device.
    Software,
    /// Control plane.
    ControlPlane,
    /// An unknown number of the registry.
    Other(u8),
}

impl TimestampMethod {
    const fn from_octet(octet: u8) -> Option<Self> {
        Some(match octet {
            0 => return None,
            1 => Self::Hardware,
            2 => Self::Software,
            3 => Self::ControlPlane,
            other => Self::Other(other),
        })
    }

    const fn octet(method: Option<Self>) -> u8 {
        match method {
            None => 0,
            Some(Self::Hardware) => 1,
            Some(Self::Software) => 2,
            Some(Self::ControlPlane) => 3,
            Some(Self::Other(octet)) => octet,
        }
    }
}

/// Synchronization sources and timestamping methods of a reflector (RFC 8972 §4.3). A sender requests them with the
/// default: nothing filled in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimestampInformation {
    /// Synchronization source of the receive timestamp.
    pub arrival_source: Option<SynchronizationSource>,
    /// Method of the receive timestamp.
    pub arrival_method: Option<TimestampMethod>,
    /// Synchronization source of the transmit timestamp.
    pub departure_source: Option<SynchronizationSource>,
    /// Method of the transmit timestamp.
    pub departure_method: Option<TimestampMethod>,
}

impl TimestampInformation {
    pub(in crate::stamp) const fn decode([source_in, method_in, source_out, method_out]: [u8; 4]) -> Self {
        Self {
            arrival_source: SynchronizationSource::from_octet(source_in),
            arrival_method: TimestampMethod::from_octet(method_in),
            departure_source: SynchronizationSource::from_octet(source_out),
            departure_method: TimestampMethod::from_octet(method_out),
        }
    }

    pub(in crate::stamp) const fn encode(self) -> [u8; 4] {
        [
            SynchronizationSource::octet(self.arrival_source),
            TimestampMethod::octet(self.arrival_method),
            SynchronizationSource::octet(self.departure_source),
            TimestampMethod::octet(self.departure_method),
        ]
    }
}

/// Classes of a packet and its answer (RFC 8972 §4.4, with erratum 8199).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassOfService {
    /// DSCP1: codepoint that the sender requests for the answer.
    pub requested: Dscp,
    /// DSCP2: codepoint of the packet on arrival, filled in by the reflector.
    pub received: Dscp,
    /// ECN bits of the packet on arrival (RFC 3168 §5), filled in by the reflector.
    pub arrived_ecn: u8,
    /// RP, two bits: 1 when the reflector may not use DSCP1, and the answer has the codepoint of the packet.
    pub reverse_path: u8,
    /// ECN bits that the sender requests for the answer: the first two of the 16 that RFC 8972 reserves. Reflectors that
    /// do not know them answer without ECN.
    pub requested_ecn: u8,
}

impl ClassOfService {
    pub(in crate::stamp) const fn decode([first, second, third, _]: [u8; 4]) -> Self {
        let bits = u16::from_be_bytes([first, second]);
        Self {
            requested: dscp(bits >> 10),
            received: dscp(bits >> 4),
            arrived_ecn: (bits >> 2 & 3) as u8,
            reverse_path: (bits & 3) as u8,
            requested_ecn: third >> 6,
        }
    }

    pub(in crate::stamp) fn encode(self) -> [u8; 4] {
        let (wanted, arrived) = (u16::from(self.requested.get()), u16::from(self.received.get()));
        let (ecn, reverse_path) = (u16::from(self.arrived_ecn & 3), u16::from(self.reverse_path & 3));
        let [first, second] = (wanted << 10 | arrived << 4 | ecn << 2 | reverse_path).to_be_bytes();
        [first, second, self.requested_ecn << 6, 0]
    }
}

const fn dscp(bits: u16) -> Dscp {
    match Dscp::new((bits & 0x3F) as u8) {
        Some(codepoint) => codepoint,
        None => unreachable!(),
    }
}

/// Counts of data packets of the same class and path (RFC 8972 §4.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectMeasurement {
    /// Packets that the sender has sent, modulo 2^32.
    pub sender_transmitted: u32,
    /// Packets that the reflector has received, modulo 2^32; filled in by it.
    pub reflector_received: u32,
    /// Packets that the reflector has sent, modulo 2^32; filled in by it.
    pub reflector_transmitted: u32,
}

impl DirectMeasurement {
    pub(in crate::stamp) fn decode(value: [u8; 12]) -> Self {
        let count = |at: usize| u32::from_be_bytes([value[at], value[at + 1], value[at + 2], value[at + 3]]);
        Self { sender_transmitted: count(0), reflector_received: count(4), reflector_transmitted: count(8) }
    }

    pub(in crate::stamp) fn encode(self) -> [u8; 12] {
        let mut value = [0; 12];
        value[..4].copy_from_slice(&self.sender_transmitted.to_be_bytes());
        value[4..8].copy_from_slice(&self.reflector_received.to_be_bytes());
        value[8..].copy_from_slice(&self.reflector_transmitted.to_be_bytes());
        value
    }
}

/// Access network of a sender with several (RFC 8972 §4.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessReport {
    /// Access type, four bits: 1 3GPP, 2 non-3GPP; no other value is valid.
    pub access: u8,
    /// Return code: 1 network available, 2 network unavailable (registry "STAMP Return Codes").
    pub return_code: u8,
}

impl AccessReport {
    pub(in crate::stamp) const fn decode([access, return_code, _, _]: [u8; 4]) -> Self {
        Self { access: access >> 4, return_code }
    }

    pub(in crate::stamp) const fn encode(self) -> [u8; 4] {
        [(self.access & 15) << 4, self.return_code, 0, 0]
    }

    /// True when the access type is valid.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        matches!(self.access, 1 | 2)
    }
}

/// Exact transmit timestamp of the previous answer (RFC 8972 §4.7). A sender requests it with the default: nothing
/// filled in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowUpTelemetry {
    /// Sequence number of that answer.
    pub sequence: u32,
    /// Transmit timestamp; [`StampTimestamp::UNKNOWN`] without a previous answer, or on a stateless reflector.
    pub timestamp: StampTimestamp,
    /// Method of that timestamp.
    pub method: Option<TimestampMethod>,
}

impl FollowUpTelemetry {
    pub(in crate::stamp) fn decode(value: [u8; 16]) -> Self {
        let bits = u128::from_be_bytes(value);
        let [method, ..] = [value[12]];
        Self {
            sequence: u32::try_from(bits >> 96).unwrap_or(u32::MAX),
            timestamp: StampTimestamp::from_bits(u64::try_from(bits >> 32 & u128::from(u64::MAX)).unwrap_or(u64::MAX)),
            method: TimestampMethod::from_octet(method),
        }
    }

    pub(in crate::stamp) fn encode(self) -> [u8; 16] {
        let method = u128::from(TimestampMethod::octet(self.method));
        (u128::from(self.sequence) << 96 | u128::from(self.timestamp.bits()) << 32 | method << 24).to_be_bytes()
    }
}
