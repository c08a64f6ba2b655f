//! The list of back ends, and each plan as a whole.

use linerate_model::direction::Direction;
use std::collections::BTreeSet;

use crate::back_ends::{BACK_ENDS, BackEndId};
use crate::capability::KernelCapabilities;
use crate::plan::{FilterProtocol, FilterTarget, IngressControl, PlannedObject, QdiscHandle, ShaperPlan, TcParent};
use crate::policy::{TrafficImportance, TrafficPolicy};
use crate::script::{batch, script};

use super::{line, of_today, own_policy, plan, plan_with, without};

#[test]
fn each_has_a_name_words_and_a_source() {
    let ids: BTreeSet<_> = BACK_ENDS.iter().map(|back_end| back_end.id).collect();
    assert_eq!(ids.len(), BACK_ENDS.len());
    for back_end in BACK_ENDS {
        assert_eq!(back_end.id.back_end().id, back_end.id);
        assert_eq!(BackEndId::from_name(back_end.id.name()), Some(back_end.id));
        assert_eq!(serde_json::to_value(back_end.id).expect("serialises"), back_end.id.name());
        assert!(!back_end.title.is_empty() && !back_end.title.ends_with('.'), "{}", back_end.id);
        assert!(back_end.explanation.ends_with('.') && back_end.explanation.len() > 100, "{}", back_end.id);
        assert!(!back_end.explanation.contains("  "), "{}", back_end.id);
        assert!(back_end.citation.len() > 10 && !back_end.needs.is_empty(), "{}", back_end.id);
    }
}

/// Each plans for a usual link, and refuses with the missing feature without one that it needs.
#[test]
fn each_plans_or_refuses() {
    let usual = line(220.0, 850.0);
    for back_end in BACK_ENDS {
        assert!(!plan(back_end, &usual).steps.is_empty());
        for feature in back_end.needs {
            let refusal = plan_with(back_end, &usual, &TrafficPolicy::default(), &without(*feature))
                .expect_err("a missing feature");
            assert_eq!(refusal.back_end, Some(back_end.id));
            assert!(refusal.reason.contains(&feature.phrase()), "{refusal}");
            assert!(refusal.reason.contains("Specified qdisc kind is unknown"), "the kernel's message: {refusal}");
            assert!(!refusal.way_out.is_empty());
        }
        let refusal =
            plan_with(back_end, &line(0.0, 0.0), &TrafficPolicy::default(), &KernelCapabilities::all_features());
        assert!(refusal.expect_err("nothing to shape").reason.contains("rate"));
    }
}

#[test]
fn each_shapes_one_direction_alone() {
    for back_end in BACK_ENDS {
        let up = plan(back_end, &line(1000.0, 0.0));
        assert!(up.steps.iter().all(|step| step.direction == Direction::Up) && !up.steps.is_empty(), "{}", back_end.id);
        assert_eq!((up.receiving, up.intermediate), (IngressControl::NotAsked, None));
        let down = plan(back_end, &line(0.0, 1000.0));
        assert!(down.steps.iter().all(|step| step.direction == Direction::Down), "{}", back_end.id);
        assert!(!down.steps.is_empty() && down.receiving != IngressControl::NotAsked);
    }
}

/// A filter for one family has a counterpart for the other; everything is redirected.
#[test]
fn both_families_are_covered() {
    for back_end in of_today() {
        for policy in [TrafficPolicy::default(), own_policy()] {
            let Ok(plan) = plan_with(back_end, &line(220.0, 850.0), &policy, &KernelCapabilities::all_features())
            else {
                assert!(policy.has_own_rules() && matches!(back_end.id.name(), "tbf" | "cake_mq"), "{}", back_end.id);
                continue;
            };
            let count = |protocol| plan.filters().filter(|filter| filter.protocol == protocol).count();
            assert_eq!(count(FilterProtocol::Ipv4), count(FilterProtocol::Ipv6), "{}", back_end.id);
            assert_eq!(count(FilterProtocol::All), 1, "{}: the redirect", back_end.id);
        }
    }
}

/// The redirect is the last step; its target device is created, shaped and up before.
#[test]
fn the_redirect_comes_last() {
    for back_end in of_today() {
        let plan = plan(back_end, &line(220.0, 850.0));
        let name = plan.intermediate.clone().expect("a device");
        let Some(PlannedObject::Filter(last)) = plan.steps.last().map(|step| &step.part) else {
            panic!("{}", back_end.id)
        };
        assert_eq!(last.target, Some(FilterTarget::Redirect(name.clone())));
        let position = |wanted: &dyn Fn(&PlannedObject) -> bool| {
            plan.steps.iter().position(|step| wanted(&step.part)).expect("planned")
        };
        let made = position(&|part| matches!(part, PlannedObject::Create(_)));
        let shaped = position(&|part| matches!(part, PlannedObject::Discipline(one) if one.device == name));
        let up = position(&|part| matches!(part, PlannedObject::SetUp(_)));
        let hook = position(&|part| matches!(part, PlannedObject::Discipline(one) if one.parent == TcParent::Ingress));
        assert!(made < shaped && shaped < up && up < hook, "{}", back_end.id);
        let removal: Vec<_> = plan.removal().iter().map(ToString::to_string).collect();
        assert_eq!(
            removal,
            ["tc qdisc del dev eth0 ingress", "tc qdisc del dev eth0 root", "ip link del dev ifb4eth0"]
        );
    }
}

/// Handles are unique on a device, parents precede children, and each leaf class has its own queue.
fn check_tree(plan: &ShaperPlan) {
    let mut known: BTreeSet<(String, QdiscHandle)> = BTreeSet::new();
    for step in &plan.steps {
        let (device, parent, handle) = match &step.part {
            PlannedObject::Discipline(one) => (&one.device, one.parent, one.handle),
            PlannedObject::Class(one) => (&one.device, TcParent::At(one.parent), one.handle),
            _ => continue,
        };
        if let TcParent::At(parent) = parent {
            assert!(known.contains(&(device.clone(), parent)), "{}: {parent} before {handle}", plan.back_end);
        }
        assert!(known.insert((device.clone(), handle)), "{}: {handle} twice on {device}", plan.back_end);
    }
    for class in plan.classes() {
        let inner = plan.classes().any(|one| one.device == class.device && one.parent == class.handle);
        let has = |one: &crate::plan::PlannedDiscipline| {
            one.device == class.device && one.parent == TcParent::At(class.handle)
        };
        assert_ne!(plan.disciplines().any(has), inner, "{}: {} on {}", plan.back_end, class.handle, class.device);
    }
    for filter in plan.filters() {
        if let Some(FilterTarget::Class(class)) = filter.target {
            assert!(known.contains(&(filter.device.clone(), class)), "{}: no class {class}", plan.back_end);
        }
    }
}

#[test]
fn trees_are_connected() {
    for back_end in BACK_ENDS {
        for (up, down) in [(56.0, 128.0), (220.0, 850.0), (10e3, 50e3), (1e6, 1e6)] {
            check_tree(&plan(back_end, &line(up, down)));
        }
    }
}

#[test]
fn equal_inputs_give_equal_plans() {
    for back_end in BACK_ENDS {
        let usual = line(1000.0, 8000.0);
        let (first, second) = (plan(back_end, &usual), plan(back_end, &usual));
        assert_eq!(first, second);
        assert_eq!(script(&first, &usual), script(&second, &usual));
    }
}

#[test]
fn scripts_have_each_command_once_and_can_be_rerun() {
    for back_end in BACK_ENDS {
        let usual = line(220.0, 850.0);
        let plan = plan(back_end, &usual);
        let text = script(&plan, &usual);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        for command in plan.steps.iter().map(|step| step.part.command().to_string()) {
            assert_eq!(lines.iter().filter(|line| **line == command).count(), 1, "{}: {command}", back_end.id);
        }
        for step in &plan.steps {
            assert!(!step.reason.is_empty() && !step.reason.ends_with('.'), "{}: {}", back_end.id, step.reason);
        }
        for command in plan.removal() {
            assert!(text.contains(&format!("{command} 2>/dev/null || :")), "{}: {command}", back_end.id);
        }
        assert!(text.starts_with("#!/bin/sh\n# Shapes eth0: 220 kbit/s up, 850 kbit/s down"));
        assert!(text.contains("\tguard\n\tstop\n") && !text.contains("linerate"), "{}", back_end.id);
        let batched = batch(&plan);
        let of_tc = plan.steps.iter().filter(|step| step.part.command().program == "tc").count();
        assert_eq!(batched.lines().count(), of_tc);
        assert!(batched.lines().all(|line| !line.starts_with("tc ")));
    }
}

/// Interactive packets have the shortest predicted delay, and every shaped direction is predicted.
#[test]
fn predictions_are_ordered() {
    for back_end in BACK_ENDS {
        let plan = plan(back_end, &line(220.0, 850.0));
        for direction in Direction::BOTH {
            let of = |importance| plan.prediction.class(direction, importance).expect("predicted");
            let (first, rest) = (of(TrafficImportance::Interactive), of(TrafficImportance::Default));
            assert!(first.mean <= rest.mean && first.mean <= first.max && rest.mean <= rest.max);
        }
    }
}

/// `LARTC howto` §15.8.3 line by line, with its own rates.
#[test]
fn the_original_is_the_original() {
    let plan = plan(BackEndId::LartcHtb.back_end(), &line(220.0, 800.0));
    let commands: Vec<_> = plan.steps.iter().map(|step| step.part.command().to_string()).collect();
    let expected = [
        "tc qdisc add dev eth0 root handle 1: htb default 20",
        "tc class add dev eth0 parent 1: classid 1:1 htb rate 220kbit burst 6k",
        "tc class add dev eth0 parent 1:1 classid 1:10 htb rate 220kbit burst 6k prio 1",
        "tc class add dev eth0 parent 1:1 classid 1:20 htb rate 198kbit burst 6k prio 2",
        "tc qdisc add dev eth0 parent 1:10 handle 10: sfq perturb 10",
        "tc qdisc add dev eth0 parent 1:20 handle 20: sfq perturb 10",
        "tc filter add dev eth0 parent 1: protocol ip prio 10 u32 match ip tos 0x10 0xff flowid 1:10",
        "tc filter add dev eth0 parent 1: protocol ip prio 10 u32 match ip protocol 1 0xff flowid 1:10",
        "tc filter add dev eth0 parent 1: protocol ip prio 10 u32 match ip protocol 6 0xff match u8 0x05 0x0f at 0 \
         match u16 0x0000 0xffc0 at 2 match u8 0x10 0xff at 33 flowid 1:10",
        "tc qdisc add dev eth0 handle ffff: ingress",
        "tc filter add dev eth0 parent ffff: protocol ip prio 50 u32 match ip src 0.0.0.0/0 police rate 800kbit \
         burst 10k drop flowid :1",
    ];
    assert_eq!(commands, expected);
}
