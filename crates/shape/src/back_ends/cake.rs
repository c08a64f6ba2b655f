//! CAKE.

use core::time::Duration;
use linerate_model::direction::Direction;
use linerate_model::fact::Fact;

use linerate_units::display;

use linerate_units::BitRate;

use super::builder::DirectionBuilder;
use super::classify::{self, ROOT};
use super::{BackEnd, BackEndId, PlanInputs, builder, htb_fq_codel, sizes};
use crate::capability::KernelFeature;
use crate::link::{AccessLink, LinkFraming, LinkLayer};
use crate::plan::{FilterTarget, ShaperPlan, TcParent};
use crate::policy::{AcknowledgementFilter, CakeTins, FairnessUnit, ReceivedMarks, TrafficImportance};
use crate::prediction::ShaperTurn;

pub(super) static BACK_END: BackEnd = BackEnd {
    id: BackEndId::Cake,
    title: "CAKE: shaper, queue per flow and fairness between hosts in one",
    explanation: "One queueing discipline that shapes with link-layer compensation, keeps a short queue for each flow, \
                  shares between hosts and splits aggregated packets. Interactive traffic needs no filter: a sparse \
                  flow never waits behind a bulk flow. Received packets pass an intermediate device; there CAKE also \
                  counts dropped packets, which have used the link already. It runs on one processor: about 0.4 Gbit/s \
                  on a small router to 3 Gbit/s on a large one.",
    citation: "arXiv:1804.07617; man tc-cake",
    needs: &[KernelFeature::Discipline("cake")],
    unsuitable,
    automatic: true,
    remedy: "htb+fq_codel has most of its features",
    make,
};

/// Processor utilisation above which CAKE would miss its rate.
const MAX_PROCESSOR_SHARE: f64 = 0.9;

/// Reason against CAKE on this host.
pub(super) fn unsuitable(inputs: &PlanInputs<'_>) -> Option<String> {
    if let Some(share) = inputs.device.busiest_processor.filter(|share| share.get() > MAX_PROCESSOR_SHARE) {
        return Some(format!(
            "packets keep one processor {:.0} % busy, and CAKE needs more processor time than HTB with fq_codel",
            share.percent()
        ));
    }
    slow(inputs)
}

/// Reason against CAKE on a slow link: a packet of a sparse flow waits for the packet in transmission as for any other,
/// and in the modem again; HTB guarantees interactive packets and datagrams a rate. In the lab with both directions full,
/// mean of a ping and of an unmarked datagram: 97 and 98 ms with CAKE, 56 and 59 with HTB and `fq_codel` at 220 and 850
/// kbit/s; 70 and 71, 62 and 61 at 1 and 10 Mbit/s. The faster the link, the smaller the difference, and CAKE also shares
/// between hosts. Only where the alternative is available.
fn slow(inputs: &PlanInputs<'_>) -> Option<String> {
    let better = htb_fq_codel::BACK_END.needs.iter().chain(&[KernelFeature::Filter("u32")]);
    let has_better = better.into_iter().all(|feature| inputs.capabilities.has(*feature));
    let times =
        Direction::BOTH.map(|way| inputs.line.rate(way).and_then(|rate| rate.time_to_send(inputs.full_packet())));
    let longest = times.into_iter().flatten().max().filter(|time| has_better && *time > sizes::SLOW)?;
    Some(format!(
        "a full packet takes {}, and interactive packets wait longer behind it in CAKE than in htb+fq_codel",
        display::duration(longest)
    ))
}

/// Number of a `diffserv4` tin in a packet's priority (`cake_select_tin` of the kernel).
const fn tin(importance: TrafficImportance) -> u8 {
    match importance {
        TrafficImportance::Interactive => 4,
        TrafficImportance::Default => 2,
        TrafficImportance::Bulk => 1,
    }
}

/// True when packets are classified by more than their flow.
fn has_classification(inputs: &PlanInputs<'_>) -> bool {
    let policy = inputs.policy;
    policy.trust_marks || policy.received_marks == ReceivedMarks::Restored || policy.has_own_rules()
}

/// Tins in a direction.
fn tins(builder: &DirectionBuilder<'_>) -> CakeTins {
    let asked = builder.inputs.policy.queues.qdisc.of(builder.direction);
    let is_divided = has_classification(builder.inputs) || asked.mark_mask.is_some();
    asked.tins.unwrap_or(if is_divided { CakeTins::Diffserv4 } else { CakeTins::BestEffort })
}

/// `tc` options of CAKE in a direction.
pub(super) fn options(builder: &DirectionBuilder<'_>) -> String {
    let (line, policy) = (builder.inputs.line, builder.inputs.policy);
    let down = builder.direction == Direction::Down;
    let fairness = match (policy.fairness, down) {
        (FairnessUnit::Flows, _) => "flows",
        (FairnessUnit::Hosts, false) => "dual-srchost",
        (FairnessUnit::Hosts, true) => "dual-dsthost",
    };
    let own = policy.queues.qdisc.of(builder.direction);
    let tins = tins(builder).keyword();
    // A kernel without conntrack refuses even `nonat`.
    let address = if builder.inputs.translates_addresses() { "nat " } else { "" };
    // Untrusted marks from outside would be trusted behind this host.
    let is_trusted = policy.trust_marks || policy.received_marks == ReceivedMarks::Restored;
    let wash = if down && !is_trusted { "wash" } else { "nowash" };
    let is_filtered = !down && policy.queues.filters_acknowledgements;
    let usual = if is_filtered { AcknowledgementFilter::On } else { AcknowledgementFilter::Off };
    let acknowledgements = own.acknowledgements.unwrap_or(usual).keyword();
    let side = if own.counts_dropped.unwrap_or(down) { "ingress" } else { "egress" };
    let split = if own.splits_aggregates.unwrap_or(true) { "split-gso" } else { "no-split-gso" };
    let memory = own.memory.map(|bytes| format!(" memlimit {bytes}")).unwrap_or_default();
    let marks = own.mark_mask.map(|mask| format!(" fwmark {mask}")).unwrap_or_default();
    let rate = sizes::rate_argument(sizes::representable_rate(builder.rate));
    // CAKE's target is a twentieth of its round trip.
    let target = policy.queues.target.of(builder.direction).map(|target| target * 20);
    let time = sizes::time_argument(target.unwrap_or_else(|| round_trip(line, builder.direction, builder.rate)));
    let layer = link_layer_options(line.layer);
    format!(
        "bandwidth {rate} {tins} {fairness} {address}{wash} {side} {acknowledgements} {split} rtt {time} {layer}{memory}{marks}"
    )
}

/// Packets of a flow that wait in its own queue: CAKE's target is never below one and a half.
const OWN_PACKETS: u32 = 5;

/// Rate in bit/s below which queues are tuned for a longer round trip.
const SLOW_RATE: f64 = 20e6;
/// Factor of the longer round trip.
const ROUND_TRIP_FACTOR: u32 = 3;

/// Round trip for CAKE, which keeps a flow's queue at a twentieth of it. At 10 Mbit/s and 50 ms four flows per
/// direction carried 9.1 Mbit/s with 5 ms, 9.3 with 15, without more delay for sparse flows (`cargo xtask shaping`);
/// `LibreQoS` does the same for slow plans. On a link of 20, then 5, then 40 Mbit/s one flow carried 92 % of the
/// capacity instead of
/// 85.
fn round_trip(line: &AccessLink, direction: Direction, rate: BitRate) -> Duration {
    let factor = if line.variable || rate.bits_per_second() < SLOW_RATE { ROUND_TRIP_FACTOR } else { 1 };
    *line.round_trip.of(direction) * factor
}

fn link_layer_options(layer: LinkLayer) -> String {
    if layer == LinkLayer::NO_OVERHEAD {
        return "raw".to_owned();
    }
    let minimum = if layer.minimum.is_zero() { String::new() } else { format!(" mpu {}", layer.minimum.get()) };
    format!("{} overhead {}{minimum}", framing_keyword(layer.framing), layer.overhead.get())
}

/// Keyword of a framing (tc-cake(8)).
const fn framing_keyword(framing: LinkFraming) -> &'static str {
    match framing {
        LinkFraming::None => "noatm",
        LinkFraming::Atm => "atm",
        LinkFraming::Ptm => "ptm",
    }
}

/// Adds the discipline, and filters for the policy's own rules.
pub(super) fn shape(builder: &mut DirectionBuilder<'_>, kind: &'static str) {
    let words = options(builder);
    note_host_fairness(builder);
    let rate = sizes::representable_rate(builder.rate);
    builder.discipline(
        (TcParent::Root, ROOT),
        kind,
        Some(rate),
        &words,
        "the link's rate, a short queue for each flow",
    );
    let inputs = builder.inputs;
    if inputs.policy.has_own_rules() {
        classify::add_filters(builder, inputs.policy.own_rules(), |rule| {
            let tin = tin(rule.importance);
            (format!("action skbedit priority 1:{tin}"), FilterTarget::Tin(tin))
        });
        builder.note("CAKE's four tins also follow codepoints, in addition to the given rules.");
    }
    let least = round_trip(inputs.line, builder.direction, builder.rate) / 20;
    let own = sizes::target(inputs, builder.rate, builder.direction, least);
    // A queue exceeds the target for a while before CAKE drops.
    let own = builder.own_queue(OWN_PACKETS, own * 5 / 4);
    for importance in [TrafficImportance::Interactive, TrafficImportance::Default] {
        builder.predict(importance, (ShaperTurn::Next, Duration::ZERO), own);
    }
    if tins(builder) != CakeTins::BestEffort {
        // The bulk tin has a sixteenth of the link when the others are full.
        let packet = builder.packet_time();
        builder.predict(TrafficImportance::Bulk, (ShaperTurn::Next, packet * 16), own * 16);
    }
}

/// Adds the note on the distinction of hosts.
fn note_host_fairness(builder: &mut DirectionBuilder<'_>) {
    if builder.inputs.policy.fairness != FairnessUnit::Hosts {
        return;
    }
    let found = builder.inputs.device.translates_addresses.clone();
    match (builder.inputs.policy.translates_addresses, found) {
        // What was found is part of the policy when it is recorded.
        (None | Some(true), Fact::Known(true)) => builder.note(
            "This host translates addresses (NAT): hosts behind it are distinguished by conntrack (`nat`; --no-nat \
             turns it off).",
        ),
        (None, Fact::Unknown(unread)) => builder.note(format!(
            "Unknown if this host translates addresses ({unread}): if it does, --nat distinguishes the hosts behind it, \
             which otherwise share as one."
        )),
        _ => {}
    }
}

fn make(inputs: &PlanInputs<'_>, plan: ShaperPlan) -> ShaperPlan {
    builder::shape_both_directions(inputs, plan, true, |builder| shape(builder, "cake"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_of_slow_and_variable_links_are_tuned_for_longer_round_trips() {
        let rate = |megabits: f64| BitRate::from_bits_per_second(megabits * 1e6);
        let line = |variable| AccessLink { variable, ..AccessLink::new(Some(rate(40.0)), None) };
        for (variable, megabits, milliseconds) in
            [(false, 40.0, 100), (false, 19.0, 300), (true, 40.0, 300), (true, 19.0, 300)]
        {
            assert_eq!(round_trip(&line(variable), Direction::Up, rate(megabits)), Duration::from_millis(milliseconds));
        }
    }
}
