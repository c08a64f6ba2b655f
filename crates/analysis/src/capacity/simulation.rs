//! Packet-level simulation of a path: policer, loss, a queue in front of a link, delay with jitter, duplicates; with a
//! sender and a receiver that follow the search.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount};

use super::{CapacityEstimate, CapacitySearch, PacketLayout, ReceiverFeedback, SearchAction, SearchLimits};
use crate::statistics::{SeededRandom, SignedDifference};

/// Active queue management.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum QueueManagement {
    None,
    /// PIE (RFC 8033), with its reference parameters: target 15 ms, update every 15 ms.
    Pie,
    /// `CoDel` (RFC 8289): target 5 ms, interval 100 ms. `fq_codel` and CAKE do this for a flow of their own.
    CoDel,
    /// CAKE's: `CoDel`, and BLUE's probability, which grows by 2^-8 with each 5 ms of a full buffer, and falls by 2^-12 with
    /// each 5 ms of an empty one (`cobalt_queue_full()`, `cobalt_queue_empty()`). A packet alone in the queue is not dropped.
    Cobalt,
}

/// Cross traffic at the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CrossTraffic {
    None,
    /// At this constant rate, in bit/s.
    Constant(f64),
    /// Halves when packets are dropped, at most once a round trip, and grows by a segment per round trip, of many flows.
    Yielding(f64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SimulatedPath {
    /// Bits per second that the link carries, counting `framing` bytes around each IP packet; `None` without a limit.
    pub(crate) rate: Option<f64>,
    pub(crate) framing: f64,
    /// Bytes of the buffer.
    pub(crate) buffer: f64,
    pub(crate) management: QueueManagement,
    /// IP bits per second and bytes of a policer before the link.
    pub(crate) policer: Option<(f64, f64)>,
    /// Loss before the link, and after it.
    pub(crate) loss: (f64, f64),
    /// Gilbert's loss before the link: to bad, to good.
    pub(crate) bursty_loss: Option<(f64, f64)>,
    pub(crate) round_trip: f64,
    /// Standard deviation of the delay after the link, and whether packets keep their order in it.
    pub(crate) jitter: (f64, bool),
    pub(crate) duplicates: f64,
    pub(crate) cross_traffic: CrossTraffic,
    /// Highest rates of the sending and of the receiving host; bit/s.
    pub(crate) sender: f64,
    pub(crate) receiver: f64,
    /// Packets per burst.
    pub(crate) burst: u32,
    /// Bytes of an IP packet.
    pub(crate) packet: f64,
    /// True when reports contain the send time of the packet with the highest number.
    pub(crate) stamped: bool,
    /// Loss of the segments with reports, which arrive in order after retransmissions.
    pub(crate) report_loss: f64,
    /// Seconds from the request of a rate until the sender has it.
    pub(crate) order_delay: f64,
}

impl SimulatedPath {
    pub(crate) const fn new(rate: f64, round_trip: f64, buffer: f64) -> Self {
        Self {
            rate: Some(rate),
            framing: 14.0,
            buffer,
            management: QueueManagement::None,
            policer: None,
            loss: (0.0, 0.0),
            bursty_loss: None,
            round_trip,
            jitter: (0.0, true),
            duplicates: 0.0,
            cross_traffic: CrossTraffic::None,
            sender: 100e9,
            receiver: f64::INFINITY,
            burst: 1,
            packet: 1500.0,
            stamped: true,
            report_loss: 0.0,
            order_delay: 0.0,
        }
    }

    /// Rate of IP packets that the link carries, in bit/s.
    pub(crate) fn capacity(&self) -> f64 {
        self.rate.unwrap_or(f64::INFINITY) * self.packet / (self.packet + self.framing)
    }
}

/// The state of a path on which packets travel in the order of their sending.
pub(crate) struct SimulatedNetwork {
    path: SimulatedPath,
    random: SeededRandom,
    /// Time at which the link has sent all queued packets.
    free: f64,
    tokens: f64,
    tokens_at: f64,
    bad: bool,
    others_at: f64,
    others_rate: f64,
    others_cut: f64,
    pie: (f64, f64, f64),
    codel: (f64, f64, f64),
    blue: (f64, f64),
    last_arrival: f64,
}

impl SimulatedNetwork {
    pub(crate) fn new(path: SimulatedPath, seed: u64) -> Self {
        let others_rate = match path.cross_traffic {
            CrossTraffic::None => 0.0,
            CrossTraffic::Constant(rate) | CrossTraffic::Yielding(rate) => rate,
        };
        Self {
            path,
            random: SeededRandom::new(seed),
            free: 0.0,
            tokens: path.policer.map_or(0.0, |(_, burst)| burst),
            tokens_at: 0.0,
            bad: false,
            others_at: 0.0,
            others_rate,
            others_cut: -1.0,
            pie: (0.0, 0.0, 0.0),
            codel: (f64::INFINITY, 0.0, 0.0),
            blue: (0.0, 0.0),
            last_arrival: 0.0,
        }
    }

    /// Arrival time of a packet sent at `at`; `None` when it is lost.
    pub(crate) fn carry(&mut self, at: f64) -> Option<f64> {
        if let Some((rate, burst)) = self.path.policer {
            self.tokens = (self.tokens + (at - self.tokens_at) * rate / 8.0).min(burst);
            self.tokens_at = at;
            if self.tokens < self.path.packet {
                return None;
            }
            self.tokens -= self.path.packet;
        }
        if let Some((to_bad, to_good)) = self.path.bursty_loss {
            let change = if self.bad { to_good } else { to_bad };
            self.bad ^= self.random.unit() < change;
        }
        if self.bad || self.random.unit() < self.path.loss.0 {
            return None;
        }
        let left = self.queue(at)?;
        if self.random.unit() < self.path.loss.1 {
            return None;
        }
        let arrival = left + self.path.round_trip / 2.0 + self.delay();
        let arrival = if self.path.jitter.1 { arrival.max(self.last_arrival) } else { arrival };
        self.last_arrival = self.last_arrival.max(arrival);
        Some(arrival)
    }

    fn delay(&mut self) -> f64 {
        let deviation = self.path.jitter.0;
        if deviation == 0.0 { 0.0 } else { (4.0 * deviation + deviation * self.random.normal()).max(0.0) }
    }

    /// Time at which the packet has left the link.
    fn queue(&mut self, at: f64) -> Option<f64> {
        let Some(rate) = self.path.rate else { return Some(at) };
        self.add_cross_traffic(at, rate);
        self.enter(at, rate).then_some(self.free)
    }

    fn add_cross_traffic(&mut self, until: f64, rate: f64) {
        while self.others_rate > 0.0 && self.others_at < until {
            let at = self.others_at;
            let entered = self.enter(at, rate);
            if let CrossTraffic::Yielding(_) = self.path.cross_traffic {
                if !entered && at - self.others_cut > self.path.round_trip + (self.free - at).max(0.0) {
                    self.others_rate /= 2.0;
                    self.others_cut = at;
                }
                let segment = self.path.packet * 8.0;
                self.others_rate += segment / self.path.round_trip * segment / self.others_rate / self.path.round_trip;
                self.others_rate = self.others_rate.max(segment / self.path.round_trip);
            }
            // Not strictly periodic: of two periodic streams only one loses packets.
            self.others_at += self.path.packet * 8.0 / self.others_rate * (0.5 + self.random.unit());
        }
    }

    fn enter(&mut self, at: f64, rate: f64) -> bool {
        let size = self.path.packet + self.path.framing;
        let waits = (self.free - at).max(0.0);
        let drop = match self.path.management {
            QueueManagement::None => false,
            // Both ignore a queue of a packet or two.
            QueueManagement::Pie => self.pie_drops(at, waits) && waits * rate / 8.0 > 2.0 * size,
            QueueManagement::CoDel | QueueManagement::Cobalt => {
                self.codel_drops(at, if waits * rate / 8.0 <= size { 0.0 } else { waits })
            }
        };
        let is_full = waits * rate / 8.0 + size > self.path.buffer;
        let is_cobalt = self.path.management == QueueManagement::Cobalt;
        if is_cobalt && self.blue_drops(at, is_full, waits <= 0.0) || drop || is_full {
            return false;
        }
        self.free = self.free.max(at) + size * 8.0 / rate;
        true
    }

    fn pie_drops(&mut self, at: f64, delay: f64) -> bool {
        let (mut probability, mut old, mut updated) = self.pie;
        while updated + 0.015 <= at {
            let scale =
                [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)]
                    .iter()
                    .find(|(below, _)| probability < *below)
                    .map_or(1.0, |(_, divisor)| *divisor);
            probability = (probability + (0.125 * (delay - 0.015) + 1.25 * (delay - old)) / scale).clamp(0.0, 1.0);
            (old, updated) = (delay, updated + 0.015);
        }
        self.pie = (probability, old, updated);
        delay > 0.007 && self.random.unit() < probability
    }

    fn blue_drops(&mut self, at: f64, is_full: bool, is_empty: bool) -> bool {
        let (mut probability, mut changed) = self.blue;
        if (is_full || is_empty) && at - changed > 0.005 {
            probability = (probability + if is_full { 2_f64.powi(-8) } else { -2_f64.powi(-12) }).clamp(0.0, 1.0);
            changed = at;
        }
        self.blue = (probability, changed);
        !is_empty && self.random.unit() < probability
    }

    fn codel_drops(&mut self, at: f64, delay: f64) -> bool {
        let (mut first_above, mut next, mut count) = self.codel;
        let mut drops = false;
        if delay < 0.005 {
            (first_above, count) = (f64::INFINITY, 0.0);
        } else if first_above.is_infinite() {
            first_above = at + 0.1;
        } else if at >= first_above && (count == 0.0 || at >= next) {
            count += 1.0;
            next = at + 0.1 / f64::sqrt(count);
            drops = true;
        }
        self.codel = (first_above, next, count);
        drops
    }
}

/// Shortest retransmission timeout of the connection with the reports, and the longest one that is waited for.
const MIN_TIMEOUT_SECONDS: f64 = 0.2;
const MAX_TIMEOUT_SECONDS: f64 = 2.0;

/// Time without a report after which the driver tells the search so.
const SILENCE_SECONDS: f64 = 0.11;

/// Rate from which on packets leave in bursts.
const MIN_BURST_RATE: f64 = 100e6;

fn time(seconds: f64) -> MonotonicTime {
    MonotonicTime::from_nanos(u64::try_from(Duration::from_secs_f64(seconds).as_nanos()).unwrap_or(u64::MAX))
}

/// The receiver: its clock is 1000 s ahead.
struct SimulatedReceiver {
    arrivals: BinaryHeap<Reverse<(u64, u64, u64)>>,
    seen: Vec<u64>,
    taken_until: f64,
    feedback: ReceiverFeedback,
    dropped: u64,
}

impl SimulatedReceiver {
    fn report(&mut self, until: MonotonicTime, path: &SimulatedPath) -> ReceiverFeedback {
        self.feedback.min_delay = None;
        self.feedback.max_delay = None;
        while self.arrivals.peek().is_some_and(|Reverse((at, ..))| *at <= until.as_nanos()) {
            let Some(Reverse((at, sequence, sent))) = self.arrivals.pop() else { break };
            self.take(MonotonicTime::from_nanos(at), sequence, MonotonicTime::from_nanos(sent), path);
        }
        self.feedback.receiver_dropped = Some(PacketCount::new(self.dropped));
        self.feedback
    }

    fn take(&mut self, at: MonotonicTime, sequence: u64, sent: MonotonicTime, path: &SimulatedPath) {
        let second = at.since_epoch().as_secs_f64();
        self.taken_until = self.taken_until.max(second) + path.packet * 8.0 / path.receiver;
        if self.taken_until > second + 0.01 {
            self.taken_until -= path.packet * 8.0 / path.receiver;
            self.dropped += 1;
            return;
        }
        let (word, bit) = (usize::try_from(sequence / 64).expect("few packets"), 1 << (sequence % 64));
        if self.seen.len() <= word {
            self.seen.resize(word * 2 + 1, 0);
        }
        let arrival = at + Duration::from_secs(1000);
        let delay =
            SignedDifference::from_nanos(i64::try_from(arrival.as_nanos() - sent.as_nanos()).expect("a short time"));
        let one = PacketCount::new(1);
        let feedback = &mut self.feedback;
        if self.seen[word] & bit != 0 {
            feedback.duplicates += one;
            return;
        }
        self.seen[word] |= bit;
        feedback.packets += one;
        if feedback.highest_sequence.is_none_or(|highest| highest < sequence) {
            feedback.highest_sequence = Some(sequence);
            feedback.highest_sent = path.stamped.then_some(sent);
        } else {
            feedback.reordered += one;
        }
        feedback.last_arrival = Some(arrival);
        feedback.min_delay = Some(feedback.min_delay.map_or(delay, |least| if delay < least { delay } else { least }));
        feedback.max_delay = Some(feedback.max_delay.map_or(delay, |most| if delay > most { delay } else { most }));
    }
}

/// Runs a search on a path, and returns its outcome and the IP bytes actually sent.
pub(crate) fn run(path: SimulatedPath, limits: SearchLimits, seed: u64) -> (CapacityEstimate, ByteCount) {
    let packet = PacketLayout { payload: ByteCount::from_f64(path.packet - 28.0), headers: ByteCount::new(28) };
    let mut search = CapacitySearch::new(limits, packet, Duration::from_secs_f64(path.round_trip), time(0.0));
    let mut network = SimulatedNetwork::new(path, seed);
    let mut random = SeededRandom::new(!seed);
    let mut receiver = SimulatedReceiver {
        arrivals: BinaryHeap::new(),
        seen: Vec::new(),
        taken_until: 0.0,
        feedback: ReceiverFeedback::default(),
        dropped: 0,
    };
    let (mut next_send, mut sequence, mut next_report) = (0.0, 0_u64, 0.05);
    let mut reports = std::collections::VecDeque::<(f64, ReceiverFeedback)>::new();
    let mut orders = std::collections::VecDeque::<(f64, BitRate)>::new();
    let mut next_silence = SILENCE_SECONDS;
    loop {
        let delivered = reports.front().map_or(f64::INFINITY, |(at, _)| *at);
        let handled = delivered.min(next_silence);
        if handled <= next_send && handled <= next_report {
            let action = if delivered <= next_silence {
                let (at, report) = reports.pop_front().expect("a report");
                search.handle_feedback(time(at), &report)
            } else {
                search.handle_silence(time(next_silence))
            };
            next_silence = handled + SILENCE_SECONDS;
            if action == SearchAction::Finish {
                let sent = ByteCount::from_f64(path.packet) * sequence;
                return (search.outcome(), sent);
            }
        } else if next_report <= next_send {
            let report = receiver.report(time(next_report), &path);
            let mut waits = path.round_trip / 2.0;
            let mut timeout = MIN_TIMEOUT_SECONDS + path.round_trip;
            while random.unit() < path.report_loss && timeout < MAX_TIMEOUT_SECONDS {
                (waits, timeout) = (waits + timeout, timeout * 2.0);
            }
            let earlier = reports.back().map_or(0.0, |(at, _)| *at);
            reports.push_back(((next_report + waits).max(earlier), report));
            next_report += 0.05;
        } else {
            if orders.back().is_none_or(|(_, rate)| *rate != search.rate()) {
                orders.push_back((next_send + path.order_delay, search.rate()));
            }
            while orders.get(1).is_some_and(|(at, _)| *at <= next_send) {
                orders.pop_front();
            }
            let asked = orders.front().map_or(search.rate(), |(_, rate)| *rate);
            let rate = asked.min(BitRate::from_bits_per_second(path.sender)).bits_per_second();
            let train = if rate < MIN_BURST_RATE { 1 } else { path.burst };
            for _ in 0..train {
                if let Some(arrival) = network.carry(next_send) {
                    let record = |at: f64| Reverse((time(at).as_nanos(), sequence, time(next_send).as_nanos()));
                    receiver.arrivals.push(record(arrival));
                    if random.unit() < path.duplicates {
                        receiver.arrivals.push(record(arrival + 1e-5));
                    }
                }
                sequence += 1;
            }
            next_send += f64::from(train) * path.packet * 8.0 / rate;
        }
    }
}
