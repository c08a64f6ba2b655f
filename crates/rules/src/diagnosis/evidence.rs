//! Figures of an observation for the rules, computed once.

use core::time::Duration;

use linerate_analysis::statistics::ordered_percentile;
use linerate_model::diagnosis::{ObservedConnection, SenderState, SocketInterval, TransferObservation};
use linerate_model::far::HostEvidence;
use linerate_model::limit::LimitShares;
use linerate_units::{BitRate, ByteCount, Mss, Mtu, Ratio, SegmentCount};

use super::capacity::{capacity_of, known_capacity, low_share};
use super::counterfactual::time_in;
use super::path_loss::OwnLoss;
use super::stalls;
use super::steady::{arrival_rate, steady_moments, steady_rate};

/// Unit of TCP timestamps.
pub(super) const TIMESTAMP_UNIT: Duration = Duration::from_millis(1);
/// Share of the time under a limit from which the usual window is the limit.
const MIN_LIMITING_SHARE: f64 = 0.5;
/// Queueing delay at rest, as a share of the round trip, that implies other traffic.
const MIN_REST_QUEUE_SHARE: f64 = 0.1;
/// Filled share of a send buffer from which its writer waits: it is woken when a third is free (`sk_stream_is_writeable()`).
const MIN_FILLED_SHARE: f64 = 0.66;
/// Retransmitted share up to which a full send buffer holds the transfer back by itself.
const MAX_RETRANSMITTED: f64 = 0.01;
/// Share of the time in the repair of losses from which one follows the other.
pub(super) const MIN_RECOVERING_SHARE: f64 = 0.9;
/// Expected number of losses from which zero losses are no chance (e^-10).
const MIN_EXPECTED_LOSSES: u64 = 10;

/// Samples of a sender without which its usual state is unknown: the last one is taken when it has stopped.
const MIN_SAMPLES: usize = 3;

/// Figures that the rules check. `None` where a figure was not observed; figures of several connections are medians, or
/// sums where documented.
#[derive(Clone, Debug)]
pub struct TransferEvidence<'o> {
    /// Observation that the figures are computed from.
    pub observation: &'o TransferObservation,
    /// Payload bits per second over the whole transfer, all connections.
    pub goodput: BitRate,
    /// The same over the second half, when slow start is over.
    pub steady: BitRate,
    /// Payload part of the path's capacity; `None` where the transfer refutes the measurement.
    pub capacity: Option<BitRate>,
    /// Payload part of the lower end of its interval: from there on the path may be full.
    pub capacity_low: Option<BitRate>,
    /// Payload part of a measured capacity that the transfer refutes.
    pub refuted_capacity: Option<BitRate>,
    /// Capacity of the reverse direction in IP bits per second.
    pub capacity_back: Option<BitRate>,
    /// Smallest round trip of the path measurement or the connections.
    pub base: Option<Duration>,
    /// Smoothed round trips of the second half: median and 95th percentile.
    pub loaded: Option<(Duration, Duration)>,
    /// Tenth percentile of the same.
    pub loaded_low: Option<Duration>,
    /// Segment size of the sender.
    pub segment: Option<Mss>,
    /// Path MTU that the sender assumes.
    pub sender_mtu: Option<Mtu>,
    /// Median window that the receiver offered in the second half.
    pub window: Option<ByteCount>,
    /// Largest window that the receiver ever offered.
    pub largest_window: Option<ByteCount>,
    /// Median of the bytes in flight in the second half.
    pub in_flight: Option<ByteCount>,
    /// Most bytes in flight in the second half, on one connection.
    pub largest_in_flight: Option<ByteCount>,
    /// Median congestion window in the second half.
    pub congestion_window: Option<ByteCount>,
    /// Shares of the second half's time by the kernel's chronographs (`tcp_chrono`), mean over the connections.
    pub shares: Option<LimitShares>,
    /// Share of the receive buffer filled with unread data, median of the second half.
    pub unread: Option<Ratio>,
    /// Largest receive buffer, and true if it ever changed while data flowed.
    pub receive_buffer: Option<(ByteCount, bool)>,
    /// Largest send buffer, and true if it ever changed while data flowed.
    pub send_buffer: Option<(ByteCount, bool)>,
    /// Filled share of the send buffer, median of the second half.
    pub send_fill: Option<Ratio>,
    /// Median of the bytes written but not sent yet.
    pub not_sent: Option<ByteCount>,
    /// Share of samples in which the kernel marked its rate as limited by the application.
    pub application_limited: Option<Ratio>,
    /// Payload bytes that the connections sent since they were opened, retransmissions included.
    pub sent: Option<ByteCount>,
    /// Retransmitted share of the sent bytes, all connections.
    pub retransmitted: Option<Ratio>,
    /// Retransmitted segments, all connections.
    pub retransmits: Option<SegmentCount>,
    /// Segments retransmitted in the second half, all connections.
    pub late_retransmits: Option<SegmentCount>,
    /// Data segments sent, all connections.
    pub segments: Option<SegmentCount>,
    /// Longest time without acknowledgements while data was in flight.
    pub longest_stall: Duration,
    /// Most stalls of a connection after which its data went on.
    pub ended_stalls: usize,
}

/// Median by nearest rank.
fn median<T: Ord + Copy>(values: impl IntoIterator<Item = T>) -> Option<T> {
    percentile(values, 50.0)
}

fn percentile<T: Ord + Copy>(values: impl IntoIterator<Item = T>, percent: f64) -> Option<T> {
    ordered_percentile(values, Ratio::from_percent(percent)?)
}

/// True when the sender repairs losses for most of the second half.
fn has_gaps(connection: &ObservedConnection) -> bool {
    let moments = steady_moments(&connection.sender);
    let lost = |moment: &&SocketInterval| moment.socket.info.lost.is_some_and(|count| !count.is_zero());
    2 * moments.iter().filter(lost).count() > moments.len()
}

/// Returns the smallest round trip of the sender and of the idle path. One by TCP timestamps has whole milliseconds, less what
/// is beyond them (`tcp_rtt_tsopt_us()`): then that of the path, which is less than one longer.
fn least_round_trip(of_sender: Option<Duration>, of_path: Option<Duration>) -> Option<Duration> {
    let (Some(sender), Some(path)) = (of_sender, of_path) else { return of_sender.or(of_path) };
    let is_cut = is_whole_timestamp(sender);
    Some(if is_cut && sender < path && path < sender + TIMESTAMP_UNIT { path } else { sender.min(path) })
}

/// True for a round trip of whole milliseconds, as TCP timestamps give it.
pub(super) const fn is_whole_timestamp(round_trip: Duration) -> bool {
    round_trip.subsec_nanos().is_multiple_of(TIMESTAMP_UNIT.subsec_nanos())
}

impl<'o> TransferEvidence<'o> {
    /// Computes the figures of an observation.
    #[must_use]
    pub fn from_observation(observation: &'o TransferObservation) -> Self {
        let connections = &observation.connections;
        let senders = || connections.iter().flat_map(|connection| steady_moments(&connection.sender));
        let is_sampled = connections.iter().any(|connection| connection.sender.len() >= MIN_SAMPLES);
        let usual = || senders().filter(move |_| is_sampled);
        // What waits behind a gap takes memory, but no program could read it.
        let readers = || connections.iter().filter(|connection| !has_gaps(connection));
        let last = || connections.iter().filter_map(|connection| connection.sender.last());
        let info = |moment: &'o SocketInterval| &moment.socket.info;
        let segment = median(senders().filter_map(|moment| info(moment).send_mss));
        let sender_mtu = median(senders().filter_map(|moment| info(moment).path_mtu));
        let smallest =
            connections.iter().flat_map(|connection| &connection.sender).filter_map(|moment| info(moment).min_rtt);
        let of_path = observation.path.as_ref().and_then(|path| path.round_trip);
        let times: Vec<Duration> = usual().filter_map(|moment| info(moment).rtt).collect();
        let sum = |field: fn(&SocketInterval) -> Option<u64>| {
            let values: Vec<u64> = last().filter_map(field).collect();
            (!values.is_empty()).then(|| values.iter().sum::<u64>())
        };
        let retransmitted = sum(|moment| moment.socket.info.bytes_retransmitted.map(ByteCount::get));
        let steady = steady_rate(observation);
        let (capacity, refuted_capacity) = known_capacity(observation, segment, steady);
        let steady = arrival_rate(observation, capacity);
        let sent = sum(|moment| moment.socket.info.bytes_sent.map(ByteCount::get));
        Self {
            observation,
            goodput: observation.goodput(),
            steady,
            capacity,
            capacity_low: capacity.map(|capacity| capacity * low_share(observation)),
            refuted_capacity,
            capacity_back: observation.path.as_ref().and_then(|path| capacity_of(&path.with_acknowledgements)),
            base: least_round_trip(smallest.min(), of_path),
            loaded: median(times.iter().copied()).zip(percentile(times.iter().copied(), 95.0)),
            loaded_low: percentile(times, 10.0),
            segment,
            sender_mtu,
            window: median(usual().filter_map(|moment| info(moment).send_window)),
            largest_window: connections
                .iter()
                .flat_map(|connection| &connection.sender)
                .filter_map(|moment| info(moment).send_window)
                .max(),
            in_flight: median(usual().filter_map(in_flight_bytes)),
            largest_in_flight: senders().filter_map(in_flight_bytes).max(),
            congestion_window: median(usual().filter_map(|moment| info(moment).congestion_window)),
            shares: shares(connections),
            unread: median(readers().flat_map(|one| steady_moments(&one.receiver)).filter_map(|moment| {
                let memory = moment.socket.memory?;
                Ratio::of(memory.receive_allocated.as_f64(), memory.receive_buffer.as_f64())
            })),
            receive_buffer: buffer(
                connections,
                |connection| &connection.receiver,
                |moment| Some(moment.socket.memory?.receive_buffer),
            ),
            send_buffer: buffer(
                connections,
                |connection| &connection.sender,
                |moment| Some(moment.socket.memory?.send_buffer),
            ),
            send_fill: median(usual().filter_map(|moment| {
                let memory = moment.socket.memory?;
                Ratio::of(memory.send_queued.as_f64(), memory.send_buffer.as_f64())
            })),
            not_sent: median(usual().filter_map(|moment| info(moment).not_sent)),
            application_limited: share_of(usual().filter_map(|moment| info(moment).delivery_rate_application_limited)),
            sent: sent.map(ByteCount::new),
            retransmitted: retransmitted.zip(sent).and_then(|(retransmitted, sent)| {
                Ratio::of(ByteCount::new(retransmitted).as_f64(), ByteCount::new(sent).as_f64())
            }),
            retransmits: sum(|moment| moment.socket.info.retransmits.map(SegmentCount::get)).map(SegmentCount::new),
            late_retransmits: late_retransmits(connections),
            segments: sum(|moment| moment.socket.info.data_segments_sent.map(SegmentCount::get)).map(SegmentCount::new),
            longest_stall: connections.iter().map(stalls::longest).max().unwrap_or_default(),
            ended_stalls: connections.iter().map(stalls::ended).max().unwrap_or_default(),
        }
    }

    /// Returns the bandwidth-delay product in payload bytes.
    #[must_use]
    pub fn bandwidth_delay_product(&self) -> Option<ByteCount> {
        Some(self.capacity? * self.base?)
    }

    /// Returns the window that a full receive buffer offers: the usual one where it limits most of the time, as data that is
    /// not yet read takes a part, otherwise the largest observed one.
    #[must_use]
    pub fn full_window(&self) -> Option<ByteCount> {
        let limits = self.shares.is_some_and(|shares| shares.receive_window.get() >= MIN_LIMITING_SHARE);
        self.window.filter(|_| limits).or(self.largest_window)
    }

    /// Returns the usual round trip at rest: the smallest one, or the median of an idle path whose delay varies by
    /// itself. Other traffic's queue at rest is no part of it.
    #[must_use]
    pub fn rest(&self) -> Option<Duration> {
        let base = self.base?;
        let path = self.observation.path.as_ref();
        let is_shared = self.path().and_then(|path| path.capacity.as_ref()?.shared).unwrap_or(false);
        let usual = path.and_then(|path| path.usual_round_trip).map(|(median, _)| median).filter(|_| !is_shared);
        Some(usual.map_or(base, |usual| usual.max(base)))
    }

    /// Returns the queueing delay under load (round trip less the one at rest): median and 95th percentile.
    #[must_use]
    pub fn queueing(&self) -> Option<(Duration, Duration)> {
        let (median, high) = self.loaded?;
        let rest = self.rest()?;
        Some((median.saturating_sub(rest), high.saturating_sub(rest)))
    }

    /// Returns the longest queueing delay of the whole transfer, slow start included.
    pub(super) fn longest_queueing(&self) -> Option<Duration> {
        let samples = self.observation.connections.iter().flat_map(|connection| &connection.sender);
        let longest = samples.filter_map(|sample| sample.socket.info.rtt).max()?;
        Some(longest.saturating_sub(self.rest()?))
    }

    /// Returns the share of the capacity that the transfer used in its second half.
    #[must_use]
    pub fn used(&self) -> Option<f64> {
        let capacity = self.capacity?.bits_per_second();
        (capacity > 0.0).then(|| self.steady.bits_per_second() / capacity)
    }

    /// Returns the same share of the lower end of the capacity's interval.
    pub(super) fn used_at_most(&self) -> Option<f64> {
        let low = self.capacity_low?.bits_per_second();
        (low > 0.0).then(|| self.steady.bits_per_second() / low)
    }

    /// True when all written data has been sent: less than a segment waits.
    #[must_use]
    pub fn is_all_sent(&self) -> bool {
        self.not_sent.zip(self.segment).is_some_and(|(waits, segment)| waits < segment.byte_count())
    }

    /// True when the send buffer is full of data in flight while the congestion window allows more. The kernel's
    /// chronograph does not run while the last segments of a write are in flight, so that this may be the only sign.
    #[must_use]
    pub fn is_send_buffer_full(&self) -> bool {
        let filled = self.send_fill.is_some_and(|fill| fill.get() >= MIN_FILLED_SHARE);
        filled && self.is_send_buffer_final() && (self.is_often_idle() || self.is_all_sent() && self.has_free_window())
    }

    /// True when the send buffer is full while the sender repairs losses nearly all of the time.
    pub(super) fn is_buffer_full_behind_losses(&self) -> bool {
        let recovering = time_in(&super::states::shares(self), &[SenderState::Recovery]);
        self.send_fill.is_some_and(|fill| fill.get() >= MIN_FILLED_SHARE) && recovering >= MIN_RECOVERING_SHARE
    }

    /// True when the send buffer is full, and not of data behind a loss. What slow start lost is repaired by then.
    #[must_use]
    pub fn waits_for_send_buffer(&self) -> bool {
        let late = self
            .late_retransmits
            .zip(self.segments)
            .and_then(|(late, all)| Ratio::of(2.0 * late.as_f64(), all.as_f64()));
        self.is_send_buffer_full() && late.or(self.retransmitted).is_none_or(|share| share.get() < MAX_RETRANSMITTED)
    }

    /// True when the send buffer cannot grow: it is as large as the host allows, or a program has set it. One that is
    /// small because little is in flight grows as soon as more is.
    pub(super) fn is_send_buffer_final(&self) -> bool {
        let most = self.sender_setting("net.ipv4.tcp_wmem").and_then(|values| values.get(2).copied());
        let at_the_end = self
            .send_buffer
            .zip(most)
            .is_some_and(|((size, _), most)| size.as_f64() >= 0.9 * ByteCount::new(most).as_f64());
        at_the_end || self.observation.asked.buffer.is_some()
    }

    /// True when the kernel marks most rates as limited by the application: it had nothing to send although the window allowed
    /// more.
    pub(super) fn is_often_idle(&self) -> bool {
        self.application_limited.is_some_and(|share| share.get() >= 0.5)
    }

    /// True when the congestion window would have allowed more.
    #[must_use]
    pub fn has_free_window(&self) -> bool {
        let pair = self.in_flight.zip(self.congestion_window);
        self.is_often_idle() || pair.is_some_and(|(flight, window)| flight.as_f64() < window.as_f64() * 0.9)
    }

    /// True when probes of the path arrived out of order.
    pub(super) fn reorders(&self) -> bool {
        self.path().and_then(|path| path.packets.as_ref()?.reordering).is_some_and(|share| share > 0.0)
    }

    /// True when packets queue before the transfer: other traffic fills the path. Probes are compared with each other, since
    /// an acknowledgement is smaller and takes less time on a narrow link.
    pub(super) fn queues_at_rest(&self) -> bool {
        let path = self.observation.path.as_ref();
        let base = path.and_then(|path| path.round_trip).or(self.base);
        let at_rest = path.and_then(|path| path.usual_round_trip).zip(base);
        at_rest.is_some_and(|((_, high), base)| high.saturating_sub(base) > base.mul_f64(MIN_REST_QUEUE_SHARE))
    }

    /// True when the sender sends one receive window per round trip, without losses.
    #[must_use]
    pub fn is_window_per_rtt(&self) -> bool {
        let lossless = self.retransmitted.is_none_or(|share| share.get() < 1e-3);
        let full =
            self.in_flight.zip(self.window).is_some_and(|(flight, window)| flight.as_f64() >= 0.85 * window.as_f64());
        lossless && full
    }

    /// True when the receiver's window holds fewer than two full segments.
    #[must_use]
    pub fn has_window_below_two_segments(&self) -> bool {
        self.window.zip(self.segment).is_some_and(|(window, segment)| window < segment.byte_count() * 2)
    }

    /// Round trip of full packets over the idle path: that at rest, which small packets measure, and the time that those in
    /// flight take at the path's rate, two of them at most, since each second one is acknowledged.
    #[must_use]
    pub fn rest_of_full_packets(&self) -> Option<Duration> {
        let with_others = self.steady * (1.0 + super::rules::others_share(self).unwrap_or_default());
        let rate = self.capacity.map_or(with_others, |capacity| capacity.max(with_others));
        let packets = self.segment.map(|segment| {
            let (one, two) = (segment.byte_count(), segment.byte_count() * 2);
            self.in_flight.map_or(one, |flight| flight.clamp(one, two))
        });
        let time = packets.and_then(|packets| rate.time_to_send(packets)).unwrap_or_default();
        self.base.map(|base| base + time)
    }

    /// True when packets were lost although the path is not full and had no queue: then it was not congestion.
    #[must_use]
    pub fn loses_without_queue(&self) -> bool {
        let lost = self.retransmits.is_some_and(|count| count.get() > 0) && !self.retransmits_needlessly();
        let queueless = self.queueing().zip(self.rest()).is_some_and(|((median, _), rest)| median <= rest.mul_f64(0.3));
        let by_chance = self.own_loss() == OwnLoss::Confirmed || self.loses_at_any_window();
        lost && (queueless || by_chance) && !self.is_full()
    }

    /// True when all losses fell into the first half, although random losses would be expected in the second, too: slow
    /// start caused them.
    #[must_use]
    pub fn loses_only_in_slow_start(&self) -> bool {
        let expected = self.retransmits.map_or(0, |count| count.get() / 2);
        expected >= MIN_EXPECTED_LOSSES && self.late_retransmits.is_some_and(SegmentCount::is_zero)
    }

    /// Returns the number of loss recovery episodes of the sender.
    #[must_use]
    pub fn episodes(&self) -> Option<u64> {
        let names =
            ["TcpExtTCPSackRecovery", "TcpExtTCPRenoRecovery", "TcpExtTCPTimeouts", "TcpExtTCPLossProbeRecovery"];
        names.iter().map(|name| self.sender_counter(name)).sum()
    }

    /// Returns a counter of the sending host by nstat's name; 0 where it did not grow, `None` where nothing is known.
    #[must_use]
    pub fn sender_counter(&self, name: &str) -> Option<u64> {
        counter(self.observation.sender.as_ref(), name)
    }

    /// Returns a counter of the receiving host.
    #[must_use]
    pub fn receiver_counter(&self, name: &str) -> Option<u64> {
        counter(self.observation.receiver.as_ref(), name)
    }

    /// Returns the numbers of a setting of the sending host.
    #[must_use]
    pub fn sender_setting(&self, name: &str) -> Option<Vec<u64>> {
        setting(self.observation.sender.as_ref(), name)
    }

    /// Returns the numbers of a setting of the receiving host.
    #[must_use]
    pub fn receiver_setting(&self, name: &str) -> Option<Vec<u64>> {
        setting(self.observation.receiver.as_ref(), name)
    }

    /// Returns the last sample of the first connection's sender.
    #[must_use]
    pub fn sender(&self) -> Option<&'o linerate_model::tcp_info::TcpInfo> {
        self.observation.connections.first()?.sender.last().map(|moment| &moment.socket.info)
    }

    /// Returns the last sample of the first connection's receiver.
    #[must_use]
    pub fn receiver(&self) -> Option<&'o linerate_model::tcp_info::TcpInfo> {
        self.observation.connections.first()?.receiver.last().map(|moment| &moment.socket.info)
    }

    /// True when the sender uses this congestion control.
    #[must_use]
    pub fn uses(&self, name: &str) -> bool {
        self.observation.congestion_control.as_deref() == Some(name)
    }

    /// Returns the path in the direction of the data.
    #[must_use]
    pub fn path(&self) -> Option<&'o linerate_model::path::PathDirection> {
        self.observation.path.as_ref().map(|path| &path.with_data)
    }
}

/// Returns the segments retransmitted since the first half ended; `None` where a half was not sampled.
fn late_retransmits(connections: &[ObservedConnection]) -> Option<SegmentCount> {
    let of = |connection: &ObservedConnection| {
        if connection.sender.len() < MIN_SAMPLES {
            return None;
        }
        let retransmitted = |moment: &SocketInterval| moment.socket.info.retransmits.map(SegmentCount::get);
        let (middle, last) = (connection.sender.get(connection.sender.len() / 2)?, connection.sender.last()?);
        Some(retransmitted(last)?.saturating_sub(retransmitted(middle)?))
    };
    connections.iter().map(of).sum::<Option<u64>>().map(SegmentCount::new)
}

fn in_flight_bytes(moment: &SocketInterval) -> Option<ByteCount> {
    let info = &moment.socket.info;
    Some(info.send_mss?.byte_count() * info.unacknowledged?.get())
}

fn counter(host: Option<&HostEvidence>, name: &str) -> Option<u64> {
    Some(host?.counters.get(name).copied().unwrap_or(0))
}

fn setting(host: Option<&HostEvidence>, name: &str) -> Option<Vec<u64>> {
    host?.settings.get(name)?.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
}

fn shares(connections: &[ObservedConnection]) -> Option<LimitShares> {
    let of: Vec<LimitShares> = connections
        .iter()
        .filter_map(|connection| {
            let sender = &connection.sender;
            // Slow start is over by the middle.
            let first = if sender.len() >= 8 { sender.get(sender.len() / 2)? } else { sender.first()? };
            let last = sender.last()?;
            let nothing = linerate_model::tcp_info::TcpInfo {
                busy_time: Some(Duration::ZERO),
                receive_window_limited: Some(Duration::ZERO),
                send_buffer_limited: Some(Duration::ZERO),
                ..linerate_model::tcp_info::TcpInfo::default()
            };
            // A connection begins with its chronographs at zero; where some time was omitted, it began before.
            let (from, earlier) = if first.from.is_zero() && connection.sender.len() < 3 {
                (Duration::ZERO, &nothing)
            } else {
                (first.to, &first.socket.info)
            };
            LimitShares::between(earlier, &last.socket.info, last.to.saturating_sub(from))
        })
        .collect();
    let mean = |field: fn(&LimitShares) -> Ratio| {
        let sum: f64 = of.iter().map(|shares| field(shares).get()).sum();
        Ratio::of(sum, SegmentCount::new(of.len() as u64).as_f64())
    };
    Some(LimitShares {
        application: mean(|shares| shares.application)?,
        send_buffer: mean(|shares| shares.send_buffer)?,
        receive_window: mean(|shares| shares.receive_window)?,
        network: mean(|shares| shares.network)?,
        sender_cpu: connections.iter().filter_map(|connection| connection.sender_processor).max(),
        receiver_cpu: connections.iter().filter_map(|connection| connection.receiver_processor).max(),
        sender_wait: connections.iter().filter_map(|connection| connection.sender_wait).max(),
        receiver_wait: connections.iter().filter_map(|connection| connection.receiver_wait).max(),
    })
}

fn buffer(
    connections: &[ObservedConnection],
    end: impl Fn(&ObservedConnection) -> &Vec<SocketInterval>,
    read: impl Fn(&SocketInterval) -> Option<ByteCount>,
) -> Option<(ByteCount, bool)> {
    let sizes = || connections.iter().flat_map(&end).filter_map(&read);
    let (least, most) = (sizes().min()?, sizes().max()?);
    Some((most, least != most))
}

fn share_of(values: impl Iterator<Item = bool>) -> Option<Ratio> {
    let values: Vec<bool> = values.collect();
    let count = |count: usize| SegmentCount::new(count as u64).as_f64();
    Ratio::of(count(values.iter().filter(|value| **value).count()), count(values.len()))
}
