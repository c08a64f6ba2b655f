//! Conversion of measurements to the judge's evidence.

use linerate_model::address_family::AddressFamily;
use linerate_model::direction::Direction;
use std::time::Duration;

use linerate_engine::load::{ClassRoundTrips, LoadTestSamples};
use linerate_shape::link::AccessLink;
use linerate_shape::plan::{IngressControl, ShaperPlan};
use linerate_shape::policy::TrafficImportance;
use linerate_shape::prediction::ClassPrediction;
use linerate_shape::read_back::{self, QueueingFault};
use linerate_shape::verify::{
    ClassDelays, PathMeasurement, PerDirection, PhaseMeasurement, PlanDifferenceKind, ReadBackDifference,
};
use linerate_units::{BitRate, ByteCount};

use super::tree_sampler::{SampledPhase, both};

/// Header sizes in bytes: TCP with timestamps, IPv4, IPv6.
const TCP_HEADER: u64 = 32;
const IPV4_HEADER: u64 = 20;
const IPV6_HEADER: u64 = 40;

/// Display name of an IP version.
pub const fn family_title(family: AddressFamily) -> &'static str {
    match family {
        AddressFamily::Ipv4 => "IPv4",
        AddressFamily::Ipv6 => "IPv6",
    }
}

/// Builds the phases of a measurement, each with its tree samples.
pub(super) fn measurement(
    readings: &LoadTestSamples,
    sampled: &[SampledPhase],
    family: AddressFamily,
) -> PathMeasurement {
    let phases = readings.phases.iter().map(|phase| {
        let seen = sampled.iter().find(|seen| seen.kind == phase.kind);
        PhaseMeasurement {
            kind: phase.kind,
            classes: phase.classes.iter().map(|class| class_delays(class, family)).collect(),
            goodput: PerDirection { up: phase.goodput_up, down: phase.goodput_down },
            traffic: PerDirection { up: phase.sent, down: phase.received },
            tree: seen.map(|seen| seen.tree).unwrap_or_default(),
            processor: seen.and_then(|seen| seen.processor),
        }
    });
    PathMeasurement { phases: phases.collect() }
}

/// Adds the probes over another IP version, under its own load.
pub(super) fn add_classes(measurement: &mut PathMeasurement, readings: &LoadTestSamples, family: AddressFamily) {
    for phase in &mut measurement.phases {
        let others = readings.phases.iter().filter(|other| other.kind == phase.kind).flat_map(|other| &other.classes);
        phase.classes.extend(others.map(|class| class_delays(class, family)));
    }
}

fn class_delays(class: &ClassRoundTrips, family: AddressFamily) -> ClassDelays {
    let one_way = class.up.zip(class.down).map(|(up, down)| PerDirection { up, down });
    ClassDelays { class: class.class, family, round_trips: class.round_trips.clone(), one_way }
}

/// Set rates; `None` in an uncontrolled direction.
pub(super) fn set_rates(line: &AccessLink, plan: &ShaperPlan) -> PerDirection<Option<BitRate>> {
    let held = matches!(plan.receiving, IngressControl::Redirected | IngressControl::Policed);
    PerDirection { up: line.up, down: line.down.filter(|_| held) }
}

/// Predicted mean delay of best-effort probes above idle.
pub(super) fn predicted(plan: &ShaperPlan) -> PerDirection<Option<Duration>> {
    let of = |flow| plan.prediction.class(flow, TrafficImportance::Default);
    both(|flow| of(flow).map(|class| class.mean.saturating_sub(class.idle.unwrap_or_default())))
}

/// Predicted longest delay of best-effort probes above idle, under the worst load.
pub(super) fn longest_predicted(plan: &ShaperPlan) -> Duration {
    let is_best_effort = |class: &&ClassPrediction| class.importance == TrafficImportance::Default && !class.l4s;
    let best_effort = plan.prediction.classes.iter().filter(is_best_effort);
    best_effort.map(|class| class.max.saturating_sub(class.idle.unwrap_or_default())).max().unwrap_or_default()
}

/// Rate counted by the shaper for this TCP payload rate in full segments.
pub(super) fn shaper_rate(line: &AccessLink, payload: BitRate, family: AddressFamily) -> BitRate {
    let packet = line.mtu.byte_count();
    let headers = TCP_HEADER + if family == AddressFamily::Ipv6 { IPV6_HEADER } else { IPV4_HEADER };
    let carried = (packet - ByteCount::new(headers)).as_f64();
    if carried > 0.0 { payload * (line.layer.wire_length(packet).as_f64() / carried) } else { payload }
}

/// Converts differences from the plan for the judge.
pub(super) fn differences(plan: &ShaperPlan, found: &[read_back::QueueingDifference]) -> Vec<ReadBackDifference> {
    found.iter().map(|one| difference(plan, one)).collect()
}

fn difference(plan: &ShaperPlan, found: &read_back::QueueingDifference) -> ReadBackDifference {
    let kind = match found.fault {
        QueueingFault::NoRedirect => PlanDifferenceKind::RedirectMissing,
        QueueingFault::Missing => PlanDifferenceKind::Missing,
        QueueingFault::OtherKind => PlanDifferenceKind::OtherKind,
        QueueingFault::OtherRate => PlanDifferenceKind::OtherRate,
        QueueingFault::OtherOption | QueueingFault::Foreign => PlanDifferenceKind::Other,
    };
    // The interface itself has both directions: ingress has its hook there.
    let is_down = found.fault == QueueingFault::NoRedirect
        || plan.intermediate.as_ref() == Some(&found.device)
        || found.words.contains("received packets");
    let direction = if is_down { Direction::Down } else { Direction::Up };
    ReadBackDifference { kind, direction, text: found.to_string() }
}

/// Difference: the intermediate device is down, so the kernel drops redirected packets.
pub(super) fn redirect_target_down(device: &str) -> ReadBackDifference {
    let text = format!("{device} is down: the kernel drops packets redirected to it");
    ReadBackDifference { kind: PlanDifferenceKind::RedirectTargetDown, direction: Direction::Down, text }
}

#[cfg(test)]
mod tests {
    use linerate_shape::back_ends::{BackEndId, DeviceProperties, PlanInputs};
    use linerate_shape::capability::KernelCapabilities;
    use linerate_shape::link::{LinkFraming, LinkLayer};
    use linerate_shape::policy::TrafficPolicy;

    use super::*;

    fn line() -> AccessLink {
        let rate = |megabits: f64| Some(BitRate::from_bits_per_second(megabits * 1e6));
        AccessLink { idle: Some(Duration::from_millis(20)), ..AccessLink::new(rate(10.0), rate(50.0)) }
    }

    fn plan(line: &AccessLink) -> ShaperPlan {
        let inputs = PlanInputs {
            line,
            policy: &TrafficPolicy::default(),
            capabilities: &KernelCapabilities::all_features(),
            device: &DeviceProperties::ethernet("eth0"),
        };
        BackEndId::HtbBfifo.back_end().plan(&inputs).expect("everything is there")
    }

    #[test]
    fn predictions_are_above_rest() {
        let (known, unknown) = (line(), AccessLink { idle: None, ..line() });
        let predicted_mean = predicted(&plan(&known)).up.expect("a rate");
        assert_eq!(Some(predicted_mean), predicted(&plan(&unknown)).up);
        assert_eq!(longest_predicted(&plan(&known)), longest_predicted(&plan(&unknown)));
        // Half a packet of 1514 bytes at 10 Mbit/s, plus the leaf's delay.
        assert!(predicted_mean >= Duration::from_micros(605) && longest_predicted(&plan(&known)) > predicted_mean);
    }

    #[test]
    fn an_uncontrolled_direction_has_no_rate() {
        let line = line();
        let mut plan = plan(&line);
        assert_eq!(set_rates(&line, &plan), PerDirection { up: line.up, down: line.down });
        plan.receiving = IngressControl::Uncontrolled("no ifb".to_owned());
        assert_eq!(set_rates(&line, &plan), PerDirection { up: line.up, down: None });
    }

    #[test]
    fn payload_as_the_shaper_counts() {
        let mut line = line();
        let payload = BitRate::from_bits_per_second(1448.0);
        let counted = |line: &AccessLink, family| shaper_rate(line, payload, family).bits_per_second();
        assert!((counted(&line, AddressFamily::Ipv4) - 1500.0).abs() < 1e-9);
        assert!((counted(&line, AddressFamily::Ipv6) - 1448.0 * 1500.0 / 1428.0).abs() < 1e-9);
        line.layer = LinkLayer { overhead: ByteCount::new(40), framing: LinkFraming::Atm, ..LinkLayer::NO_OVERHEAD };
        assert!((counted(&line, AddressFamily::Ipv4) - 1749.0).abs() < 1e-9, "33 cells of 53 bytes");
    }

    #[test]
    fn differences_have_a_kind_and_a_direction() {
        let plan = plan(&line());
        let of = |device: &str, fault, words: &str| {
            let found = read_back::QueueingDifference { device: device.to_owned(), fault, words: words.to_owned() };
            let difference = differences(&plan, &[found]).remove(0);
            assert!(difference.text.contains(words));
            (difference.kind, difference.direction)
        };
        assert_eq!(of("eth0", QueueingFault::NoRedirect, "…"), (PlanDifferenceKind::RedirectMissing, Direction::Down));
        assert_eq!(of("ifb4eth0", QueueingFault::OtherRate, "class"), (PlanDifferenceKind::OtherRate, Direction::Down));
        assert_eq!(
            of("eth0", QueueingFault::OtherKind, "htb at the root"),
            (PlanDifferenceKind::OtherKind, Direction::Up)
        );
        let hook = "no ingress for received packets";
        assert_eq!(of("eth0", QueueingFault::Missing, hook), (PlanDifferenceKind::Missing, Direction::Down));
        assert_eq!(of("eth0", QueueingFault::Foreign, "class 1:99"), (PlanDifferenceKind::Other, Direction::Up));
    }

    /// The plan's own differences for received packets are recognised.
    #[test]
    fn without_a_shaper_each_difference_has_its_direction() {
        let plan = plan(&line());
        let found = read_back::compare(&plan, &read_back::FoundQueueing::default());
        let all = differences(&plan, &found);
        assert!(
            all.iter().any(|one| one.kind == PlanDifferenceKind::RedirectMissing && one.direction == Direction::Down)
        );
        let of = |flow| all.iter().filter(|one| one.direction == flow).count();
        // The root of each device, without what was below it; the hook and the redirect.
        assert_eq!((of(Direction::Up), of(Direction::Down)), (1, 3), "{all:#?}");
        assert!(all.iter().filter(|one| one.text.starts_with("ifb4eth0")).all(|one| one.direction == Direction::Down));
    }
}
