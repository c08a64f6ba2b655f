use core::time::Duration;

use linerate_units::{BitRate, ByteCount, PacketCount};

/// Interval of the receiver's reports (RFC 9097 §8.1, "feedback interval").
pub const FEEDBACK_INTERVAL: Duration = Duration::from_millis(50);

/// First rate, in bit/s: a quarter of the capacity of the slowest access links.
pub(super) const INITIAL_RATE: f64 = 1e6;

/// Limits of one search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Maximum time from the first to the last packet while reports arrive in time; up to three times as long where they are
    /// late.
    pub duration: Duration,
    /// Maximum number of IP bytes sent.
    pub bytes: ByteCount,
    /// Maximum rate of IP packets: the capacity of the sender's link, or the requested rate.
    pub max_rate: BitRate,
}

impl SearchLimits {
    /// Upper bound of the traffic within these limits, for an announcement before the path is known.
    #[must_use]
    pub fn max_traffic(&self) -> ByteCount {
        self.bytes.min(self.max_rate * self.duration)
    }
}

/// Measured duration of the overload.
pub(super) const OVERLOAD_DURATION: Duration = Duration::from_millis(300);

/// Measured duration of the hold: the sub-interval of RFC 9097 §6.
pub(super) const HOLD_DURATION: Duration = Duration::from_secs(1);

/// Layout of the test packets, which all have one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLayout {
    /// UDP payload.
    pub payload: ByteCount,
    /// Headers before the payload: 28 bytes of IPv4 and UDP, or 48 of IPv6 and UDP.
    pub headers: ByteCount,
}

impl PacketLayout {
    /// Size of the IP packet, the unit in which rates are counted here.
    #[must_use]
    pub fn size(&self) -> ByteCount {
        self.payload + self.headers
    }

    /// Time from one packet to the next at this rate of IP packets; `None` at rate zero.
    #[must_use]
    pub fn gap(&self, rate: BitRate) -> Option<Duration> {
        rate.time_to_send(self.size())
    }

    /// Payload rate at this rate of IP packets.
    #[must_use]
    pub fn payload_rate(&self, rate: BitRate) -> BitRate {
        (self.payload / self.size()).map_or(BitRate::ZERO, |share| rate * share.get())
    }

    /// IP bytes of that many packets.
    #[must_use]
    pub fn bytes(&self, packets: PacketCount) -> ByteCount {
        packets * self.size()
    }
}
