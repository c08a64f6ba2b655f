//! Numbers of connections that a session has used: each is valid once, also where the network changes their order.

/// Numbers below the latest one that may still come.
const WINDOW: u32 = 1024;

/// Bits of a word.
const WORD: u32 = u64::BITS;

/// Used numbers: the latest one, and a window below it, as ESP has it against replays (RFC 4303 section 3.4.3).
#[derive(Debug)]
pub(crate) struct UsedNumbers {
    /// Number after the latest one.
    next: u64,
    used: [u64; (WINDOW / WORD) as usize],
}

impl Default for UsedNumbers {
    fn default() -> Self {
        Self { next: 0, used: [0; (WINDOW / WORD) as usize] }
    }
}

impl UsedNumbers {
    /// True when no connection has had this number, as far as is known.
    pub(crate) fn is_new(&self, number: u32) -> bool {
        let number = u64::from(number);
        if number >= self.next {
            return true;
        }
        let (word, bit) = position(number);
        self.next - number <= u64::from(WINDOW) && self.used[word] & bit == 0
    }

    /// Marks a number as used.
    pub(crate) fn mark(&mut self, number: u32) {
        let number = u64::from(number);
        // Slots of the numbers in between are those of numbers that have left the window.
        for skipped in self.next.max((number + 1).saturating_sub(u64::from(WINDOW)))..=number {
            let (word, bit) = position(skipped);
            self.used[word] &= !bit;
        }
        self.next = self.next.max(number + 1);
        let (word, bit) = position(number);
        self.used[word] |= bit;
    }
}

/// Word and bit of a number.
fn position(number: u64) -> (usize, u64) {
    let slot = number % u64::from(WINDOW);
    (usize::try_from(slot / u64::from(WORD)).unwrap_or(0), 1 << (slot % u64::from(WORD)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_once_in_any_order() {
        let mut used = UsedNumbers::default();
        for number in [1, 3, 2, 0, 700, 699, 1500, 701, u32::MAX] {
            assert!(used.is_new(number), "{number}");
            used.mark(number);
            assert!(!used.is_new(number), "{number}");
        }
        assert!(!used.is_new(1), "older than the window");
        assert!(used.is_new(u32::MAX - 1023) && !used.is_new(u32::MAX - 1024));
    }

    #[test]
    fn slots_are_free_again_when_the_window_moves() {
        let mut used = UsedNumbers::default();
        (0..3000).for_each(|number| used.mark(number * 2));
        let window = 5999 - WINDOW..5999;
        assert!(window.clone().filter(|number| number % 2 == 1).all(|number| used.is_new(number)));
        assert!(window.filter(|number| number % 2 == 0).all(|number| !used.is_new(number)));
    }
}
