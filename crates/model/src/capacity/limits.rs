use core::time::Duration;

use linerate_units::{BitRate, ByteCount, PacketCount};

/// How often the receiver tells what arrived (RFC 9097 §8.1, "feedback interval").
pub const FEEDBACK_INTERVAL: Duration = Duration::from_millis(50);

/// The first rate: what the oldest lines still carry a quarter of.
pub(super) const FIRST_RATE: f64 = 1e6;

/// What one search may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest time from first to last packet.
    pub duration: Duration,
    /// The most IP bytes that are sent.
    pub bytes: ByteCount,
    /// The highest rate of IP packets that is sent: what the sender's link carries, or what was asked for.
    pub max_rate: BitRate,
}

impl Limits {
    /// The most that can be sent within these limits: for announcing before, when nothing is known of the path.
    #[must_use]
    pub fn most_traffic(&self) -> ByteCount {
        self.bytes.min(self.max_rate * self.duration)
    }

    /// About what is sent on a path of that capacity and round-trip time: the ramp (whose last step is up to twice the
    /// capacity, and lasts a round trip and a feedback), the overload, and a second of holding. Never more than
    /// [`Limits::most_traffic`].
    #[must_use]
    pub fn expected_traffic(&self, capacity: BitRate, round_trip: Duration) -> ByteCount {
        let step = round_trip + FEEDBACK_INTERVAL * 2;
        let (ramp, overload, hold) =
            (capacity * step * 4, (capacity * 1.5) * (step + OVERLOAD), (capacity * 1.05) * HOLD);
        (ramp + overload + hold + (capacity * 1.5) * step).min(self.most_traffic())
    }
}

/// How long the overload is looked at.
pub(super) const OVERLOAD: Duration = Duration::from_millis(300);

/// How long the hold is looked at: the sub-interval of RFC 9097 §6.
pub(super) const HOLD: Duration = Duration::from_secs(1);

/// The packets that are sent: all of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// UDP payload.
    pub payload: ByteCount,
    /// What stands before it: 28 bytes of IPv4 and UDP, or 48 of IPv6 and UDP.
    pub headers: ByteCount,
}

impl Packet {
    /// The size of the IP packet: what rates are counted in here.
    #[must_use]
    pub fn size(&self) -> ByteCount {
        self.payload + self.headers
    }

    /// The time from one packet to the next at this rate of IP packets; `None` at rate zero.
    #[must_use]
    pub fn gap(&self, rate: BitRate) -> Option<Duration> {
        rate.time_to_send(self.size())
    }

    /// The rate of payload at this rate of IP packets.
    #[must_use]
    pub fn payload_rate(&self, rate: BitRate) -> BitRate {
        (self.payload / self.size()).map_or(BitRate::ZERO, |share| rate * share.get())
    }

    /// The IP bytes of that many packets.
    #[must_use]
    pub fn bytes(&self, packets: PacketCount) -> ByteCount {
        packets * self.size()
    }
}
