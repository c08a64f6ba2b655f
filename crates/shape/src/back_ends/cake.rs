//! CAKE.

use core::time::Duration;

use linerate_units::display;

use linerate_units::BitRate;

use super::builder::Builder;
use super::classify::{self, ROOT};
use super::{BackEnd, Inputs, builder, htb_fq_codel, sizes};
use crate::capability::Feature;
use crate::link::{Direction, Line, LinkLayer};
use crate::plan::{Goal, Parent, Plan};
use crate::policy::{Fairness, Importance};

pub(super) static BACK_END: BackEnd = BackEnd {
    id: "cake",
    title: "CAKE: shaper, queue per flow and fairness between hosts in one",
    explanation: "One queueing discipline that holds the rate with the line's own arithmetic, keeps a short queue for each \
                  flow, shares between hosts and cuts aggregated packets up. Interactive traffic needs no filter: a flow that \
                  sends little never waits behind one that sends much. What is received passes an intermediate device; \
                  there CAKE counts what it drops, which has used the line already. It works on one processor: from about \
                  0.4 Gbit/s on a small router to 3 on a large one.",
    citation: "arXiv:1804.07617; man tc-cake",
    needs: &[Feature::Discipline("cake")],
    unsuitable,
    automatic: true,
    way_out: "htb+fq_codel does most of it",
    make,
};

/// The share of a processor above which CAKE would lose the rate.
const FULL: f64 = 0.9;

/// What speaks against CAKE on this host.
pub(super) fn unsuitable(inputs: &Inputs<'_>) -> Option<String> {
    if let Some(share) = inputs.device.busiest_processor.filter(|share| share.get() > FULL) {
        return Some(format!(
            "one processor is busy for {:.0} % of the time with packets, and CAKE needs more of it than HTB with fq_codel",
            share.percent()
        ));
    }
    if let Some(reason) = slow(inputs) {
        return Some(reason);
    }
    let marks = |feature| inputs.capabilities.lacks(feature);
    let lacking = marks(Feature::Filter("u32")).or_else(|| marks(Feature::Action("skbedit")));
    lacking
        .filter(|_| inputs.policy.has_own_rules())
        .map(|lacking| format!("the policy names packets that CAKE's tins are chosen for by an action, and {lacking}"))
}

/// On a slow line a packet of a sparse flow waits in CAKE for the packet under way as for any other, and in the modem again;
/// HTB lets it pass by right (in the lab, 220 and 850 kbit/s on a line of 240 and 900, both full: mean 103 ms with CAKE,
/// 55 with HTB and `fq_codel`; 1 and 10 Mbit/s: 69 and 62). Only where that can be had.
fn slow(inputs: &Inputs<'_>) -> Option<String> {
    let better = htb_fq_codel::BACK_END.needs.iter().chain(&[Feature::Filter("u32")]);
    let has_better = better.into_iter().all(|feature| inputs.capabilities.has(*feature));
    let times =
        Direction::BOTH.map(|way| inputs.line.rate(way).and_then(|rate| rate.time_to_send(inputs.full_packet())));
    let longest = times.into_iter().flatten().max().filter(|time| has_better && *time > sizes::SLOW)?;
    Some(format!(
        "a full packet takes {}, and behind it interactive packets wait longer in CAKE than in htb+fq_codel",
        display::duration(longest)
    ))
}

/// CAKE's number of a tin of `diffserv4`, as a packet's priority names it (`cake_select_tin` of the kernel).
const fn tin(importance: Importance) -> u8 {
    match importance {
        Importance::Interactive => 4,
        Importance::Default => 2,
        Importance::Bulk => 1,
    }
}

/// Whether packets are told apart by more than their flow.
fn sorts(inputs: &Inputs<'_>) -> bool {
    inputs.policy.trust_marks || inputs.policy.has_own_rules()
}

/// `tc`'s words for CAKE in a direction.
pub(super) fn words(builder: &Builder<'_>) -> String {
    let (line, policy) = (builder.inputs.line, builder.inputs.policy);
    let down = builder.direction == Direction::Down;
    let fairness = match (policy.fairness, down) {
        (Fairness::Flows, _) => "flows",
        (Fairness::Hosts, false) => "dual-srchost",
        (Fairness::Hosts, true) => "dual-dsthost",
    };
    let tins = if sorts(builder.inputs) { "diffserv4" } else { "besteffort" };
    // A kernel without conntrack refuses the word `nonat` too.
    let address = if policy.translates_addresses { "nat " } else { "" };
    // Marks that came from outside and are not believed would be believed behind this host.
    let wash = if down && !policy.trust_marks { "wash" } else { "nowash" };
    let side = if down { "ingress" } else { "egress" };
    let rate = sizes::rate_word(sizes::whole(builder.rate));
    let time = sizes::time_word(round_trip(line, builder.rate));
    let layer = layer(line.layer);
    format!("bandwidth {rate} {tins} {fairness} {address}{wash} {side} no-ack-filter split-gso rtt {time} {layer}")
}

/// Below this in bit/s queues are tuned for a longer round trip.
const SLOW: f64 = 20e6;
/// How much longer.
const LONGER: u32 = 3;

/// CAKE keeps a flow's queue at a twentieth of this. At 10 Mbit/s and 50 ms four flows each way carried 9.1 Mbit/s with 5 ms,
/// 9.3 with 15, and what sends little waited no longer (`cargo xtask shaping`); `LibreQoS` does the same for slow plans. On a
/// line of 20, then 5, then 40 Mbit/s one flow carried 92 % of the capacity so, instead of 85.
fn round_trip(line: &Line, rate: BitRate) -> Duration {
    if line.variable || rate.bits_per_second() < SLOW { line.round_trip * LONGER } else { line.round_trip }
}

fn layer(layer: LinkLayer) -> String {
    if layer == LinkLayer::default() {
        return "raw".to_owned();
    }
    let minimum = if layer.minimum.is_zero() { String::new() } else { format!(" mpu {}", layer.minimum.get()) };
    format!("{} overhead {}{minimum}", layer.framing.word(), layer.overhead.get())
}

/// One discipline, and filters when the policy says more than the usual.
pub(super) fn shape(builder: &mut Builder<'_>, kind: &'static str) {
    let words = words(builder);
    let rate = sizes::whole(builder.rate);
    builder.discipline((Parent::Root, ROOT), kind, Some(rate), &words, "the line's rate, a short queue for each flow");
    let inputs = builder.inputs;
    if inputs.policy.has_own_rules() && unsuitable(inputs).is_none() {
        classify::add(builder, inputs.policy.own_rules(), |rule| {
            let tin = tin(rule.importance);
            (format!("action skbedit priority 1:{tin}"), Goal::Tin(tin))
        });
        builder.note("CAKE's four tins go by codepoints too, besides the rules that were given.");
    }
    let own = sizes::target(inputs, builder.rate, round_trip(inputs.line, builder.rate) / 20);
    builder.predict(Importance::Interactive, Duration::ZERO, own);
    builder.predict(Importance::Default, Duration::ZERO, own);
    if sorts(inputs) {
        // A sixteenth of the line is what the bulk tin gets when the others are full.
        let packet = builder.packet_time();
        builder.predict(Importance::Bulk, packet * 16, own * 16);
    }
}

fn make(inputs: &Inputs<'_>, plan: Plan) -> Plan {
    builder::both(inputs, plan, true, |builder| shape(builder, "cake"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_of_slow_and_of_variable_lines_are_tuned_for_longer() {
        let rate = |megabits: f64| BitRate::from_bits_per_second(megabits * 1e6);
        let line = |variable| Line { variable, ..Line::new(Some(rate(40.0)), None) };
        for (variable, megabits, milliseconds) in
            [(false, 40.0, 100), (false, 19.0, 300), (true, 40.0, 300), (true, 19.0, 300)]
        {
            assert_eq!(round_trip(&line(variable), rate(megabits)), Duration::from_millis(milliseconds));
        }
    }
}
