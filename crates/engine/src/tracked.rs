//! A stream as seen by its driver: interval differences, kernel samples, totals.

use core::time::Duration;

use linerate_model::limit::LimitShares;
use linerate_model::parameters::{EndCondition, TestParameters, TestProtocol};
use linerate_model::report::{TcpReport, UdpReceived};
use linerate_model::sample::{SocketSample, StreamInterval, TcpInterval, UdpInterval};
use linerate_model::stream::StreamRole;
use linerate_model::tcp_info::TcpInfo;
use linerate_sys::{clock, options, socket_memory, tcp_info};
use linerate_units::{ByteCount, MonotonicTime, PacketCount, Ratio, SegmentCount};

use crate::reservoir::{RunningRange, SampleReservoir};
use crate::stream::{ConnectedStream, ReceivedPackets, TestPhase};

/// Wait of a UDP receiver for late datagrams of an exact test whose last numbers have not arrived.
const LATE_DATAGRAM_WAIT: Duration = Duration::from_millis(500);

/// … if at least this share has arrived: on a path that is silent for half a second in mid-test, the test goes on.
const MIN_SHARE_ARRIVED: (u128, u128) = (9, 10);

/// Age from which a receiver's sample is renewed.
const MAX_SAMPLE_AGE: Duration = Duration::from_millis(100);

/// A stream and its driver's state.
pub(crate) struct TrackedStream {
    pub(crate) stream: ConnectedStream,
    counting: bool,
    detailed: bool,
    /// Bytes handed to the kernel before the stream started: a client's cookie.
    handed_before: Option<ByteCount>,
    at_interval: CounterSnapshot,
    frozen: Option<CounterSnapshot>,
    first_info: Option<TcpInfo>,
    last_info: Option<TcpInfo>,
    /// Time of the last sample.
    last_read: MonotonicTime,
    /// Sample at the end of the previous interval, and its time.
    interval_info: Option<(TcpInfo, MonotonicTime)>,
    interval_rtts: SampleReservoir,
    all_rtts: SampleReservoir,
    tick_rtts: RunningRange,
    max_congestion_window: Option<ByteCount>,
    max_send_window: Option<ByteCount>,
    /// True for UDP: a TCP connection may have no information either, where a sandbox denies it.
    is_datagram: bool,
}

/// Counters at one moment.
#[derive(Clone, Copy, Default)]
struct CounterSnapshot {
    bytes: ByteCount,
    packets: PacketCount,
    received: ReceivedPackets,
    retransmits: Option<SegmentCount>,
}

impl TrackedStream {
    /// With `detailed`, each interval includes a sample of the socket. `samples` is the number of round-trip times kept.
    pub(crate) fn new(stream: ConnectedStream, detailed: bool, samples: usize) -> Self {
        Self {
            is_datagram: options::is_datagram(&stream),
            handed_before: tcp_info::read(&stream).ok().as_ref().and_then(handed_to_kernel),
            stream,
            detailed,
            counting: false,
            at_interval: CounterSnapshot::default(),
            frozen: None,
            first_info: None,
            last_info: None,
            last_read: clock::monotonic_now(),
            interval_info: None,
            interval_rtts: SampleReservoir::new(samples),
            all_rtts: SampleReservoir::new(samples),
            tick_rtts: RunningRange::default(),
            max_congestion_window: None,
            max_send_window: None,
        }
    }

    /// Smoothed round trip of a sender at its last sample.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        let info = self.last_info.as_ref().filter(|_| self.stream.description.role == StreamRole::Sender)?;
        info.rtt
    }

    /// Samples the connection between the ends of intervals: a sender each time, a receiver at times, as only its last
    /// sample counts.
    pub(crate) fn sample_at(&mut self, now: MonotonicTime) {
        let is_sender = self.stream.description.role == StreamRole::Sender;
        if !self.is_datagram && (is_sender || now.since(self.last_read) >= MAX_SAMPLE_AGE) {
            self.sample();
        }
    }

    /// Reads the kernel's view of a TCP connection.
    fn sample(&mut self) {
        // UDP sockets have none, and a closed connection no longer has one: the last sample is kept.
        let Ok(info) = tcp_info::read(&self.stream) else { return };
        if self.stream.description.role == StreamRole::Sender
            && let Some(rtt) = info.rtt
        {
            self.interval_rtts.push(rtt);
            if self.counting {
                self.all_rtts.push(rtt);
            }
        }
        self.last_info = Some(info);
        self.last_read = clock::monotonic_now();
    }

    /// Ends the omitted part: counting starts here.
    pub(crate) fn start_counting(&mut self) {
        self.sample();
        self.counting = true;
        self.interval_info = self.last_info.clone().map(|info| (info, self.last_read));
        self.first_info.clone_from(&self.last_info);
        self.at_interval = CounterSnapshot { bytes: ByteCount::ZERO, packets: PacketCount::ZERO, ..self.snapshot() };
    }

    /// Freezes the counters, whatever the thread still moves.
    pub(crate) fn freeze(&mut self) {
        let (mut frozen, counted) = (self.snapshot(), self.bytes_moved());
        self.sample();
        frozen.retransmits = self.snapshot().retransmits;
        if self.counting && self.stream.description.role == StreamRole::Sender {
            frozen.bytes += self.handed_in_current_write(counted).unwrap_or_default();
        }
        self.frozen = Some(frozen);
    }

    /// A write blocked by a full window has not returned, so that the thread has not `counted` it; but the kernel has
    /// part of it, and the peer may have read that part.
    fn handed_in_current_write(&self, counted: ByteCount) -> Option<ByteCount> {
        let handed = handed_to_kernel(self.last_info.as_ref()?)? - self.handed_before?;
        Some(handed - counted)
    }

    fn phase(&self) -> TestPhase {
        if self.counting { TestPhase::Counting } else { TestPhase::Omitted }
    }

    fn snapshot(&self) -> CounterSnapshot {
        if let Some(frozen) = self.frozen {
            return frozen;
        }
        let (counters, phase) = (&self.stream.counters, self.phase());
        CounterSnapshot {
            bytes: counters.bytes(phase),
            packets: counters.packets(phase),
            received: counters.received(),
            retransmits: self.last_info.as_ref().and_then(|info| info.retransmits),
        }
    }

    /// Bytes in both phases.
    pub(crate) fn bytes_moved(&self) -> ByteCount {
        self.stream.counters.bytes(TestPhase::Omitted) + self.stream.counters.bytes(TestPhase::Counting)
    }

    pub(crate) fn moved_in_interval(&self) -> ByteCount {
        self.snapshot().bytes - self.at_interval.bytes
    }

    /// Figures since the last call.
    pub(crate) fn close_interval(&mut self) -> StreamInterval {
        if self.frozen.is_none() {
            self.sample();
        }
        let (now, before) = (self.snapshot(), self.at_interval);
        self.at_interval = now;
        let role = self.stream.description.role;
        let is_udp = self.is_datagram;
        StreamInterval {
            stream: self.stream.description.id,
            role,
            bytes: now.bytes - before.bytes,
            tcp: (!is_udp && role == StreamRole::Sender).then(|| self.tcp_interval(&now, &before)),
            udp: is_udp.then(|| udp_interval(role, &now, &before)),
            socket: (self.detailed && !is_udp).then(|| Box::new(self.socket_sample())),
        }
    }

    /// Current sample of the socket.
    fn socket_sample(&self) -> SocketSample {
        SocketSample { info: self.last_info.clone().unwrap_or_default(), memory: socket_memory(&self.stream).ok() }
    }

    fn tcp_interval(&mut self, now: &CounterSnapshot, before: &CounterSnapshot) -> TcpInterval {
        let info = self.last_info.clone().unwrap_or_default();
        if self.counting {
            info.rtt.into_iter().for_each(|rtt| self.tick_rtts.push(rtt));
            self.max_congestion_window = self.max_congestion_window.max(info.congestion_window);
            self.max_send_window = self.max_send_window.max(info.send_window);
        }
        TcpInterval {
            retransmits: now.retransmits.map(|total| total - before.retransmits.unwrap_or_default()),
            congestion_window: info.congestion_window,
            send_window: info.send_window,
            rtt: info.rtt,
            rttvar: info.rttvar,
            path_mtu: info.path_mtu,
            reordering_seen: info.reordering_seen,
            rtt_samples: self.interval_rtts.take_distribution(),
            limits: self.interval_limits(&info),
            not_sent: info.not_sent,
        }
    }

    /// Sender limits since the end of the previous interval.
    fn interval_limits(&mut self, info: &TcpInfo) -> Option<LimitShares> {
        let (before, since) = self.interval_info.replace((info.clone(), self.last_read))?;
        LimitShares::between(&before, info, self.last_read.since(since))
    }

    /// True when an exact test (`-n`, `-k`) is over for this stream.
    pub(crate) fn is_complete(&self, parameters: &TestParameters) -> bool {
        if self.stream.counters.finished_at().is_some() {
            return true;
        }
        if parameters.protocol == TestProtocol::Tcp || self.stream.description.role == StreamRole::Sender {
            return false;
        }
        // Lost datagrams never arrive: once the numbers show that all were sent, none is awaited.
        let received = self.stream.counters.received();
        let expected = received.total.expected - received.at_start.expected;
        let share = match parameters.end {
            EndCondition::Bytes(bytes) => bytes.get().div_ceil(parameters.block_size.get().max(1)),
            EndCondition::Blocks(blocks) => blocks.get(),
            EndCondition::Time(_) => return false,
        } / parameters.parallel.get().max(1);
        let quiet = received.last_arrival.is_some_and(|last| clock::monotonic_now().since(last) > LATE_DATAGRAM_WAIT);
        // The numbers are the peer's: they may be huge.
        let (expected, share) = (u128::from(expected.get()), u128::from(share));
        quiet && expected * MIN_SHARE_ARRIVED.1 >= share * MIN_SHARE_ARRIVED.0
    }

    /// Counted payload bytes.
    pub(crate) fn bytes(&self) -> ByteCount {
        self.snapshot().bytes
    }

    /// Counted datagrams sent.
    pub(crate) fn packets(&self) -> PacketCount {
        self.snapshot().packets
    }

    /// Datagrams sent before counting began.
    pub(crate) fn omitted_packets(&self) -> PacketCount {
        self.stream.counters.packets(TestPhase::Omitted)
    }

    /// The UDP receiver's totals.
    pub(crate) fn received(&self) -> ReceivedPackets {
        self.snapshot().received
    }

    /// Figures of a UDP receiver.
    pub(crate) fn udp_received(&self) -> UdpReceived {
        let ReceivedPackets { total, at_start, dropped, dropped_at_start, .. } = self.received();
        let counted = total.since(&at_start);
        UdpReceived {
            expected: counted.expected,
            lost: Some(counted.lost()),
            jitter: counted.jitter,
            out_of_order: Some(counted.out_of_order),
            duplicates: Some(counted.duplicates),
            dropped_in_host: Some(dropped.unwrap_or_default() - dropped_at_start.unwrap_or_default()),
        }
    }

    /// Segments retransmitted since counting began.
    pub(crate) fn retransmits(&self) -> Option<SegmentCount> {
        let before = self.first_info.as_ref().and_then(|info| info.retransmits).unwrap_or_default();
        Some(self.last_info.as_ref()?.retransmits? - before)
    }

    pub(crate) fn last_info(&self) -> Option<&TcpInfo> {
        self.last_info.as_ref()
    }

    /// TCP report of the local end.
    pub(crate) fn tcp_report(&self, elapsed: Duration) -> TcpReport {
        let sender = self.stream.description.role == StreamRole::Sender;
        TcpReport {
            retransmits: self.retransmits().filter(|_| sender),
            reordering_seen: self.last_info.as_ref().and_then(|info| info.reordering_seen).filter(|_| sender),
            max_congestion_window: self.max_congestion_window,
            max_send_window: self.max_send_window,
            interval_rtt: self.tick_rtts.range(),
            rtt_samples: self.all_rtts.distribution(),
            last_info: self.last_info.clone(),
            far_info: None,
            limits: self.limits(elapsed).filter(|_| sender),
        }
    }

    /// Limits of a local sender.
    pub(crate) fn limits(&self, elapsed: Duration) -> Option<LimitShares> {
        let limits = LimitShares::between(self.first_info.as_ref()?, self.last_info.as_ref()?, elapsed)?;
        Some(LimitShares {
            sender_cpu: self.thread_load(elapsed),
            sender_wait: self.thread_wait_share(elapsed),
            ..limits
        })
    }

    /// Share of a processor that this stream's thread used.
    pub(crate) fn thread_load(&self, elapsed: Duration) -> Option<Ratio> {
        Ratio::of(self.thread_cpu()?.as_secs_f64(), elapsed.as_secs_f64())
    }

    /// Share of the time for which this stream's thread could run and waited for a processor. The thread may also have waited
    /// before the test's time and after it.
    pub(crate) fn thread_wait_share(&self, elapsed: Duration) -> Option<Ratio> {
        Ratio::of(self.thread_wait()?.min(elapsed).as_secs_f64(), elapsed.as_secs_f64())
    }

    /// Time for which the stream's thread could run and waited for a processor; `None` until it is joined.
    pub(crate) fn thread_wait(&self) -> Option<Duration> {
        self.stream.counters.wait()
    }

    /// Processor time of the stream's thread; `None` until it is joined.
    pub(crate) fn thread_cpu(&self) -> Option<Duration> {
        self.stream.counters.cpu().map(|cpu| cpu.user + cpu.system)
    }
}

/// Bytes that the kernel has accepted from this end of a TCP connection.
fn handed_to_kernel(info: &TcpInfo) -> Option<ByteCount> {
    Some(info.bytes_sent? - info.bytes_retransmitted? + info.not_sent?)
}

fn udp_interval(role: StreamRole, now: &CounterSnapshot, before: &CounterSnapshot) -> UdpInterval {
    if role == StreamRole::Sender {
        return UdpInterval { packets: now.packets - before.packets, ..UdpInterval::default() };
    }
    let new = now.received.total.since(&before.received.total);
    UdpInterval {
        packets: new.expected,
        lost: Some(new.lost()),
        jitter: Some(new.jitter),
        out_of_order: Some(new.out_of_order),
        duplicates: Some(new.duplicates),
        dropped_in_host: Some(now.received.dropped.unwrap_or_default() - before.received.dropped.unwrap_or_default()),
    }
}
