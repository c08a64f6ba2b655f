//! Limit of the results that enter the history: strangers must not be able to fill it.

use core::time::Duration;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use linerate_units::MonotonicTime;

use crate::connection_table::customer;

/// Time over which results are counted.
const WINDOW: Duration = Duration::from_secs(3600);

/// Most results of one network in that time, and of all.
const MAX_OF_NETWORK: usize = 20;
const MAX_OF_ALL: usize = 100;

/// Results that were kept within the last hour.
#[derive(Debug, Default)]
pub(crate) struct KeepLimit {
    kept: Mutex<VecDeque<(MonotonicTime, IpAddr)>>,
}

impl KeepLimit {
    /// Counts a result of `client`; false when it must not be kept.
    pub(crate) fn admits(&self, client: IpAddr, now: MonotonicTime) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.front().is_some_and(|(at, _)| now.since(*at) >= WINDOW) {
            kept.pop_front();
        }
        let network = customer(client);
        let own = kept.iter().filter(|(_, other)| *other == network).count();
        let admits = own < MAX_OF_NETWORK && kept.len() < MAX_OF_ALL;
        if admits {
            kept.push_back((now, network));
        }
        admits
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stranger_cannot_fill_the_history() {
        let limit = KeepLimit::default();
        let at = |seconds: u64| MonotonicTime::from_nanos(seconds * 1_000_000_000);
        let client = |last: u8| IpAddr::from([192, 0, 2, last]);
        let kept = (0..50).filter(|second| limit.admits(client(1), at(*second))).count();
        assert_eq!(kept, MAX_OF_NETWORK);
        let kept = (0..200_u8).filter(|last| limit.admits(client(*last), at(60))).count();
        assert_eq!(kept, MAX_OF_ALL - MAX_OF_NETWORK);
        assert!(!limit.admits(client(201), at(3599)));
        assert!(limit.admits(client(1), at(3600)), "an hour later");
        // All of an IPv6 /64 are one customer.
        let limit = KeepLimit::default();
        let kept = (0..50_u16).filter(|last| limit.admits([0x2001, 0xdb8, 0, 0, 0, 0, 0, *last].into(), at(1))).count();
        assert_eq!(kept, MAX_OF_NETWORK);
    }

    proptest! {
        #[test]
        fn no_hour_has_more_results_than_the_limits(
            results in proptest::collection::vec((0..60_u64, 0..8_u8), 1..400),
        ) {
            let (limit, mut second, mut kept) = (KeepLimit::default(), 0, Vec::new());
            for (pause, client) in results {
                second += pause;
                let address = IpAddr::from([192, 0, 2, client]);
                if limit.admits(address, MonotonicTime::from_nanos(second * 1_000_000_000)) {
                    kept.push((second, client));
                }
            }
            for (index, (start, client)) in kept.iter().enumerate() {
                let hour = || kept[index..].iter().take_while(|(at, _)| at - start < WINDOW.as_secs());
                prop_assert!(hour().count() <= MAX_OF_ALL);
                prop_assert!(hour().filter(|(_, other)| other == client).count() <= MAX_OF_NETWORK);
            }
        }
    }
}
