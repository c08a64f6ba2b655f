//! Rate of what a client sends: it cannot be paced from here, so a session that exceeds the limit ends.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, MonotonicTime};

use crate::server_rate::RateAccount;

/// Share by which all sessions together may exceed the limit before one is ended: paced flows fill it to the brim.
const TOLERANCE: f64 = 1.01;

/// Excess of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateExcess {
    /// It exceeds the limit alone.
    Alone,
    /// All sessions together exceed it, and this one its share.
    InSum,
}

impl RateExcess {
    /// Reason of the end, for the operator; an excess of the session alone needs none.
    pub(super) const fn detail(self) -> Option<&'static str> {
        match self {
            Self::Alone => None,
            Self::InSum => Some("all sessions together exceed --server-bitrate-limit, and this one its share"),
        }
    }
}

/// Watches the rate at which a session receives, averaged over a time.
#[derive(Debug)]
pub(super) struct RateWatch {
    account: RateAccount,
    averaging: Duration,
    since: MonotonicTime,
    /// Bytes that the session had received at the last call, and at the beginning of the average.
    received: [ByteCount; 2],
    /// Bytes of the whole server at the beginning of the average.
    total: ByteCount,
}

impl RateWatch {
    /// A watch over one session; `None` without a limit.
    pub(super) fn new(account: Option<RateAccount>, averaging: Duration, now: MonotonicTime) -> Option<Self> {
        let account = account?;
        let total = account.total();
        Some(Self { account, averaging, since: now, received: [ByteCount::ZERO; 2], total })
    }

    /// Counts the bytes received so far in the rate of the server; returns the excess at the end of an average.
    /// `sessions` is the number of sessions with traffic of the same network, this one included.
    pub(super) fn check(
        &mut self,
        now: MonotonicTime,
        received: ByteCount,
        sessions: impl FnOnce() -> u64,
    ) -> Option<RateExcess> {
        self.account.count(received - self.received[0], now);
        self.received[0] = received;
        let elapsed = now.since(self.since);
        if elapsed < self.averaging {
            return None;
        }
        let total = self.account.total();
        let rate = (received - self.received[1]).rate_over(elapsed);
        let server = (total - self.total).rate_over(elapsed);
        (self.since, self.received[1], self.total) = (now, received, total);
        let most = self.account.most();
        if rate > most {
            return Some(RateExcess::Alone);
        }
        let exceeds = server > most * TOLERANCE && rate > part(self.account.share(now), sessions());
        exceeds.then_some(RateExcess::InSum)
    }
}

/// The equal part of one of several sessions.
fn part(share: BitRate, sessions: u64) -> BitRate {
    share * u32::try_from(sessions.max(1)).map_or(0.0, |sessions| 1.0 / f64::from(sessions))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::resources::ClientNetwork;
    use crate::server_rate::ServerRate;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(seconds * 1_000_000_000)
    }

    const fn megabytes(count: u64) -> ByteCount {
        ByteCount::new(count * 1_000_000)
    }

    fn watch(server: &Arc<ServerRate>, last: u8) -> RateWatch {
        let client = std::net::Ipv4Addr::new(192, 0, 2, last).into();
        let account = server.account(ClientNetwork::of(client));
        RateWatch::new(Some(account), Duration::from_secs(5), at(10)).expect("a limit")
    }

    #[test]
    fn the_rate_of_one_session_is_averaged() {
        let server = ServerRate::new(BitRate::from_bits_per_second(8e6));
        let mut watch = watch(&server, 1);
        assert_eq!(watch.check(at(14), megabytes(50), || 1), None, "not yet five seconds");
        assert_eq!(watch.check(at(15), megabytes(50), || 1), Some(RateExcess::Alone));
        assert_eq!(watch.check(at(20), megabytes(55), || 1), None, "exactly the limit");
        assert_eq!(watch.check(at(25), megabytes(61), || 1), Some(RateExcess::Alone));
    }

    #[test]
    fn of_several_sessions_that_exceed_the_limit_together_those_above_their_share_end() {
        let server = ServerRate::new(BitRate::from_bits_per_second(8e6));
        let [mut large, mut small, mut third] = [1, 2, 2].map(|last| watch(&server, last));
        // 4 + 1 + 1 MB in 5 s are more than 5 MB; each of the two networks may have 2.5, each session of the second 1.25.
        let mut ends = |large_bytes, small_bytes, third_bytes, time| {
            let _ = large.check(at(time - 1), megabytes(large_bytes), || 1);
            let _ = third.check(at(time - 1), megabytes(third_bytes), || 2);
            let small = small.check(at(time), megabytes(small_bytes), || 2);
            (
                large.check(at(time), megabytes(large_bytes), || 1),
                small,
                third.check(at(time), megabytes(third_bytes), || 2),
            )
        };
        assert_eq!(ends(4, 1, 1, 15), (Some(RateExcess::InSum), None, None));
        assert_eq!(ends(6, 2, 2, 20), (None, None, None), "2 + 1 + 1 MB");
    }

    #[test]
    fn without_a_limit_nothing_is_watched() {
        assert!(RateWatch::new(None, Duration::from_secs(5), at(1)).is_none());
    }
}
