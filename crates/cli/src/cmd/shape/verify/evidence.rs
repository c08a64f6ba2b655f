//! What was measured, as the judge wants it.

use std::time::Duration;

use linerate_engine::load::{ClassRoundTrips, LoadReadings};
use linerate_model::throughput::Flow;
use linerate_shape::link::{Direction, Line};
use linerate_shape::plan::{Plan, Receiving};
use linerate_shape::policy::Importance;
use linerate_shape::read_back::{self, Fault};
use linerate_shape::verify::{Both, ClassReading, Difference, DifferenceKind, Family, Measurement, PhaseReading};
use linerate_units::{BitRate, ByteCount};

use super::trees::{Sampled, both, direction};

/// Headers of a TCP segment in an IP packet: TCP with time stamps, and IP.
const TCP: u64 = 32;
const IPV4: u64 = 20;
const IPV6: u64 = 40;

/// For people.
pub(super) const fn family_title(family: Family) -> &'static str {
    match family {
        Family::Four => "IPv4",
        Family::Six => "IPv6",
    }
}

/// The phases of a measurement, each with what the trees did meanwhile.
pub(super) fn measurement(readings: &LoadReadings, sampled: &[Sampled], family: Family) -> Measurement {
    let phases = readings.phases.iter().map(|phase| {
        let seen = sampled.iter().find(|seen| seen.kind == phase.kind);
        PhaseReading {
            kind: phase.kind,
            classes: phase.classes.iter().map(|class| class_reading(class, family)).collect(),
            goodput: Both { up: phase.goodput_up, down: phase.goodput_down },
            traffic: Both { up: phase.sent, down: phase.received },
            tree: seen.map(|seen| seen.tree).unwrap_or_default(),
            processor: seen.and_then(|seen| seen.processor),
        }
    });
    Measurement { phases: phases.collect() }
}

/// Adds what probes over another version of the Internet Protocol saw while that one was loaded.
pub(super) fn add_classes(measurement: &mut Measurement, readings: &LoadReadings, family: Family) {
    for phase in &mut measurement.phases {
        let others = readings.phases.iter().filter(|other| other.kind == phase.kind).flat_map(|other| &other.classes);
        phase.classes.extend(others.map(|class| class_reading(class, family)));
    }
}

fn class_reading(class: &ClassRoundTrips, family: Family) -> ClassReading {
    let one_way = class.up.zip(class.down).map(|(up, down)| Both { up, down });
    ClassReading { class: class.class, family, round_trips: class.round_trips.clone(), one_way }
}

/// The rates that are set; none in a direction that nothing holds.
pub(super) fn set_rates(line: &Line, plan: &Plan) -> Both<Option<BitRate>> {
    let held = matches!(plan.receiving, Receiving::Redirected | Receiving::Policed);
    Both { up: line.up, down: line.down.filter(|_| held) }
}

/// What the plan predicts for best-effort probes above rest: the mean.
pub(super) fn predicted(plan: &Plan) -> Both<Option<Duration>> {
    let of = |flow| plan.prediction.of(direction(flow), Importance::Default);
    both(|flow| of(flow).map(|class| class.mean.saturating_sub(class.idle.unwrap_or_default())))
}

/// The longest that the plan predicts for best-effort probes above rest, in the worse direction.
pub(super) fn longest_predicted(plan: &Plan) -> Duration {
    let of = |direction| plan.prediction.of(direction, Importance::Default);
    let longest = Direction::BOTH.into_iter().filter_map(of);
    longest.map(|class| class.longest.saturating_sub(class.idle.unwrap_or_default())).max().unwrap_or_default()
}

/// What the shaper counts where TCP carries so much payload in full segments.
pub(super) fn as_counted(line: &Line, payload: BitRate, family: Family) -> BitRate {
    let packet = line.mtu.byte_count();
    let headers = TCP + if family == Family::Six { IPV6 } else { IPV4 };
    let carried = (packet - ByteCount::new(headers)).as_f64();
    if carried > 0.0 { payload * (line.layer.wire_length(packet).as_f64() / carried) } else { payload }
}

/// How what stands differs from the plan, for the judge.
pub(super) fn differences(plan: &Plan, found: &[read_back::Difference]) -> Vec<Difference> {
    found.iter().map(|one| difference(plan, one)).collect()
}

fn difference(plan: &Plan, found: &read_back::Difference) -> Difference {
    let kind = match found.fault {
        Fault::NoRedirect => DifferenceKind::RedirectMissing,
        Fault::Missing => DifferenceKind::Missing,
        Fault::OtherKind => DifferenceKind::OtherKind,
        Fault::OtherRate => DifferenceKind::OtherRate,
        Fault::Foreign => DifferenceKind::Other,
    };
    // On the interface itself both directions have something: what is received has its hook there.
    let is_down = found.fault == Fault::NoRedirect
        || plan.intermediate.as_ref() == Some(&found.device)
        || found.words.contains("received packets");
    let direction = if is_down { Flow::Down } else { Flow::Up };
    Difference { kind, direction, words: found.to_string() }
}

/// The intermediate device is down, so that the kernel drops what is redirected to it.
pub(super) fn redirect_target_down(device: &str) -> Difference {
    let words = format!("{device} is down: the kernel drops what is redirected to it");
    Difference { kind: DifferenceKind::RedirectTargetDown, direction: Flow::Down, words }
}

#[cfg(test)]
mod tests {
    use linerate_shape::back_ends::{DeviceFacts, Inputs, by_id};
    use linerate_shape::capability::Capabilities;
    use linerate_shape::link::{Framing, LinkLayer};
    use linerate_shape::policy::Policy;

    use super::*;

    fn line() -> Line {
        let rate = |megabits: f64| Some(BitRate::from_bits_per_second(megabits * 1e6));
        Line { idle: Some(Duration::from_millis(20)), ..Line::new(rate(10.0), rate(50.0)) }
    }

    fn plan(line: &Line) -> Plan {
        let inputs = Inputs {
            line,
            policy: &Policy::default(),
            capabilities: &Capabilities::everything(),
            device: &DeviceFacts::ethernet("eth0"),
        };
        by_id("htb+bfifo").expect("known").plan(&inputs).expect("everything is there")
    }

    #[test]
    fn predictions_are_above_rest() {
        let (known, unknown) = (line(), Line { idle: None, ..line() });
        let predicted_mean = predicted(&plan(&known)).up.expect("a rate");
        assert_eq!(Some(predicted_mean), predicted(&plan(&unknown)).up);
        assert_eq!(longest_predicted(&plan(&known)), longest_predicted(&plan(&unknown)));
        // Half a packet of 1514 bytes at 10 Mbit/s, and what waits in the leaf.
        assert!(predicted_mean >= Duration::from_micros(605) && longest_predicted(&plan(&known)) > predicted_mean);
    }

    #[test]
    fn what_nothing_holds_has_no_rate() {
        let line = line();
        let mut plan = plan(&line);
        assert_eq!(set_rates(&line, &plan), Both { up: line.up, down: line.down });
        plan.receiving = Receiving::Uncontrolled("no ifb".to_owned());
        assert_eq!(set_rates(&line, &plan), Both { up: line.up, down: None });
    }

    #[test]
    fn payload_as_the_shaper_counts() {
        let mut line = line();
        let payload = BitRate::from_bits_per_second(1448.0);
        let counted = |line: &Line, family| as_counted(line, payload, family).bits_per_second();
        assert!((counted(&line, Family::Four) - 1500.0).abs() < 1e-9);
        assert!((counted(&line, Family::Six) - 1448.0 * 1500.0 / 1428.0).abs() < 1e-9);
        line.layer = LinkLayer { overhead: ByteCount::new(40), framing: Framing::Atm, ..LinkLayer::default() };
        assert!((counted(&line, Family::Four) - 1749.0).abs() < 1e-9, "33 cells of 53 bytes");
    }

    #[test]
    fn differences_have_a_kind_and_a_direction() {
        let plan = plan(&line());
        let of = |device: &str, fault, words: &str| {
            let found = read_back::Difference { device: device.to_owned(), fault, words: words.to_owned() };
            let difference = differences(&plan, &[found]).remove(0);
            assert!(difference.words.contains(words));
            (difference.kind, difference.direction)
        };
        assert_eq!(of("eth0", Fault::NoRedirect, "…"), (DifferenceKind::RedirectMissing, Flow::Down));
        assert_eq!(of("ifb4eth0", Fault::OtherRate, "class"), (DifferenceKind::OtherRate, Flow::Down));
        assert_eq!(of("eth0", Fault::OtherKind, "htb at the root"), (DifferenceKind::OtherKind, Flow::Up));
        let hook = "no ingress for received packets";
        assert_eq!(of("eth0", Fault::Missing, hook), (DifferenceKind::Missing, Flow::Down));
        assert_eq!(of("eth0", Fault::Foreign, "class 1:99"), (DifferenceKind::Other, Flow::Up));
    }

    /// What the plan's own comparison says of received packets is recognised.
    #[test]
    fn nothing_stands_and_each_difference_has_its_direction() {
        let plan = plan(&line());
        let found = read_back::compare(&plan, &read_back::Standing::default());
        let all = differences(&plan, &found);
        assert!(all.iter().any(|one| one.kind == DifferenceKind::RedirectMissing && one.direction == Flow::Down));
        let of = |flow| all.iter().filter(|one| one.direction == flow).count();
        assert!(of(Flow::Up) > 1 && of(Flow::Down) > 1, "{all:#?}");
        assert!(all.iter().filter(|one| one.words.starts_with("ifb4eth0")).all(|one| one.direction == Flow::Down));
    }
}
