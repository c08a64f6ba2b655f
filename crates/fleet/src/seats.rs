//! Seats: each host has a number below a prime, so that the sum of two seats tells when they meet.
//!
//! Two pairs of one host have different sums, which is the circle method of round-robin tournaments. A seat follows from the
//! host's name: a host that joins or leaves moves few others (ordered double hashing, Amble and Knuth 1974, whose table does
//! not depend on the order of the insertions).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::identity::hash;

/// Numbers of seats: primes, each about a quarter more than the last, so that a fleet which grows is seated anew seldom.
const SEATS: [u32; 33] = [
    2, 3, 5, 7, 11, 13, 17, 23, 29, 37, 47, 59, 73, 97, 127, 157, 197, 251, 317, 397, 499, 631, 797, 997, 1249, 1567,
    1973, 2467, 3089, 3863, 4831, 6043, 7559,
];

/// Up to this number of seats, all of them may be taken: few hosts want a short cycle.
const MAX_FULL_SEATS: u32 = 13;

/// Largest share of seats that are taken, in percent: with more, a host that joins moves many others.
const MAX_SHARE_PERCENT: u32 = 85;

/// Largest number of hosts.
pub(crate) const MAX_SEATED: usize = 6425;

/// Hosts with their seats, of which there is a prime number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeatingPlan {
    pub(crate) seats: u32,
    of: BTreeMap<String, u32>,
}

impl SeatingPlan {
    /// Seats of these hosts; `None` when there are too many of them.
    pub(crate) fn new<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut hosts: Vec<(u64, &str)> = hosts.into_iter().map(|host| (hash(&["order", host]), host)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let count = u32::try_from(hosts.len()).ok()?;
        let seats = *SEATS.iter().find(|seats| count <= places(**seats))?;
        let mut taken = vec![false; seats as usize];
        let mut of = BTreeMap::new();
        // The first in the order has its choice, so that a later one never moves an earlier one.
        for (_, host) in hosts {
            let seat = probes(host, seats).find(|seat| !taken[*seat as usize])?;
            taken[seat as usize] = true;
            of.insert(host.to_owned(), seat);
        }
        Some(Self { seats, of })
    }

    /// Seats of two hosts.
    pub(crate) fn of_both(&self, hosts: &[Arc<str>; 2]) -> Option<[u32; 2]> {
        Some([*self.of.get(&*hosts[0])?, *self.of.get(&*hosts[1])?])
    }

    /// Round in which two seats meet: below the number of seats.
    pub(crate) const fn round(&self, [first, second]: [u32; 2]) -> u32 {
        (first + second) % self.seats
    }
}

/// Number of hosts that so many seats take.
const fn places(seats: u32) -> u32 {
    if seats <= MAX_FULL_SEATS { seats } else { seats * MAX_SHARE_PERCENT / 100 }
}

/// Seats in the order in which a host wants them: all, since their number is a prime.
fn probes(host: &str, seats: u32) -> impl Iterator<Item = u32> {
    let below = |kind: &str, most: u32| u32::try_from(hash(&[kind, host]) % u64::from(most)).unwrap_or_default();
    let (start, step) = (below("seat", seats), 1 + below("step", seats - 1));
    (0..seats).scan(start, move |seat, _| {
        let wanted = *seat;
        *seat = (*seat + step) % seats;
        Some(wanted)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_prime(number: u32) -> bool {
        number > 1
            && (2..number)
                .take_while(|divisor| divisor * divisor <= number)
                .all(|divisor| !number.is_multiple_of(divisor))
    }

    #[test]
    fn numbers_of_seats_are_growing_primes() {
        assert!(SEATS.iter().all(|seats| is_prime(*seats)), "{SEATS:?}");
        assert!(SEATS.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(places(SEATS[SEATS.len() - 1]) as usize, MAX_SEATED);
    }

    fn names(numbers: impl IntoIterator<Item = u16>) -> Vec<String> {
        numbers.into_iter().map(|number| format!("host-{number}")).collect()
    }

    fn plan(names: &[String]) -> SeatingPlan {
        SeatingPlan::new(names.iter().map(String::as_str)).expect("few hosts")
    }

    proptest! {
        #[test]
        fn every_host_has_a_seat_of_its_own(numbers in prop::collection::btree_set(any::<u16>(), 0..300)) {
            let names = names(numbers);
            let plan = plan(&names);
            let mut seats: Vec<u32> = plan.of.values().copied().collect();
            seats.sort_unstable();
            seats.dedup();
            prop_assert_eq!(seats.len(), names.len());
            prop_assert!(seats.iter().all(|seat| *seat < plan.seats));
            // The order of the names decides nothing.
            let backwards: Vec<String> = names.iter().rev().cloned().collect();
            prop_assert_eq!(plan, self::plan(&backwards));
        }
    }

    /// Mean share of the other hosts that one which joins moves, where the number of seats stays.
    #[test]
    fn a_host_that_joins_moves_few_others() {
        let (mut moved, mut joined, mut most) = (0, 0, 0);
        for start in 0..40_u16 {
            let all = names(start * 1000..start * 1000 + 240);
            for count in (20..240).step_by(11) {
                let (before, after) = (plan(&all[..count]), plan(&all[..=count]));
                if before.seats == after.seats {
                    let changed = before.of.iter().filter(|(host, seat)| after.of[*host] != **seat).count();
                    moved += changed;
                    most = most.max(changed);
                    joined += 1;
                }
            }
        }
        assert!(moved < 4 * joined, "{moved} moved by {joined}");
        assert!(most <= 40, "{most}");
    }
}
