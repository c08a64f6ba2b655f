//! Differences between two reports.

use linerate_units::{BitRate, ByteCount, PacketCount, Ratio};

use super::ReceiverFeedback;
use super::limits::OVERLOAD_DURATION;
use crate::statistics::{SignedDifference, StatisticalQuantity};

/// Report of a new packet, as plain numbers: nanoseconds and packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FeedbackPoint {
    /// Arrival time of the report, by the driver's clock.
    pub(super) now: u64,
    pub(super) arrival: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) offered: u64,
    pub(super) receiver_dropped: Option<u64>,
    pub(super) min_delay: f64,
    pub(super) max_delay: f64,
    /// Requested rate when the report arrived, in bit/s.
    pub(super) requested_rate: f64,
}

impl FeedbackPoint {
    pub(super) fn of(now: u64, feedback: &ReceiverFeedback, asked: f64) -> Option<Self> {
        let (arrival, highest) = (feedback.last_arrival?.as_nanos(), feedback.highest_sequence?);
        let delay = |delay: Option<SignedDifference<_>>| delay.map_or(0.0, SignedDifference::number);
        let (min_delay, max_delay) = (delay(feedback.min_delay), delay(feedback.max_delay));
        let guess = arrival.saturating_add_signed(
            -SignedDifference::<core::time::Duration>::from_number(f64::midpoint(min_delay, max_delay)).as_nanos(),
        );
        Some(Self {
            now,
            arrival,
            sent: feedback.highest_sent.map_or(guess, linerate_units::MonotonicTime::as_nanos),
            received: feedback.packets.get(),
            offered: highest + 1,
            receiver_dropped: feedback.receiver_dropped.map(PacketCount::get),
            min_delay,
            max_delay,
            requested_rate: asked,
        })
    }
}

/// Period from one point to a later one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FeedbackWindow {
    /// Packets that arrived.
    pub(super) received: f64,
    /// Packets that were sent: growth of the highest number.
    pub(super) offered: f64,
    /// Seconds between the last arrivals at both ends of the period.
    pub(super) arrival_time: f64,
    /// Seconds between the send times of those packets.
    pub(super) sending_time: f64,
    /// Bits of a packet.
    bits: f64,
}

impl FeedbackWindow {
    /// Difference of two points; `None` when no time passed, or nothing arrived.
    pub(super) fn between(from: &FeedbackPoint, to: &FeedbackPoint, size: ByteCount) -> Option<Self> {
        let count = |from: u64, to: u64| PacketCount::new(to.saturating_sub(from)).as_f64();
        let seconds = |from: u64, to: u64| count(from, to) / 1e9;
        let window = Self {
            received: count(from.received, to.received),
            offered: count(from.offered, to.offered),
            arrival_time: seconds(from.arrival, to.arrival),
            sending_time: seconds(from.sent, to.sent),
            bits: size.as_f64() * 8.0,
        };
        let whole =
            window.received > 0.0 && window.offered > 0.0 && window.arrival_time > 0.0 && window.sending_time > 0.0;
        whole.then_some(window)
    }

    /// Receive rate of the packets, in bit/s.
    pub(super) fn received_rate(&self) -> f64 {
        self.received * self.bits / self.arrival_time
    }

    /// Send rate of these packets, in bit/s.
    pub(super) fn sent_rate(&self) -> f64 {
        self.offered * self.bits / self.sending_time
    }

    /// Share of the sent rate that arrived: lost packets and a growing queue reduce it below one.
    pub(super) fn efficiency(&self) -> f64 {
        self.received_rate() / self.sent_rate()
    }

    /// Share of the packets that was lost.
    pub(super) fn loss(&self) -> Ratio {
        Ratio::from_number(1.0 - self.received / self.offered)
    }

    pub(super) fn rates(&self) -> (BitRate, BitRate) {
        let rate = BitRate::from_bits_per_second;
        (rate(self.sent_rate()), rate(self.received_rate()))
    }
}

/// Efficiency up to which the path limits a period.
const MAX_LIMITED_EFFICIENCY: f64 = 0.97;
/// Packets and seconds by which the ends of a period may be wrong.
const UNCERTAIN_PACKETS: f64 = 2.0;
const UNCERTAIN_SECONDS: f64 = 0.002;

/// Returns the highest rate that the path carried, while it limited, for as long as an overload, if that is certainly more
/// than `rate`: then other traffic took part of it in the mean.
pub(super) fn highest_carried(points: &[FeedbackPoint], size: ByteCount, rate: f64) -> Option<f64> {
    best_period(points, size, rate).map(|(_, rate)| rate)
}

/// Returns the period, as long as an overload, in which the path limited and carried the highest rate, if that is certainly
/// more than `rate`: its points, and that rate.
pub(super) fn best_period(points: &[FeedbackPoint], size: ByteCount, rate: f64) -> Option<((usize, usize), f64)> {
    let certain = |window: &FeedbackWindow| {
        let jitter = UNCERTAIN_SECONDS / window.arrival_time;
        window.received_rate() * (1.0 - UNCERTAIN_PACKETS / window.received - jitter) > rate
    };
    let end = |from: &FeedbackPoint| {
        let end = from.arrival.saturating_add(u64::try_from(OVERLOAD_DURATION.as_nanos()).unwrap_or(u64::MAX));
        points.partition_point(|point| point.arrival < end)
    };
    let periods = points.iter().enumerate().map(|(index, from)| (index, end(from)));
    let limited = periods.filter_map(|(from, to)| {
        let window = FeedbackWindow::between(&points[from], points.get(to)?, size)?;
        let is_limited = window.efficiency() <= MAX_LIMITED_EFFICIENCY && certain(&window);
        is_limited.then(|| ((from, to), window.received_rate()))
    });
    limited.max_by(|(_, one), (_, other)| one.total_cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports each 50 ms of 1000-byte packets: sent at 10 Mbit/s, received at these rates.
    fn points(received: &[f64]) -> Vec<FeedbackPoint> {
        let mut arrived = 0.0;
        let point = |(index, rate): (usize, &f64)| {
            arrived += rate * 1e6 * 0.05 / 8000.0;
            let number = u64::try_from(index).expect("small") + 1;
            FeedbackPoint {
                now: number * 50_000_000,
                arrival: number * 50_000_000,
                sent: number * 50_000_000,
                received: ByteCount::from_f64(arrived).get(),
                offered: number * 625 / 10,
                receiver_dropped: None,
                min_delay: 0.0,
                max_delay: 0.0,
                requested_rate: 1e7,
            }
        };
        received.iter().enumerate().map(point).collect()
    }

    fn highest(received: &[f64], rate: f64) -> Option<f64> {
        highest_carried(&points(received), ByteCount::new(1000), rate * 1e6).map(|rate| (rate / 1e5).round() / 10.0)
    }

    #[test]
    fn what_others_leave_in_their_pauses_is_carried() {
        let pauses: Vec<f64> = (0..40).map(|index| if index / 10 % 2 == 0 { 4.0 } else { 8.0 }).collect();
        assert_eq!(highest(&pauses, 6.0), Some(8.0));
        assert_eq!(highest(&pauses, 7.9), None, "within the error of single packets");
        assert_eq!(highest(&[6.0; 40], 6.0), None);
        // A period without a surplus shows nothing, and a short pause only its part.
        assert_eq!(highest(&[10.0; 40], 6.0), None);
        let short: Vec<f64> = (0..40).map(|index| if index == 20 { 8.0 } else { 6.0 }).collect();
        assert_eq!(highest(&short, 6.0), Some(6.3));
        assert_eq!(highest(&[], 6.0), None);
    }
}
