//! Receiving a stream: each packet kept, or only counted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use linerate_sys::clock;
use linerate_units::{ByteCount, MonotonicTime, PacketCount, WallTime};
use linerate_wire::probe::{Detail, Feedback, MOST_RECORDS, PacketRecord, StreamNumber};
use linerate_wire::sequence::Tracker;
use linerate_wire::stamp::SenderPacket;
use linerate_wire::udp::CounterWidth;

use super::datagrams::{Datagrams, Run, Sink};
use super::error::{ProbeError, Result};
use super::lock;

/// How many packets a session may still keep, of all its streams together.
#[derive(Debug)]
pub(crate) struct Room(AtomicUsize);

impl Room {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(MOST_RECORDS)))
    }

    fn take(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    fn give_back(&self, count: usize) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}

/// What is known of a stream that arrives.
pub(crate) struct Recorder {
    stream: StreamNumber,
    detail: Detail,
    started: MonotonicTime,
    /// What the socket had dropped before.
    dropped_before: PacketCount,
    room: Arc<Room>,
    state: Mutex<State>,
}

struct State {
    tracker: Tracker,
    bytes: ByteCount,
    /// When the packet with the highest number was sent, by its own account.
    highest_sent: Option<WallTime>,
    /// Since the last feedback.
    delays: Option<(i64, i64)>,
    first: Option<WallTime>,
    newest: Option<WallTime>,
    packets: Vec<PacketRecord>,
    not_kept: u64,
}

/// The packets of a stream, in the order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Those that were kept.
    pub packets: Vec<PacketRecord>,
    /// How many came and were not kept, as there were too many.
    pub not_kept: PacketCount,
    /// How many the receiving host's kernel dropped at the full socket meanwhile; `None` when it does not tell.
    pub dropped_in_host: Option<PacketCount>,
}

impl Recorder {
    pub(crate) fn new(stream: StreamNumber, detail: Detail, dropped_before: PacketCount, room: Arc<Room>) -> Arc<Self> {
        Arc::new(Self {
            stream,
            detail,
            started: clock::monotonic_now(),
            dropped_before,
            room,
            state: Mutex::new(State {
                tracker: Tracker::new(CounterWidth::Bits32),
                bytes: ByteCount::ZERO,
                highest_sent: None,
                delays: None,
                first: None,
                newest: None,
                packets: Vec::new(),
                not_kept: 0,
            }),
        })
    }

    pub(crate) fn detail(&self) -> Detail {
        self.detail
    }

    /// How the stream stands; the delays begin anew.
    pub(crate) fn feedback(&self, datagrams: &Datagrams, last: bool) -> Feedback {
        let mut state = lock(&self.state);
        let counts = state.tracker.snapshot();
        let delays = state.delays.take();
        let highest = counts.expected.get().checked_sub(1).and_then(|highest| u32::try_from(highest).ok());
        Feedback {
            stream: self.stream,
            time: clock::monotonic_now().since(self.started),
            packets: counts.received,
            bytes: state.bytes,
            highest,
            highest_sent: highest.and(state.highest_sent),
            duplicates: counts.duplicates,
            reordered: counts.out_of_order + counts.too_late,
            least_delay: delays.map(|(least, _)| least),
            most_delay: delays.map(|(_, most)| most),
            first: state.first,
            newest: state.newest,
            dropped_in_host: Some(datagrams.dropped() - self.dropped_before),
            last,
        }
    }

    /// The packets kept so far, from the `from`-th on.
    pub(crate) fn since(&self, from: usize) -> Vec<PacketRecord> {
        lock(&self.state).packets.get(from..).map(<[_]>::to_vec).unwrap_or_default()
    }

    /// All packets kept; afterwards there are none.
    pub(crate) fn take_arrivals(&self, datagrams: &Datagrams) -> Arrivals {
        let mut state = lock(&self.state);
        let packets = core::mem::take(&mut state.packets);
        self.room.give_back(packets.len());
        Arrivals {
            packets,
            not_kept: PacketCount::new(state.not_kept),
            dropped_in_host: Some(datagrams.dropped() - self.dropped_before),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.room.give_back(lock(&self.state).packets.len());
    }
}

impl Sink for Recorder {
    fn take(&self, run: &Run<'_>, _: &Datagrams) {
        self.record(run);
    }
}

impl Recorder {
    fn record(&self, run: &Run<'_>) {
        let mut state = lock(&self.state);
        state.first.get_or_insert(run.arrived.wall);
        state.newest = Some(run.arrived.wall);
        state.bytes += ByteCount::from_usize(run.bytes.len());
        match self.detail {
            Detail::Arrivals => run.bytes.chunks(run.datagram).for_each(|one| self.keep(&mut state, one, run)),
            Detail::Counts => state.count(run),
        }
    }

    fn keep(&self, state: &mut State, datagram: &[u8], run: &Run<'_>) {
        let Some((packet, sent)) = read(datagram) else { return };
        state.track(packet.sequence, 1, sent, run.arrived.wall, || Some(sent));
        if !self.room.take() {
            state.not_kept += 1;
            return;
        }
        state.packets.push(PacketRecord {
            sequence: packet.sequence,
            sent,
            arrived: run.arrived.wall,
            size: ByteCount::from_usize(datagram.len()),
            time_to_live: run.hop_limit,
            type_of_service: run.type_of_service,
        });
    }
}

impl State {
    /// Counts a train. Its packets have consecutive numbers, nearly always, and were sent and received together.
    fn count(&mut self, run: &Run<'_>) {
        let mut datagrams = run.bytes.chunks(run.datagram).peekable();
        while let Some(first) = datagrams.next() {
            let Some((packet, sent)) = read(first) else { continue };
            let (mut length, mut last) = (1, first);
            while let Some(next) = datagrams.peek()
                && sequence_of(next) == Some(packet.sequence.wrapping_add(length))
            {
                last = next;
                datagrams.next();
                length += 1;
            }
            self.track(packet.sequence, length, sent, run.arrived.wall, || Some(read(last)?.1));
        }
    }

    /// `last_sent` tells when the last of the `count` packets was sent.
    fn track(
        &mut self,
        sequence: u32,
        count: u32,
        sent: WallTime,
        arrived: WallTime,
        last_sent: impl FnOnce() -> Option<WallTime>,
    ) {
        let (sent, arrived) = (nanos(sent), nanos(arrived));
        let delay = arrived.wrapping_sub(sent).cast_signed();
        let (least, most) = self.delays.unwrap_or((delay, delay));
        self.delays = Some((least.min(delay), most.max(delay)));
        // The tracker's numbers begin with 1.
        let (first, count) = (u64::from(sequence) + 1, PacketCount::new(u64::from(count)));
        let before = self.tracker.snapshot().expected;
        self.tracker.record_run(first, count, MonotonicTime::from_nanos(sent), MonotonicTime::from_nanos(arrived));
        // When the highest number grows, it is the last one's.
        if self.tracker.snapshot().expected > before {
            self.highest_sent = last_sent();
        }
    }
}

fn nanos(time: WallTime) -> u64 {
    u64::try_from(time.since_unix_epoch().as_nanos()).unwrap_or(u64::MAX)
}

fn sequence_of(datagram: &[u8]) -> Option<u32> {
    datagram.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// A packet and when it was sent, by its own account; `None` for what is none.
fn read(datagram: &[u8]) -> Option<(SenderPacket, WallTime)> {
    let packet = SenderPacket::decode(datagram).ok()?;
    let sent = packet.timestamp.to_wall(packet.error_estimate.format())?;
    Some((packet, sent))
}

/// A stream that this end receives from the far one. Dropping it ends the reception.
pub struct Reception {
    datagrams: Arc<Datagrams>,
    recorder: Arc<Recorder>,
}

impl core::fmt::Debug for Reception {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Reception").field("stream", &self.recorder.stream).finish_non_exhaustive()
    }
}

impl Reception {
    /// Begins to receive.
    pub(crate) fn start(
        datagrams: &Arc<Datagrams>,
        stream: StreamNumber,
        detail: Detail,
        room: &Arc<Room>,
    ) -> Result<Self> {
        let recorder = Recorder::new(stream, detail, datagrams.dropped(), Arc::clone(room));
        let sink: Arc<dyn Sink> = recorder.clone();
        if !datagrams.register(stream, sink, detail == Detail::Counts) {
            return Err(ProbeError::System(format!("stream {stream} is already being received")));
        }
        Ok(Self { datagrams: Arc::clone(datagrams), recorder })
    }

    /// How much is kept.
    #[must_use]
    pub fn detail(&self) -> Detail {
        self.recorder.detail()
    }

    /// How the stream stands: sums since its start, delays since the last call.
    #[must_use]
    pub fn feedback(&self) -> Feedback {
        self.recorder.feedback(&self.datagrams, false)
    }

    /// The packets that have arrived so far, from the `from`-th on; none with [`Detail::Counts`].
    #[must_use]
    pub fn arrivals_so_far(&self, from: usize) -> Vec<PacketRecord> {
        self.recorder.since(from)
    }

    /// Ends the reception: the last figures and, with [`Detail::Arrivals`], the packets.
    #[must_use]
    pub fn finish(self) -> (Feedback, Arrivals) {
        self.datagrams.forget(self.recorder.stream);
        (self.recorder.feedback(&self.datagrams, true), self.recorder.take_arrivals(&self.datagrams))
    }
}

impl Drop for Reception {
    fn drop(&mut self) {
        self.datagrams.forget(self.recorder.stream);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use linerate_sys::time_stamp::{StampSource, TimeStamp};
    use linerate_wire::stamp::{Timestamp, TimestampFormat};

    use super::*;

    fn at(seconds: u64) -> WallTime {
        WallTime::from_unix(Duration::from_secs(1_800_000_000 + seconds))
    }

    /// A datagram of that number, sent in that second.
    fn datagram(sequence: u32, sent: u64) -> Vec<u8> {
        let timestamp = Timestamp::from_wall(at(sent), TimestampFormat::Ntp);
        SenderPacket { sequence, timestamp, ..SenderPacket::default() }.encode(ByteCount::new(64))
    }

    fn run(bytes: &[u8]) -> Run<'_> {
        let arrived = TimeStamp { wall: at(10), monotonic: MonotonicTime::from_nanos(1), source: StampSource::Program };
        let stream = StreamNumber::FIRST_RECORDED;
        Run { stream, bytes, datagram: 64, arrived, hop_limit: None, type_of_service: None }
    }

    #[test]
    fn the_highest_number_comes_with_its_own_sending_time() {
        for detail in [Detail::Counts, Detail::Arrivals] {
            let recorder = Recorder::new(StreamNumber::FIRST_RECORDED, detail, PacketCount::ZERO, Room::new());
            let highest_sent = |packets: &[(u32, u64)]| {
                let bytes: Vec<u8> = packets.iter().flat_map(|(sequence, sent)| datagram(*sequence, *sent)).collect();
                recorder.record(&run(&bytes));
                lock(&recorder.state).highest_sent
            };
            // Two trains that the kernel put together.
            assert_eq!(highest_sent(&[(0, 1), (1, 1), (2, 2), (3, 2)]), Some(at(2)));
            // After a gap, then what is late, what comes twice, and what is too far ahead to be believed.
            assert_eq!(highest_sent(&[(6, 4)]), Some(at(4)));
            assert_eq!(highest_sent(&[(4, 3), (6, 9)]), Some(at(4)));
            assert_eq!(highest_sent(&[(1 << 30, 5)]), Some(at(4)));
            assert_eq!(highest_sent(&[(5, 3), (6, 9), (7, 6)]), Some(at(6)));
        }
    }
}
