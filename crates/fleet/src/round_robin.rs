//! Round-robin tournament of hosts: each host has an index below a prime, and the sum of two indexes is the round in which they
//! meet.
//!
//! Two pairs of one host have different sums, which is the circle method of such tournaments. An index follows from the host's
//! name: a host that joins or leaves moves few others (ordered double hashing, Amble and Knuth 1974, whose table does
//! not depend on the order of the insertions).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::identity::hash;

/// Numbers of indexes: primes, each about a quarter more than the last, so that a fleet which grows rarely changes all of them.
const SIZES: [u32; 33] = [
    2, 3, 5, 7, 11, 13, 17, 23, 29, 37, 47, 59, 73, 97, 127, 157, 197, 251, 317, 397, 499, 631, 797, 997, 1249, 1567,
    1973, 2467, 3089, 3863, 4831, 6043, 7559,
];

/// Up to this number of indexes, all of them may be in use: few hosts want a short cycle.
const MAX_FULL_SIZE: u32 = 13;

/// Largest share of indexes in use, in percent: with more, a host that joins moves many others.
const MAX_SHARE_PERCENT: u32 = 85;

/// Largest number of hosts.
pub(crate) const MAX_HOSTS: usize = 6425;

/// Hosts with their indexes, of which there is a prime number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoundRobin {
    /// Number of indexes, and of rounds.
    pub(crate) size: u32,
    index_of: BTreeMap<String, u32>,
}

impl RoundRobin {
    /// Indexes of these hosts; `None` when there are too many of them.
    pub(crate) fn new<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut hosts: Vec<(u64, &str)> = hosts.into_iter().map(|host| (hash(&["order", host]), host)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let count = u32::try_from(hosts.len()).ok()?;
        let size = *SIZES.iter().find(|size| count <= capacity(**size))?;
        let mut used = vec![false; size as usize];
        let mut index_of = BTreeMap::new();
        // The first in the order has its choice, so that a later one never moves an earlier one.
        for (_, host) in hosts {
            let index = probes(host, size).find(|index| !used[*index as usize])?;
            used[index as usize] = true;
            index_of.insert(host.to_owned(), index);
        }
        Some(Self { size, index_of })
    }

    /// Indexes of two hosts.
    pub(crate) fn indexes_of(&self, hosts: &[Arc<str>; 2]) -> Option<[u32; 2]> {
        Some([*self.index_of.get(&*hosts[0])?, *self.index_of.get(&*hosts[1])?])
    }

    /// Round in which two indexes meet.
    pub(crate) const fn round(&self, [first, second]: [u32; 2]) -> u32 {
        (first + second) % self.size
    }
}

/// Largest number of hosts for a number of indexes.
const fn capacity(size: u32) -> u32 {
    if size <= MAX_FULL_SIZE { size } else { size * MAX_SHARE_PERCENT / 100 }
}

/// Indexes in the order in which a host tries them: all, since their number is a prime.
fn probes(host: &str, size: u32) -> impl Iterator<Item = u32> {
    let below = |kind: &str, most: u32| u32::try_from(hash(&[kind, host]) % u64::from(most)).unwrap_or_default();
    let (start, step) = (below("seat", size), 1 + below("step", size - 1));
    (0..size).scan(start, move |next, _| {
        let index = *next;
        *next = (*next + step) % size;
        Some(index)
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
    fn numbers_of_indexes_are_growing_primes() {
        assert!(SIZES.iter().all(|size| is_prime(*size)), "{SIZES:?}");
        assert!(SIZES.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(capacity(SIZES[SIZES.len() - 1]) as usize, MAX_HOSTS);
    }

    fn names(numbers: impl IntoIterator<Item = u16>) -> Vec<String> {
        numbers.into_iter().map(|number| format!("host-{number}")).collect()
    }

    fn plan(names: &[String]) -> RoundRobin {
        RoundRobin::new(names.iter().map(String::as_str)).expect("few hosts")
    }

    proptest! {
        #[test]
        fn every_host_has_an_index_of_its_own(numbers in prop::collection::btree_set(any::<u16>(), 0..300)) {
            let names = names(numbers);
            let plan = plan(&names);
            let mut indexes: Vec<u32> = plan.index_of.values().copied().collect();
            indexes.sort_unstable();
            indexes.dedup();
            prop_assert_eq!(indexes.len(), names.len());
            prop_assert!(indexes.iter().all(|index| *index < plan.size));
            // The order of the names decides nothing.
            let backwards: Vec<String> = names.iter().rev().cloned().collect();
            prop_assert_eq!(plan, self::plan(&backwards));
        }
    }

    /// Mean share of the other hosts that one which joins moves, where the number of indexes stays.
    #[test]
    fn a_host_that_joins_moves_few_others() {
        let (mut moved, mut joined, mut most) = (0, 0, 0);
        for start in 0..40_u16 {
            let all = names(start * 1000..start * 1000 + 240);
            for count in (20..240).step_by(11) {
                let (before, after) = (plan(&all[..count]), plan(&all[..=count]));
                if before.size == after.size {
                    let changed =
                        before.index_of.iter().filter(|(host, index)| after.index_of[*host] != **index).count();
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
