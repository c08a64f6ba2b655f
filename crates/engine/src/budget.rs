//! How much the streams of one direction may still move: `-n` and `-k` end at the exact byte.

use std::sync::atomic::{AtomicU64, Ordering};

use linerate_units::ByteCount;

/// A number of bytes that several threads share; they take before they move.
#[derive(Debug)]
pub(crate) struct Budget(AtomicU64);

/// Stands for "no limit": no host moves so much.
const UNLIMITED: u64 = u64::MAX;

impl Budget {
    /// A budget of `limit` bytes; `None` for no limit.
    #[must_use]
    pub(crate) fn new(limit: Option<ByteCount>) -> Self {
        Self(AtomicU64::new(limit.map_or(UNLIMITED, |limit| limit.get().min(UNLIMITED - 1))))
    }

    /// Takes up to `most`; nothing when the budget is used up.
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

    /// What is left, at most `most`, without taking it.
    pub(crate) fn left(&self, most: ByteCount) -> ByteCount {
        ByteCount::new(self.0.load(Ordering::Relaxed).min(most.get()))
    }

    /// Gives back what was taken and not moved.
    pub(crate) fn give_back(&self, unused: ByteCount) {
        if !unused.is_zero() && self.0.load(Ordering::Relaxed) != UNLIMITED {
            self.0.fetch_add(unused.get(), Ordering::Relaxed);
        }
    }

    /// Whether nothing is left.
    #[must_use]
    pub(crate) fn is_used_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_byte_is_the_last() {
        let budget = Budget::new(Some(ByteCount::new(10)));
        assert_eq!(budget.take(ByteCount::new(8)), ByteCount::new(8));
        budget.give_back(ByteCount::new(3));
        assert_eq!(budget.take(ByteCount::new(8)), ByteCount::new(5));
        assert!(budget.is_used_up());
        assert_eq!(budget.take(ByteCount::new(8)), ByteCount::ZERO);
    }

    #[test]
    fn no_limit_never_ends() {
        let budget = Budget::new(None);
        assert_eq!(budget.take(ByteCount::new(u64::MAX)), ByteCount::new(u64::MAX));
        budget.give_back(ByteCount::new(1));
        assert!(!budget.is_used_up());
    }

    #[test]
    fn many_threads_take_exactly_the_budget() {
        let budget = Budget::new(Some(ByteCount::new(100_003)));
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
}
