//! How large the two buffers of a connection must be, and how large they may be.

use linerate_model::change::{Group, TakesEffect};
use linerate_model::diagnosis::{Cause, Diagnosis, Observation};
use linerate_model::formulas::{
    SEND_MEMORY_FACTOR, SEND_MEMORY_FACTOR_BBR, bandwidth_delay_product, receive_buffer_for, usable_window, window_rate,
};
use linerate_model::host::kernel::KernelVersion;
use linerate_units::{BitRate, ByteCount, Mtu, Ratio, SegmentCount, display};

use super::goal::Aim;
use super::goal::Goal;
use super::inputs::{Host, Inputs, Transfer};
use super::proposal::{Answer, End};
use super::rules::planned;
use super::support::{Setting, exact, most, rate, refuse, rounded_up};

/// Causes that a larger buffer removes.
pub(super) const CAUSES: &[Cause] = &[Cause::ReceiveWindow, Cause::SendBuffer];

/// Shares of a window in its buffer outside of which something else was seen than a window's growth.
const SENSIBLE: core::ops::RangeInclusive<f64> = 0.2..=0.97;

/// What of a full send buffer is under way with CUBIC or Reno: 0.67 to 0.75 in the lab, with segmentation offloaded.
const UNDER_WAY: f64 = 0.7;

/// Beyond the product, what hosts make of packets has to fit into the window: segments are sent and taken in by up to
/// 64 KiB at once, and two such bunches wait somewhere. On paths so short that nobody notices such a queue,
/// that is more than any share of the product.
const BUNCH: ByteCount = ByteCount::from_kibibytes(128);

/// One of the two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffer {
    Receive,
    Send,
}

/// What a path needs of a buffer.
pub(crate) struct Need {
    pub(crate) size: ByteCount,
    pub(crate) arithmetic: String,
}

impl Buffer {
    pub(super) const ALL: [Self; 2] = [Self::Receive, Self::Send];

    /// The setting whose third number bounds it.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Receive => "net.ipv4.tcp_rmem",
            Self::Send => "net.ipv4.tcp_wmem",
        }
    }

    /// The host that has it.
    pub(super) const fn end(self, transfer: &Transfer<'_>) -> End {
        match self {
            Self::Receive => transfer.receiver,
            Self::Send => transfer.sender,
        }
    }

    /// What the path needs of it; `None` where the path is not known.
    pub(super) fn need(self, inputs: &Inputs, transfer: &Transfer<'_>) -> Option<Need> {
        let (capacity, round_trip) = (transfer.way.capacity?, inputs.path.round_trip?);
        let product = bandwidth_delay_product(capacity, round_trip);
        let path = format!("{} x {} / 8", rate(capacity), display::duration(round_trip));
        let (size, formula) = match self {
            Self::Receive => {
                let (share, room) = (window_share(inputs, transfer), self.room(inputs, product));
                let window = ByteCount::from_f64(product.as_f64() * room);
                (receive_buffer_for(window, share)?, format!("{room:.2} x {path} / {:.2}", share.get()))
            }
            Self::Send if planned(inputs, transfer.sender).is_some_and(|name| name.starts_with("bbr")) => {
                (product * SEND_MEMORY_FACTOR_BBR, format!("{SEND_MEMORY_FACTOR_BBR} x {path}"))
            }
            Self::Send if inputs.diagnosis.is_some() => {
                let room = self.room(inputs, product);
                let size = ByteCount::from_f64(product.as_f64() * room / UNDER_WAY);
                (size, format!("{room:.2} x {path} / {UNDER_WAY:.2}"))
            }
            Self::Send => (product * SEND_MEMORY_FACTOR, format!("{SEND_MEMORY_FACTOR} x {path}")),
        };
        let rounded = rounded_up(size);
        let arithmetic = format!("{formula} = {}, rounded up to {}", display::size(size), exact(rounded));
        Some(Need { size: rounded, arithmetic })
    }

    /// How many bandwidth-delay products are to be under way.
    pub(super) fn room(self, inputs: &Inputs, product: ByteCount) -> f64 {
        let objective = inputs.goal.objective();
        let share_is_known = self == Self::Send || seen_share(inputs).is_some();
        if inputs.diagnosis.is_none() {
            return objective.room;
        }
        let room = if share_is_known { objective.measured_room } else { objective.room };
        let is_short = inputs.path.round_trip.is_some_and(|time| time < objective.unnoticed);
        match objective.aim {
            Aim::Goodput if is_short => room.max(1.0 + BUNCH.as_f64() / product.as_f64().max(1.0)),
            Aim::Goodput | Aim::RoundTrip => room,
        }
    }

    /// The third number that is right for this host: what the path needs, within what the host can give. Without a
    /// measurement it is no less than what the kernel sets by itself; what was measured is met closely even below that,
    /// since more would let a longer queue stand.
    pub(super) fn target(self, inputs: &Inputs, transfer: &Transfer<'_>) -> Option<ByteCount> {
        let host = inputs.host(self.end(transfer))?;
        let fits = self.need(inputs, transfer)?.size.min(most(inputs, host).0);
        let usual = self.usual(host).filter(|_| inputs.diagnosis.is_none());
        Some(fits.max(usual.unwrap_or(ByteCount::ZERO)))
    }

    /// What the kernel sets by itself.
    fn usual(self, host: &Host) -> Option<ByteCount> {
        host.default_three(self.key()).map(|three| ByteCount::new(three[2]))
    }

    /// The answers of its rule.
    pub(super) fn answers(self, inputs: &Inputs, rule: &'static str, risk: &'static str) -> Vec<Answer> {
        let one = |transfer: &Transfer<'_>| self.answer(inputs, transfer, rule, risk);
        inputs.transfers().iter().flat_map(one).collect()
    }

    fn answer(self, inputs: &Inputs, transfer: &Transfer<'_>, rule: &'static str, risk: &'static str) -> Vec<Answer> {
        let end = self.end(transfer);
        let Some(host) = inputs.host(end) else { return Vec::new() };
        let (Some(need), Some(target)) = (self.need(inputs, transfer), self.target(inputs, transfer)) else {
            let text = "What the path carries or its round trip is not known, so that no buffer can be computed: \
                        measure with `linerate path`, or give --rate and --rtt.";
            return vec![refuse(rule, Some(end), inputs, text.to_owned())];
        };
        let Some([least, first, now]) = host.three(self.key()) else {
            let text =
                format!("{} of the {} host is not known; the path needs {}.", self.key(), end.name(), need.arithmetic);
            return vec![refuse(rule, Some(end), inputs, text)];
        };
        let mut answers = self.too_little(inputs, transfer, rule, &need, target.max(ByteCount::new(now)));
        if target.get() <= now {
            return answers;
        }
        let change = Setting {
            rule,
            end,
            key: self.key(),
            to: format!("{least} {first} {}", target.get()),
            group: Group::Buffers,
            takes_effect: TakesEffect::NewConnections,
            text: if now < need.size.get() {
                self.text(inputs, transfer, ByteCount::new(now))
            } else {
                format!("{} stands below what the kernel sets by itself; for this path it is enough.", self.key())
            },
            arithmetic: Some(if target > need.size {
                format!("{}; the kernel's own default of {} is more", need.arithmetic, exact(target))
            } else {
                need.arithmetic
            }),
            evidence: self.evidence(inputs, transfer),
            risk,
        };
        answers.extend(change.answer(inputs));
        if let Some(usual) = self.usual(host).filter(|usual| *usual > target) {
            offer(&mut answers, &format!("{least} {first} {}", usual.get()));
        }
        answers
    }

    fn text(self, inputs: &Inputs, transfer: &Transfer<'_>, now: ByteCount) -> String {
        let (what, about, window) = match self {
            Self::Receive => ("receive", "at most", usable_window(now, window_share(inputs, transfer))),
            Self::Send => ("send", "some", ByteCount::from_f64(now.as_f64() * UNDER_WAY)),
        };
        let allows = inputs.path.round_trip.and_then(|time| window_rate(window, time));
        let allows = allows.map_or_else(String::new, |allows| format!(", which allows {about} {}", rate(allows)));
        format!("The {what} buffer may grow to {} only{allows}.", display::size(now))
    }

    fn evidence(self, inputs: &Inputs, transfer: &Transfer<'_>) -> Vec<String> {
        let at_least = if transfer.way.at_least { "at least " } else { "" };
        let share = seen_share(inputs);
        let buffer = if self == Self::Receive { inputs.seen.receive_buffer } else { inputs.seen.send_buffer };
        let goodput = inputs.seen.goodput.map(|goodput| format!("goodput: {}", rate(goodput)));
        [
            transfer.way.capacity.map(|capacity| format!("the path carries {at_least}{}", rate(capacity))),
            inputs.path.round_trip.map(|time| format!("smallest round trip: {}", display::duration(time))),
            goodput,
            buffer.map(|buffer| format!("largest buffer seen: {}", display::size(buffer))),
            share
                .filter(|_| self == Self::Receive)
                .map(|share| format!("window share of the buffer: {:.2}", share.get())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Says so where the host cannot give what the path needs.
    fn too_little(
        self,
        inputs: &Inputs,
        transfer: &Transfer<'_>,
        rule: &'static str,
        need: &Need,
        given: ByteCount,
    ) -> Vec<Answer> {
        let end = self.end(transfer);
        let Some(host) = inputs.host(end).filter(|_| given < need.size) else { return Vec::new() };
        let part = Ratio::of(given.as_f64(), need.size.as_f64()).map_or_else(String::new, display::percent);
        let text = format!(
            "{} of the {} host should allow more ({}), but ends at {}, {part} of that: {}. Use a host with more memory, or \
             several connections.",
            self.key(),
            end.name(),
            need.arithmetic,
            exact(given),
            most(inputs, host).1,
        );
        vec![refuse(rule, Some(end), inputs, text)]
    }
}

/// What the path of a measured transfer needs of this buffer, for much data over long paths: what an explanation names is
/// the very number that a proposal has.
pub(crate) fn measured_need(observation: &Observation, buffer: Buffer) -> Option<Need> {
    let unexplained =
        Diagnosis { verdicts: Vec::new(), states: Vec::new(), goodput: BitRate::ZERO, bounds: Vec::new(), next: None };
    let inputs = Inputs::measured(Goal::WanBulk, (Host::default(), None), observation, unexplained);
    inputs.transfers().first().and_then(|transfer| buffer.need(&inputs, transfer))
}

/// Offers the kernel's own value beside one that was measured.
fn offer(answers: &mut [Answer], usual: &str) {
    for answer in answers {
        if let Answer::Change(proposed) = answer {
            let mut other = proposed.change.clone();
            usual.clone_into(&mut other.to);
            "The kernel's own default: room for longer paths than this one.".clone_into(&mut other.reason.text);
            other.reason.arithmetic = None;
            "on this path a longer queue may stand than with what was computed".clone_into(&mut other.reason.risk);
            proposed.alternatives.push(other);
        }
    }
}

/// That share, where it was seen.
fn seen_share(inputs: &Inputs) -> Option<Ratio> {
    inputs.seen.window_share.filter(|share| SENSIBLE.contains(&share.get()))
}

/// The share of the receive buffer that becomes window: as it was seen, else what such kernels make of such packets.
pub(super) fn window_share(inputs: &Inputs, transfer: &Transfer<'_>) -> Ratio {
    if let Some(seen) = seen_share(inputs) {
        return seen;
    }
    let host = inputs.host(transfer.receiver);
    let old = host.filter(|host| host.kernel.is_some_and(|version| version < KernelVersion::new(6, 6)));
    let large = transfer.way.mtu.is_some_and(|mtu| mtu >= Mtu::new(9000));
    let share = old.map_or(if large { 0.70 } else { 0.62 }, old_window_share);
    Ratio::new(share).unwrap_or_default()
}

/// Before 6.6 the share follows from a setting: 1 - 2^-n of the buffer for a positive one, else 2^n
/// (`Documentation/networking/ip-sysctl.rst` of 6.1, `tcp_adv_win_scale`).
fn old_window_share(host: &Host) -> f64 {
    let scale = host.settings.get("net.ipv4.tcp_adv_win_scale").and_then(|value| value.parse::<i32>().ok());
    let scale = scale.unwrap_or(1).clamp(-31, 31);
    let part = 0.5_f64.powi(scale.abs());
    if scale > 0 { 1.0 - part } else { part }
}

/// What all connections of this transfer may hold in this buffer at once: what the setting will allow, but no more than
/// twice what the path needs, beyond which buffers do not grow.
pub(super) fn held(inputs: &Inputs, transfer: &Transfer<'_>, buffer: Buffer, raised: bool) -> Option<ByteCount> {
    let now = ByteCount::new(inputs.host(buffer.end(transfer))?.three(buffer.key())?[2]);
    let target = buffer.target(inputs, transfer).filter(|_| raised);
    let allowed = target.map_or(now, |target| target.max(now));
    let need = buffer.need(inputs, transfer);
    let each = need.map_or(allowed, |need| allowed.min(need.size * 2));
    let flows = inputs.flows.map_or(1, |flows| SegmentCount::new(flows.get()).get().max(1));
    Some(each * flows)
}
