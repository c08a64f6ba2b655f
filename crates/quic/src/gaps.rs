//! Gaps of a stream that is read as it comes.
//!
//! quinn notes each range that has arrived, without a limit: a peer that leaves out single bytes would fill the memory. The reader
//! counts the gaps, and ends a transfer with more than losses make.

use std::collections::BTreeMap;

/// Most gaps of a transfer: a window of 192 MiB of which every second packet was lost has 84 000.
pub(crate) const MAX_GAPS: usize = 128 << 10;

/// Parts of a stream that have not arrived, though later ones have.
#[derive(Debug, Default)]
pub(crate) struct StreamGaps {
    /// End of the last part that has arrived.
    end: u64,
    /// First byte of each gap, and the first one after it.
    gaps: BTreeMap<u64, u64>,
}

impl StreamGaps {
    /// Notes a part that has arrived; none arrives twice.
    pub(crate) fn fill(&mut self, start: u64, end: u64) {
        if start >= self.end {
            if start > self.end {
                self.gaps.insert(self.end, start);
            }
            self.end = end;
            return;
        }
        let Some((&gap, &gap_end)) = self.gaps.range(..=start).next_back() else { return };
        self.gaps.remove(&gap);
        if gap < start {
            self.gaps.insert(gap, start);
        }
        if end < gap_end {
            self.gaps.insert(end, gap_end);
        }
    }

    /// Number of gaps.
    pub(crate) fn len(&self) -> usize {
        self.gaps.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(parts: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut stream = StreamGaps::default();
        for (start, end) in parts {
            stream.fill(*start, *end);
        }
        assert_eq!(stream.len(), stream.gaps.len());
        stream.gaps.into_iter().collect()
    }

    #[test]
    fn parts_in_order_leave_none() {
        assert_eq!(gaps(&[(0, 10), (10, 20), (20, 21)]), []);
    }

    #[test]
    fn a_gap_is_shortened_divided_and_closed() {
        assert_eq!(gaps(&[(0, 10), (20, 30)]), [(10, 20)]);
        assert_eq!(gaps(&[(0, 10), (20, 30), (10, 12)]), [(12, 20)]);
        assert_eq!(gaps(&[(0, 10), (20, 30), (14, 16)]), [(10, 14), (16, 20)]);
        assert_eq!(gaps(&[(0, 10), (20, 30), (14, 20), (10, 14)]), []);
        assert_eq!(gaps(&[(5, 6), (7, 8), (0, 5)]), [(6, 7)]);
    }
}
