//! Which back end is taken, kernel by kernel.

use linerate_units::Ratio;

use super::{device, line, own_policy, plan_with, without};
use crate::back_ends::{DeviceFacts, Inputs, by_id};
use crate::capability::{Capabilities, Feature, Support, choose};
use crate::plan::{Goal, Receiving};
use crate::policy::Policy;

fn chosen(capabilities: &Capabilities, device: &DeviceFacts, policy: &Policy) -> &'static str {
    let usual = line(10e3, 50e3);
    choose(&Inputs { line: &usual, policy, capabilities, device }, None).expect("something").back_end.id
}

/// A kernel with these disciplines, and everything else.
fn kernel(disciplines: &[&str]) -> Capabilities {
    let mut capabilities = Capabilities::everything();
    let kinds: Vec<_> = capabilities.all().map(|(feature, _)| feature).collect();
    for feature in kinds {
        if matches!(feature, Feature::Discipline(kind) if kind != "ingress" && !disciplines.contains(&kind)) {
            capabilities.replace(feature, Support::Absent("Specified qdisc kind is unknown".to_owned()));
        }
    }
    capabilities
}

/// The table of defaults, from the best kernel to the poorest.
#[test]
fn the_table_of_kernels() {
    let policy = Policy::default();
    let rows: [(&[&str], &str); 7] = [
        (&["cake_mq", "cake", "htb", "fq_codel"], "cake_mq"),
        (&["cake", "htb", "fq_codel"], "cake"),
        (&["htb", "fq_codel", "fq_pie", "sfq"], "htb+fq_codel"),
        (&["htb", "fq_pie", "sfq"], "htb+fq_pie"),
        (&["htb", "sfq", "bfifo"], "htb+sfq"),
        (&["htb", "tbf", "bfifo", "pfifo"], "htb+bfifo"),
        (&["tbf", "cbq", "sfq"], "tbf"),
    ];
    for (disciplines, expected) in rows {
        assert_eq!(chosen(&kernel(disciplines), &device(), &policy), expected, "{disciplines:?}");
    }
    let usual = line(10e3, 50e3);
    let capabilities = kernel(&["pfifo"]);
    let inputs = Inputs { line: &usual, policy: &policy, capabilities: &capabilities, device: &device() };
    let refusal = choose(&inputs, None).expect_err("nothing can shape");
    assert!(refusal.reason.contains("tbf: this kernel lacks"), "{refusal}");
}

#[test]
fn what_speaks_against_cake() {
    let everything = Capabilities::everything();
    let one_queue = DeviceFacts { transmit_queues: Some(1), ..device() };
    assert_eq!(chosen(&everything, &one_queue, &Policy::default()), "cake");
    let busy = DeviceFacts { busiest_processor: Ratio::from_percent(97.0), ..device() };
    assert_eq!(chosen(&everything, &busy, &Policy::default()), "htb+fq_codel");
    assert_eq!(chosen(&everything, &device(), &own_policy()), "cake");
    // Slow in one direction is slow, unless what is better there is missing.
    let (slow, usual) = (line(220.0, 850.0), Policy::default());
    let on_slow = |capabilities: &Capabilities| {
        let inputs = Inputs { line: &slow, policy: &usual, capabilities, device: &one_queue };
        choose(&inputs, None).expect("something").back_end.id
    };
    assert_eq!(on_slow(&everything), "htb+fq_codel");
    assert_eq!(on_slow(&without(Feature::Discipline("fq_codel"))), "cake");
    assert_eq!(on_slow(&without(Feature::Filter("u32"))), "cake");
    assert_eq!(chosen(&without(Feature::Action("skbedit")), &device(), &own_policy()), "htb+fq_codel");
}

#[test]
fn what_is_asked_for_by_name() {
    let (usual, policy) = (line(10e3, 0.0), Policy::default());
    let capabilities = without(Feature::Discipline("cbq"));
    let inputs = Inputs { line: &usual, policy: &policy, capabilities: &capabilities, device: &device() };
    assert_eq!(choose(&inputs, Some("tbf")).expect("it is there").back_end.id, "tbf");
    let refusal = choose(&inputs, Some("lartc-cbq")).expect_err("CBQ is gone");
    assert!(refusal.way_out.contains("6.3") && refusal.way_out.contains("lartc-htb"), "{refusal}");
    let refusal = choose(&inputs, Some("wonder")).expect_err("no such thing");
    assert!(refusal.way_out.contains("htb+fq_codel"), "{refusal}");
    let rejected = choose(&inputs, None).expect("something").rejected;
    assert!(rejected.iter().all(|one| !one.reason.is_empty()));
}

/// Redirected where that works, policed where it does not, and told where neither does.
#[test]
fn received_packets_kernel_by_kernel() {
    let usual = line(1000.0, 8000.0);
    let back_end = by_id("htb+fq_codel").expect("listed");
    let plan =
        |capabilities: &Capabilities| plan_with(back_end, &usual, &Policy::default(), capabilities).expect("a plan");
    assert_eq!(plan(&Capabilities::everything()).receiving, Receiving::Redirected);
    for missing in [Feature::IntermediateDevice, Feature::Action("mirred")] {
        let mut capabilities = without(missing);
        let policed = plan(&capabilities);
        assert_eq!((&policed.receiving, &policed.intermediate), (&Receiving::Policed, &None));
        assert!(policed.filters().any(|one| one.target == Some(Goal::Police)));
        assert!(policed.notes.iter().any(|note| note.contains("policed") && note.contains(&missing.phrase())));
        capabilities.replace(Feature::Action("police"), Support::Absent("not found".to_owned()));
        let left = plan(&capabilities);
        assert!(matches!(left.receiving, Receiving::Uncontrolled(_)));
        assert!(left.notes.iter().any(|note| note.contains("not controlled")));
    }
    let matched = plan(&without(Feature::Filter("u32")));
    assert_eq!(matched.receiving, Receiving::Redirected);
    assert!(matched.filters().all(|one| one.kind == "matchall"), "one class, one redirect");
}
