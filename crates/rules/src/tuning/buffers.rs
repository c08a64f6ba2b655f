//! Required and allowed sizes of the two buffers of a connection.

use linerate_analysis::formulas::{
    SEND_MEMORY_FACTOR, SEND_MEMORY_FACTOR_BBR, bandwidth_delay_product, receive_buffer_for, usable_window, window_rate,
};
use linerate_model::change::{ChangeGroup, EffectTiming};
use linerate_model::diagnosis::{Cause, TransferDiagnosis, TransferObservation};
use linerate_model::host::kernel_change::LEARNED_WINDOW_SHARE;
use linerate_units::{BitRate, ByteCount, Mtu, Ratio, SegmentCount, display};

use super::goal::TuningAim;
use super::goal::TuningGoal;
use super::inputs::{DataFlow, TuningHost, TuningInputs};
use super::proposal::{HostEnd, RuleAnswer};
use super::rules::planned_congestion_control;
use super::support::{SettingProposal, exact_size, largest_buffer, rate, refuse, rounded_up};

/// Causes that a larger buffer can remove.
pub(super) const BUFFER_CAUSES: &[Cause] = &[Cause::ReceiveWindow, Cause::SendBuffer];

/// Plausible shares of a window in its buffer.
const PLAUSIBLE_WINDOW_SHARES: core::ops::RangeInclusive<f64> = 0.2..=0.97;

/// Share of a full send buffer in flight with CUBIC or Reno: 0.67 to 0.75 in the lab, with segmentation offload.
const IN_FLIGHT_SHARE: f64 = 0.7;

/// Size of two GSO bursts, which the window must hold in addition to the bandwidth-delay product: hosts send and
/// receive up to 64 KiB at once. On short paths, where such a queue is unnoticeable, that exceeds any share of the
/// product.
const BURST_ALLOWANCE: ByteCount = ByteCount::from_kibibytes(128);

/// Largest factor by which the hosts themselves may prolong the round trips of a short path: wake-ups and reads of tens
/// of microseconds hold data in flight as the path does.
const MAX_HOST_DELAY_FACTOR: f64 = 1.5;

/// Socket buffer: receive or send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketBuffer {
    Receive,
    Send,
}

/// Buffer size that a path needs, with its computation.
pub(crate) struct BufferNeed {
    pub(crate) size: ByteCount,
    pub(crate) arithmetic: String,
}

impl SocketBuffer {
    pub(super) const ALL: [Self; 2] = [Self::Receive, Self::Send];

    /// Returns the setting whose third number bounds the buffer.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Receive => "net.ipv4.tcp_rmem",
            Self::Send => "net.ipv4.tcp_wmem",
        }
    }

    /// Returns the host that has the buffer.
    pub(super) const fn end(self, transfer: &DataFlow<'_>) -> HostEnd {
        match self {
            Self::Receive => transfer.receiver,
            Self::Send => transfer.sender,
        }
    }

    /// Returns the size that the path needs; `None` where the path is unknown.
    pub(super) fn need(self, inputs: &TuningInputs, transfer: &DataFlow<'_>) -> Option<BufferNeed> {
        let (capacity, round_trip) = (transfer.way.capacity?, inputs.path.round_trip?);
        let product = bandwidth_delay_product(capacity, round_trip);
        let path = format!("{} x {} / 8", rate(capacity), display::duration(round_trip));
        let (size, formula) = match self {
            Self::Receive => {
                let (share, multiple) = (window_share(inputs, transfer), self.room(inputs, product));
                let window = ByteCount::from_f64(product.as_f64() * multiple);
                (receive_buffer_for(window, share)?, format!("{multiple:.2} x {path} / {:.2}", share.get()))
            }
            Self::Send
                if planned_congestion_control(inputs, transfer.sender).is_some_and(|name| name.starts_with("bbr")) =>
            {
                (product * SEND_MEMORY_FACTOR_BBR, format!("{SEND_MEMORY_FACTOR_BBR} x {path}"))
            }
            Self::Send if inputs.diagnosis.is_some() => {
                let multiple = self.room(inputs, product);
                let size = ByteCount::from_f64(product.as_f64() * multiple / IN_FLIGHT_SHARE);
                (size, format!("{multiple:.2} x {path} / {IN_FLIGHT_SHARE:.2}"))
            }
            Self::Send => (product * SEND_MEMORY_FACTOR, format!("{SEND_MEMORY_FACTOR} x {path}")),
        };
        let rounded = rounded_up(size);
        let arithmetic = format!("{formula} = {}, rounded up to {}", display::size(size), exact_size(rounded));
        Some(BufferNeed { size: rounded, arithmetic })
    }

    /// Returns the number of bandwidth-delay products that may be in flight.
    pub(super) fn room(self, inputs: &TuningInputs, product: ByteCount) -> f64 {
        let objective = inputs.goal.objective();
        let share_is_known = self == Self::Send || observed_window_share(inputs).is_some();
        if inputs.diagnosis.is_none() {
            return objective.room;
        }
        let multiple = if share_is_known { objective.measured_room } else { objective.room };
        let is_short = inputs.path.round_trip.is_some_and(|time| time < objective.unnoticed);
        match objective.aim {
            TuningAim::Goodput if is_short => {
                multiple.max(1.0 + BURST_ALLOWANCE.as_f64() / product.as_f64().max(1.0)) * host_delay_factor(inputs)
            }
            TuningAim::Goodput | TuningAim::RoundTrip => multiple,
        }
    }

    /// Returns the recommended third number for this host: the path's need, limited by the host's memory. Without a
    /// measurement it is no less than the kernel's default; a measured need is met closely even below that, as more
    /// would allow a longer queue.
    pub(super) fn recommended_size(self, inputs: &TuningInputs, transfer: &DataFlow<'_>) -> Option<ByteCount> {
        let host = inputs.host(self.end(transfer))?;
        let fits = self.need(inputs, transfer)?.size.min(largest_buffer(inputs, host).0);
        let usual = self.default_size(host).filter(|_| inputs.diagnosis.is_none());
        Some(fits.max(usual.unwrap_or(ByteCount::ZERO)))
    }

    /// Returns the kernel's default.
    fn default_size(self, host: &TuningHost) -> Option<ByteCount> {
        host.default_triple(self.key()).map(|three| ByteCount::new(three[2]))
    }

    /// Returns the answers of the buffer's rule.
    pub(super) fn answers(self, inputs: &TuningInputs, rule: &'static str, risk: &'static str) -> Vec<RuleAnswer> {
        let one = |transfer: &DataFlow<'_>| self.answer(inputs, transfer, rule, risk);
        inputs.transfers().iter().flat_map(one).collect()
    }

    fn answer(
        self,
        inputs: &TuningInputs,
        transfer: &DataFlow<'_>,
        rule: &'static str,
        risk: &'static str,
    ) -> Vec<RuleAnswer> {
        let end = self.end(transfer);
        let Some(host) = inputs.host(end) else { return Vec::new() };
        let (Some(need), Some(target)) = (self.need(inputs, transfer), self.recommended_size(inputs, transfer)) else {
            let text = "The path's capacity or round trip is unknown, so no buffer can be computed: \
            measure with `linerate path`, or give --rate and --rtt.";
            return vec![refuse(rule, Some(end), inputs, text.to_owned())];
        };
        let Some([least, first, now]) = host.triple(self.key()) else {
            let text =
                format!("{} of the {} host is unknown; the path needs {}.", self.key(), end.name(), need.arithmetic);
            return vec![refuse(rule, Some(end), inputs, text)];
        };
        let mut answers = self.memory_refusal(inputs, transfer, rule, &need, target.max(ByteCount::new(now)));
        if target.get() <= now {
            return answers;
        }
        let change = SettingProposal {
            rule,
            end,
            key: self.key(),
            to: format!("{least} {first} {}", target.get()),
            group: ChangeGroup::Buffers,
            takes_effect: EffectTiming::NewConnections,
            text: if now < need.size.get() {
                self.text(inputs, transfer, ByteCount::new(now))
            } else {
                format!("{} is below the kernel's default; for this path it is enough.", self.key())
            },
            arithmetic: Some(if target > need.size {
                format!("{}; the kernel's default of {} is more", need.arithmetic, exact_size(target))
            } else {
                need.arithmetic
            }),
            evidence: self.evidence(inputs, transfer),
            risk,
        };
        answers.extend(change.answer(inputs));
        if let Some(usual) = self.default_size(host).filter(|usual| *usual > target) {
            offer_default(&mut answers, &format!("{least} {first} {}", usual.get()));
        }
        answers
    }

    fn text(self, inputs: &TuningInputs, transfer: &DataFlow<'_>, now: ByteCount) -> String {
        let (what, about, window) = match self {
            Self::Receive => ("receive", "at most", usable_window(now, window_share(inputs, transfer))),
            Self::Send => ("send", "some", ByteCount::from_f64(now.as_f64() * IN_FLIGHT_SHARE)),
        };
        let allows = inputs.path.round_trip.and_then(|time| window_rate(window, time));
        let allows = allows.map_or_else(String::new, |allows| format!(", which allows {about} {}", rate(allows)));
        format!("The {what} buffer can only grow to {}{allows}.", display::size(now))
    }

    fn evidence(self, inputs: &TuningInputs, transfer: &DataFlow<'_>) -> Vec<String> {
        let at_least = if transfer.way.at_least { "at least " } else { "" };
        let share = observed_window_share(inputs);
        let buffer = if self == Self::Receive { inputs.seen.receive_buffer } else { inputs.seen.send_buffer };
        let goodput = inputs.seen.goodput.map(|goodput| format!("goodput: {}", rate(goodput)));
        [
            transfer.way.capacity.map(|capacity| format!("path capacity: {at_least}{}", rate(capacity))),
            inputs.path.round_trip.map(|time| format!("smallest round trip: {}", display::duration(time))),
            goodput,
            buffer.map(|buffer| format!("largest observed buffer: {}", display::size(buffer))),
            share
                .filter(|_| self == Self::Receive)
                .map(|share| format!("window share of the buffer: {:.2}", share.get())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Returns a refusal where the host cannot provide the size that the path needs.
    fn memory_refusal(
        self,
        inputs: &TuningInputs,
        transfer: &DataFlow<'_>,
        rule: &'static str,
        need: &BufferNeed,
        given: ByteCount,
    ) -> Vec<RuleAnswer> {
        let end = self.end(transfer);
        let Some(host) = inputs.host(end).filter(|_| given < need.size) else { return Vec::new() };
        let part = Ratio::of(given.as_f64(), need.size.as_f64()).map_or_else(String::new, display::percent);
        let text = format!(
            "{} of the {} host should allow more ({}), but ends at {}, {part} of that: {}. Use a host with more \
             memory, or several connections.",
            self.key(),
            end.name(),
            need.arithmetic,
            exact_size(given),
            largest_buffer(inputs, host).1,
        );
        vec![refuse(rule, Some(end), inputs, text)]
    }
}

/// Returns the round trips of the measured transfer as a multiple of the path's own, within bounds.
fn host_delay_factor(inputs: &TuningInputs) -> f64 {
    let times = inputs.seen.loaded_round_trip.zip(inputs.path.round_trip.filter(|time| !time.is_zero()));
    let factor = times.map_or(1.0, |(loaded, base)| loaded.as_secs_f64() / base.as_secs_f64());
    factor.clamp(1.0, MAX_HOST_DELAY_FACTOR)
}

/// Returns the buffer size that the path of a measured transfer needs, for the goal of bulk data over long paths, so
/// that diagnosis and tuning name the same number.
pub(crate) fn measured_buffer_need(observation: &TransferObservation, buffer: SocketBuffer) -> Option<BufferNeed> {
    let unexplained = TransferDiagnosis {
        verdicts: Vec::new(),
        states: Vec::new(),
        goodput: BitRate::ZERO,
        bounds: Vec::new(),
        next: None,
        contradictions: Vec::new(),
        notes: Vec::new(),
    };
    let inputs =
        TuningInputs::from_measurement(TuningGoal::WanBulk, (TuningHost::default(), None), observation, unexplained);
    inputs.transfers().first().and_then(|transfer| buffer.need(&inputs, transfer))
}

/// Offers the kernel's default as an alternative to a measured value.
fn offer_default(answers: &mut [RuleAnswer], usual: &str) {
    for answer in answers {
        if let RuleAnswer::Change(proposed) = answer {
            let mut other = proposed.change.clone();
            usual.clone_into(&mut other.to);
            "The kernel's default: enough for longer paths than this one.".clone_into(&mut other.reason.text);
            other.reason.arithmetic = None;
            "on this path the queue may be longer than with the computed value".clone_into(&mut other.reason.risk);
            proposed.alternatives.push(other);
        }
    }
}

/// Returns the observed window share of the receive buffer, if plausible.
fn observed_window_share(inputs: &TuningInputs) -> Option<Ratio> {
    inputs.seen.window_share.filter(|share| PLAUSIBLE_WINDOW_SHARES.contains(&share.get()))
}

/// Returns the share of the receive buffer that becomes window: as observed, else typical of the kernel and packet
/// size. Below 6.6 an enterprise kernel may have the later behaviour: the smaller share is enough in both.
pub(super) fn window_share(inputs: &TuningInputs, transfer: &DataFlow<'_>) -> Ratio {
    if let Some(seen) = observed_window_share(inputs) {
        return seen;
    }
    let host = inputs.host(transfer.receiver);
    let old = host.filter(|host| host.kernel.is_some_and(|version| version < LEARNED_WINDOW_SHARE.since));
    let large = transfer.way.mtu.is_some_and(|mtu| mtu >= Mtu::new(9000));
    let learned = if large { 0.70 } else { 0.62 };
    let share = old.map_or(learned, |host| old_window_share(host).min(learned));
    Ratio::new(share).unwrap_or_default()
}

/// Returns the window share before 6.6, which follows from a setting: 1 - 2^-n of the buffer for a positive one, else
/// 2^n (`Documentation/networking/ip-sysctl.rst` of 6.1, `tcp_adv_win_scale`).
fn old_window_share(host: &TuningHost) -> f64 {
    let scale = host.settings.get("net.ipv4.tcp_adv_win_scale").and_then(|value| value.parse::<i32>().ok());
    let scale = scale.unwrap_or(1).clamp(-31, 31);
    let part = 0.5_f64.powi(scale.abs());
    if scale > 0 { 1.0 - part } else { part }
}

/// Returns the memory that all connections of this transfer may hold in this buffer: the future limit of the setting,
/// but at most twice the path's need, beyond which buffers do not grow.
pub(super) fn held_memory(
    inputs: &TuningInputs,
    transfer: &DataFlow<'_>,
    buffer: SocketBuffer,
    raised: bool,
) -> Option<ByteCount> {
    let now = ByteCount::new(inputs.host(buffer.end(transfer))?.triple(buffer.key())?[2]);
    let target = buffer.recommended_size(inputs, transfer).filter(|_| raised);
    let allowed = target.map_or(now, |target| target.max(now));
    let need = buffer.need(inputs, transfer);
    let each = need.map_or(allowed, |need| allowed.min(need.size * 2));
    let flows = inputs.flows.map_or(1, |flows| SegmentCount::new(flows.get()).get().max(1));
    Some(each * flows)
}
