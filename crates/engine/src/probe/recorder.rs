//! Reception of a stream: each packet recorded, or only counted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use linerate_sys::clock;
use linerate_units::{ByteCount, MonotonicTime, PacketCount, WallTime};
use linerate_wire::probe::{MAX_SESSION_RECORDS, PacketRecord, RecordDetail, StreamFeedback, StreamNumber};
use linerate_wire::sequence::SequenceTracker;
use linerate_wire::stamp::SenderPacket;
use linerate_wire::udp::CounterWidth;

use super::datagrams::{DatagramRun, DatagramSink, DatagramSocket};
use super::error::{ProbeError, Result};
use super::lock;
use crate::resources::{FLOW_MEMORY, MemoryExhausted, MemoryLease, ResourceAccount, reserve_one};

/// Number of packets that a session may still record, over all its streams, and the account of their memory.
#[derive(Debug)]
pub(crate) struct RecordQuota {
    left: AtomicUsize,
    account: ResourceAccount,
}

impl RecordQuota {
    pub(crate) fn new(account: ResourceAccount) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(MAX_SESSION_RECORDS), account })
    }

    fn take(&self) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    fn give_back(&self, count: usize) {
        self.left.fetch_add(count, Ordering::Relaxed);
    }
}

/// State of a received stream.
pub(crate) struct StreamRecorder {
    stream: StreamNumber,
    detail: RecordDetail,
    started: MonotonicTime,
    /// Drops of the socket before the stream.
    dropped_before: PacketCount,
    room: Arc<RecordQuota>,
    state: Mutex<RecorderState>,
}

struct RecorderState {
    tracker: SequenceTracker,
    bytes: ByteCount,
    /// Sending time of the packet with the highest number, by its own time stamp.
    highest_sent: Option<WallTime>,
    /// Smallest and largest delay since the last feedback.
    delays: Option<(i64, i64)>,
    first: Option<WallTime>,
    newest: Option<WallTime>,
    packets: Vec<PacketRecord>,
    /// Memory of the stream and its records.
    memory: MemoryLease,
    not_kept: u64,
}

/// The packets of a stream, in the order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketArrivals {
    /// Recorded packets.
    pub packets: Vec<PacketRecord>,
    /// Number of packets that arrived and were not recorded, as a quota of the session or the server was used up.
    pub not_kept: PacketCount,
    /// Drops at the receiving host's full socket buffer meanwhile; `None` when it does not report them.
    pub dropped_in_host: Option<PacketCount>,
}

impl StreamRecorder {
    pub(crate) fn new(
        stream: StreamNumber,
        detail: RecordDetail,
        dropped_before: PacketCount,
        room: Arc<RecordQuota>,
    ) -> core::result::Result<Arc<Self>, MemoryExhausted> {
        let memory = room.account.lease(FLOW_MEMORY)?;
        Ok(Arc::new(Self {
            stream,
            detail,
            started: clock::monotonic_now(),
            dropped_before,
            room,
            state: Mutex::new(RecorderState {
                tracker: SequenceTracker::new(CounterWidth::Bits32),
                bytes: ByteCount::ZERO,
                highest_sent: None,
                delays: None,
                first: None,
                newest: None,
                packets: Vec::new(),
                memory,
                not_kept: 0,
            }),
        }))
    }

    pub(crate) fn detail(&self) -> RecordDetail {
        self.detail
    }

    /// Figures of the stream; the delays start anew.
    pub(crate) fn feedback(&self, datagrams: &DatagramSocket, last: bool) -> StreamFeedback {
        let mut state = lock(&self.state);
        let counts = state.tracker.snapshot();
        let delays = state.delays.take();
        let highest = counts.expected.get().checked_sub(1).and_then(|highest| u32::try_from(highest).ok());
        StreamFeedback {
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

    /// Takes all recorded packets, with the lease of their memory.
    fn take_arrivals(&self, datagrams: &DatagramSocket) -> (PacketArrivals, MemoryLease) {
        let mut state = lock(&self.state);
        let packets = core::mem::take(&mut state.packets);
        self.room.give_back(packets.len());
        let arrivals = PacketArrivals {
            packets,
            not_kept: PacketCount::new(state.not_kept),
            dropped_in_host: Some(datagrams.dropped() - self.dropped_before),
        };
        (arrivals, core::mem::take(&mut state.memory))
    }
}

impl Drop for StreamRecorder {
    fn drop(&mut self) {
        self.room.give_back(lock(&self.state).packets.len());
    }
}

impl DatagramSink for StreamRecorder {
    fn take(&self, run: &DatagramRun<'_>, _: &DatagramSocket) {
        self.record(run);
    }
}

impl StreamRecorder {
    fn record(&self, run: &DatagramRun<'_>) {
        let mut state = lock(&self.state);
        state.first.get_or_insert(run.arrived.wall);
        state.newest = Some(run.arrived.wall);
        state.bytes += ByteCount::from_usize(run.bytes.len());
        match self.detail {
            RecordDetail::Arrivals => run.bytes.chunks(run.datagram).for_each(|one| self.keep(&mut state, one, run)),
            RecordDetail::Counts => state.count(run),
        }
    }

    fn keep(&self, state: &mut RecorderState, datagram: &[u8], run: &DatagramRun<'_>) {
        let Some((packet, sent)) = read(datagram) else { return };
        state.track(packet.sequence, 1, sent, run.arrived.wall, || Some(sent));
        let RecorderState { packets, memory, not_kept, .. } = state;
        if !self.room.take() {
            *not_kept += 1;
            return;
        }
        if !reserve_one(packets, memory) {
            self.room.give_back(1);
            *not_kept += 1;
            return;
        }
        packets.push(PacketRecord {
            sequence: packet.sequence,
            sent,
            arrived: run.arrived.wall,
            size: ByteCount::from_usize(datagram.len()),
            time_to_live: run.hop_limit,
            type_of_service: run.type_of_service,
        });
    }
}

impl RecorderState {
    /// Counts a GSO train. Its packets nearly always have consecutive numbers, and were sent and received together.
    fn count(&mut self, run: &DatagramRun<'_>) {
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

    /// Counts packets; `last_sent` is the sending time of the last of the `count` packets.
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
        // When the highest number grows, it is that of the last packet.
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

/// A packet and its sending time, by its own time stamp; `None` for an invalid one.
fn read(datagram: &[u8]) -> Option<(SenderPacket, WallTime)> {
    let packet = SenderPacket::decode(datagram).ok()?;
    let sent = packet.timestamp.to_wall(packet.error_estimate.format())?;
    Some((packet, sent))
}

/// A stream that this end receives from the far one. Dropping it ends the reception.
pub struct StreamReception {
    datagrams: Arc<DatagramSocket>,
    recorder: Arc<StreamRecorder>,
}

impl core::fmt::Debug for StreamReception {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Reception").field("stream", &self.recorder.stream).finish_non_exhaustive()
    }
}

impl StreamReception {
    /// Begins to receive.
    pub(crate) fn start(
        datagrams: &Arc<DatagramSocket>,
        stream: StreamNumber,
        detail: RecordDetail,
        room: &Arc<RecordQuota>,
    ) -> Result<Self> {
        let recorder = StreamRecorder::new(stream, detail, datagrams.dropped(), Arc::clone(room))?;
        let sink: Arc<dyn DatagramSink> = recorder.clone();
        if !datagrams.register(stream, sink, detail == RecordDetail::Counts) {
            return Err(ProbeError::System(format!("stream {stream} is already being received")));
        }
        Ok(Self { datagrams: Arc::clone(datagrams), recorder })
    }

    /// Records no further datagram.
    pub(crate) fn stop_recording(&self) {
        self.datagrams.forget(self.recorder.stream);
    }

    /// Detail of the recording.
    #[must_use]
    pub fn detail(&self) -> RecordDetail {
        self.recorder.detail()
    }

    /// Figures of the stream: sums since its start, delays since the last call.
    #[must_use]
    pub fn feedback(&self) -> StreamFeedback {
        self.recorder.feedback(&self.datagrams, false)
    }

    /// Ends the reception: the last figures and, with [`RecordDetail::Arrivals`], the packets.
    #[must_use]
    pub fn finish(self) -> (StreamFeedback, PacketArrivals) {
        let (feedback, arrivals, _) = self.finish_leased();
        (feedback, arrivals)
    }

    /// The same, with the lease of the records' memory.
    pub(crate) fn finish_leased(self) -> (StreamFeedback, PacketArrivals, MemoryLease) {
        self.datagrams.forget(self.recorder.stream);
        let feedback = self.recorder.feedback(&self.datagrams, true);
        let (arrivals, memory) = self.recorder.take_arrivals(&self.datagrams);
        (feedback, arrivals, memory)
    }
}

impl Drop for StreamReception {
    fn drop(&mut self) {
        self.datagrams.forget(self.recorder.stream);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use linerate_sys::time_stamp::{StampSource, TimeStamp};
    use linerate_units::TypeOfService;
    use linerate_wire::stamp::{StampTimestamp, TimestampFormat};

    use super::*;
    use crate::resources::ServerResources;

    fn at(seconds: u64) -> WallTime {
        WallTime::from_unix(Duration::from_secs(1_800_000_000 + seconds))
    }

    /// A datagram with this number and second of sending.
    fn datagram(sequence: u32, sent: u64) -> Vec<u8> {
        let timestamp = StampTimestamp::from_wall(at(sent), TimestampFormat::Ntp);
        SenderPacket { sequence, timestamp, ..SenderPacket::default() }.encode(ByteCount::new(64))
    }

    fn run(bytes: &[u8]) -> DatagramRun<'_> {
        let arrived = TimeStamp { wall: at(10), monotonic: MonotonicTime::from_nanos(1), source: StampSource::Program };
        let stream = StreamNumber::FIRST_RECORDED;
        DatagramRun { stream, bytes, datagram: 64, arrived, hop_limit: None, type_of_service: None }
    }

    fn recorded(recorder: &StreamRecorder) -> Vec<PacketRecord> {
        lock(&recorder.state).packets.clone()
    }

    #[test]
    fn the_highest_number_has_its_own_sending_time() {
        for detail in [RecordDetail::Counts, RecordDetail::Arrivals] {
            let recorder = recorder(detail, &RecordQuota::new(ResourceAccount::default()));
            let highest_sent = |packets: &[(u32, u64)]| {
                let bytes: Vec<u8> = packets.iter().flat_map(|(sequence, sent)| datagram(*sequence, *sent)).collect();
                recorder.record(&run(&bytes));
                lock(&recorder.state).highest_sent
            };
            // Two trains that the kernel coalesced.
            assert_eq!(highest_sent(&[(0, 1), (1, 1), (2, 2), (3, 2)]), Some(at(2)));
            // After a gap, then a late packet, a duplicate, and one too far ahead to be credible.
            assert_eq!(highest_sent(&[(6, 4)]), Some(at(4)));
            assert_eq!(highest_sent(&[(4, 3), (6, 9)]), Some(at(4)));
            assert_eq!(highest_sent(&[(1 << 30, 5)]), Some(at(4)));
            assert_eq!(highest_sent(&[(5, 3), (6, 9), (7, 6)]), Some(at(6)));
        }
    }

    fn recorder(detail: RecordDetail, quota: &Arc<RecordQuota>) -> Arc<StreamRecorder> {
        let recorder = StreamRecorder::new(StreamNumber::FIRST_RECORDED, detail, PacketCount::ZERO, Arc::clone(quota));
        recorder.expect("enough memory")
    }

    #[test]
    fn packets_are_recorded_in_the_order_of_arrival_with_their_metadata() {
        let recorder = recorder(RecordDetail::Arrivals, &RecordQuota::new(ResourceAccount::default()));
        let bytes = [datagram(3, 2), datagram(1, 1), datagram(1, 1)].concat();
        recorder.record(&DatagramRun {
            hop_limit: Some(61),
            type_of_service: Some(TypeOfService::new(8)),
            ..run(&bytes)
        });
        recorder.record(&run(b"too short for a packet"));
        let found: Vec<_> =
            recorded(&recorder).iter().map(|packet| (packet.sequence, packet.sent, packet.time_to_live)).collect();
        assert_eq!(found, [(3, at(2), Some(61)), (1, at(1), Some(61)), (1, at(1), Some(61))]);
    }

    #[test]
    fn the_quota_of_a_session_is_shared_and_returned() {
        let quota = Arc::new(RecordQuota { left: AtomicUsize::new(5), account: ResourceAccount::default() });
        let (one, other) = (recorder(RecordDetail::Arrivals, &quota), recorder(RecordDetail::Arrivals, &quota));
        let bytes: Vec<u8> = (0..4).flat_map(|number| datagram(number, 1)).collect();
        one.record(&run(&bytes));
        other.record(&run(&bytes));
        assert_eq!((recorded(&one).len(), recorded(&other).len()), (4, 1));
        assert_eq!((lock(&one.state).not_kept, lock(&other.state).not_kept), (0, 3));
        let counted = lock(&other.state).tracker.snapshot().received;
        assert_eq!(counted, PacketCount::new(4), "those that were not kept are counted");
        drop(one);
        other.record(&run(&bytes));
        assert_eq!(recorded(&other).len(), 5, "four more");
        let counting = recorder(RecordDetail::Counts, &quota);
        counting.record(&run(&bytes));
        assert!(recorded(&counting).is_empty() && lock(&counting.state).not_kept == 0, "counting needs no quota");
    }

    #[test]
    fn records_beyond_the_memory_of_the_server_are_counted_as_left_out() {
        let client = std::net::Ipv4Addr::LOCALHOST.into();
        let records = ByteCount::from_usize(100 * size_of::<PacketRecord>());
        let server = ServerResources::new((FLOW_MEMORY + records) * 2);
        let one = recorder(RecordDetail::Arrivals, &RecordQuota::new(server.account(client)));
        let bytes: Vec<u8> = (0..200).flat_map(|number| datagram(number, 1)).collect();
        one.record(&run(&bytes));
        assert_eq!((recorded(&one).len(), lock(&one.state).not_kept), (64, 136));
        assert_eq!(one.room.left.load(Ordering::Relaxed), MAX_SESSION_RECORDS - 64);
        assert!(server.account(client).lease(FLOW_MEMORY).is_err(), "the network has its share");
        drop(one);
        assert_eq!(server.held(), ByteCount::ZERO);
    }

    #[test]
    fn both_details_count_alike() {
        let trains: [&[(u32, u64)]; 4] =
            [&[(0, 1), (1, 1), (2, 1)], &[(5, 2), (6, 2)], &[(3, 1), (6, 2)], &[(9, 3), (10, 3), (4, 1)]];
        let counts = [RecordDetail::Counts, RecordDetail::Arrivals].map(|detail| {
            let recorder = recorder(detail, &RecordQuota::new(ResourceAccount::default()));
            for train in trains {
                let bytes: Vec<u8> = train.iter().flat_map(|(number, sent)| datagram(*number, *sent)).collect();
                recorder.record(&run(&bytes));
            }
            let state = lock(&recorder.state);
            let found = state.tracker.snapshot();
            assert_eq!((found.expected, found.received), (PacketCount::new(11), PacketCount::new(10)));
            assert_eq!((found.duplicates, found.out_of_order), (PacketCount::new(1), PacketCount::new(2)));
            assert_eq!(found.lost(), PacketCount::new(2), "7 and 8");
            assert_eq!(state.bytes, ByteCount::new(10 * 64));
            // Sent in the first to third second, received in the tenth.
            let seconds = state.delays.map(|(least, most)| (least / 1_000_000_000, most / 1_000_000_000));
            assert_eq!(seconds, Some((7, 9)));
            (state.bytes, state.highest_sent, state.first, state.newest)
        });
        assert_eq!(counts[0], counts[1]);
    }
}
