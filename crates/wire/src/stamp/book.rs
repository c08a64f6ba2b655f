//! The asking side's accounts: what has been sent, and what each answer says.

use core::time::Duration;
use std::collections::VecDeque;

use linerate_units::{MonotonicTime, PacketCount, WallTime};

use super::ReflectorPacket;

/// A point in time on both clocks of this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// On the clock that only goes forward: differences of this host's times are taken here.
    pub monotonic: MonotonicTime,
    /// In civil time: differences to the reflector's times are taken here.
    pub wall: WallTime,
}

/// A difference of two clocks, which may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockDifference(i128);

impl ClockDifference {
    /// `later` minus `earlier`.
    #[must_use]
    pub fn between(earlier: WallTime, later: WallTime) -> Self {
        let nanos = |time: WallTime| i128::try_from(time.since_unix_epoch().as_nanos()).unwrap_or(i128::MAX);
        Self(nanos(later).saturating_sub(nanos(earlier)))
    }

    /// In nanoseconds; a difference beyond 292 years is that.
    #[must_use]
    pub fn as_nanos(self) -> i64 {
        i64::try_from(self.0).unwrap_or(if self.0 < 0 { i64::MIN } else { i64::MAX })
    }

    /// As a time; `None` when it is negative.
    #[must_use]
    pub fn as_duration(self) -> Option<Duration> {
        let nanos = u128::try_from(self.0).ok()?;
        Some(Duration::new(u64::try_from(nanos / 1_000_000_000).ok()?, u32::try_from(nanos % 1_000_000_000).ok()?))
    }
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Number of the packet within its session, from 0; does not begin anew after 2^32.
    pub number: u64,
    /// When the packet was sent.
    pub sent: Moment,
    /// When its answer arrived.
    pub arrived: Moment,
    /// Time in the network: from sending to arrival without the reflector's turn-around time. `None` when the reflector's
    /// times are not known or contradict themselves.
    pub round_trip: Option<Duration>,
    /// Time from sending to arrival, the turn-around time included.
    pub total: Duration,
    /// Delay to the reflector plus the difference of the clocks (reflector's minus this host's).
    pub forward: Option<ClockDifference>,
    /// Delay from the reflector minus the difference of the clocks.
    pub backward: Option<ClockDifference>,
    /// The reflector's number of the answer; of a reflector without state, the packet's.
    pub reflector_sequence: u32,
    /// Time to live with which the packet arrived at the reflector.
    pub ttl: u8,
    /// An answer to the same packet came before.
    pub duplicate: bool,
}

/// Where packets were lost, of those sent up to the last one that was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Packets that did not reach the reflector. `None` when that cannot be told: there was no answer, or the reflector
    /// keeps no state (its numbers are the packets').
    pub forward: Option<PacketCount>,
    /// Answers that did not come back; `None` likewise.
    pub backward: Option<PacketCount>,
    /// Packets without an answer, both directions together.
    pub total: PacketCount,
}

/// The accounts of one session.
///
/// Packets are numbered by the book ([`SenderBook::send`]); at most as many as it was made for are kept, the oldest are
/// forgotten first.
#[derive(Clone, Debug)]
pub struct SenderBook {
    sent: VecDeque<Sent>,
    most: usize,
    /// Number of the next packet.
    next: u64,
    answered: u64,
    strays: u64,
    reflector: Option<Reflected>,
    /// Whether the reflector is known to count answers itself.
    counts_itself: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    at: Moment,
    /// The reflector's number of the first answer.
    answer: Option<u32>,
}

/// What the answers so far say of the reflector's count.
#[derive(Clone, Copy, Debug)]
struct Reflected {
    /// The reflector's number that this session began with, 0 unless it has met the session before.
    base: u64,
    /// The highest of its numbers, beyond 32 bits.
    highest: u64,
    /// The highest number of a packet that was answered.
    highest_packet: u64,
    /// Answers that were to a second copy of a packet, made on the way there.
    copies: u64,
}

impl SenderBook {
    /// A session that has sent nothing; keeps account of `most` packets at once.
    #[must_use]
    pub fn new(most: PacketCount) -> Self {
        Self {
            sent: VecDeque::new(),
            most: most.to_usize().max(1),
            next: 0,
            answered: 0,
            strays: 0,
            reflector: None,
            counts_itself: false,
        }
    }

    /// The reflector is known to keep state: what is lost is told apart by direction also as long as its numbers are the
    /// packets'.
    #[must_use]
    pub fn with_stateful_reflector(self) -> Self {
        Self { counts_itself: true, ..self }
    }

    /// The sequence number of the packet that is sent next.
    #[must_use]
    pub fn next_sequence(&self) -> u32 {
        low_half(self.next)
    }

    /// A packet is sent now, with [`SenderBook::next_sequence`]. Its number, from 0.
    pub fn send(&mut self, at: Moment) -> u64 {
        if self.sent.len() == self.most {
            self.sent.pop_front();
        }
        let number = self.next;
        self.sent.push_back(Sent { number, at, answer: None });
        self.next += 1;
        number
    }

    /// A better time of a packet that has been sent, from the kernel.
    pub fn correct(&mut self, number: u64, at: Moment) {
        if let Some(sent) = self.find(number) {
            sent.at = at;
        }
    }

    /// Packets sent so far.
    #[must_use]
    pub fn sent(&self) -> PacketCount {
        PacketCount::new(self.next)
    }

    /// Packets that have been answered; each counts once.
    #[must_use]
    pub fn answered(&self) -> PacketCount {
        PacketCount::new(self.answered)
    }

    /// Answers to packets that were never sent, or so long ago that they are forgotten.
    #[must_use]
    pub fn strays(&self) -> PacketCount {
        PacketCount::new(self.strays)
    }

    /// An answer has arrived. `None` when it belongs to no packet of this book.
    pub fn receive(&mut self, answer: &ReflectorPacket, arrived: Moment) -> Option<RoundTrip> {
        let number = extend(answer.sender_sequence, self.next);
        let Some(sent) = number.and_then(|number| self.find(number)) else {
            self.strays += 1;
            return None;
        };
        let (sent_at, number, first) = (sent.at, sent.number, sent.answer);
        sent.answer.get_or_insert(answer.sequence);
        self.count(answer, number, first);
        let duplicate = first.is_some();
        let format = answer.error_estimate.format();
        let (received, left) = (answer.received_at.to_wall(format), answer.timestamp.to_wall(format));
        let total = arrived.monotonic - sent_at.monotonic;
        let turned = received.zip(left).and_then(|(came, went)| ClockDifference::between(came, went).as_duration());
        Some(RoundTrip {
            number,
            sent: sent_at,
            arrived,
            round_trip: turned.and_then(|turned| total.checked_sub(turned)),
            total,
            forward: received.map(|received| ClockDifference::between(sent_at.wall, received)),
            backward: left.map(|left| ClockDifference::between(left, arrived.wall)),
            reflector_sequence: answer.sequence,
            ttl: answer.sender_ttl,
            duplicate,
        })
    }

    /// Where packets were lost. A reflector that counts itself, and has given its highest number `r`, has had `r + 1`
    /// packets; of the `n + 1` that were sent up to the last that was answered, the others were lost on the way there, and
    /// of its answers those that are missing on the way back.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let Some(reflected) = self.reflector else { return Losses::default() };
        let expected = reflected.highest_packet + 1;
        let total = expected.saturating_sub(self.answered);
        if !self.counts_itself && total > 0 {
            return Losses { forward: None, backward: None, total: PacketCount::new(total) };
        }
        let had = (reflected.highest - reflected.base + 1).saturating_sub(reflected.copies);
        let forward = expected.saturating_sub(had).min(total);
        Losses {
            forward: Some(PacketCount::new(forward)),
            backward: Some(PacketCount::new(total - forward)),
            total: PacketCount::new(total),
        }
    }

    /// `first` is the reflector's number of an earlier answer to the same packet.
    fn count(&mut self, answer: &ReflectorPacket, number: u64, first: Option<u32>) {
        let near = self.reflector.map_or(number, |known| known.highest);
        let sequence = extend(answer.sequence, near).unwrap_or(near);
        let mut known = self.reflector.unwrap_or(Reflected {
            base: sequence.saturating_sub(number),
            highest: sequence,
            highest_packet: number,
            copies: 0,
        });
        self.counts_itself |= answer.sequence != answer.sender_sequence;
        known.highest = known.highest.max(sequence);
        known.highest_packet = known.highest_packet.max(number);
        // A copy made on the way back has the same number of the reflector.
        known.copies += u64::from(first.is_some_and(|first| first != answer.sequence));
        self.reflector = Some(known);
        self.answered += u64::from(first.is_none());
    }

    fn find(&mut self, number: u64) -> Option<&mut Sent> {
        let first = self.sent.front()?.number;
        let index = usize::try_from(number.checked_sub(first)?).ok()?;
        self.sent.get_mut(index)
    }
}

/// The number whose lower half this is, the nearest to `near`; `None` when it would be negative.
fn extend(low: u32, near: u64) -> Option<u64> {
    let ahead = low.wrapping_sub(low_half(near)).cast_signed();
    near.checked_add_signed(i64::from(ahead))
}

#[expect(clippy::cast_possible_truncation, reason = "the wire has the lower 32 bits")]
const fn low_half(number: u64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests;
