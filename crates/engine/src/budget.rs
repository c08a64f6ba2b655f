//! Remaining byte budget of the streams of one direction: `-n` and `-k` end at the exact byte.

use std::sync::atomic::{AtomicU64, Ordering};

use linerate_units::ByteCount;

/// Byte count shared by several threads, which reserve bytes before they move them.
#[derive(Debug)]
pub(crate) struct ByteBudget(AtomicU64);

/// "No limit": more than any host moves.
const UNLIMITED: u64 = u64::MAX;

impl ByteBudget {
    /// A budget of `limit` bytes; `None` for no limit.
    #[must_use]
    pub(crate) fn new(limit: Option<ByteCount>) -> Self {
        Self(AtomicU64::new(limit.map_or(UNLIMITED, |limit| limit.get().min(UNLIMITED - 1))))
    }

    /// Reserves up to `most` bytes; none when the budget is used up.
    pub(crate) fn take(&self, most: ByteCount) -> ByteCount {
        let mut left = self.0.load(Ordering::Relaxed);
        loop {
            if left == UNLIMITED {
                return most;
            }
            let taken = left.min(most.get());
            match self.0.compare_exchange_weak(left, left - taken, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return ByteCount::new(taken),
                Err(now) => left = now,
            }
        }
    }

    /// Remaining bytes, at most `most`, without reserving them.
    pub(crate) fn left(&self, most: ByteCount) -> ByteCount {
        ByteCount::new(self.0.load(Ordering::Relaxed).min(most.get()))
    }

    /// Returns reserved bytes that were not moved.
    pub(crate) fn give_back(&self, unused: ByteCount) {
        if !unused.is_zero() && self.0.load(Ordering::Relaxed) != UNLIMITED {
            self.0.fetch_add(unused.get(), Ordering::Relaxed);
        }
    }

    /// True when no byte is left.
    #[must_use]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_ends_at_the_exact_byte() {
        let budget = ByteBudget::new(Some(ByteCount::new(10)));
        assert_eq!(budget.take(ByteCount::new(8)), ByteCount::new(8));
        budget.give_back(ByteCount::new(3));
        assert_eq!(budget.take(ByteCount::new(8)), ByteCount::new(5));
        assert!(budget.is_exhausted());
        assert_eq!(budget.take(ByteCount::new(8)), ByteCount::ZERO);
    }

    #[test]
    fn no_limit_never_ends() {
        let budget = ByteBudget::new(None);
        assert_eq!(budget.take(ByteCount::new(u64::MAX)), ByteCount::new(u64::MAX));
        budget.give_back(ByteCount::new(1));
        assert!(!budget.is_exhausted());
    }

    #[test]
    fn many_threads_take_exactly_the_budget() {
        let budget = ByteBudget::new(Some(ByteCount::new(100_003)));
        let taken: u64 = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut sum = 0;
                        loop {
                            let got = budget.take(ByteCount::new(7)).get();
                            if got == 0 {
                                return sum;
                            }
                            sum += got;
                        }
                    })
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().expect("no panic")).sum()
        });
        assert_eq!(taken, 100_003);
    }

    #[test]
    fn a_look_reserves_nothing() {
        let budget = ByteBudget::new(Some(ByteCount::new(10)));
        for (most, left) in [(0, 0), (7, 7), (10, 10), (11, 10)] {
            assert_eq!(budget.left(ByteCount::new(most)), ByteCount::new(left));
        }
        assert_eq!(budget.take(ByteCount::new(11)), ByteCount::new(10));
        assert_eq!(budget.left(ByteCount::new(1)), ByteCount::ZERO);
        assert_eq!(ByteBudget::new(None).left(ByteCount::new(1 << 40)), ByteCount::new(1 << 40));
    }

    #[test]
    fn the_largest_limit_is_a_limit() {
        let budget = ByteBudget::new(Some(ByteCount::new(u64::MAX)));
        assert_eq!(budget.take(ByteCount::new(u64::MAX)), ByteCount::new(u64::MAX - 1));
        assert!(budget.is_exhausted());
        assert!(ByteBudget::new(Some(ByteCount::ZERO)).is_exhausted());
    }

    proptest::proptest! {
        #[test]
        fn bytes_taken_and_left_add_up_to_the_limit(
            limit in 0_u64..10_000,
            steps in proptest::collection::vec((0_u64..3000, 0_u64..3000), 0..50),
        ) {
            let budget = ByteBudget::new(Some(ByteCount::new(limit)));
            let mut moved = 0;
            for (want, unused) in steps {
                let taken = budget.take(ByteCount::new(want)).get();
                let unused = unused.min(taken);
                budget.give_back(ByteCount::new(unused));
                moved += taken - unused;
                proptest::prop_assert_eq!(moved + budget.left(ByteCount::new(u64::MAX)).get(), limit);
            }
        }
    }
}
