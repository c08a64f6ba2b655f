//! Rate limit of each source.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::HashMap;

use linerate_units::{MonotonicTime, PacketCount};

use super::IntervalTimer;

/// Maximum number of tracked sources; further ones are refused until one of these has been silent.
const MAX_SOURCES: usize = 8192;

/// One token bucket for each source, of one second's packets.
#[derive(Debug)]
pub(super) struct RateLimiter {
    /// Packets per second.
    rate: u64,
    sources: HashMap<IpAddr, TokenBucket>,
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
        Self { rate: rate.get().min(1 << 32), sources: HashMap::new(), swept: IntervalTimer::default() }
    }

    /// Returns true when one more packet of a source may be answered.
    pub(super) fn admits(&mut self, source: IpAddr, now: MonotonicTime) -> bool {
        let source = network_of(source);
        if !self.sources.contains_key(&source) && self.sources.len() >= MAX_SOURCES {
            if !self.swept.is_due(now, SECOND) {
                return false;
            }
            // A source that has been silent for a second has a full bucket, like an unknown one.
            self.sources.retain(|_, bucket| now.since(bucket.at) < SECOND);
            if self.sources.len() >= MAX_SOURCES {
                return false;
            }
        }
        let most = self.rate.saturating_mul(BILLIONTHS_PER_PACKET);
        let rate = self.rate;
        let bucket = self.sources.entry(source).or_insert(TokenBucket { left: most, at: now });
        // At most a second's worth: the product is below 2^62.
        let passed = u64::try_from(now.since(bucket.at).min(SECOND).as_nanos()).unwrap_or(BILLIONTHS_PER_PACKET);
        bucket.left = bucket.left.saturating_add(passed.saturating_mul(rate)).min(most);
        bucket.at = bucket.at.max(now);
        let admitted = bucket.left >= BILLIONTHS_PER_PACKET;
        if admitted {
            bucket.left -= BILLIONTHS_PER_PACKET;
        }
        admitted
    }
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
        assert!(limiter.admits(address(1), at(SECOND)));
        assert!(!limiter.admits(address(2), at(SECOND)));
        assert!(limiter.admits(Ipv6Addr::new(0x2001, 0xDB8, 0, 8, 0, 0, 0, 1).into(), at(SECOND)));
        assert!(limiter.admits(ipv4(1), at(SECOND)));
        assert!(!limiter.admits(Ipv4Addr::from(0x0A00_0001).to_ipv6_mapped().into(), at(SECOND)));
    }

    #[test]
    fn memory_is_bounded_for_many_sources() {
        let mut limiter = RateLimiter::new(PacketCount::new(10));
        for number in 0..20_000 {
            limiter.admits(ipv4(number), at(SECOND));
        }
        assert_eq!(limiter.sources.len(), MAX_SOURCES);
        assert!(limiter.admits(ipv4(3), at(SECOND)), "the first ones keep their bucket");
        assert!(limiter.admits(ipv4(70_000), at(3 * SECOND)), "silent ones are removed");
        assert_eq!(limiter.sources.len(), 1);
    }

    proptest! {
        /// In any interval T, at most rate × (T + 1 s) packets.
        #[test]
        fn never_above_the_limit(rate in 1_u64..2000, gaps in proptest::collection::vec(0_u64..20_000_000, 1..500)) {
            let mut limiter = RateLimiter::new(PacketCount::new(rate));
            let (mut now, mut admitted) = (at(SECOND), 0);
            for gap in &gaps {
                now = now + Duration::from_nanos(*gap);
                admitted += u64::from(limiter.admits(ipv4(1), now));
            }
            let passed = gaps.iter().sum::<u64>();
            prop_assert!(admitted <= rate + (rate * passed).div_ceil(BILLIONTHS_PER_PACKET));
            let offered = gaps.len() as u64;
            prop_assert!(admitted >= offered.min(rate), "a burst of one second's packets passes");
        }
    }
}
