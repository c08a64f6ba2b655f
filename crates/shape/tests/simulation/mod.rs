//! Simulated link in steps of a millisecond: per direction a shaper with a queue per flow, the path's buffer with a
//! variable capacity, CUBIC senders, and probes that pass the buffer. Up, the shaper comes first; down, the buffer
//! does.

pub(crate) mod driver;

use std::collections::VecDeque;

use linerate_analysis::statistics::SeededRandom;

pub(crate) const FLOWS: usize = 4;
/// Size of a segment with headers, in bytes.
const SEGMENT: f64 = 1500.0;
/// CUBIC (RFC 9438): multiplicative decrease factor, and growth constant in segments per second cubed.
const CUBIC_DECREASE: f64 = 0.7;
const CUBIC_GROWTH: f64 = 0.4;

/// Bytes in a millisecond at a rate in Mbit/s.
pub(crate) const fn bytes(megabits: f64) -> f64 {
    megabits * 125.0
}

/// One CUBIC sender.
#[derive(Clone, Copy, Debug)]
struct CubicSender {
    window: f64,
    in_flight: f64,
    threshold: f64,
    largest: f64,
    epoch: f64,
    friendly: f64,
    backed_off: f64,
    quiet: f64,
}

impl CubicSender {
    const fn new() -> Self {
        Self {
            window: 10.0 * SEGMENT,
            in_flight: 0.0,
            threshold: f64::INFINITY,
            largest: 0.0,
            epoch: 0.0,
            friendly: 0.0,
            backed_off: -1.0,
            quiet: 0.0,
        }
    }

    fn acknowledged(&mut self, amount: f64, now: f64) {
        self.in_flight = (self.in_flight - amount).max(0.0);
        if self.window < self.threshold {
            self.window += amount;
            return;
        }
        let least = (self.largest * (1.0 - CUBIC_DECREASE) / CUBIC_GROWTH).cbrt();
        let cubic = CUBIC_GROWTH * (now - self.epoch - least).powi(3) + self.largest;
        self.friendly += 0.53 * amount / self.window;
        let aim = cubic.max(self.friendly) * SEGMENT;
        if aim > self.window {
            self.window += ((aim - self.window) / self.window * amount).min(amount / 2.0);
        }
    }

    fn lost(&mut self, amount: f64, now: f64, round_trip: f64) {
        self.in_flight = (self.in_flight - amount).max(0.0);
        if now - self.backed_off < round_trip {
            return;
        }
        self.backed_off = now;
        self.largest = self.window / SEGMENT;
        self.window = (self.window * CUBIC_DECREASE).max(2.0 * SEGMENT);
        self.threshold = self.window;
        self.friendly = self.window / SEGMENT;
        self.epoch = now;
    }
}

/// Element of the path's buffer.
#[derive(Clone, Copy, Debug)]
enum BufferElement {
    Data { flow: usize, bytes: f64 },
    Probe { number: u64, entered: usize },
}

/// One direction, in steps of a millisecond.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedLink {
    up: bool,
    /// Capacity of the path in bytes per millisecond, per millisecond.
    pub(crate) capacity: Vec<f64>,
    /// One-way delay of the empty path in milliseconds, per millisecond.
    pub(crate) rest: Vec<f64>,
    /// Demand of the senders in bytes per millisecond.
    pub(crate) demand: Vec<f64>,
    /// Rate of the shaper in bytes per millisecond; infinite without one.
    pub(crate) rate: f64,
    senders: [CubicSender; FLOWS],
    leaves: [f64; FLOWS],
    fifo: VecDeque<BufferElement>,
    standing: f64,
    buffer: f64,
    /// Acknowledgements and losses in flight, by millisecond.
    news: VecDeque<[(f64, f64); FLOWS]>,
    /// Bytes carried since the last sample: up out of the shaper, down out of the buffer.
    pub(crate) counted: f64,
    pub(crate) delivered: f64,
    round_trip: usize,
    /// Bytes dropped by the leaves.
    pub(crate) dropped: f64,
}

impl SimulatedLink {
    pub(crate) fn new(up: bool, capacity: Vec<f64>, rest: Vec<f64>, demand: Vec<f64>, round_trip: usize) -> Self {
        Self {
            up,
            capacity,
            rest,
            demand,
            rate: f64::INFINITY,
            senders: [CubicSender::new(); FLOWS],
            leaves: [0.0; FLOWS],
            fifo: VecDeque::new(),
            standing: 0.0,
            // 300 ms at 20 Mbit/s, as in a modem.
            buffer: bytes(20.0) * 300.0,
            news: VecDeque::from(vec![[(0.0, 0.0); FLOWS]; round_trip + 1]),
            counted: 0.0,
            delivered: 0.0,
            round_trip,
            dropped: 0.0,
        }
    }

    pub(crate) fn backlog(&self) -> f64 {
        self.leaves.iter().sum()
    }

    /// Adds a probe to the buffer; `false` when full.
    pub(crate) fn probe(&mut self, number: u64, now: usize) -> bool {
        let fits = self.standing < self.buffer;
        if fits {
            self.fifo.push_back(BufferElement::Probe { number, entered: now });
        }
        fits
    }

    /// Advances by a millisecond; returns the probes that left, with their waiting times in milliseconds.
    pub(crate) fn step(&mut self, now: usize, out: &mut Vec<(u64, f64)>) {
        let at = now as f64 / 1e3;
        let news = self.news.pop_front().unwrap_or_default();
        self.news.push_back([(0.0, 0.0); FLOWS]);
        for (sender, (acknowledged, lost)) in self.senders.iter_mut().zip(news) {
            if acknowledged > 0.0 {
                sender.acknowledged(acknowledged, at);
            }
            if lost > 0.0 {
                sender.lost(lost, at, self.round_trip as f64 / 1e3);
            }
        }
        for flow in 0..FLOWS {
            let amount = self.send(flow, now);
            if amount > 0.0 {
                if self.up { self.fill_leaf(flow, amount) } else { self.fill_buffer(flow, amount) }
            }
        }
        if self.up {
            self.shape();
            self.carry(now, out);
        } else {
            self.carry(now, out);
            self.shape();
        }
    }

    fn send(&mut self, flow: usize, now: usize) -> f64 {
        let demand = self.demand[now] / FLOWS as f64;
        let sender = &mut self.senders[flow];
        if demand <= 0.0 {
            sender.quiet += 1.0;
            return 0.0;
        }
        if sender.quiet > 1000.0 {
            (sender.window, sender.threshold) = (10.0 * SEGMENT, sender.window);
        }
        sender.quiet = 0.0;
        let spread = 2.0 * sender.window / self.round_trip as f64;
        let amount = (sender.window - sender.in_flight).min(spread).min(demand).max(0.0);
        sender.in_flight += amount;
        amount
    }

    fn tell(&mut self, flow: usize, acknowledged: f64, lost: f64) {
        let Some(news) = self.news.back_mut() else { return };
        news[flow].0 += acknowledged;
        news[flow].1 += lost;
    }

    fn fill_leaf(&mut self, flow: usize, amount: f64) {
        // 30 ms of the whole rate, at least six segments, per flow.
        let limit = if self.rate.is_finite() { (self.rate * 30.0 / FLOWS as f64).max(6.0 * SEGMENT) } else { 1e12 };
        let taken = amount.min((limit - self.leaves[flow]).max(0.0));
        self.leaves[flow] += taken;
        if amount > taken {
            self.dropped += amount - taken;
            self.tell(flow, 0.0, amount - taken);
        }
    }

    fn fill_buffer(&mut self, flow: usize, amount: f64) {
        let taken = amount.min((self.buffer - self.standing).max(0.0));
        self.standing += taken;
        if taken > 0.0 {
            self.fifo.push_back(BufferElement::Data { flow, bytes: taken });
        }
        if amount > taken {
            self.tell(flow, 0.0, amount - taken);
        }
    }

    /// Shares the rate evenly between flows.
    fn shape(&mut self) {
        let mut left = self.rate.min(1e9);
        loop {
            let active = self.leaves.iter().filter(|leaf| **leaf > 1e-9).count();
            if active == 0 || left < 1e-9 {
                return;
            }
            let share = left / active as f64;
            for flow in 0..FLOWS {
                let amount = self.leaves[flow].min(share);
                if amount <= 0.0 {
                    continue;
                }
                self.leaves[flow] -= amount;
                left -= amount;
                if self.up {
                    self.counted += amount;
                    self.fill_buffer(flow, amount);
                } else {
                    self.delivered += amount;
                    self.tell(flow, amount, 0.0);
                }
            }
        }
    }

    fn carry(&mut self, now: usize, out: &mut Vec<(u64, f64)>) {
        let mut left = self.capacity[now];
        while let Some(piece) = self.fifo.front_mut() {
            match piece {
                BufferElement::Probe { .. } if left <= 0.0 => return,
                BufferElement::Probe { number, entered } => {
                    out.push((*number, (now - *entered) as f64));
                    self.fifo.pop_front();
                }
                BufferElement::Data { flow, bytes } => {
                    let (flow, amount) = (*flow, bytes.min(left));
                    *bytes -= amount;
                    let empty = *bytes <= 1e-9;
                    left -= amount;
                    self.standing -= amount;
                    if empty {
                        self.fifo.pop_front();
                    }
                    if self.up {
                        self.delivered += amount;
                        self.tell(flow, amount, 0.0);
                    } else {
                        self.counted += amount;
                        self.fill_leaf(flow, amount);
                    }
                    if !empty {
                        return;
                    }
                }
            }
        }
    }
}

/// Constant capacity.
pub(crate) fn constant(seconds: usize, megabits: f64) -> Vec<f64> {
    vec![bytes(megabits); seconds * 1000]
}

/// Capacities of 20 s each, in turn.
pub(crate) fn steps(seconds: usize, megabits: &[f64]) -> Vec<f64> {
    (0..seconds * 1000).map(|now| bytes(megabits[now / 20_000 % megabits.len()])).collect()
}

/// Random walk of the capacity's logarithm, in tenths of a second, reflected at both bounds.
pub(crate) fn wobble(seconds: usize, (low, high): (f64, f64), per_second: f64, seed: u64) -> Vec<f64> {
    let mut random = SeededRandom::new(seed);
    let (bottom, top) = (low.ln(), high.ln());
    let mut place = f64::midpoint(bottom, top);
    let mut values = Vec::with_capacity(seconds * 1000);
    for _ in 0..seconds * 10 {
        place += per_second * 0.1_f64.sqrt() * random.normal();
        if place > top {
            place = 2.0 * top - place;
        } else if place < bottom {
            place = 2.0 * bottom - place;
        }
        values.extend([bytes(place.exp()); 100]);
    }
    values
}
