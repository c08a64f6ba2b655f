//! Helpers of the tuning rules: building answers, and limits by the host's memory.

use linerate_model::change::{ChangeGroup, ChangeReason, ChangeTarget, EffectTiming, HostChange};
use linerate_units::{BitRate, ByteCount, StreamCount, display};

use super::inputs::{DataFlow, EgressInterface, TuningHost, TuningInputs};
use super::proposal::{HostEnd, ProposedHostChange, RuleAnswer, TuningRefusal};

/// Largest number that `tcp_rmem`, `tcp_wmem`, `rmem_max` and `wmem_max` accept.
pub(super) const MAX_BUFFER: ByteCount = ByteCount::new(i32::MAX as u64);

/// Divisor of the memory that gives the part for all large buffers together.
const MEMORY_DIVISOR: u64 = 8;

/// Number of connections that share that part where their number is unknown.
const DEFAULT_FLOWS: u64 = 4;

/// New value of a setting, with its explanation.
pub(super) struct SettingProposal<'s> {
    pub(super) rule: &'static str,
    pub(super) end: HostEnd,
    pub(super) key: &'s str,
    pub(super) to: String,
    pub(super) group: ChangeGroup,
    pub(super) takes_effect: EffectTiming,
    pub(super) text: String,
    pub(super) arithmetic: Option<String>,
    pub(super) evidence: Vec<String>,
    pub(super) risk: &'static str,
}

impl SettingProposal<'_> {
    /// Returns the change, or the reason why it is impossible. Empty where the setting already has the value.
    pub(super) fn answer(self, inputs: &TuningInputs) -> Vec<RuleAnswer> {
        let Some(host) = inputs.host(self.end) else { return Vec::new() };
        let from = host.settings.get(self.key).cloned();
        if from.as_deref() == Some(self.to.as_str()) {
            return Vec::new();
        }
        if let Some(reason) = host.unwritable.get(self.key) {
            let text = format!("{} = {} is needed, but cannot be written: {reason}.", self.key, self.to);
            return vec![refuse(self.rule, Some(self.end), inputs, text)];
        }
        let mut evidence = vec![format!("{} = {}", self.key, from.as_deref().unwrap_or("unknown"))];
        evidence.extend(self.evidence);
        let target = ChangeTarget::Setting { key: self.key.to_owned() };
        let reason = ChangeReason {
            rule: self.rule.to_owned(),
            text: self.text,
            arithmetic: self.arithmetic,
            evidence,
            risk: self.risk.to_owned(),
        };
        let change =
            HostChange { target, from, to: self.to, group: self.group, takes_effect: self.takes_effect, reason };
        vec![RuleAnswer::Change(Box::new(ProposedHostChange { end: self.end, change, alternatives: Vec::new() }))]
    }
}

/// The commands that set up the fair queue with these options on an interface. Where each hardware queue has a
/// discipline of its own (`mq`), each gets a fair queue: a single one would serialise all processors. `None` where their
/// number is unknown.
pub(super) fn fair_queue(interface: &EgressInterface, options: &str) -> Option<String> {
    let name = &interface.name;
    let fair = |place: &str| format!("qdisc replace dev {name} {place} fq {options}").trim_end().to_owned();
    let Some(leaves) = mq_leaves(interface.queueing.as_deref().unwrap_or_default()) else { return Some(fair("root")) };
    let root = format!("qdisc replace dev {name} root handle 1: mq");
    let leaves = (1..=leaves?).map(|queue| fair(&format!("parent 1:{queue:x}")));
    Some(core::iter::once(root).chain(leaves).collect::<Vec<_>>().join("\n"))
}

/// Number of disciplines below `mq`; `None` without `mq`, and `Some(None)` where it is unknown.
#[expect(clippy::option_option, reason = "no mq, or an unknown number of its leaves")]
fn mq_leaves(queueing: &str) -> Option<Option<u32>> {
    if let Some(rest) = queueing.strip_prefix("# made by the kernel: mq") {
        return Some(rest.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok()));
    }
    let (root, leaves) = queueing.split_once('\n').unwrap_or((queueing, ""));
    let is_mq = root.contains(" root ") && root.ends_with(" mq");
    let count = u32::try_from(leaves.lines().filter(|line| line.contains(" parent ")).count()).ok();
    is_mq.then_some(count.filter(|count| *count > 0))
}

/// Returns a refusal with its reason.
pub(super) fn refuse(rule: &'static str, end: Option<HostEnd>, inputs: &TuningInputs, text: String) -> RuleAnswer {
    RuleAnswer::Refusal(TuningRefusal { rule: Some(rule), end, cause: inputs.cause(), text })
}

/// TCP feature that is off and must be on.
pub(super) struct FeatureProposal {
    pub(super) rule: &'static str,
    pub(super) key: &'static str,
    pub(super) group: ChangeGroup,
    pub(super) text: &'static str,
    pub(super) risk: &'static str,
    /// True when it concerns this end of a transfer.
    pub(super) concerns: fn(&DataFlow<'_>, HostEnd) -> bool,
}

impl FeatureProposal {
    /// Sets the feature to 1 wherever it is 0.
    pub(super) fn restore(&self, inputs: &TuningInputs, evidence: &[String]) -> Vec<RuleAnswer> {
        let transfers = inputs.transfers();
        let concerned = |end| transfers.iter().any(|transfer| (self.concerns)(transfer, end));
        let off = inputs.known_hosts().filter(|(end, host)| concerned(*end) && host.number(self.key) == Some(0));
        let ends: Vec<HostEnd> = off.map(|(end, _)| end).collect();
        ends.into_iter()
            .flat_map(|end| {
                SettingProposal {
                    rule: self.rule,
                    end,
                    key: self.key,
                    to: "1".to_owned(),
                    group: self.group,
                    takes_effect: EffectTiming::NewConnections,
                    text: self.text.to_owned(),
                    arithmetic: None,
                    evidence: evidence.to_vec(),
                    risk: self.risk,
                }
                .answer(inputs)
            })
            .collect()
    }
}

/// Selects both ends of a transfer.
pub(super) fn both_ends(_: &DataFlow<'_>, _: HostEnd) -> bool {
    true
}

/// Rounds up to a multiple of a 64th of the power of two below the size.
pub(super) fn rounded_up(size: ByteCount) -> ByteCount {
    let step = size.get().checked_ilog2().map_or(1, |bits| 1_u64 << bits.saturating_sub(6));
    ByteCount::new(size.get().div_ceil(step).saturating_mul(step))
}

/// Returns the largest size for one buffer of this host, and the reason.
pub(super) fn largest_buffer(inputs: &TuningInputs, host: &TuningHost) -> (ByteCount, String) {
    let flows = inputs.flows.map(StreamCount::get).filter(|flows| *flows > 0);
    // In one kernel the buffers of both ends take from the same memory.
    let ends = if inputs.one_kernel { 2 } else { 1 };
    let share = MEMORY_DIVISOR * flows.unwrap_or(DEFAULT_FLOWS) * ends;
    let of_memory = host.memory.map(|memory| {
        let most = ByteCount::new(memory.get() / share / host.page_size().get() * host.page_size().get());
        let each = if flows == Some(1) && ends == 1 { "this host" } else { "each buffer" };
        (most, format!("1/{share} of its memory of {} is the most for {each}", display::size_binary(memory)))
    });
    let of_total = fixed_pressure(inputs).map(|pressure| {
        let most =
            ByteCount::from_f64((pressure.as_f64() / 1.5 / StreamCount::new(share / MEMORY_DIVISOR).as_f64()).floor());
        (
            most,
            format!(
                "net.ipv4.tcp_mem cannot be raised there, and its memory pressure begins at {}",
                display::size_binary(pressure)
            ),
        )
    });
    let hard = (MAX_BUFFER, "the kernel accepts no more than 2147483647".to_owned());
    [Some(hard), of_memory, of_total.filter(|_| host.unwritable.contains_key("net.ipv4.tcp_mem"))]
        .into_iter()
        .flatten()
        .min_by_key(|(most, _)| *most)
        .unwrap_or_default()
}

/// Returns the memory at which the kernel comes under pressure, when that cannot be changed.
fn fixed_pressure(inputs: &TuningInputs) -> Option<ByteCount> {
    let stays = |(_, host): (HostEnd, &TuningHost)| {
        let pages = host.triple("net.ipv4.tcp_mem")?[1];
        host.unwritable.contains_key("net.ipv4.tcp_mem").then(|| host.page_size() * pages)
    };
    inputs.known_hosts().filter_map(stays).min()
}

/// Formats a rate for the arithmetic.
pub(super) fn rate(rate: BitRate) -> String {
    display::rate(rate)
}

/// Formats a size with its exact value.
pub(super) fn exact_size(size: ByteCount) -> String {
    format!("{} B ({})", size.get(), display::size_binary(size))
}
