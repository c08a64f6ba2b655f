//! Cost of a cause: the part of the transfer that it takes, by the evidence.

use core::time::Duration;

use linerate_analysis::formulas::loss_limited_rate;
use linerate_model::diagnosis::{BoundKind, Cause, SenderState, StateShare};
use linerate_units::{BitRate, ByteCount, Ratio, SegmentCount};

use super::counterfactual::time_in;
use super::evidence::TransferEvidence;
use super::host_load::TransferEnd;

/// Share of the time from which a window or buffer limits all of it: the kernel's clock stops with each send.
const MIN_WHOLE_SHARE: f64 = 0.5;

/// Exponent of the loss rate in CUBIC's response function (RFC 9438 section 5.1).
const CUBIC_EXPONENT: f64 = 0.75;
/// The same of Reno (RFC 5348 section 3.1).
const RENO_EXPONENT: f64 = 0.5;
/// The same of BBR, which loss hardly slows.
const BBR_EXPONENT: f64 = 0.05;

/// Share of a window or of a rate from which it is the limit.
const MIN_REACHED_SHARE: f64 = 0.75;

/// Share of the time under memory pressure from which it limits all of it.
const MIN_PRESSED_SHARE: f64 = 0.2;

/// Spread of the round trips at rest, as a share of the smallest, from which acknowledgements wait behind others' packets.
const MIN_WAIT_SHARE: f64 = 0.25;

/// Retransmitted share from which a policer limits a transfer far below its rate, or one that reaches it with a slow reader.
const MIN_POLICED_SHARE: f64 = 0.05;
/// Share of a policer's rate from which a transfer meets it again and again.
const MIN_MET_SHARE: f64 = 0.5;

/// Share of the time in which a window grows, from which other traffic takes nothing from it.
const MIN_GROWING_SHARE: f64 = 0.95;

/// Share of the time in waits beyond which a thread's own speed is unknown.
const MAX_WAITING_SHARE: f64 = 0.95;

/// Largest probe at rest; acknowledgements are smaller, and take less time on a narrow link.
const PROBE: ByteCount = ByteCount::new(128);

/// Part of a transfer that a cause takes. Rates in bits per second, shares from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CostKind {
    /// It holds the rate for this share of the time.
    TimeShare { share: f64, rate: f64 },
    /// Nothing is delivered for this share of the whole transfer.
    Stalled { share: f64 },
    /// A thread that has work waits for this share of the time, and would do as much more of it.
    Waiting { share: f64 },
    /// It causes this share of the loss events, which act on the goodput by the congestion control's exponent, during
    /// this share of the time; alone, it allows this rate.
    LossShare { share: f64, exponent: f64, time: f64, alone: f64 },
    /// It takes the same part of every byte.
    EveryByte { gain: f64 },
    /// Other traffic takes this rate.
    OtherTraffic { rate: f64 },
    /// The goodput would be the same.
    Nothing,
}

/// Cost of one cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CauseCost {
    pub(super) cause: Cause,
    pub(super) kind: CostKind,
    /// Bounds that vanish with the cause.
    pub(super) own: &'static [BoundKind],
}

impl CauseCost {
    /// Share of the time or of the losses that the cause explains.
    pub(super) const fn share(&self) -> f64 {
        match self.kind {
            CostKind::TimeShare { share, .. }
            | CostKind::Stalled { share }
            | CostKind::Waiting { share }
            | CostKind::LossShare { share, .. } => share,
            CostKind::EveryByte { .. } | CostKind::OtherTraffic { .. } | CostKind::Nothing => 0.0,
        }
    }

    /// True for limits of what may be in flight.
    pub(super) const fn is_window(&self) -> bool {
        matches!(self.cause, Cause::ReceiveWindow | Cause::SendBuffer | Cause::SocketBuffer)
            || matches!(self.cause, Cause::WindowScalingOff | Cause::AutotuningOff)
    }

    /// Cost where round trips are shorter by this factor: a window is sent as many times more often.
    pub(super) fn without_queue(mut self, stretch: f64) -> Self {
        let is_window = self.is_window();
        if let CostKind::TimeShare { rate, .. } = &mut self.kind
            && is_window
        {
            *rate *= stretch.max(1.0);
        }
        self
    }

    /// Cost where the repair of losses no longer takes this share of the time.
    pub(super) fn without_repairs(mut self, share: f64) -> Self {
        if let CostKind::LossShare { alone, .. } = &mut self.kind {
            *alone /= (1.0 - share).max(1e-3);
        }
        self
    }

    /// True when the other cause is the same limit by another name: it goes with this one.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let windows = [
            Cause::ReceiveWindow,
            Cause::SocketBuffer,
            Cause::WindowScalingOff,
            Cause::AutotuningOff,
            Cause::SlowReader,
        ];
        let processors = [
            Cause::SenderProcessor,
            Cause::ReceiverProcessor,
            Cause::HostBusy,
            Cause::InterruptsOnOneCore,
            Cause::OffloadOff,
        ];
        let losses = [
            Cause::Loss,
            Cause::BurstyLoss,
            Cause::Corruption,
            Cause::HostDrops,
            Cause::SmallPackets,
            Cause::CongestionControl,
            Cause::Incast,
        ];
        let both = |group: &[Cause]| group.contains(&self.cause) && group.contains(&other.cause);
        // A kernel that grows no buffers has one of its own where the program sets none.
        let is_behind = both(&[Cause::SocketBuffer, Cause::AutotuningOff]) && self.cause != other.cause;
        // Memory that lacks for all sockets cuts windows, and drops what arrives.
        let is_memory = self.cause == Cause::KernelMemory
            && (windows.contains(&other.cause)
                || losses.contains(&other.cause)
                || matches!(other.cause, Cause::SendBuffer | Cause::BufferTooSmall));
        let is_late = matches!((self.kind, other.kind), (CostKind::Waiting { .. }, CostKind::Waiting { .. }));
        both(&windows) && !is_behind || both(&losses) || both(&processors) || is_memory || is_late
    }
}

/// Returns the cost of a cause that was found; `None` for verdicts without a cause.
pub(super) fn cost(cause: Cause, evidence: &TransferEvidence<'_>) -> Option<CauseCost> {
    let costs = Costs::new(evidence);
    let (kind, own): (CostKind, &'static [BoundKind]) = match cause {
        Cause::NotEnoughData | Cause::Unclear | Cause::LinkRate => return None,
        Cause::Application => (costs.idle(), &[BoundKind::Application]),
        Cause::ApplicationPacing => (costs.whole(), &[BoundKind::Application]),
        Cause::SocketPacing => (costs.whole(), &[BoundKind::Pacing]),
        Cause::AutotuningOff if super::rules::sets_receive_buffer(evidence) => {
            (costs.initial_window(), &[BoundKind::ReceiveWindow])
        }
        Cause::ReceiveWindow | Cause::WindowScalingOff | Cause::AutotuningOff | Cause::SlowReader => {
            (costs.receive_window(), &[BoundKind::ReceiveWindow])
        }
        Cause::SendBuffer => (costs.send_buffer(), &[BoundKind::SendBuffer]),
        Cause::SocketBuffer => (costs.either_buffer(), &[BoundKind::ReceiveWindow, BoundKind::SendBuffer]),
        Cause::KernelMemory => (costs.memory(), &[BoundKind::ReceiveWindow, BoundKind::SendBuffer]),
        // A search passes the same queue or link: it measures what that leaves.
        Cause::SenderQueue | Cause::LinkNegotiation => (costs.whole(), &[BoundKind::Path]),
        Cause::Policer => (costs.policer(), &[BoundKind::Path]),
        Cause::BlackHole | Cause::Outage => (costs.stalled(), &[]),
        Cause::PathDead => (costs.silent(), &[]),
        Cause::SackOff => (costs.repairs(), &[BoundKind::Loss]),
        Cause::CongestionControl => (costs.growth(), &[BoundKind::Loss]),
        Cause::Loss | Cause::BurstyLoss | Cause::Corruption | Cause::SmallPackets => {
            (costs.lost(costs.random), &[BoundKind::Loss])
        }
        Cause::HostDrops => (costs.lost(costs.dropped()), &[BoundKind::Loss]),
        Cause::BufferTooSmall => (costs.overflows(), &[BoundKind::Loss]),
        Cause::Incast => (costs.lost(1.0), &[BoundKind::Loss]),
        Cause::Reordering => (costs.lost(costs.spurious()), &[BoundKind::Loss]),
        // What the sender's host sends to others need not pass the bottleneck, which stays.
        Cause::CrossTraffic if super::rules::shared_at_the_sender(evidence).is_some() => (costs.others(), &[]),
        // A search meets the same traffic: it measures what that leaves.
        Cause::CrossTraffic => (costs.others(), &[BoundKind::Path]),
        Cause::Duplication => (costs.duplicated(), &[]),
        Cause::EcnMarking => (costs.marked(), &[]),
        Cause::Asymmetric => (costs.acknowledgements(), &[]),
        Cause::SlowStartExit => (costs.early_exit(), &[]),
        Cause::ShortTransfer
        | Cause::SenderProcessor
        | Cause::ReceiverProcessor
        | Cause::InterruptsOnOneCore
        | Cause::OffloadOff => (costs.whole(), &[]),
        Cause::HostBusy => {
            let kind = evidence.late_end().and_then(|end| costs.waiting(end));
            (kind.unwrap_or_else(|| costs.whole()), &[])
        }
        Cause::TimestampsOff
        | Cause::EcnBleached
        | Cause::Bufferbloat
        | Cause::DelayVariation
        | Cause::TunnelOverhead => (CostKind::Nothing, &[]),
    };
    let kind = shown_lateness(cause, evidence).and_then(|end| costs.waiting(end)).unwrap_or(kind);
    Some(CauseCost { cause, kind, own })
}

/// Late end that shows as this cause: its sender has no data, or its reader is behind.
fn shown_lateness(cause: Cause, evidence: &TransferEvidence<'_>) -> Option<TransferEnd> {
    let shows = |end: &TransferEnd| match end {
        TransferEnd::Sender => matches!(cause, Cause::Application | Cause::ApplicationPacing),
        TransferEnd::Receiver => matches!(
            cause,
            Cause::SlowReader
                | Cause::ReceiveWindow
                | Cause::WindowScalingOff
                | Cause::AutotuningOff
                | Cause::SocketBuffer
        ),
    };
    let is_it = |end: &TransferEnd| shows(end) && evidence.is_late(*end) && evidence.explains_lateness(*end);
    TransferEnd::ALL.into_iter().find(is_it)
}

/// Figures that several costs share.
struct Costs<'e, 'o> {
    evidence: &'e TransferEvidence<'o>,
    steady: f64,
    states: Vec<StateShare>,
    /// Shares of the loss events without a queue, below and at the bandwidth-delay product.
    random: f64,
    at_the_window: f64,
}

impl<'e, 'o> Costs<'e, 'o> {
    fn new(evidence: &'e TransferEvidence<'o>) -> Self {
        let losses = evidence.losses();
        let share = |events| losses.share(events).map_or(1.0, Ratio::get);
        Self {
            evidence,
            steady: evidence.steady.bits_per_second(),
            states: super::states::shares(evidence),
            random: share(losses.random),
            // Below capacity, what a full queue drops is lost to a buffer that is too small as well.
            at_the_window: share(losses.window + if evidence.is_full() { 0 } else { losses.queue }),
        }
    }

    const fn whole(&self) -> CostKind {
        self.for_share(1.0)
    }

    /// It holds the present rate for this share of the time; for all of it where that is most.
    const fn for_share(&self, share: f64) -> CostKind {
        CostKind::TimeShare { share: if share >= MIN_WHOLE_SHARE { 1.0 } else { share }, rate: self.steady }
    }

    /// Waits of an end, where its kernel traced who had the processor.
    fn waiting(&self, end: TransferEnd) -> Option<CostKind> {
        self.evidence.occupant(end)?;
        let share = self.evidence.wait_share(end)?.get();
        Some(CostKind::Waiting { share: share.min(MAX_WAITING_SHARE) })
    }

    /// A slow start that ended early costs until the window has grown to what the path holds.
    fn early_exit(&self) -> CostKind {
        let has_grown = self
            .evidence
            .congestion_window
            .zip(self.evidence.bandwidth_delay_product())
            .is_some_and(|(window, product)| window >= product);
        // A larger window only waits longer where acknowledgements fill their direction.
        if has_grown || self.evidence.fills_reverse() { CostKind::Nothing } else { self.for_share(1.0 - self.held()) }
    }

    fn share_of(&self, read: fn(&linerate_model::limit::LimitShares) -> Ratio) -> f64 {
        self.evidence.shares.as_ref().map_or(0.0, |shares| read(shares).get())
    }

    /// Share of the time in which a host holds the transfer back, not the congestion window.
    fn held(&self) -> f64 {
        let behind_a_loss = super::rules::is_window_behind_a_loss(self.evidence);
        let shares = [
            self.share_of(|shares| shares.application),
            if behind_a_loss { 0.0 } else { self.share_of(|shares| shares.receive_window) },
            self.share_of(|shares| shares.send_buffer),
        ];
        let window = if self.evidence.is_window_per_rtt() { 1.0 } else { 0.0 };
        shares.iter().sum::<f64>().max(window).min(1.0)
    }

    fn idle(&self) -> CostKind {
        // What a late host explains is its own cause.
        let late = self.waiting(TransferEnd::Sender).filter(|_| self.evidence.is_late(TransferEnd::Sender));
        if let Some(CostKind::Waiting { share }) = late {
            return self.for_share((self.share_of(|shares| shares.application) - share).max(0.0));
        }
        let marked = self.evidence.application_limited.is_some_and(|share| share.get() >= MIN_WHOLE_SHARE);
        if marked || self.sends_less_than_a_window() {
            self.whole()
        } else {
            self.for_share(self.share_of(|shares| shares.application))
        }
    }

    /// True when the program never had a window's data to send: it also limits the time in which its bursts are on their way.
    fn sends_less_than_a_window(&self) -> bool {
        let windows = self.evidence.largest_in_flight.zip(self.evidence.congestion_window);
        let never = windows.is_some_and(|(flight, window)| flight.as_f64() < MIN_REACHED_SHARE * window.as_f64());
        never && self.evidence.retransmits.is_some_and(SegmentCount::is_zero)
    }

    fn receive_window(&self) -> CostKind {
        if self.evidence.is_window_per_rtt() || self.is_reader_slow() {
            return self.whole();
        }
        self.for_share(self.share_of(|shares| shares.receive_window))
    }

    /// Window of the buffer that the kernel does not grow, where a program's own is in its place.
    fn initial_window(&self) -> CostKind {
        let rate = super::bounds::kernel_window(self.evidence, false).map_or(self.steady, BitRate::bits_per_second);
        CostKind::TimeShare { share: 1.0, rate: rate.max(self.steady) }
    }

    /// True when data waits for the receiving program: it has passed the path.
    fn is_reader_slow(&self) -> bool {
        self.evidence.is_buffer_unread()
            || self.evidence.waits_at_the_receiver()
            || self.evidence.late_acknowledgements().is_some()
    }

    fn send_buffer(&self) -> CostKind {
        if self.evidence.waits_for_send_buffer() {
            return self.whole();
        }
        if let Some((_, rate)) = self.evidence.overfilling_write() {
            // Its pauses are as long as round trips are.
            let stretch =
                if self.evidence.lengthens_round_trips() { self.evidence.stretches().0.max(1.0) } else { 1.0 };
            return CostKind::TimeShare { share: 1.0, rate: (rate.bits_per_second() / stretch).max(self.steady) };
        }
        self.for_share(self.share_of(|shares| shares.send_buffer))
    }

    fn either_buffer(&self) -> CostKind {
        let (one, other) = (self.receive_window(), self.send_buffer());
        match (one, other) {
            (CostKind::TimeShare { share, .. }, CostKind::TimeShare { share: more, .. }) if more > share => other,
            _ => one,
        }
    }

    /// Memory limits show as small windows, full buffers and stalls; without any of these figures, as all of the time. So does
    /// memory pressure: it keeps every window of the host small (`tcp_under_memory_pressure()`), and drops what fits in none. One
    /// that passed leaves the windows that it cut.
    fn memory(&self) -> CostKind {
        let windows = self.share_of(|shares| shares.receive_window) + self.share_of(|shares| shares.send_buffer);
        if let Some(pressed) = self.pressed_share() {
            return if pressed < MIN_PRESSED_SHARE {
                self.for_share((pressed + windows).min(1.0))
            } else {
                self.whole()
            };
        }
        let stalls = time_in(&self.states, &[SenderState::Stalled, SenderState::Recovery]);
        if windows + stalls > 0.0 { self.for_share((windows + stalls).min(1.0)) } else { self.whole() }
    }

    /// Share of the time under memory pressure, all of it where the pressure may last; `None` without any. The kernel counts the
    /// milliseconds when it ends.
    fn pressed_share(&self) -> Option<f64> {
        let both = |name| [self.evidence.sender_counter(name), self.evidence.receiver_counter(name)];
        let sum = |name| both(name).into_iter().flatten().sum::<u64>();
        let ended = Duration::from_millis(sum("TcpExtTCPMemoryPressuresChrono"));
        let elapsed = self.evidence.observation.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let share = if ended.is_zero() { 1.0 } else { ended.as_secs_f64() / elapsed };
        (sum("TcpExtTCPMemoryPressures") > 0).then_some(share)
    }

    /// A policer limits by what it drops: much, all beyond its rate, or of each window what its bucket does not hold. Otherwise
    /// it drops single bursts far below that rate, and something else limits: another loss, a program that writes little or paces
    /// its connections. A slow reader does so too.
    fn policer(&self) -> CostKind {
        let loses = self.evidence.retransmits.is_none_or(|count| !count.is_zero());
        let loses_much = self.evidence.retransmitted.is_some_and(|share| share.get() >= MIN_POLICED_SHARE);
        let found = self.evidence.path().and_then(|path| path.policer.as_ref()).filter(|policer| policer.present);
        let used = found.and_then(|policer| policer.bits_per_second).map(|rate| self.steady / rate);
        let used = used.into_iter().chain(self.evidence.used()).fold(0.0, f64::max);
        let limits = if self.is_reader_slow() {
            loses_much && used >= MIN_REACHED_SHARE
        } else {
            let is_idle = self.evidence.application_limited.is_some_and(|share| share.get() >= MIN_WHOLE_SHARE);
            let sends_less = is_idle || super::rules::is_paced(self.evidence);
            loses_much || used >= MIN_MET_SHARE || self.is_bucket_small() && !sends_less
        };
        if loses && limits { self.whole() } else { CostKind::Nothing }
    }

    /// True when a window at once empties a policer's bucket, whatever the mean rate; also where its size is unknown.
    fn is_bucket_small(&self) -> bool {
        let bucket = self.evidence.path().and_then(|path| path.policer.as_ref()?.burst_bytes);
        let product = self.evidence.bandwidth_delay_product();
        bucket.zip(product).is_none_or(|(bucket, product)| bucket < product.get())
    }

    fn stalled(&self) -> CostKind {
        let share = time_in(&self.states, &[SenderState::Stalled]);
        CostKind::Stalled { share: if share > 0.0 { share } else { 1.0 } }
    }

    /// Time up to the end in which nothing arrived, which the receiver alone may know.
    fn silent(&self) -> CostKind {
        let elapsed = self.evidence.observation.elapsed.as_secs_f64();
        let silence = self.evidence.silence().and_then(|silence| Ratio::of(silence.as_secs_f64(), elapsed));
        silence.map_or_else(|| self.stalled(), |share| CostKind::Stalled { share: share.get().min(1.0) })
    }

    /// Repairs one segment per round trip: a round trip for each retransmitted segment.
    fn repairs(&self) -> CostKind {
        let elapsed = self.evidence.observation.elapsed.as_secs_f64();
        let round_trip = self.evidence.loaded.map_or(0.0, |(median, _)| median.as_secs_f64());
        let segments = self.evidence.retransmits.map_or(0.0, SegmentCount::as_f64);
        let connections = self.evidence.observation.connections.len().max(1) as u64;
        let connections = ByteCount::new(connections).as_f64();
        let share = if elapsed > 0.0 { segments * round_trip / elapsed / connections } else { 1.0 };
        CostKind::Stalled { share: share.min(1.0) }
    }

    fn exponent(&self) -> f64 {
        match self.evidence.observation.congestion_control.as_deref() {
            Some("reno") => RENO_EXPONENT,
            Some(name) if name.starts_with("bbr") => BBR_EXPONENT,
            _ => CUBIC_EXPONENT,
        }
    }

    fn lost(&self, share: f64) -> CostKind {
        let held = self.held();
        let exponent = self.exponent();
        let scaled = self.steady / share.max(1e-6).powf(exponent);
        let alone = self.loss_limited(share).map_or(scaled, |rate| rate.max(scaled));
        CostKind::LossShare { share, exponent, time: (1.0 - held).max(0.0), alone }
    }

    /// Growth of the window: after an early loss for the time until the next, else as long as losses without a queue act.
    fn growth(&self) -> CostKind {
        match self.evidence.early_loss() {
            _ if super::rules::overfills_buffer(self.evidence) => self.whole(),
            Some(found) => self.for_share(self.evidence.growth_share(&found)),
            None if super::rules::drops_early(self.evidence) || super::rules::grows_after_overflow(self.evidence) => {
                self.overflows()
            }
            None => self.lost(self.random),
        }
    }

    /// Losses at a full buffer. Those of slow start alone limit nothing that comes later.
    fn overflows(&self) -> CostKind {
        match self.lost(self.at_the_window) {
            CostKind::LossShare { share, exponent, time, .. } if self.evidence.loses_only_in_slow_start() => {
                CostKind::LossShare { share, exponent, time, alone: f64::INFINITY }
            }
            kind => kind,
        }
    }

    /// Rate that this share of the losses allows by the formula of the congestion control, over all connections.
    fn loss_limited(&self, share: f64) -> Option<f64> {
        let evidence = self.evidence;
        let control = evidence.observation.congestion_control.as_deref()?;
        let lost = Ratio::new(evidence.retransmitted?.get() * share).filter(|lost| lost.get() > 0.0)?;
        let each = loss_limited_rate(control, evidence.segment?, evidence.base?, lost)?;
        let connections = ByteCount::new(evidence.observation.connections.len() as u64).as_f64();
        Some(each.bits_per_second() * connections)
    }

    fn dropped(&self) -> f64 {
        let names = ["TcpExtTCPBacklogDrop", "TcpExtTCPOFODrop", "TcpExtRcvPruned", "TcpExtOfoPruned"];
        let drops: u64 = names.iter().filter_map(|name| self.evidence.receiver_counter(name)).sum();
        let sent = self.evidence.retransmits.map_or(0.0, SegmentCount::as_f64);
        Ratio::of(ByteCount::new(drops).as_f64().min(sent), sent).map_or(1.0, Ratio::get)
    }

    fn spurious(&self) -> f64 {
        self.evidence.spurious().map_or(0.0, Ratio::get)
    }

    fn others(&self) -> CostKind {
        let searched = self.evidence.path().and_then(|path| path.capacity.as_ref());
        // A search that met no one else came to the same rate, and nothing queued at rest: the other traffic passes
        // elsewhere.
        let is_alone = searched.is_some_and(|found| found.shared == Some(false)) && !self.evidence.queues_at_rest();
        if self.evidence.is_full() && is_alone && !super::rules::passes_both_hosts(self.evidence) {
            return CostKind::OtherTraffic { rate: 0.0 };
        }
        if self.grows_freely() {
            return CostKind::OtherTraffic { rate: 0.0 };
        }
        let received = super::rules::others_share(self.evidence).unwrap_or_default();
        let more = super::rules::shared_at_the_sender(self.evidence).unwrap_or_default().max(received);
        // Both are counted over the whole transfer.
        CostKind::OtherTraffic { rate: more * self.evidence.goodput.bits_per_second() }
    }

    /// True when the window has grown without a loss or a queue since slow start: what others send takes nothing from it.
    fn grows_freely(&self) -> bool {
        let grows = time_in(&self.states, &[SenderState::CongestionWindow, SenderState::SlowStart]);
        self.evidence.loses_only_in_slow_start() && !self.evidence.is_full() && grows >= MIN_GROWING_SHARE
    }

    fn duplicated(&self) -> CostKind {
        let share = self.evidence.path().and_then(|path| path.packets.as_ref()?.duplication).unwrap_or(0.0);
        CostKind::EveryByte { gain: share }
    }

    fn marked(&self) -> CostKind {
        if self.evidence.is_full() { CostKind::Nothing } else { self.whole() }
    }

    /// Acknowledgements limit where their rate fills the reverse direction, or where they wait there.
    fn acknowledgements(&self) -> CostKind {
        // Acknowledgements that queue lengthen every round trip, although the path of the data is not full.
        // Other traffic's queue there shows at rest, beyond the time that a probe takes to send.
        let path = self.evidence.observation.path.as_ref();
        // Packets that overtake others have no usual round trip: there, probes are compared with each other.
        let least = path.filter(|_| self.evidence.reorders()).and_then(|path| path.round_trip).or(self.evidence.base);
        let rest = path.and_then(|path| path.usual_round_trip).zip(least);
        let sending = self.evidence.capacity_back.and_then(|back| back.time_to_send(PROBE)).unwrap_or_default();
        let varies =
            rest.is_some_and(|((_, high), base)| high.saturating_sub(base) > base.mul_f64(MIN_WAIT_SHARE) + sending);
        // While nothing is delivered, nothing is acknowledged either.
        if time_in(&self.states, &[SenderState::Stalled]) >= MIN_WHOLE_SHARE {
            return CostKind::Nothing;
        }
        let waits = !self.evidence.is_full()
            && (varies
                || self.evidence.has_standing_queue()
                || self.evidence.lengthens_round_trips()
                || self.evidence.waits_beyond_the_queue());
        if waits || self.evidence.fills_reverse() { self.whole() } else { CostKind::Nothing }
    }
}
