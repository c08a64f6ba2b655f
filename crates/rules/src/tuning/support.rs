//! What several rules of tuning need: building answers, and the bounds that memory sets.

use linerate_model::change::{Change, Group, Reason, TakesEffect, Target};
use linerate_units::{BitRate, ByteCount, StreamCount, display};

use super::inputs::{Host, Inputs, Transfer};
use super::proposal::{Answer, End, Proposed, Refusal};

/// The largest number that `tcp_rmem`, `tcp_wmem`, `rmem_max` and `wmem_max` take.
pub(super) const LARGEST: ByteCount = ByteCount::new(i32::MAX as u64);

/// The part of the memory that all large buffers together may have.
const PART_OF_MEMORY: u64 = 8;

/// As many connections share that part where it is not known how many there will be.
const USUAL_FLOWS: u64 = 4;

/// A setting's new value, with everything that is to be said of it.
pub(super) struct Setting<'s> {
    pub(super) rule: &'static str,
    pub(super) end: End,
    pub(super) key: &'s str,
    pub(super) to: String,
    pub(super) group: Group,
    pub(super) takes_effect: TakesEffect,
    pub(super) text: String,
    pub(super) arithmetic: Option<String>,
    pub(super) evidence: Vec<String>,
    pub(super) risk: &'static str,
}

impl Setting<'_> {
    /// The answer: the change, or why it cannot be made there. Nothing where the value stands there already.
    pub(super) fn answer(self, inputs: &Inputs) -> Vec<Answer> {
        let Some(host) = inputs.host(self.end) else { return Vec::new() };
        let from = host.settings.get(self.key).cloned();
        if from.as_deref() == Some(self.to.as_str()) {
            return Vec::new();
        }
        if let Some(reason) = host.unwritable.get(self.key) {
            let text = format!("{} = {} would be right, but cannot be written: {reason}.", self.key, self.to);
            return vec![refuse(self.rule, Some(self.end), inputs, text)];
        }
        let mut evidence = vec![format!("{} = {}", self.key, from.as_deref().unwrap_or("not known"))];
        evidence.extend(self.evidence);
        let target = Target::Setting { key: self.key.to_owned() };
        let reason = Reason {
            rule: self.rule.to_owned(),
            text: self.text,
            arithmetic: self.arithmetic,
            evidence,
            risk: self.risk.to_owned(),
        };
        let change = Change { target, from, to: self.to, group: self.group, takes_effect: self.takes_effect, reason };
        vec![Answer::Change(Box::new(Proposed { end: self.end, change, alternatives: Vec::new() }))]
    }
}

/// A reason not to.
pub(super) fn refuse(rule: &'static str, end: Option<End>, inputs: &Inputs, text: String) -> Answer {
    Answer::Refusal(Refusal { rule: Some(rule), end, cause: inputs.cause(), text })
}

/// A feature of TCP that is off and must be on, at the ends of the data.
pub(super) struct Feature {
    pub(super) rule: &'static str,
    pub(super) key: &'static str,
    pub(super) group: Group,
    pub(super) text: &'static str,
    pub(super) risk: &'static str,
    /// Whether it is about this end of a transfer.
    pub(super) concerns: fn(&Transfer<'_>, End) -> bool,
}

impl Feature {
    /// Sets it to 1 wherever it is 0.
    pub(super) fn restore(&self, inputs: &Inputs, evidence: &[String]) -> Vec<Answer> {
        let transfers = inputs.transfers();
        let concerned = |end| transfers.iter().any(|transfer| (self.concerns)(transfer, end));
        let off = inputs.ends().filter(|(end, host)| concerned(*end) && host.number(self.key) == Some(0));
        let ends: Vec<End> = off.map(|(end, _)| end).collect();
        ends.into_iter()
            .flat_map(|end| {
                Setting {
                    rule: self.rule,
                    end,
                    key: self.key,
                    to: "1".to_owned(),
                    group: self.group,
                    takes_effect: TakesEffect::NewConnections,
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

/// Both ends of the data.
pub(super) fn both(_: &Transfer<'_>, _: End) -> bool {
    true
}

/// The next larger size with few digits in binary: a multiple of a 64th of the power of two below it.
pub(super) fn rounded_up(size: ByteCount) -> ByteCount {
    let step = size.get().checked_ilog2().map_or(1, |bits| 1_u64 << bits.saturating_sub(6));
    ByteCount::new(size.get().div_ceil(step).saturating_mul(step))
}

/// The most that one buffer of this host may have, and why.
pub(super) fn most(inputs: &Inputs, host: &Host) -> (ByteCount, String) {
    let flows = inputs.flows.map(StreamCount::get).filter(|flows| *flows > 0);
    // In one kernel the buffers of both ends take from the same memory.
    let ends = if inputs.one_kernel { 2 } else { 1 };
    let share = PART_OF_MEMORY * flows.unwrap_or(USUAL_FLOWS) * ends;
    let of_memory = host.memory.map(|memory| {
        let most = ByteCount::new(memory.get() / share / host.page().get() * host.page().get());
        let each = if flows == Some(1) && ends == 1 { "this host" } else { "each buffer" };
        (most, format!("1/{share} of its memory of {} is the most for {each}", display::size_binary(memory)))
    });
    let of_total = total_that_stays(inputs).map(|pressure| {
        let most =
            ByteCount::from_f64((pressure.as_f64() / 1.5 / StreamCount::new(share / PART_OF_MEMORY).as_f64()).floor());
        (
            most,
            format!(
                "net.ipv4.tcp_mem cannot be raised there, and puts pressure on at {}",
                display::size_binary(pressure)
            ),
        )
    });
    let hard = (LARGEST, "the kernel takes no more than 2147483647".to_owned());
    [Some(hard), of_memory, of_total.filter(|_| host.unwritable.contains_key("net.ipv4.tcp_mem"))]
        .into_iter()
        .flatten()
        .min_by_key(|(most, _)| *most)
        .unwrap_or_default()
}

/// Where the kernel comes under pressure, when nobody can change that.
fn total_that_stays(inputs: &Inputs) -> Option<ByteCount> {
    let stays = |(_, host): (End, &Host)| {
        let pages = host.three("net.ipv4.tcp_mem")?[1];
        host.unwritable.contains_key("net.ipv4.tcp_mem").then(|| host.page() * pages)
    };
    inputs.ends().filter_map(stays).min()
}

/// A rate as it stands in arithmetic.
pub(super) fn rate(rate: BitRate) -> String {
    display::rate(rate)
}

/// A size with its exact value.
pub(super) fn exact(size: ByteCount) -> String {
    format!("{} B ({})", size.get(), display::size_binary(size))
}
