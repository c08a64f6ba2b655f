//! Rate limit of each source.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use linerate_units::{ByteCount, MonotonicTime, PacketCount};

use super::IntervalTimer;

/// Maximum number of sources with a token bucket of their own, until one of these has been silent. Further ones, whose
/// addresses are hardly all real, share [`SHARED_BUCKETS`] by the hash of their address.
const MAX_SOURCES: usize = 8192;
const SHARED_BUCKETS: usize = 4096;

/// Bytes of a packet that count as one packet: a usual MTU.
const BYTES_PER_PACKET: u64 = 1500;

/// One token bucket for each source, of one second's packets.
#[derive(Debug)]
pub(super) struct RateLimiter {
    /// Packets per second.
    rate: u64,
    sources: HashMap<IpAddr, TokenBucket>,
    /// Empty until it is needed.
    shared: Vec<TokenBucket>,
    swept: IntervalTimer,
}

#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    /// Tokens left, in billionths of a packet.
    left: u64,
    at: MonotonicTime,
}

/// Billionths: one nanosecond of one packet per second.
const BILLIONTHS_PER_PACKET: u64 = 1_000_000_000;
const SECOND: Duration = Duration::from_secs(1);

impl RateLimiter {
    pub(super) fn new(rate: PacketCount) -> Self {
        // A limit above 2^32 packets per second has no effect; products stay below 2^64.
        Self {
            rate: rate.get().min(1 << 32),
            sources: HashMap::new(),
            shared: Vec::new(),
            swept: IntervalTimer::default(),
        }
    }

    /// Returns true when one more packet of a source may be answered. A long one counts as several.
    pub(super) fn admits(&mut self, source: IpAddr, size: ByteCount, now: MonotonicTime) -> bool {
        let cost = size.get().div_ceil(BYTES_PER_PACKET).max(1).saturating_mul(BILLIONTHS_PER_PACKET);
        let rate = self.rate;
        self.bucket(network_of(source), now).take(cost, rate, now)
    }

    fn bucket(&mut self, source: IpAddr, now: MonotonicTime) -> &mut TokenBucket {
        let full = TokenBucket { left: self.rate.saturating_mul(BILLIONTHS_PER_PACKET), at: now };
        if self.sources.len() >= MAX_SOURCES && !self.sources.contains_key(&source) {
            if self.swept.is_due(now, SECOND) {
                // A source that has been silent for a second has a full bucket, like an unknown one.
                self.sources.retain(|_, bucket| now.since(bucket.at) < SECOND);
            }
            if self.sources.len() >= MAX_SOURCES {
                self.shared.resize(SHARED_BUCKETS, full);
                return &mut self.shared[shared_index(source)];
            }
        }
        self.sources.entry(source).or_insert(full)
    }
}

impl TokenBucket {
    /// Takes `cost` tokens, after adding those since the last time; `false` when it has fewer.
    fn take(&mut self, cost: u64, rate: u64, now: MonotonicTime) -> bool {
        let most = rate.saturating_mul(BILLIONTHS_PER_PACKET);
        // At most a second's worth: the product is below 2^62.
        let passed = u64::try_from(now.since(self.at).min(SECOND).as_nanos()).unwrap_or(BILLIONTHS_PER_PACKET);
        self.left = self.left.saturating_add(passed.saturating_mul(rate)).min(most);
        self.at = self.at.max(now);
        // A packet above the whole rate takes all of it.
        let cost = cost.min(most);
        let admitted = self.left >= cost.max(BILLIONTHS_PER_PACKET);
        if admitted {
            self.left -= cost;
        }
        admitted
    }
}

fn shared_index(source: IpAddr) -> usize {
    let mut hasher = DefaultHasher::new();
    source.hash(&mut hasher);
    usize::try_from(hasher.finish() % SHARED_BUCKETS as u64).unwrap_or(0)
}

/// Network of a source: an IPv6 host usually has a whole /64 (RFC 6177).
fn network_of(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        ipv4 @ IpAddr::V4(_) => ipv4,
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    const PACKET: ByteCount = ByteCount::new(44);

    fn ipv4(number: u32) -> IpAddr {
        Ipv4Addr::from(0x0A00_0000 + number).into()
    }

    fn at(time: Duration) -> MonotonicTime {
        MonotonicTime::default() + time
    }

    #[test]
    fn an_ipv6_network_has_one_limit() {
        let mut limiter = RateLimiter::new(PacketCount::new(1));
        let address = |last| Ipv6Addr::new(0x2001, 0xDB8, 0, 7, 0, 0, 0, last).into();
        assert!(limiter.admits(address(1), PACKET, at(SECOND)));
        assert!(!limiter.admits(address(2), PACKET, at(SECOND)));
        assert!(limiter.admits(Ipv6Addr::new(0x2001, 0xDB8, 0, 8, 0, 0, 0, 1).into(), PACKET, at(SECOND)));
        assert!(limiter.admits(ipv4(1), PACKET, at(SECOND)));
        assert!(!limiter.admits(Ipv4Addr::from(0x0A00_0001).to_ipv6_mapped().into(), PACKET, at(SECOND)));
    }

    #[test]
    fn memory_is_bounded_for_many_sources() {
        let mut limiter = RateLimiter::new(PacketCount::new(10));
        let admitted = (0..20_000).filter(|number| limiter.admits(ipv4(*number), PACKET, at(SECOND))).count();
        assert_eq!(admitted, 20_000, "no source is refused for the number of others");
        assert_eq!((limiter.sources.len(), limiter.shared.len()), (MAX_SOURCES, SHARED_BUCKETS));
        assert!(limiter.admits(ipv4(3), PACKET, at(SECOND)), "the first ones keep their bucket");
        assert!(limiter.admits(ipv4(70_000), PACKET, at(3 * SECOND)), "silent ones are removed");
        assert_eq!(limiter.sources.len(), 1);
    }

    #[test]
    fn a_long_packet_counts_as_several() {
        let mut limiter = RateLimiter::new(PacketCount::new(100));
        let answered = |limiter: &mut RateLimiter, size: u64, seconds| {
            (0..200).filter(|_| limiter.admits(ipv4(1), ByteCount::new(size), at(seconds * SECOND))).count()
        };
        assert_eq!(answered(&mut limiter, 1500, 1), 100);
        assert_eq!(answered(&mut limiter, 1501, 2), 50);
        assert_eq!(answered(&mut limiter, 65_507, 3), 2, "of 44 packets each");
        let mut slow = RateLimiter::new(PacketCount::new(10));
        assert_eq!(answered(&mut slow, 65_507, 1), 1, "the whole rate");
        let mut none = RateLimiter::new(PacketCount::ZERO);
        assert_eq!(answered(&mut none, 44, 1), 0);
    }

    proptest! {
        /// In any interval T, at most rate × (T + 1 s) packets.
        #[test]
        fn never_above_the_limit(rate in 1_u64..2000, gaps in proptest::collection::vec(0_u64..20_000_000, 1..500)) {
            let mut limiter = RateLimiter::new(PacketCount::new(rate));
            let (mut now, mut admitted) = (at(SECOND), 0);
            for gap in &gaps {
                now = now + Duration::from_nanos(*gap);
                admitted += u64::from(limiter.admits(ipv4(1), PACKET, now));
            }
            let passed = gaps.iter().sum::<u64>();
            prop_assert!(admitted <= rate + (rate * passed).div_ceil(BILLIONTHS_PER_PACKET));
            let offered = gaps.len() as u64;
            prop_assert!(admitted >= offered.min(rate), "a burst of one second's packets passes");
        }
    }
}
