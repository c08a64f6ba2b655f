//! Search for the path MTU by probe packets (RFC 4821, RFC 8899), without any IO.
//!
//! A driver sends the packets of [`PathMtuSearch::next`], in rounds: packets that may not be fragmented, of one or more
//! sizes, and small *control* packets in addition. Then it reports the arrivals. A single missing large packet is not
//! conclusive, as packets get lost; so a size counts as lost only after it has been missing in several rounds in which
//! control packets arrived ([`PathMtuSearch::attempts`] of them, the more the lossier the path).
//!
//! ICMP messages (RFC 1191, RFC 8201) shorten the search, as the reported size is tried next, and decide nothing:
//! routers without them cause the black holes of RFC 2923, and messages can be forged.

use std::collections::{BTreeMap, BTreeSet};

use linerate_units::{Mtu, PacketCount};

/// Common path MTUs, tried first: Ethernet (1500), `PPPoE` (1492, RFC 2516), tunnels of all kinds, the minimum of IPv6
/// (1280, RFC 8200 §5), the minimum of IPv4 hosts (576, RFC 791), jumbo frames.
const COMMON_MTUS: [u32; 16] =
    [576, 1280, 1300, 1350, 1358, 1380, 1400, 1420, 1428, 1440, 1450, 1460, 1472, 1480, 1492, 1500];

/// Common path MTUs of large frames.
const COMMON_LARGE_MTUS: [u32; 6] = [2304, 4352, 4470, 8900, 9000, 9001];

/// Maximum number of sizes in one round: a round costs a round trip, a size the time to send it.
const MAX_SIZES_PER_ROUND: usize = 8;

/// Probability of a chance loss below which a missing size counts as lost.
const MAX_CHANCE_LOSS: f64 = 1e-5;

/// Minimum loss rate assumed.
const MIN_LOSS: f64 = 0.02;

/// Minimum and maximum number of missing packets before a size counts as lost.
const ATTEMPTS_RANGE: (u32, u32) = (3, 12);

/// Number of rounds without any packet after which the path counts as dead.
const MAX_SILENT_ROUNDS: u32 = 6;

/// Maximum number of rounds; the search ends then with its present result.
const MAX_ROUNDS: u32 = 200;

/// Next step of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathMtuStep {
    /// Send one packet of each of these sizes, which are ascending, with control packets before and after them.
    Send(Vec<Mtu>),
    /// The search is over.
    Found(FoundPathMtu),
    /// Not even control packets arrive.
    NothingArrives,
}

/// Path MTU of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundPathMtu {
    /// Largest IP packet that arrived.
    pub mtu: Mtu,
    /// Smallest lost size; `None` when all sizes up to the largest possible arrive.
    pub vanishes: Option<Mtu>,
    /// True when no ICMP message reported that larger packets do not fit: a black hole.
    pub without_icmp: bool,
    /// Smallest MTU reported by ICMP.
    pub icmp_mtu: Option<Mtu>,
}

impl FoundPathMtu {
    /// Smallest size lost without an ICMP message, when there is a black hole.
    #[must_use]
    pub fn black_hole(&self) -> Option<Mtu> {
        self.vanishes.filter(|_| self.without_icmp)
    }
}

/// Result of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundOutcome {
    /// Sizes that were sent, without those that this host refused to send.
    pub sent: Vec<Mtu>,
    /// Sizes that arrived.
    pub arrived: Vec<Mtu>,
    /// Control packets sent.
    pub controls_sent: PacketCount,
    /// Control packets that arrived.
    pub controls_arrived: PacketCount,
}

/// Search in one direction.
#[derive(Clone, Debug)]
pub struct PathMtuSearch {
    /// Largest size known to arrive: at first that of the control packets.
    floor: u32,
    highest: u32,
    /// Number of times that each size above the floor was missing.
    missing: BTreeMap<u32, u32>,
    hints: BTreeSet<u32>,
    refused: bool,
    controls: (u64, u64),
    silent_rounds: u32,
    rounds: u32,
}

impl PathMtuSearch {
    /// Starts a search between the size of the control packets, which are assumed to fit, and the MTU of the sender's
    /// interface.
    #[must_use]
    pub fn new(control: Mtu, interface: Mtu) -> Self {
        Self {
            floor: control.get(),
            highest: interface.get().max(control.get()),
            missing: BTreeMap::new(),
            hints: BTreeSet::new(),
            refused: false,
            controls: (0, 0),
            silent_rounds: 0,
            rounds: 0,
        }
    }

    /// Records that a router or the sender's kernel reported an MTU of `mtu`.
    pub fn record_hint(&mut self, mtu: Mtu) {
        self.hints.insert(mtu.get());
    }

    /// Records that the sender's kernel refused a packet as too large for the path: it has an MTU report, with an
    /// unknown size.
    pub fn record_refusal(&mut self) {
        self.refused = true;
    }

    /// Number of missing packets of a size before it counts as lost: chance losses of as many are rarer than 1 in 100
    /// 000, by the loss of the control packets.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        let (sent, arrived) = self.controls;
        let lost = share(sent.saturating_sub(arrived), sent).unwrap_or(MIN_LOSS).clamp(MIN_LOSS, 0.9);
        let (least, most) = ATTEMPTS_RANGE;
        (least..most).find(|attempts| lost.powi(attempts.cast_signed()) <= MAX_CHANCE_LOSS).unwrap_or(most)
    }

    /// Returns the next step.
    #[must_use]
    pub fn next(&self) -> PathMtuStep {
        if self.silent_rounds >= MAX_SILENT_ROUNDS {
            return PathMtuStep::NothingArrives;
        }
        let suspect = self.suspect();
        let proven = suspect.is_some_and(|size| self.missing.get(&size).is_some_and(|count| *count >= self.attempts()));
        let bracketed = suspect.is_some_and(|size| size == self.floor + 1) && proven;
        if bracketed || self.floor == self.highest || self.rounds >= MAX_ROUNDS {
            return PathMtuStep::Found(self.found(suspect));
        }
        PathMtuStep::Send(self.sizes(suspect, proven).into_iter().map(Mtu::new).collect())
    }

    /// Processes the result of a round.
    pub fn finish_round(&mut self, outcome: &RoundOutcome) {
        self.rounds += 1;
        let largest = outcome.arrived.iter().map(|size| size.get()).max();
        if outcome.controls_arrived.is_zero() && largest.is_none() {
            // Nothing arrived at all: no information about sizes.
            self.silent_rounds += 1;
            return;
        }
        self.silent_rounds = 0;
        self.controls.0 += outcome.controls_sent.get();
        self.controls.1 += outcome.controls_arrived.get();
        self.floor = self.floor.max(largest.unwrap_or(0)).min(self.highest);
        for size in outcome.sent.iter().filter(|size| !outcome.arrived.contains(size)) {
            *self.missing.entry(size.get()).or_default() += 1;
        }
        let floor = self.floor;
        self.missing.retain(|size, _| *size > floor);
    }

    /// Smallest size above the floor that was missing.
    fn suspect(&self) -> Option<u32> {
        self.missing.keys().next().copied()
    }

    fn found(&self, suspect: Option<u32>) -> FoundPathMtu {
        let word = self.hints.iter().any(|hint| *hint <= self.floor) || self.refused;
        FoundPathMtu {
            mtu: Mtu::new(self.floor),
            vanishes: suspect.map(Mtu::new),
            without_icmp: !word,
            icmp_mtu: self.hints.first().copied().map(Mtu::new),
        }
    }

    fn sizes(&self, suspect: Option<u32>, proven: bool) -> BTreeSet<u32> {
        let ceiling = suspect.unwrap_or(self.highest + 1);
        let mut sizes = BTreeSet::new();
        sizes.extend(suspect.filter(|_| !proven));
        let between = |size: &u32| (self.floor + 1..ceiling).contains(size);
        let hinted = self.hints.iter().flat_map(|hint| [*hint, hint.saturating_add(1)]);
        sizes.extend(hinted.filter(between).take(MAX_SIZES_PER_ROUND / 2));
        if self.rounds == 0 {
            // Nearly always the whole range fits, and one packet shows it.
            sizes.insert(self.highest);
            return sizes;
        }
        let mut common: Vec<u32> = COMMON_MTUS.into_iter().chain(COMMON_LARGE_MTUS).filter(between).collect();
        common.reverse();
        let room = |sizes: &BTreeSet<u32>| MAX_SIZES_PER_ROUND.saturating_sub(sizes.len());
        // While the interval is wide, common sizes; their successors close the interval if they do not arrive.
        if self.rounds == 1 {
            sizes.extend(common.iter().take(room(&sizes)));
        } else {
            let next_up = Some(self.floor + 1)
                .filter(|_| COMMON_MTUS.contains(&self.floor) || COMMON_LARGE_MTUS.contains(&self.floor));
            sizes.extend(next_up.filter(between).filter(|_| room(&sizes) > 0));
        }
        let parts = u32::try_from(room(&sizes)).unwrap_or(0) + 1;
        let width = ceiling - self.floor;
        sizes.extend((1..parts).map(|part| self.floor + width.saturating_mul(part) / parts).filter(between));
        sizes
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of packets stay far below 2^53")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs a search over a path of that MTU. `takes(round, size)` decides chance losses of packets that fit.
    fn search(
        mut search: PathMtuSearch,
        mtu: u32,
        icmp: bool,
        mut takes: impl FnMut(u32, u32) -> bool,
    ) -> (PathMtuStep, u32, u64) {
        let (mut rounds, mut bytes) = (0, 0);
        loop {
            let sizes = match search.next() {
                PathMtuStep::Send(sizes) => sizes,
                end => return (end, rounds, bytes),
            };
            assert!(!sizes.is_empty() && sizes.len() <= MAX_SIZES_PER_ROUND, "{sizes:?}");
            assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{sizes:?}");
            bytes += sizes.iter().map(|size| u64::from(size.get())).sum::<u64>();
            let fits = |size: &Mtu| size.get() <= mtu;
            let arrived = sizes.iter().copied().filter(fits).filter(|size| !takes(rounds, size.get())).collect();
            if icmp && !sizes.iter().all(fits) {
                search.record_hint(Mtu::new(mtu));
            }
            let controls = (0..2).filter(|control| !takes(rounds, *control)).count();
            search.finish_round(&RoundOutcome {
                sent: sizes,
                arrived,
                controls_sent: PacketCount::new(2),
                controls_arrived: PacketCount::new(controls as u64),
            });
            rounds += 1;
            assert!(rounds <= MAX_ROUNDS + MAX_SILENT_ROUNDS, "no end");
        }
    }

    fn found(step: PathMtuStep) -> FoundPathMtu {
        match step {
            PathMtuStep::Found(found) => found,
            other => panic!("{other:?}"),
        }
    }

    fn between(control: u32, interface: u32) -> PathMtuSearch {
        PathMtuSearch::new(Mtu::new(control), Mtu::new(interface))
    }

    #[test]
    fn the_mtu_of_the_interface_is_confirmed_by_one_packet() {
        for interface in [1500, 9000, 65535] {
            let (step, rounds, bytes) = search(between(72, interface), interface, true, |_, _| false);
            let found = found(step);
            assert_eq!((found.mtu, found.vanishes, found.black_hole()), (Mtu::new(interface), None, None));
            assert_eq!((rounds, bytes), (1, u64::from(interface)));
        }
    }

    #[test]
    fn icmp_messages_shorten_the_search() {
        let (step, rounds, _) = search(between(72, 1500), 1400, true, |_, _| false);
        let found = found(step);
        assert_eq!((found.mtu, found.vanishes, found.black_hole()), (Mtu::new(1400), Some(Mtu::new(1401)), None));
        assert_eq!(found.icmp_mtu, Some(Mtu::new(1400)));
        assert!(rounds <= 1 + ATTEMPTS_RANGE.0, "{rounds}");
    }

    #[test]
    fn lost_packets_without_icmp_are_a_black_hole_of_known_size() {
        for mtu in [1400, 1399, 1280, 576, 80, 1499] {
            let (step, rounds, _) = search(between(72, 1500), mtu, false, |_, _| false);
            let found = found(step);
            assert_eq!((found.mtu, found.black_hole()), (Mtu::new(mtu), Some(Mtu::new(mtu + 1))), "{mtu}");
            assert!(rounds <= 9, "{mtu}: {rounds}");
        }
    }

    #[test]
    fn a_forged_message_changes_nothing() {
        let mut forged = between(72, 1500);
        forged.record_hint(Mtu::new(600));
        let (step, _, _) = search(forged, 1500, false, |_, _| false);
        let found = found(step);
        assert_eq!((found.mtu, found.icmp_mtu, found.vanishes), (Mtu::new(1500), Some(Mtu::new(600)), None));
    }

    #[test]
    fn a_dead_path_is_reported() {
        let (step, rounds, _) = search(between(72, 1500), 1500, false, |_, _| true);
        assert_eq!((step, rounds), (PathMtuStep::NothingArrives, MAX_SILENT_ROUNDS));
    }

    #[test]
    fn more_loss_takes_more_attempts() {
        let with_loss = |lost: u64| {
            let mut search = between(72, 1500);
            search.finish_round(&RoundOutcome {
                controls_sent: PacketCount::new(100),
                controls_arrived: PacketCount::new(100 - lost),
                ..RoundOutcome::default()
            });
            search.attempts()
        };
        // p^n ≤ 1e-5: 0.02^3 = 8e-6, 0.09^5 = 5.9e-6, 0.3^10 = 5.9e-6.
        assert_eq!([0, 9, 30, 80].map(with_loss), [3, 5, 10, 12]);
    }

    proptest! {
        #[test]
        fn every_size_is_found_exactly(
            interface in 100_u32..66_000, below in 0_u32..66_000, icmp in any::<bool>(),
        ) {
            let mtu = interface.saturating_sub(below).max(72);
            let (step, rounds, _) = search(between(72, interface), mtu, icmp, |_, _| false);
            let found = found(step);
            prop_assert_eq!(found.mtu, Mtu::new(mtu));
            prop_assert_eq!(found.vanishes, (mtu < interface).then(|| Mtu::new(mtu + 1)));
            prop_assert_eq!(found.black_hole().is_some(), mtu < interface && !icmp);
            prop_assert!(rounds <= 16, "{}", rounds);
        }

        /// Chance may lose two packets of a size in a row, which is less than the minimum number of attempts.
        #[test]
        fn loss_prolongs_the_search_without_errors(
            interface in 100_u32..10_000, below in 0_u32..10_000, pattern in proptest::collection::vec(any::<bool>(), 97),
        ) {
            let mtu = interface.saturating_sub(below).max(72);
            let mut in_a_row = BTreeMap::<u32, u32>::new();
            let mut count = 0_usize;
            let (step, _, _) = search(between(72, interface), mtu, false, |_, size| {
                count += 1;
                let before = in_a_row.entry(size).or_default();
                let taken = pattern[count % pattern.len()] && *before < 2;
                *before = if taken { *before + 1 } else { 0 };
                taken
            });
            prop_assert_eq!(found(step).mtu, Mtu::new(mtu));
        }
    }
}
