//! The figures of an observation that rules look at, computed once.

use core::time::Duration;

use linerate_model::diagnosis::{Connection, Moment, Observation};
use linerate_model::limit::LimitShares;
use linerate_model::schema::far::HostEvidence;
use linerate_units::{BitRate, ByteCount, Mss, Mtu, Ratio, SegmentCount};

/// From this share of what a path carries on, it is full: windows, queues and repairs take the rest.
pub(crate) const FULL: f64 = 0.9;
/// … and where something else is known to hold it back.
const QUITE_FULL: f64 = 0.95;
/// Where so many are expected, none is no chance (e^-10).
const FAR_FROM_NONE: u64 = 10;

/// What rules look at. Everything is `None` where it was not seen; figures of several connections are medians, or sums
/// where that is said.
#[derive(Clone, Debug)]
pub struct Evidence<'o> {
    /// Where it comes from.
    pub observation: &'o Observation,
    /// Payload bits per second over the whole transfer, all connections.
    pub goodput: BitRate,
    /// The same over its second half, when slow start is over.
    pub steady: BitRate,
    /// What of the path's capacity is payload.
    pub capacity: Option<BitRate>,
    /// IP bits per second that the way back carries.
    pub capacity_back: Option<BitRate>,
    /// Smallest round trip seen by the path's measurement or the connections.
    pub base: Option<Duration>,
    /// Smoothed round trips of the second half: median and 95th percentile.
    pub loaded: Option<(Duration, Duration)>,
    /// Segment size of the sender.
    pub segment: Option<Mss>,
    /// What the sender believes the path MTU to be.
    pub sender_mtu: Option<Mtu>,
    /// Median window that the receiver offered in the second half.
    pub window: Option<ByteCount>,
    /// Largest window that the receiver ever offered.
    pub largest_window: Option<ByteCount>,
    /// Median of the bytes under way in the second half.
    pub in_flight: Option<ByteCount>,
    /// Most bytes under way in the second half, on one connection.
    pub largest_in_flight: Option<ByteCount>,
    /// Median congestion window in the second half.
    pub congestion_window: Option<ByteCount>,
    /// Shares of the second half's time by the kernel's stop-watches, mean over the connections.
    pub shares: Option<LimitShares>,
    /// How full the receiver's buffer was with what was not read, median of the second half.
    pub unread: Option<Ratio>,
    /// Largest receive buffer, and whether it ever changed while data flowed.
    pub receive_buffer: Option<(ByteCount, bool)>,
    /// Largest send buffer, and whether it ever changed while data flowed.
    pub send_buffer: Option<(ByteCount, bool)>,
    /// How full the send buffer was, median of the second half.
    pub send_fill: Option<Ratio>,
    /// Median of what was written and not sent yet.
    pub not_sent: Option<ByteCount>,
    /// Share of readings in which the kernel marked its rate as limited by the application.
    pub application_limited: Option<Ratio>,
    /// Payload bytes that the connections sent since they were opened, those sent again included.
    pub sent: Option<ByteCount>,
    /// Bytes that were sent again, of all that were sent; all connections.
    pub retransmitted: Option<Ratio>,
    /// Segments that were sent again; all connections.
    pub retransmits: Option<SegmentCount>,
    /// Segments that were sent again in the second half; all connections.
    pub late_retransmits: Option<SegmentCount>,
    /// Data segments sent, all connections.
    pub segments: Option<SegmentCount>,
    /// Longest time without anything acknowledged while something was under way.
    pub longest_stall: Duration,
}

/// What the kernel measures itself by, to a few percent.
fn median<T: Ord + Copy>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

fn percentile_95<T: Ord + Copy>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_unstable();
    values.get((values.len() * 95 / 100).min(values.len().checked_sub(1)?)).copied()
}

/// The moments of the second half of a transfer; all, where there are only a few.
fn steady(moments: &[Moment]) -> &[Moment] {
    let end = moments.last().map_or(Duration::ZERO, |moment| moment.to);
    let from = moments.partition_point(|moment| moment.from < end / 2);
    if moments.len() - from >= 3 { &moments[from..] } else { moments }
}

impl<'o> Evidence<'o> {
    /// Computes the figures.
    #[must_use]
    pub fn of(observation: &'o Observation) -> Self {
        let connections = &observation.connections;
        let senders = || connections.iter().flat_map(|connection| steady(&connection.sender));
        let receivers = || connections.iter().flat_map(|connection| steady(&connection.receiver));
        let last = || connections.iter().filter_map(|connection| connection.sender.last());
        let info = |moment: &'o Moment| &moment.socket.info;
        let segment = median(senders().filter_map(|moment| info(moment).send_mss));
        let sender_mtu = median(senders().filter_map(|moment| info(moment).path_mtu));
        let smallest =
            connections.iter().flat_map(|connection| &connection.sender).filter_map(|moment| info(moment).min_rtt);
        let of_path = observation.path.as_ref().and_then(|path| path.round_trip);
        let times: Vec<Duration> = senders().filter_map(|moment| info(moment).rtt).collect();
        let sum = |field: fn(&Moment) -> Option<u64>| {
            let values: Vec<u64> = last().filter_map(field).collect();
            (!values.is_empty()).then(|| values.iter().sum::<u64>())
        };
        let again = sum(|moment| moment.socket.info.bytes_retransmitted.map(ByteCount::get));
        let sent = sum(|moment| moment.socket.info.bytes_sent.map(ByteCount::get));
        Self {
            observation,
            goodput: observation.goodput(),
            steady: steady_rate(observation),
            capacity: payload_capacity(observation, segment),
            capacity_back: observation.path.as_ref().and_then(|path| capacity(&path.with_acknowledgements)),
            base: smallest.chain(of_path).min(),
            loaded: median(times.iter().copied()).zip(percentile_95(times)),
            segment,
            sender_mtu,
            window: median(senders().filter_map(|moment| info(moment).send_window)),
            largest_window: connections
                .iter()
                .flat_map(|connection| &connection.sender)
                .filter_map(|moment| info(moment).send_window)
                .max(),
            in_flight: median(senders().filter_map(under_way)),
            largest_in_flight: senders().filter_map(under_way).max(),
            congestion_window: median(senders().filter_map(|moment| info(moment).congestion_window)),
            shares: shares(connections),
            unread: median_ratio(receivers().filter_map(|moment| {
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
            send_fill: median_ratio(senders().filter_map(|moment| {
                let memory = moment.socket.memory?;
                Ratio::of(memory.send_queued.as_f64(), memory.send_buffer.as_f64())
            })),
            not_sent: median(senders().filter_map(|moment| info(moment).not_sent)),
            application_limited: share_of(
                senders().filter_map(|moment| info(moment).delivery_rate_application_limited),
            ),
            sent: sent.map(ByteCount::new),
            retransmitted: again
                .zip(sent)
                .and_then(|(again, sent)| Ratio::of(ByteCount::new(again).as_f64(), ByteCount::new(sent).as_f64())),
            retransmits: sum(|moment| moment.socket.info.retransmits.map(SegmentCount::get)).map(SegmentCount::new),
            late_retransmits: late(connections),
            segments: sum(|moment| moment.socket.info.data_segments_sent.map(SegmentCount::get)).map(SegmentCount::new),
            longest_stall: connections.iter().map(longest_stall).max().unwrap_or_default(),
        }
    }

    /// Bandwidth-delay product in payload bytes.
    #[must_use]
    pub fn product(&self) -> Option<ByteCount> {
        Some(self.capacity? * self.base?)
    }

    /// How much more the round trip was under load than at rest: median and 95th percentile.
    #[must_use]
    pub fn queueing(&self) -> Option<(Duration, Duration)> {
        let (median, high) = self.loaded?;
        let base = self.base?;
        Some((median.saturating_sub(base), high.saturating_sub(base)))
    }

    /// The share of the capacity that the transfer used in its second half.
    #[must_use]
    pub fn used(&self) -> Option<f64> {
        let capacity = self.capacity?.bits_per_second();
        (capacity > 0.0).then(|| self.steady.bits_per_second() / capacity)
    }

    /// Whether the transfer gets what the path carries although a window or buffer holds it back for some of the time:
    /// nine tenths where that is seldom, and more where it is most of the time.
    #[must_use]
    pub fn is_full_despite(&self, limited: Ratio) -> bool {
        self.used().is_some_and(|used| used >= if limited.get() >= 0.5 { QUITE_FULL } else { FULL })
    }

    /// Whether everything that the program wrote has been sent: less than a segment waits.
    #[must_use]
    pub fn nothing_waits(&self) -> bool {
        self.not_sent.zip(self.segment).is_some_and(|(waits, segment)| waits < segment.byte_count())
    }

    /// Whether the send buffer is full of what is under way while the congestion window has room. The kernel's stop-watch
    /// does not run while the last segments of a write are under way, so that this may be all that tells.
    #[must_use]
    pub fn send_is_full(&self) -> bool {
        let filled = self.send_fill.is_some_and(|fill| fill.get() >= 0.7);
        filled && self.send_buffer_is_final() && self.nothing_waits() && self.window_is_free()
    }

    /// Whether the send buffer cannot grow: it is as large as the host allows, or a program has set it. One that is small
    /// because little is under way grows as soon as more is.
    fn send_buffer_is_final(&self) -> bool {
        let most = self.sender_setting("net.ipv4.tcp_wmem").and_then(|values| values.get(2).copied());
        let at_the_end = self
            .send_buffer
            .zip(most)
            .is_some_and(|((size, _), most)| size.as_f64() >= 0.9 * ByteCount::new(most).as_f64());
        at_the_end || self.observation.asked.buffer.is_some()
    }

    /// Whether the congestion window would have allowed more.
    #[must_use]
    pub fn window_is_free(&self) -> bool {
        let pair = self.in_flight.zip(self.congestion_window);
        pair.is_some_and(|(flight, window)| flight.as_f64() < window.as_f64() * 0.9)
    }

    /// Whether the transfer is known to fill the path.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.used().is_some_and(|used| used >= FULL)
    }

    /// Whether the sender sends one window of the receiver's per round trip, without losing anything.
    #[must_use]
    pub fn keeps_to_the_window(&self) -> bool {
        let lossless = self.retransmitted.is_none_or(|share| share.get() < 1e-3);
        let full =
            self.in_flight.zip(self.window).is_some_and(|(flight, window)| flight.as_f64() >= 0.85 * window.as_f64());
        lossless && full
    }

    /// Whether packets were lost, the path is not full, and no queue stood before: then it was not congestion.
    #[must_use]
    pub fn loses_without_queue(&self) -> bool {
        let lost = self.retransmits.is_some_and(|count| count.get() > 0);
        let queue = self.queueing().zip(self.base).is_some_and(|((median, _), base)| median > base.mul_f64(0.3));
        lost && !queue && !self.is_full()
    }

    /// Whether all losses fell into the first half, although as many would be expected in the second if they came at
    /// random: they were slow start's own.
    #[must_use]
    pub fn loses_only_at_the_start(&self) -> bool {
        let expected = self.retransmits.map_or(0, |count| count.get() / 2);
        expected >= FAR_FROM_NONE && self.late_retransmits.is_some_and(SegmentCount::is_zero)
    }

    /// How many times the sender began to repair losses.
    #[must_use]
    pub fn episodes(&self) -> Option<u64> {
        let names =
            ["TcpExtTCPSackRecovery", "TcpExtTCPRenoRecovery", "TcpExtTCPTimeouts", "TcpExtTCPLossProbeRecovery"];
        names.iter().map(|name| self.sender_counter(name)).sum()
    }

    /// A counter of the sending host, by nstat's name; 0 where it did not grow, `None` where nothing is known.
    #[must_use]
    pub fn sender_counter(&self, name: &str) -> Option<u64> {
        counter(self.observation.sender.as_ref(), name)
    }

    /// A counter of the receiving host.
    #[must_use]
    pub fn receiver_counter(&self, name: &str) -> Option<u64> {
        counter(self.observation.receiver.as_ref(), name)
    }

    /// The numbers of a setting of the sending host.
    #[must_use]
    pub fn sender_setting(&self, name: &str) -> Option<Vec<u64>> {
        setting(self.observation.sender.as_ref(), name)
    }

    /// The numbers of a setting of the receiving host.
    #[must_use]
    pub fn receiver_setting(&self, name: &str) -> Option<Vec<u64>> {
        setting(self.observation.receiver.as_ref(), name)
    }

    /// The last reading of the first connection's sender.
    #[must_use]
    pub fn sender(&self) -> Option<&'o linerate_model::tcp_info::TcpInfo> {
        self.observation.connections.first()?.sender.last().map(|moment| &moment.socket.info)
    }

    /// The last reading of the first connection's receiver.
    #[must_use]
    pub fn receiver(&self) -> Option<&'o linerate_model::tcp_info::TcpInfo> {
        self.observation.connections.first()?.receiver.last().map(|moment| &moment.socket.info)
    }

    /// Whether the sender's congestion control is this one.
    #[must_use]
    pub fn uses(&self, name: &str) -> bool {
        self.observation.congestion_control.as_deref() == Some(name)
    }

    /// The path in the direction of the data.
    #[must_use]
    pub fn path(&self) -> Option<&'o linerate_model::schema::path::PathDirection> {
        self.observation.path.as_ref().map(|path| &path.with_data)
    }
}

/// Segments sent again since the first half ended.
fn late(connections: &[Connection]) -> Option<SegmentCount> {
    let of = |connection: &Connection| {
        let again = |moment: &Moment| moment.socket.info.retransmits.map(SegmentCount::get);
        let (middle, last) = (connection.sender.get(connection.sender.len() / 2)?, connection.sender.last()?);
        Some(again(last)?.saturating_sub(again(middle)?))
    };
    connections.iter().map(of).sum::<Option<u64>>().map(SegmentCount::new)
}

fn under_way(moment: &Moment) -> Option<ByteCount> {
    let info = &moment.socket.info;
    Some(info.send_mss?.byte_count() * info.unacknowledged?.get())
}

fn counter(host: Option<&HostEvidence>, name: &str) -> Option<u64> {
    Some(host?.counters.get(name).copied().unwrap_or(0))
}

fn setting(host: Option<&HostEvidence>, name: &str) -> Option<Vec<u64>> {
    host?.settings.get(name)?.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
}

fn capacity(direction: &linerate_model::schema::path::PathDirection) -> Option<BitRate> {
    direction.capacity.as_ref().map(|capacity| BitRate::from_bits_per_second(capacity.bits_per_second))
}

/// What TCP of these segments can have of the IP layer's capacity.
fn payload_capacity(observation: &Observation, segment: Option<Mss>) -> Option<BitRate> {
    let whole = capacity(&observation.path.as_ref()?.with_data)?;
    let bytes = f64::from(segment.map_or(1448, Mss::get));
    let info = observation.connections.first().and_then(|connection| connection.sender.last());
    let stamps = info.and_then(|moment| moment.socket.info.timestamps) != Some(false);
    // Headers of IPv4 and TCP; timestamps take 12 bytes.
    Some(whole * (bytes / (bytes + if stamps { 52.0 } else { 40.0 })))
}

/// Bits per second in the second half, by the receiver's count where it tells.
fn steady_rate(observation: &Observation) -> BitRate {
    let of = |connection: &Connection| {
        let moments = if connection.receiver.is_empty() { &connection.sender } else { &connection.receiver };
        let moments = steady(moments);
        let bytes: ByteCount = moments.iter().map(|moment| moment.bytes).sum();
        let time = moments.last().zip(moments.first()).map(|(last, first)| last.to.saturating_sub(first.from));
        bytes.rate_over(time.unwrap_or_default()).bits_per_second()
    };
    let sum: f64 = observation.connections.iter().map(of).sum();
    if sum > 0.0 { BitRate::from_bits_per_second(sum) } else { observation.goodput() }
}

fn shares(connections: &[Connection]) -> Option<LimitShares> {
    let of: Vec<LimitShares> = connections
        .iter()
        .filter_map(|connection| {
            let sender = &connection.sender;
            // What slow start did is over by the middle.
            let first = if sender.len() >= 8 { sender.get(sender.len() / 2)? } else { sender.first()? };
            let last = sender.last()?;
            let nothing = linerate_model::tcp_info::TcpInfo {
                busy_time: Some(Duration::ZERO),
                receive_window_limited: Some(Duration::ZERO),
                send_buffer_limited: Some(Duration::ZERO),
                ..linerate_model::tcp_info::TcpInfo::default()
            };
            // A connection begins with its stop-watches at zero; where some time was left out, it began before.
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
    })
}

fn buffer(
    connections: &[Connection],
    end: impl Fn(&Connection) -> &Vec<Moment>,
    read: impl Fn(&Moment) -> Option<ByteCount>,
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

fn median_ratio(values: impl Iterator<Item = Ratio>) -> Option<Ratio> {
    let mut values: Vec<Ratio> = values.collect();
    values.sort_by(|one, other| one.get().total_cmp(&other.get()));
    values.get(values.len() / 2).copied()
}

/// How long nothing was acknowledged while something was under way.
fn longest_stall(connection: &Connection) -> Duration {
    let (mut longest, mut since) = (Duration::ZERO, None);
    for pair in connection.sender.windows(2) {
        let (before, now) = (&pair[0].socket.info, &pair[1].socket.info);
        let stands = before.bytes_acknowledged == now.bytes_acknowledged
            && now.unacknowledged.is_some_and(|segments| segments.get() > 0);
        if stands {
            let from = *since.get_or_insert(pair[1].from);
            longest = longest.max(pair[1].to.saturating_sub(from));
        } else {
            since = None;
        }
    }
    longest
}
