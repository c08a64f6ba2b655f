//! Rate that all traffic of a server shares (`--server-bitrate-limit`).
//!
//! Each network of clients that has moved data within the last second has an equal share of the rate, which it may use
//! at any time. Beyond its share it may use as much as the others leave. Nothing here is touched without a limit.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_units::{BitRate, ByteCount, MonotonicTime};

use crate::resources::ClientNetwork;

/// Time for which one step may use the share of its network: short enough that flows take turns. A thread that is late by
/// no more catches up.
const STEP: Duration = Duration::from_millis(10);

/// Time without traffic after which a network has no share.
const MAX_IDLE: Duration = Duration::from_secs(1);

/// Interval of looking for networks without traffic.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);

/// Longest time for which use of other networks' shares delays the use of the own one.
const MAX_BORROWED: Duration = Duration::from_millis(50);

/// Longest backlog of a network whose probes are still answered: longer than paced flows cause.
const MAX_REPLY_BACKLOG: Duration = Duration::from_millis(100);

/// Longest delay caused by bytes that a client sent without asking.
const MAX_RECEIVED_BACKLOG: Duration = Duration::from_secs(5);

/// Rate limit of a server.
#[derive(Debug)]
pub(crate) struct ServerRate {
    most: BitRate,
    state: Mutex<RateState>,
}

#[derive(Debug, Default)]
struct RateState {
    /// Time at which all bytes so far have had their time at the whole rate.
    next: MonotonicTime,
    total: ByteCount,
    networks: HashMap<ClientNetwork, NetworkRate>,
    swept: MonotonicTime,
}

#[derive(Clone, Copy, Debug)]
struct NetworkRate {
    /// Time at which its bytes so far have had their time at its share.
    next: MonotonicTime,
    used: MonotonicTime,
}

impl ServerRate {
    pub(crate) fn new(most: BitRate) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::default() })
    }

    /// Account of a network of clients.
    pub(crate) fn account(self: &Arc<Self>, network: ClientNetwork) -> RateAccount {
        RateAccount { server: Arc::clone(self), network }
    }

    /// A poisoned lock only means that another thread panicked; the times are still the best available.
    fn lock(&self) -> MutexGuard<'_, RateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn share(&self, state: &RateState) -> BitRate {
        self.most * u32::try_from(state.networks.len().max(1)).map_or(0.0, |networks| 1.0 / f64::from(networks))
    }

    /// Adds the time of `bytes` to the time of the server.
    fn charge(&self, state: &mut RateState, bytes: ByteCount, now: MonotonicTime) {
        state.total += bytes;
        state.next = after(state.next, now, bytes, self.most);
    }
}

impl RateState {
    /// Entry of a network that moves data now; others are forgotten when they have been idle.
    fn network(&mut self, network: ClientNetwork, now: MonotonicTime) -> &mut NetworkRate {
        if now.since(self.swept) >= SWEEP_INTERVAL {
            self.swept = now;
            self.networks.retain(|_, entry| now.since(entry.used) < MAX_IDLE || entry.next > now);
        }
        let entry = self.networks.entry(network).or_insert(NetworkRate { next: now, used: now });
        entry.used = entry.used.max(now);
        entry
    }
}

/// Account of a network of clients in the rate of a server. Copies refer to the same account.
#[derive(Clone, Debug)]
pub(crate) struct RateAccount {
    server: Arc<ServerRate>,
    network: ClientNetwork,
}

impl RateAccount {
    /// Limit of the server.
    pub(crate) fn most(&self) -> BitRate {
        self.server.most
    }

    /// Bytes of all networks so far.
    pub(crate) fn total(&self) -> ByteCount {
        self.server.lock().total
    }

    /// Share of the network, if it moves data now.
    pub(crate) fn share(&self, now: MonotonicTime) -> BitRate {
        let mut state = self.server.lock();
        state.network(self.network, now);
        self.server.share(&state)
    }

    /// Most bytes of one step, at least `least`.
    pub(crate) fn step(&self, least: ByteCount, now: MonotonicTime) -> ByteCount {
        (self.share(now) * STEP).max(least)
    }

    /// Earliest time of the next step; `None` when it is now.
    pub(crate) fn deferred_until(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        let mut state = self.server.lock();
        let earliest = state.network(self.network, now).next.min(state.next);
        (earliest > now).then_some(earliest)
    }

    /// Reserves `bytes` to send; `false` when another flow has had the turn meanwhile.
    pub(crate) fn reserve(&self, bytes: ByteCount, now: MonotonicTime) -> bool {
        let mut state = self.server.lock();
        let own = state.network(self.network, now).next;
        let permitted = own <= now || state.next <= now;
        if permitted {
            self.charge(&mut state, bytes, now, own);
        }
        permitted
    }

    /// Returns reserved bytes that were not sent.
    pub(crate) fn give_back(&self, unused: ByteCount) {
        if unused.is_zero() {
            return;
        }
        let mut state = self.server.lock();
        let (share, most) = (self.server.share(&state), self.server.most);
        state.total = state.total - unused;
        state.next = before(state.next, unused, most);
        if let Some(entry) = state.networks.get_mut(&self.network) {
            entry.next = before(entry.next, unused, share);
        }
    }

    /// Counts `bytes` that have been received.
    pub(crate) fn count(&self, bytes: ByteCount, now: MonotonicTime) {
        if bytes.is_zero() {
            return;
        }
        let mut state = self.server.lock();
        let own = state.network(self.network, now).next;
        self.charge(&mut state, bytes, now, own);
        let latest = now + MAX_RECEIVED_BACKLOG;
        state.next = state.next.min(latest);
        let entry = state.network(self.network, now);
        entry.next = entry.next.min(latest);
    }

    /// Returns `true` when a probe may be answered with `bytes`, and counts them.
    pub(crate) fn admits_reply(&self, bytes: ByteCount, now: MonotonicTime) -> bool {
        let mut state = self.server.lock();
        let own = state.network(self.network, now).next;
        let permitted = own <= now + MAX_REPLY_BACKLOG || state.next <= now;
        if permitted {
            self.charge(&mut state, bytes, now, own);
        }
        permitted
    }

    /// Charges both the server and the network, whose time is `own`.
    fn charge(&self, state: &mut RateState, bytes: ByteCount, now: MonotonicTime, own: MonotonicTime) {
        let borrows = own > now && state.next <= now;
        let mut next = after(own, now, bytes, self.server.share(state));
        if borrows {
            next = next.min((now + MAX_BORROWED).max(own));
        }
        self.server.charge(state, bytes, now);
        state.network(self.network, now).next = next;
    }
}

fn time_of(bytes: ByteCount, rate: BitRate) -> Duration {
    rate.time_to_send(bytes).unwrap_or(Duration::MAX)
}

/// `next` delayed by `bytes`. Of a pause, no more than a step is caught up.
fn after(next: MonotonicTime, now: MonotonicTime, bytes: ByteCount, rate: BitRate) -> MonotonicTime {
    let earliest = MonotonicTime::from_nanos(now.as_nanos().saturating_sub(nanos(STEP)));
    MonotonicTime::from_nanos(next.max(earliest).as_nanos().saturating_add(nanos(time_of(bytes, rate))))
}

fn before(next: MonotonicTime, bytes: ByteCount, rate: BitRate) -> MonotonicTime {
    MonotonicTime::from_nanos(next.as_nanos().saturating_sub(nanos(time_of(bytes, rate))))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes a millisecond.
    fn rate() -> BitRate {
        BitRate::from_bits_per_second(8e6)
    }

    fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(1_000_000_000 + milliseconds * 1_000_000)
    }

    fn accounts<const N: usize>(rate: BitRate) -> [RateAccount; N] {
        let server = ServerRate::new(rate);
        let address = |index: usize| std::net::Ipv4Addr::from(0xC000_0200 + u32::try_from(index).expect("small"));
        core::array::from_fn(|index| server.account(ClientNetwork::of(address(index).into())))
    }

    /// Bytes that each account sends in `milliseconds`, in blocks of 1000 as often as it may, `flows` times in each.
    fn sent<const N: usize>(
        accounts: &[RateAccount; N],
        flows: [usize; N],
        milliseconds: core::ops::Range<u64>,
    ) -> [u64; N] {
        let mut sent = [0; N];
        for millisecond in milliseconds {
            for (index, account) in accounts.iter().enumerate() {
                for _ in 0..flows[index] {
                    sent[index] += 1000 * u64::from(account.reserve(ByteCount::new(1000), at(millisecond)));
                }
            }
        }
        sent
    }

    #[test]
    fn two_senders_of_a_network_have_the_rate_of_one() {
        let [account] = accounts(rate());
        assert_eq!(account.step(ByteCount::new(1), at(0)), ByteCount::new(10_000));
        let accounts = [account];
        let [sent] = sent(&accounts, [2], 0..1000);
        let [account] = accounts;
        assert!((1_000_000..=1_011_000).contains(&sent), "a second, and the step before it: {sent}");
        assert!(account.deferred_until(at(999)).is_some());
        assert_eq!(account.deferred_until(at(1011)), None);
    }

    #[test]
    fn networks_share_the_rate_equally_whatever_their_number_of_flows() {
        let accounts = accounts::<2>(rate());
        // Both are known from the first millisecond on.
        sent(&accounts, [1, 1], 0..10);
        let [one, other] = sent(&accounts, [1, 50], 10..1010);
        for share in [one, other] {
            assert!((480_000..=520_000).contains(&share), "{one} and {other}");
        }
    }

    #[test]
    fn a_network_uses_what_others_leave_and_owes_nothing_for_it() {
        let accounts = accounts::<2>(rate());
        let [one, other] = &accounts;
        let mut bytes = 0;
        for millisecond in 0..2000 {
            if millisecond % 10 == 0 {
                assert!(
                    other.reserve(ByteCount::new(1000), at(millisecond)),
                    "a tenth of the rate is within its share"
                );
            }
            bytes += 1000 * u64::from(one.reserve(ByteCount::new(1000), at(millisecond)));
        }
        assert!((1_750_000..=1_850_000).contains(&bytes), "nine tenths: {bytes}");
        let [one, other] = sent(&accounts, [1, 1], 2000..3000);
        assert!(one >= 430_000 && other >= 430_000 && one + other <= 1_030_000, "{one} and {other}");
    }

    #[test]
    fn idle_networks_have_no_share() {
        let accounts = accounts::<2>(rate());
        sent(&accounts, [1, 1], 0..100);
        assert_eq!(accounts[0].share(at(100)), rate() * 0.5);
        assert_eq!(accounts[0].share(at(1200)), rate());
    }

    #[test]
    fn received_bytes_delay_what_is_sent_and_pauses_are_not_caught_up() {
        let [account] = accounts(rate());
        account.count(ByteCount::new(13_000), at(0));
        account.count(ByteCount::new(3000), at(1));
        assert!(!account.reserve(ByteCount::new(1), at(5)));
        account.count(ByteCount::new(11_000), at(500));
        assert_eq!(account.deferred_until(at(500)), Some(at(501)), "10 ms of the pause");
        account.count(ByteCount::new(1_000_000_000), at(600));
        assert_eq!(account.deferred_until(at(600)), Some(at(5600)), "an attack is forgotten after five seconds");
        assert_eq!(account.total(), ByteCount::new(1_000_027_000));
    }

    #[test]
    fn bytes_that_were_not_sent_are_given_back() {
        let [account] = accounts(rate());
        assert!(account.reserve(ByteCount::new(100_000), at(0)));
        account.give_back(ByteCount::new(99_000));
        assert_eq!((account.deferred_until(at(1)), account.total()), (None, ByteCount::new(1000)));
    }

    #[test]
    fn probes_are_answered_while_loads_fill_the_rate_but_not_above_it() {
        let accounts = accounts::<2>(rate());
        let [loads, probes] = &accounts;
        let (mut answered, mut flood) = (0, 0);
        for millisecond in 0..1000 {
            while loads.reserve(ByteCount::new(1000), at(millisecond)) {}
            answered += u32::from(loads.admits_reply(ByteCount::new(50), at(millisecond)));
            for _ in 0..100 {
                flood += 1000 * u64::from(probes.admits_reply(ByteCount::new(1000), at(millisecond)));
            }
        }
        assert_eq!(answered, 1000);
        assert!((450_000..=620_000).contains(&flood), "half of the rate: {flood}");
    }

    proptest::proptest! {
        /// In any order of sending, the sum is the rate, a step of each network and a block more at most.
        #[test]
        fn the_sum_is_never_above_the_rate(
            attempts in proptest::collection::vec((0_usize..4, 1_u64..30_000, 0_u64..3), 1..2000),
        ) {
            let accounts = accounts::<4>(rate());
            let (mut now, mut sent) = (0, 0);
            for (who, bytes, pause) in attempts {
                now += pause;
                sent += bytes * u64::from(accounts[who].reserve(ByteCount::new(bytes), at(now)));
            }
            proptest::prop_assert!(sent <= 1000 * now + 4 * (10_000 + 30_000) + 40_000, "{} in {} ms", sent, now);
        }
    }
}
