//! Properties of the figures over all links.

use std::collections::BTreeSet;

use linerate_model::direction::Direction;
use linerate_units::{BitRate, ByteCount, Mtu};
use proptest::prelude::*;

use crate::back_ends::{BackEnd, BackEndId, DeviceProperties, PlanInputs};
use crate::capability::KernelCapabilities;
use crate::link::{AccessLink, LinkFraming, LinkLayer};
use crate::plan::{PlannedClass, QdiscHandle, ShaperPlan, TcParent, changes};
use crate::policy::TrafficPolicy;

use super::of_today;

fn lines() -> impl Strategy<Value = AccessLink> {
    let rate = || (4.5_f64..10.0).prop_map(|power| Some(BitRate::from_bits_per_second(10_f64.powf(power))));
    let framing = prop_oneof![Just(LinkFraming::None), Just(LinkFraming::Atm), Just(LinkFraming::Ptm)];
    let layer = (0_u64..=64, 0_u64..=84, framing).prop_map(|(overhead, minimum, framing)| LinkLayer {
        overhead: ByteCount::new(overhead),
        minimum: ByteCount::new(minimum),
        framing,
    });
    (rate(), rate(), layer, 576_u32..=9000, 1_u64..1000).prop_map(|(up, down, layer, mtu, round_trip)| AccessLink {
        layer,
        mtu: Mtu::new(mtu),
        round_trip: crate::verify::PerDirection {
            up: core::time::Duration::from_millis(round_trip),
            down: core::time::Duration::from_millis(1000 - round_trip),
        },
        ..AccessLink::new(up, down)
    })
}

fn plan(back_end: &BackEnd, line: &AccessLink) -> ShaperPlan {
    let device = DeviceProperties { mtu: line.mtu, ..DeviceProperties::ethernet("eth0") };
    let (policy, capabilities) = (TrafficPolicy::default(), KernelCapabilities::all_features());
    let inputs = PlanInputs { line, policy: &policy, capabilities: &capabilities, device: &device };
    back_end.plan(&inputs).expect("every feature")
}

/// Number after a keyword.
fn number(options: &[String], key: &str) -> Option<u64> {
    options.windows(2).find(|pair| pair[0] == key)?[1].parse().ok()
}

fn check_class(line: &AccessLink, class: &PlannedClass, of: Direction) -> Result<(), TestCaseError> {
    let whole = line.rate(of).expect("a rate").bits_per_second();
    let (rate, ceiling) = (class.rate.bits_per_second(), class.ceiling.expect("stated").bits_per_second());
    prop_assert!(rate >= 8.0 && rate <= ceiling && ceiling <= whole, "{class:?}");
    let frame = u64::from(line.mtu.get()) + 14;
    let quantum = number(&class.options, "quantum").expect("always stated");
    prop_assert!((frame..=frame.max(60_000)).contains(&quantum), "{class:?}");
    // A millisecond in each bucket; at least a packet where it may leave at once.
    for (key, of) in [("burst", rate), ("cburst", ceiling)] {
        let burst = number(&class.options, key).expect("always stated");
        prop_assert!(ByteCount::new(burst).as_f64() * 8.0 >= of * 0.001, "{class:?}");
        let small = key == "burst" && [0x10, 0x22].map(|minor| QdiscHandle::class(1, minor)).contains(&class.handle);
        prop_assert!(!small || burst >= frame && burst >= line.full_packet().get(), "{class:?}");
    }
    Ok(())
}

/// Inner classes borrow for their leaves: the leaves have guaranteed rates, together at most the link's.
fn check_leaves(line: &AccessLink, plan: &ShaperPlan, device: &str, of: Direction) -> Result<(), TestCaseError> {
    let classes: Vec<&PlannedClass> = plan.classes().filter(|one| one.device == device).collect();
    let is_inner = |of: &PlannedClass| classes.iter().any(|one| one.parent == of.handle);
    let leaves = classes.iter().filter(|one| !is_inner(one));
    let sum: f64 = leaves.map(|one| one.rate.bits_per_second()).sum();
    let whole = line.rate(of).expect("a rate").bits_per_second();
    prop_assert!(sum <= whole, "leaves on {} have {sum} of {whole}", device);
    Ok(())
}

proptest! {
    #[test]
    fn numbers_stay_in_range(line in lines()) {
        for back_end in of_today() {
            let plan = plan(back_end, &line);
            for class in plan.classes() {
                let of = if class.device == "eth0" { Direction::Up } else { Direction::Down };
                check_class(&line, class, of)?;
            }
            let devices: BTreeSet<&str> = plan.classes().map(|class| class.device.as_str()).collect();
            for device in devices {
                let of = if device == "eth0" { Direction::Up } else { Direction::Down };
                check_leaves(&line, &plan, device, of)?;
            }
            for one in plan.disciplines() {
                let of = if one.device == "eth0" { Direction::Up } else { Direction::Down };
                let whole = line.rate(of).expect("a rate");
                prop_assert!(one.rate.is_none_or(|rate| rate <= whole), "{one:?}");
                if let Some(limit) = number(&one.options, "limit") {
                    prop_assert!(limit > 0 && u32::try_from(limit).is_ok(), "{one:?}");
                }
                if one.kind == "bfifo" || one.kind == "tbf" {
                    let frame = u64::from(line.mtu.get()) + 14;
                    prop_assert!(number(&one.options, "limit").is_some_and(|limit| limit >= 2 * frame), "{one:?}");
                }
            }
        }
    }

    #[test]
    fn predictions_are_finite(line in lines()) {
        for back_end in of_today() {
            let plan = plan(back_end, &line);
            prop_assert!(plan.prediction.classes.len() >= 4);
            for entry in &plan.prediction.classes {
                let packet = |rate: Option<BitRate>| rate.map_or(0.0, |rate| 9300.0 * 8.0 * 53.0 / 48.0 / rate.bits_per_second());
                // A burst of the downlink fits into a packet of the uplink, and four flows double it; CAKE's bulk tin has a
                // sixteenth of the link.
                let bound = 50.0 * (packet(line.up) + packet(line.down) + 0.02);
                prop_assert!(entry.max.as_secs_f64() <= bound, "{entry:?}");
                prop_assert!(entry.mean.as_secs_f64() >= entry.serialisation.as_secs_f64() / 2.0 - 1e-9);
                prop_assert!(entry.mean <= entry.max);
            }
        }
    }

    /// Another rate on the same link only needs in-place changes, without repetitions.
    #[test]
    fn rates_change_in_place(line in lines(), factor in 0.2_f64..1.0) {
        for back_end in of_today() {
            let old = plan(back_end, &line);
            prop_assert_eq!(changes(&old, &old), Some(vec![]));
            let new = AccessLink { up: line.up.map(|rate| rate * factor), ..line };
            let commands = changes(&old, &plan(back_end, &new)).expect("the same tree");
            for command in &commands {
                prop_assert_eq!(command.words[1].as_str(), "change");
                prop_assert_eq!(command.words[3].as_str(), "eth0", "only that direction");
                prop_assert!(number(&command.words, "flows").is_none(), "the kernel refuses it: {}", command);
            }
        }
    }

    #[test]
    fn a_packet_is_never_shorter_on_the_link(size in 0_u64..65_536, line in lines()) {
        let wire = line.layer.wire_length(ByteCount::new(size)).get();
        prop_assert!(wire >= size + line.layer.overhead.get());
        let longer = line.layer.wire_length(ByteCount::new(size + 1)).get();
        prop_assert!(longer >= wire);
    }
}

#[test]
fn another_back_end_is_no_change() {
    let usual = super::line(1000.0, 8000.0);
    let of = |id: BackEndId| plan(id.back_end(), &usual);
    assert_eq!(changes(&of(BackEndId::Cake), &of(BackEndId::Tbf)), None);
    assert_eq!(changes(&of(BackEndId::HtbSfq), &of(BackEndId::HtbFqCodel)), None);
    let roots = |plan: &ShaperPlan| {
        plan.disciplines().filter(|one| one.parent == TcParent::At(QdiscHandle::class(1, 1))).count()
    };
    assert_eq!(roots(&of(BackEndId::HtbSfq)), 0);
}
