//! Threshold from which a TCP receiver wakes (`SO_RCVLOWAT`, socket(7)).
//!
//! Most of a receiver's time goes into sleeping and waking: at tens of gigabits, and in the lab at any rate, where each
//! of these steps costs a dozen of the host's. A threshold of a millisecond's worth of data changes no visible figure
//! and no acknowledgement; the receive timeout bounds it on a stall.
//!
//! Where streams share processors, fast receivers run late and find more than the threshold at each wake: a larger one would
//! only move their data out of the cache. Slow ones wake for each packet; they gather for longer, by which a single one of
//! many shows no other figure either, as long as the window is far from full. They gather a segment or more: the sender of
//! small blocks holds an incomplete one back until an acknowledgement (RFC 896), which would wait for the kernel's timer.
//!
//! A larger threshold makes the kernel enlarge the buffer to hold just that (`tcp_set_rcvlowat()`). Where it does not let buffers
//! grow, the window would then be closed whenever a receiver wakes.

use core::time::Duration;
use std::os::fd::AsFd;

use linerate_sys::{options, tcp_info};
use linerate_units::{BitRate, ByteCount, MonotonicTime};

use super::tcp::MAX_COPY;
use crate::client::setup::DATA_TIMEOUT;

/// Threshold of one receiver, and what it has read since the last change.
pub(super) struct LowWaterMark {
    since: MonotonicTime,
    bytes: usize,
    reads: usize,
    current: usize,
    most: usize,
    is_crowded: bool,
    /// Tells if the kernel lets buffers grow, asked when a larger threshold is wanted first; `None` afterwards, and with a
    /// requested window.
    lets_grow: Option<fn() -> Option<bool>>,
    /// Periods that have passed.
    periods: u32,
    room: WindowRoom,
}

/// Part of the receive window that data on its way and unread data may fill.
#[derive(Clone, Copy, Debug, Default)]
struct WindowRoom {
    bytes: ByteCount,
    round_trip: Duration,
    segment: ByteCount,
}

impl WindowRoom {
    /// Parts of the receive buffer of which they may fill one: half of the window, which is about half of the buffer
    /// (`tcp_win_from_space()`).
    const PARTS: u64 = 4;

    /// Room of a connection; none where its kernel has not measured the receiver's round trip.
    fn of(socket: &impl AsFd) -> Self {
        let round_trip = tcp_info::read(socket).ok().and_then(|info| info.receive_rtt);
        let segment = options::mss(socket).map(|mss| ByteCount::new(u64::from(mss.get()))).unwrap_or_default();
        let measured = round_trip.zip(options::receive_buffer(socket).ok());
        measured.map_or_else(Self::default, |(round_trip, buffer)| Self::new(buffer, round_trip, segment))
    }

    fn new(buffer: ByteCount, round_trip: Duration, segment: ByteCount) -> Self {
        Self { bytes: ByteCount::new(buffer.get() / Self::PARTS), round_trip, segment }
    }

    /// Bytes that may wait to be read at `rate`.
    fn left(self, rate: BitRate) -> usize {
        let on_its_way = rate * self.round_trip;
        (self.bytes - on_its_way.min(self.bytes)).to_usize()
    }
}

impl LowWaterMark {
    const PERIOD: Duration = Duration::from_millis(20);
    const GATHER: Duration = Duration::from_millis(1);
    const LEAST: usize = 16 << 10;
    /// The same where streams share processors, for up to half a sender's write.
    const CROWDED_GATHER: Duration = Duration::from_millis(5);
    const CROWDED_LEAST: usize = 4 << 10;
    /// Periods after which the room in the window is looked at again.
    const PERIODS_PER_LOOK: u32 = 50;
    /// Three writes, where streams share processors: with two, a sender that is interrupted wakes them as often.
    const LARGE: usize = 384 << 10;
    /// Parts of a buffer or window that does not grow, of which one may wait.
    const FIXED_PARTS: usize = 8;
    /// Above 8 Gbit/s. A sender that need not wake a receiver more often reaches the rate at which it can copy.
    const MOST: usize = 1 << 20;

    /// With a requested `window`, the threshold stays well below it, so that the sender never waits for a receiver that
    /// waits for more.
    pub(super) fn new(
        window: Option<ByteCount>,
        is_crowded: bool,
        lets_grow: fn() -> Option<bool>,
        now: MonotonicTime,
    ) -> Self {
        let most = if is_crowded { Self::LARGE } else { Self::MOST };
        let most = window.map_or(most, |window| most.min(window.to_usize() / Self::FIXED_PARTS));
        let (lets_grow, room) = (Some(lets_grow).filter(|_| window.is_none()), WindowRoom::default());
        Self { since: now, bytes: 0, reads: 0, current: 1, most, is_crowded, lets_grow, periods: 0, room }
    }

    /// Threshold at `rate`, at most `most`. None lies between half a sender's write and twice a write: there receivers and
    /// senders wake each other most, which costs more than no threshold.
    fn threshold(&self, rate: BitRate, most: usize) -> usize {
        let within = |time: Duration| (rate * time).to_usize();
        let gathered = within(Self::GATHER);
        let wanted = match gathered {
            0..MAX_COPY => gathered.next_power_of_two().min(MAX_COPY / 2),
            _ => (1 << gathered.ilog2()).max(Self::LARGE),
        };
        let soon = if gathered < Self::LEAST.min(most) { 1 } else { wanted.min(most) };
        if !self.is_crowded {
            return soon;
        }
        let later = within(Self::CROWDED_GATHER).min(self.room.left(rate)).min(MAX_COPY / 2).min(most);
        let least = Self::CROWDED_LEAST.min(most).max(self.room.segment.to_usize());
        if later < least { soon } else { soon.max(1 << later.max(1).ilog2()) }
    }

    /// Stops coalescing.
    pub(super) fn end(&mut self, socket: &impl AsFd) {
        self.set(socket, 1);
    }

    /// Counts bytes that one call read, and changes the threshold once in a period.
    pub(super) fn received(&mut self, socket: &impl AsFd, bytes: usize, now: MonotonicTime) {
        self.bytes += bytes;
        self.reads += 1;
        let elapsed = now.since(self.since);
        if elapsed < Self::PERIOD {
            return;
        }
        if self.is_crowded && self.periods.is_multiple_of(Self::PERIODS_PER_LOOK) {
            self.room = WindowRoom::of(socket);
        }
        self.periods = self.periods.wrapping_add(1);
        let is_late = self.bytes / self.reads >= 2 * self.current;
        let rate = ByteCount::from_usize(self.bytes) / elapsed;
        if self.threshold(rate, self.most) > 1
            && let Some(lets_grow) = self.lets_grow.take()
        {
            self.suit(lets_grow(), options::receive_buffer(socket).ok());
        }
        let most = if self.current >= Self::LARGE && is_late { self.most.min(Self::LARGE) } else { self.most };
        self.set(socket, self.threshold(rate, most));
        (self.since, self.bytes, self.reads) = (now, 0, 0);
    }

    /// Bounds the threshold by a `buffer` that the kernel does not let grow.
    fn suit(&mut self, grows: Option<bool>, buffer: Option<ByteCount>) {
        if let Some(buffer) = buffer.filter(|_| grows == Some(false)) {
            self.most = self.most.min(buffer.to_usize() / Self::FIXED_PARTS);
        }
    }

    /// Sets the threshold, and bounds the wait of data below it.
    fn set(&mut self, socket: &impl AsFd, wanted: usize) {
        let bounds_wait = self.current == 1 && wanted != 1;
        if bounds_wait && options::set_receive_timeout(socket, Some(DATA_TIMEOUT)).is_err() {
            return;
        }
        if wanted != self.current && options::set_receive_low_water(socket, ByteCount::from_usize(wanted)).is_ok() {
            self.current = wanted;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn thresholds_are_no_delay_and_no_pingpong() {
        let most = LowWaterMark::MOST;
        let mark = LowWaterMark::new(None, false, || None, MonotonicTime::default());
        for (bytes, most, threshold) in [
            (0, most, 1),
            (16_383, most, 1),
            (16_384, most, 16_384),
            (40_000, most, 65_536),
            (131_071, most, 65_536),
            (131_072, most, 393_216),
            (1_000_000, most, 524_288),
            (5_000_000, most, 1_048_576),
            // A requested window of 256 KiB.
            (5_000_000, 32_768, 32_768),
            (9000, 8192, 8192),
        ] {
            assert_eq!(mark.threshold(ByteCount::new(bytes) / MILLISECOND, most), threshold, "{bytes} of {most}");
        }
    }

    #[test]
    fn a_buffer_that_does_not_grow_bounds_the_threshold() {
        let rate = ByteCount::new(1_000_000) / MILLISECOND;
        let buffer = Some(ByteCount::new(131_072));
        for (grows, buffer, expected) in [
            (Some(true), buffer, 524_288),
            (Some(false), buffer, 16_384),
            (None, buffer, 524_288),
            (Some(false), None, 524_288),
        ] {
            let mut mark = LowWaterMark::new(None, false, || None, MonotonicTime::default());
            mark.suit(grows, buffer);
            assert_eq!(mark.threshold(rate, mark.most), expected, "{grows:?}, {buffer:?}");
        }
    }

    #[test]
    fn a_receiver_asks_once_whether_its_buffer_grows() {
        let (socket, _peer) = UnixStream::pair().expect("descriptors");
        let after = |window: Option<u64>, lets_grow: fn() -> Option<bool>| {
            let window = window.map(ByteCount::new);
            let mut mark = LowWaterMark::new(window, false, lets_grow, MonotonicTime::default());
            mark.received(&socket, 100_000_000, MonotonicTime::default() + LowWaterMark::PERIOD);
            assert!(mark.lets_grow.is_none());
            mark.most
        };
        let fixed = options::receive_buffer(&socket).expect("a size").to_usize() / LowWaterMark::FIXED_PARTS;
        assert!(fixed < LowWaterMark::MOST);
        assert_eq!(after(None, || Some(false)), fixed);
        assert_eq!(after(None, || Some(true)), LowWaterMark::MOST);
        assert_eq!(after(Some(65_536), || unreachable!("a requested window does not grow")), 8192);
    }

    #[test]
    fn slow_streams_that_share_processors_gather_for_longer_where_the_window_has_room() {
        let most = LowWaterMark::LARGE;
        let threshold = |bytes: u64, buffer: u64, round_trip: u64, segment: u64, most: usize| {
            let mut mark = LowWaterMark::new(None, true, || None, MonotonicTime::default());
            let round_trip = Duration::from_micros(round_trip);
            mark.room = WindowRoom::new(ByteCount::new(buffer), round_trip, ByteCount::new(segment));
            mark.threshold(ByteCount::new(bytes) / MILLISECOND, most)
        };
        for (bytes, buffer, round_trip, segment, most, expected) in [
            (819, 6_000_000, 1000, 1448, most, 1),
            (820, 6_000_000, 1000, 1448, most, 4096),
            (2000, 6_000_000, 1000, 1448, most, 8192),
            (16_384, 6_000_000, 1000, 1448, most, 65_536),
            (131_072, 6_000_000, 1000, 1448, most, 393_216),
            // 64 streams over 1 Gbit/s, whose buffers never grow.
            (1900, 131_072, 2000, 1448, most, 8192),
            // Windows that are full each round trip of 20 ms, and one that nearly is.
            (3200, 131_072, 20_000, 1448, most, 1),
            (3200, 131_072, 9000, 1448, most, 1),
            (3200, 131_072, 5000, 1448, most, 8192),
            // Unknown.
            (3200, 0, 0, 1448, most, 1),
            (2000, 6_000_000, 1000, 1448, 1024, 1024),
            // Segments over loopback, of which five milliseconds have none, and one.
            (1250, 6_000_000, 100, 32_768, most, 1),
            (6600, 6_000_000, 100, 32_768, most, 32_768),
        ] {
            let found = threshold(bytes, buffer, round_trip, segment, most);
            assert_eq!(
                found, expected,
                "{bytes} a millisecond, buffer {buffer}, {round_trip} µs, segments of {segment}"
            );
        }
    }
}
