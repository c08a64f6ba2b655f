//! A UDP receiver's accounting: lost, reordered and duplicate datagrams and jitter from packet numbers and times.
//!
//! iperf3 knows only the highest number so far. Each lower one counts as out of order and reduces the losses, so a
//! duplicate hides a loss. Here a bitmap records which of the last [`REORDER_WINDOW`] numbers have arrived, so that late and
//! duplicate datagrams are distinguished exactly; iperf3's own figures are counted in addition.

use core::time::Duration;

use linerate_units::{MonotonicTime, PacketCount};

use crate::udp::CounterWidth;

/// Largest distance behind the highest number at which late and duplicate datagrams are distinguished. At 20 million
/// packets per second that is 3 ms, at 1 Gbit/s with 1448 bytes 760 ms. The bitmap of 8 KiB fits the L1 cache.
pub const REORDER_WINDOW: u64 = 65_536;

/// Largest jump ahead that is accepted at once; a larger one needs another number near it (as in RFC 3550 A.1 for RTP):
/// it is more likely damaged or forged than the end of an outage. This is a second of loss at a million packets per
/// second.
const MAX_PLAUSIBLE_JUMP: i64 = 1 << 20;

const BITMAP_LENGTH: usize = 1024;

const _: () = assert!(BITMAP_LENGTH as u64 * 64 == REORDER_WINDOW);

/// Limit of jitter differences in nanoseconds (2 years), so that hostile times cannot overflow the average.
const MAX_JITTER_DIFFERENCE: u64 = 1 << 56;

/// Totals of one stream since its start.
///
/// All but the jitter only grow (exceptions are marked), so the difference of two samples is an interval: see
/// [`DatagramCounts::since`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounts {
    /// Datagrams received in the sequence, duplicates included.
    pub received: PacketCount,
    /// Datagrams expected: the highest number seen, with wrapped counters unwrapped.
    pub expected: PacketCount,
    /// Numbers skipped when a higher one arrived.
    pub skipped: PacketCount,
    /// Skipped numbers that arrived later: the datagrams out of order, each counted once.
    pub out_of_order: PacketCount,
    /// Datagrams received more than once.
    pub duplicates: PacketCount,
    /// Datagrams [`REORDER_WINDOW`] or more numbers late: out of order or duplicate, which cannot be distinguished. Their
    /// numbers remain lost.
    pub too_late: PacketCount,
    /// Datagrams outside the sequence: number 0 (a repeated handshake) and numbers implausibly far ahead or before the
    /// start. One is subtracted when the next datagram confirms a jump.
    pub strays: PacketCount,
    /// Lost datagrams as iperf3 counts them: each datagram behind the highest number subtracts one.
    pub iperf3_lost: PacketCount,
    /// Out-of-order datagrams as iperf3 counts them: duplicates, late ones and repeated handshakes as well.
    pub iperf3_out_of_order: PacketCount,
    /// Smoothed jitter at this time (RFC 3550 A.8), with one sample per burst.
    pub jitter: Duration,
}

impl DatagramCounts {
    /// Datagrams lost so far: skipped and not received since.
    #[must_use]
    pub fn lost(&self) -> PacketCount {
        self.skipped - self.out_of_order
    }

    /// Counts since an earlier sample; the jitter is the present one. In an interval with more late datagrams than
    /// losses, [`DatagramCounts::lost`] is 0.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            received: self.received - earlier.received,
            expected: self.expected - earlier.expected,
            skipped: self.skipped - earlier.skipped,
            out_of_order: self.out_of_order - earlier.out_of_order,
            duplicates: self.duplicates - earlier.duplicates,
            too_late: self.too_late - earlier.too_late,
            strays: self.strays - earlier.strays,
            iperf3_lost: self.iperf3_lost - earlier.iperf3_lost,
            iperf3_out_of_order: self.iperf3_out_of_order - earlier.iperf3_out_of_order,
            jitter: self.jitter,
        }
    }
}

/// Accounting for the datagrams of one stream. Uses 8 KiB, does not allocate after its creation, and spends bounded
/// time on each datagram.
#[derive(Clone, Debug)]
pub struct SequenceTracker {
    /// Highest number, unwrapped.
    highest: u64,
    /// Shift in bits that sign-extends a difference of numbers from the counter's width.
    shift: u32,
    in_sequence: u64,
    skipped: u64,
    out_of_order: u64,
    duplicates: u64,
    too_late: u64,
    strays: u64,
    repeated_handshakes: u64,
    iperf3_lost: u64,
    /// A number far ahead that needs another one near it.
    candidate: Option<u64>,
    /// Sending and arrival time of the last jitter sample, in nanoseconds.
    sample: Option<(u64, u64)>,
    /// Jitter in 1/16 ns.
    scaled_jitter: u64,
    /// Bit `number % WINDOW` is set when the number was received, for the last [`REORDER_WINDOW`] numbers.
    came: Box<[u64; BITMAP_LENGTH]>,
}

impl SequenceTracker {
    /// Creates a tracker that expects number 1 next.
    #[must_use]
    pub fn new(width: CounterWidth) -> Self {
        Self {
            highest: 0,
            shift: match width {
                CounterWidth::Bits32 => 32,
                CounterWidth::Bits64 => 0,
            },
            in_sequence: 0,
            skipped: 0,
            out_of_order: 0,
            duplicates: 0,
            too_late: 0,
            strays: 0,
            repeated_handshakes: 0,
            iperf3_lost: 0,
            candidate: None,
            sample: None,
            scaled_jitter: 0,
            came: Box::new([0; BITMAP_LENGTH]),
        }
    }

    /// Records a received datagram. `number` and `sent_at` are from its header; `arrived_at` is this host's time, whose
    /// offset from the sender's clock does not matter.
    #[inline]
    pub fn record(&mut self, number: u64, sent_at: MonotonicTime, arrived_at: MonotonicTime) {
        let ahead = self.ahead(number);
        if ahead == 1 {
            self.highest = self.highest.wrapping_add(1);
            self.in_sequence += 1;
            self.mark(self.highest);
        } else if !self.record_out_of_sequence(ahead) {
            return;
        }
        self.update_jitter(sent_at, arrived_at);
    }

    /// Records `count` datagrams with consecutive numbers from `first_number` on and one sending time, received in one
    /// GRO buffer. Equivalent to [`SequenceTracker::record`] for each of them, but faster.
    #[inline]
    pub fn record_run(
        &mut self,
        first_number: u64,
        count: PacketCount,
        sent_at: MonotonicTime,
        arrived_at: MonotonicTime,
    ) {
        let length = count.get();
        if self.ahead(first_number) != 1 || length > REORDER_WINDOW {
            for offset in 0..length {
                self.record(first_number.wrapping_add(offset), sent_at, arrived_at);
            }
            return;
        }
        if length == 0 {
            return;
        }
        self.set_range(self.highest.wrapping_add(1), length, true);
        self.highest = self.highest.wrapping_add(length);
        self.in_sequence += length;
        self.update_jitter(sent_at, arrived_at);
    }

    /// Returns the totals so far.
    #[must_use]
    pub fn snapshot(&self) -> DatagramCounts {
        let late = self.out_of_order.saturating_add(self.duplicates).saturating_add(self.too_late);
        DatagramCounts {
            received: PacketCount::new(self.in_sequence.saturating_add(late)),
            expected: PacketCount::new(self.highest),
            skipped: PacketCount::new(self.skipped),
            out_of_order: PacketCount::new(self.out_of_order),
            duplicates: PacketCount::new(self.duplicates),
            too_late: PacketCount::new(self.too_late),
            strays: PacketCount::new(self.strays),
            iperf3_lost: PacketCount::new(self.iperf3_lost),
            iperf3_out_of_order: PacketCount::new(late.saturating_add(self.repeated_handshakes)),
            jitter: Duration::from_nanos(self.scaled_jitter >> 4),
        }
    }

    /// Distance of a number from the highest one, in the counter's arithmetic: half of its range is behind.
    #[inline]
    fn ahead(&self, number: u64) -> i64 {
        (number.wrapping_sub(self.highest) << self.shift).cast_signed() >> self.shift
    }

    #[inline]
    fn mark(&mut self, number: u64) {
        self.came[(number % REORDER_WINDOW / 64) as usize] |= 1 << (number % 64);
    }

    /// Records a datagram other than the next one; returns true when it belongs to the sequence.
    #[cold]
    fn record_out_of_sequence(&mut self, ahead: i64) -> bool {
        if ahead > MAX_PLAUSIBLE_JUMP {
            return self.record_far_ahead(self.highest.wrapping_add(ahead.unsigned_abs()));
        }
        if ahead > 0 {
            self.advance(ahead.unsigned_abs());
            return true;
        }
        self.record_behind(ahead.unsigned_abs())
    }

    /// Accepts a number far ahead when it follows shortly after another such number.
    fn record_far_ahead(&mut self, number: u64) -> bool {
        match self.candidate.take() {
            Some(candidate) if (1..REORDER_WINDOW).contains(&number.wrapping_sub(candidate)) => {
                self.strays -= 1;
                self.advance(candidate.wrapping_sub(self.highest));
                self.advance(number.wrapping_sub(candidate));
                true
            }
            _ => {
                self.candidate = Some(number);
                self.strays += 1;
                false
            }
        }
    }

    /// Advances by `ahead` numbers, of which only the last one was received.
    fn advance(&mut self, ahead: u64) {
        let skipped = ahead - 1;
        self.skipped = self.skipped.saturating_add(skipped);
        self.iperf3_lost = self.iperf3_lost.saturating_add(skipped);
        self.set_range(self.highest.wrapping_add(1), skipped.min(REORDER_WINDOW), false);
        self.highest = self.highest.wrapping_add(ahead);
        self.in_sequence += 1;
        self.mark(self.highest);
    }

    fn record_behind(&mut self, behind: u64) -> bool {
        if behind >= self.highest {
            self.strays += 1;
            self.repeated_handshakes += u64::from(behind == self.highest);
            return false;
        }
        self.iperf3_lost = self.iperf3_lost.saturating_sub(1);
        if behind >= REORDER_WINDOW {
            self.too_late += 1;
            return true;
        }
        let number = self.highest - behind;
        let word = self.came[(number % REORDER_WINDOW / 64) as usize];
        if word & (1 << (number % 64)) != 0 {
            self.duplicates += 1;
        } else {
            self.out_of_order += 1;
            self.mark(number);
        }
        true
    }

    /// Sets or clears the bits of up to [`REORDER_WINDOW`] numbers.
    fn set_range(&mut self, first: u64, length: u64, value: bool) {
        let (start, end) = (first % REORDER_WINDOW, first % REORDER_WINDOW + length);
        self.set_bits(start, end.min(REORDER_WINDOW), value);
        self.set_bits(0, end.saturating_sub(REORDER_WINDOW), value);
    }

    /// Sets or clears the bits from `start` to before `end`, whole words at once: a gap of the whole window costs 0.1
    /// µs.
    fn set_bits(&mut self, start: u64, end: u64, value: bool) {
        if start >= end {
            return;
        }
        let last = end - 1;
        let (first_word, last_word) = ((start / 64) as usize, (last / 64) as usize);
        let (head, tail) = (u64::MAX << (start % 64), u64::MAX >> (63 - last % 64));
        let mut apply = |word: usize, mask: u64| {
            let word = &mut self.came[word];
            *word = if value { *word | mask } else { *word & !mask };
        };
        if first_word == last_word {
            apply(first_word, head & tail);
            return;
        }
        apply(first_word, head);
        apply(last_word, tail);
        self.came[first_word + 1..last_word].fill(if value { u64::MAX } else { 0 });
    }

    /// RFC 3550 A.8 in integers, with one sample per burst or GRO buffer: datagrams with the sending or arrival time of the
    /// last sample only show the dispersion inside the burst, and would divide the average by its length. Transit
    /// times are differences of two unrelated clocks, so they wrap.
    #[inline]
    fn update_jitter(&mut self, sent_at: MonotonicTime, arrived_at: MonotonicTime) {
        let (sent, arrived) = (sent_at.as_nanos(), arrived_at.as_nanos());
        if let Some((last_sent, last_arrived)) = self.sample {
            if sent == last_sent || arrived == last_arrived {
                return;
            }
            let (transit, previous) = (arrived.wrapping_sub(sent), last_arrived.wrapping_sub(last_sent));
            let difference = transit.wrapping_sub(previous).cast_signed().unsigned_abs().min(MAX_JITTER_DIFFERENCE);
            self.scaled_jitter += difference;
            self.scaled_jitter -= (self.scaled_jitter - difference + 8) >> 4;
        }
        self.sample = Some((sent, arrived));
    }
}
