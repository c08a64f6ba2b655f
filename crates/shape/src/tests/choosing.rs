//! Choice of the back end per kernel.

use linerate_model::fact::Fact;
use linerate_model::socket::FirewallMark;
use linerate_units::Ratio;

use crate::back_ends::{BackEndId, DeviceProperties, PlanInputs};
use crate::capability::{FeatureSupport, KernelCapabilities, KernelFeature, choose};
use crate::plan::{FilterTarget, IngressControl, TcParent};
use crate::policy::{FairnessUnit, PacketSelector, QueueOptions, TrafficImportance, TrafficPolicy, TrafficRule};
use crate::refusal::ShaperRefusal;
use crate::traffic_classes::parse_class_file;
use crate::verify::PerDirection;

use super::{device, line, own_policy, plan_with, without};

fn chosen(capabilities: &KernelCapabilities, device: &DeviceProperties, policy: &TrafficPolicy) -> BackEndId {
    let usual = line(10e3, 50e3);
    choose(&PlanInputs { line: &usual, policy, capabilities, device }, None).expect("a back end").back_end.id
}

/// A kernel with these disciplines only, and all other features.
fn kernel(disciplines: &[&str]) -> KernelCapabilities {
    let mut capabilities = KernelCapabilities::all_features();
    let kinds: Vec<_> = capabilities.all().map(|(feature, _)| feature).collect();
    for feature in kinds {
        if matches!(feature, KernelFeature::Discipline(kind) if kind != "ingress" && !disciplines.contains(&kind)) {
            capabilities.replace(feature, FeatureSupport::Absent("Specified qdisc kind is unknown".to_owned()));
        }
    }
    capabilities
}

/// Table of defaults, from the best kernel to the poorest.
#[test]
fn the_table_of_kernels() {
    let policy = TrafficPolicy::default();
    let rows: [(&[&str], BackEndId); 7] = [
        (&["cake_mq", "cake", "htb", "fq_codel"], BackEndId::CakeMq),
        (&["cake", "htb", "fq_codel"], BackEndId::Cake),
        (&["htb", "fq_codel", "fq_pie", "sfq"], BackEndId::HtbFqCodel),
        (&["htb", "fq_pie", "sfq"], BackEndId::HtbFqPie),
        (&["htb", "sfq", "bfifo"], BackEndId::HtbSfq),
        (&["htb", "tbf", "bfifo", "pfifo"], BackEndId::HtbBfifo),
        (&["tbf", "cbq", "sfq"], BackEndId::Tbf),
    ];
    for (disciplines, expected) in rows {
        assert_eq!(chosen(&kernel(disciplines), &device(), &policy), expected, "{disciplines:?}");
    }
    let usual = line(10e3, 50e3);
    let capabilities = kernel(&["pfifo"]);
    let inputs = PlanInputs { line: &usual, policy: &policy, capabilities: &capabilities, device: &device() };
    let refusal = choose(&inputs, None).expect_err("nothing can shape");
    assert!(refusal.reason.contains("tbf: this kernel lacks"), "{refusal}");
}

#[test]
fn reasons_against_cake() {
    let everything = KernelCapabilities::all_features();
    let one_queue = DeviceProperties { transmit_queues: Some(1), ..device() };
    assert_eq!(chosen(&everything, &one_queue, &TrafficPolicy::default()), BackEndId::Cake);
    let busy = DeviceProperties { busiest_processor: Ratio::from_percent(97.0), ..device() };
    assert_eq!(chosen(&everything, &busy, &TrafficPolicy::default()), BackEndId::HtbFqCodel);
    assert_eq!(chosen(&everything, &device(), &own_policy()), BackEndId::Cake);
    // Slow in one direction is slow, unless the better back end is unavailable.
    let (slow, usual) = (line(220.0, 850.0), TrafficPolicy::default());
    let on_slow = |capabilities: &KernelCapabilities| {
        let inputs = PlanInputs { line: &slow, policy: &usual, capabilities, device: &one_queue };
        choose(&inputs, None).expect("a back end").back_end.id
    };
    assert_eq!(on_slow(&everything), BackEndId::HtbFqCodel);
    assert_eq!(on_slow(&without(KernelFeature::Discipline("fq_codel"))), BackEndId::Cake);
    assert_eq!(on_slow(&without(KernelFeature::Filter("u32"))), BackEndId::Cake);
    assert_eq!(chosen(&without(KernelFeature::Action("skbedit")), &device(), &own_policy()), BackEndId::HtbFqCodel);
}

#[test]
fn requests_by_name() {
    let (usual, policy) = (line(10e3, 0.0), TrafficPolicy::default());
    let capabilities = without(KernelFeature::Discipline("cbq"));
    let inputs = PlanInputs { line: &usual, policy: &policy, capabilities: &capabilities, device: &device() };
    assert_eq!(choose(&inputs, Some(BackEndId::Tbf)).expect("available").back_end.id, BackEndId::Tbf);
    let refusal = choose(&inputs, Some(BackEndId::LartcCbq)).expect_err("no CBQ");
    assert!(refusal.way_out.contains("6.3") && refusal.way_out.contains("lartc-htb"), "{refusal}");
    assert_eq!(BackEndId::from_name("wonder"), None);
    assert!(BackEndId::names().contains("htb+fq_codel"));
    let rejected = choose(&inputs, None).expect("a back end").rejected;
    assert!(rejected.iter().all(|one| !one.reason.is_empty()));
}

fn refused(rates: (f64, f64), policy: &TrafficPolicy, capabilities: &KernelCapabilities) -> ShaperRefusal {
    let link = line(rates.0, rates.1);
    let inputs = PlanInputs { line: &link, policy, capabilities, device: &device() };
    choose(&inputs, None).expect_err("refused")
}

fn classes(rows: &str) -> TrafficPolicy {
    let classes = parse_class_file(&format!("match,name,group,down,up\n{rows}")).expect("good");
    TrafficPolicy { classes, ..TrafficPolicy::default() }
}

/// On a kernel that lacks most back ends, too: none of them is named.
#[test]
fn a_mistake_of_the_user_is_the_reason() {
    let poor = kernel(&["htb", "tbf", "bfifo", "pfifo"]);
    let said = |policy: &TrafficPolicy| {
        let refusal = refused((20e3, 50e3), policy, &poor).to_string();
        assert!(!refusal.contains("cake") && !refusal.contains("kernel"), "{refusal}");
        refusal
    };
    let one = said(&classes("192.0.2.7,,,30M,30M\n"));
    assert!(one.contains("192.0.2.7 has 30.0 Mbit/s up guaranteed, more than the 20.0 Mbit/s of the link"), "{one}");
    assert!(one.contains("--oversubscribe"), "{one}");
    let sum = said(&classes("192.0.2.7,,,,12M\n192.0.2.8,,,,12M\n192.0.2.9,,,1M,\n"));
    assert!(sum.contains("the 2 classes below the link have 24.0 Mbit/s up guaranteed together"), "{sum}");
    let group = said(&classes("group,ACME,,10M,10M\n192.0.2.7,,ACME,1M,11M\n"));
    assert!(group.contains("192.0.2.7 has 11.0") && group.contains("the group 'ACME' (line 2)"), "{group}");
    let dual = PerDirection { up: "step=2ms".parse().expect("valid"), ..PerDirection::default() };
    let queues = QueueOptions { dual, ..QueueOptions::default() };
    let dual = said(&TrafficPolicy { queues, ..TrafficPolicy::default() });
    assert!(dual.contains("--dualpi2") && dual.contains("add --back-end htb+dualpi2"), "{dual}");
}

#[test]
fn options_that_no_back_end_has_together_are_named() {
    let queues = QueueOptions { filters_acknowledgements: true, ..QueueOptions::default() };
    let both = TrafficPolicy { queues, ..classes("192.0.2.7,,,1M,1M\n") };
    let refusal = refused((20e3, 50e3), &both, &KernelCapabilities::all_features()).to_string();
    assert!(refusal.contains("(--ack-filter)") && refusal.contains("--class and --classes"), "{refusal}");
    assert!(!refusal.contains("kernel"), "{refusal}");
}

/// The back end itself is there; what the option needs is not.
#[test]
fn a_feature_that_an_option_needs_is_the_reason() {
    let mut poor = kernel(&["htb", "tbf", "bfifo", "pfifo"]);
    poor.replace(KernelFeature::Filter("fw"), FeatureSupport::Absent("TC classifier not found".to_owned()));
    let refusal = refused((20e3, 50e3), &classes("mark/16,,,1M,1M\n"), &poor).to_string();
    assert!(refusal.starts_with("classes by mark: this kernel lacks the filter fw"), "{refusal}");
    assert!(refusal.contains("CONFIG_NET_CLS_FW") && !refusal.contains("cake"), "{refusal}");
    let ecn = PerDirection { up: Some(true), down: None };
    let marking = TrafficPolicy { queues: QueueOptions { ecn, ..QueueOptions::default() }, ..TrafficPolicy::default() };
    let refusal = refused((20e3, 50e3), &marking, &poor);
    assert!(refusal.way_out.contains("htb+fq_codel") && refusal.way_out.contains("leave out"), "{refusal}");
}

/// Redirected where supported, else policed, else with a note.
#[test]
fn received_packets_kernel_by_kernel() {
    let usual = line(1000.0, 8000.0);
    let back_end = BackEndId::HtbFqCodel.back_end();
    let plan = |capabilities: &KernelCapabilities| {
        plan_with(back_end, &usual, &TrafficPolicy::default(), capabilities).expect("a plan")
    };
    assert_eq!(plan(&KernelCapabilities::all_features()).receiving, IngressControl::Redirected);
    for missing in [KernelFeature::IntermediateDevice, KernelFeature::Action("mirred")] {
        let mut capabilities = without(missing);
        let policed = plan(&capabilities);
        assert_eq!((&policed.receiving, &policed.intermediate), (&IngressControl::Policed, &None));
        assert!(policed.filters().any(|one| one.target == Some(FilterTarget::Police)));
        assert!(policed.notes.iter().any(|note| note.contains("policed") && note.contains(&missing.phrase())));
        capabilities.replace(KernelFeature::Action("police"), FeatureSupport::Absent("not found".to_owned()));
        let left = plan(&capabilities);
        assert!(matches!(left.receiving, IngressControl::Uncontrolled(_)));
        assert!(left.notes.iter().any(|note| note.contains("not controlled")));
    }
    let matched = plan(&without(KernelFeature::Filter("u32")));
    assert_eq!(matched.receiving, IngressControl::Redirected);
    assert!(matched.filters().all(|one| one.kind == "matchall"), "one class, one redirect");
}

/// Found by the host's rules, or stated; `None` leaves it to what was found.
#[test]
fn hosts_behind_nat_are_distinguished_or_noted() {
    let usual = line(20e3, 80e3);
    let plan = |id: BackEndId, found: Fact<bool>, stated: Option<bool>, fairness| {
        let policy = TrafficPolicy { translates_addresses: stated, fairness, ..TrafficPolicy::default() };
        let capabilities = KernelCapabilities::all_features();
        let device = DeviceProperties { translates_addresses: found, ..device() };
        let inputs = PlanInputs { line: &usual, policy: &policy, capabilities: &capabilities, device: &device };
        id.back_end().plan(&inputs).expect("a plan")
    };
    let unread = || Fact::absent("neither nft nor iptables-save is installed");
    let hosts = FairnessUnit::Hosts;
    for (found, stated, fairness, has_option, note) in [
        (Fact::Known(true), None, hosts, true, Some("translates addresses (NAT)")),
        (Fact::Known(true), Some(false), hosts, false, None),
        (Fact::Known(false), None, hosts, false, None),
        (Fact::Known(false), Some(true), hosts, true, None),
        (unread(), None, hosts, false, Some("--nat distinguishes the hosts")),
        (Fact::Known(false), None, FairnessUnit::Flows, false, None),
    ] {
        let plan = plan(BackEndId::Cake, found, stated, fairness);
        let sending = plan.disciplines().find(|one| one.device == "eth0" && one.kind == "cake").expect("planned");
        assert_eq!(sending.options.iter().any(|option| option == "nat"), has_option, "{:?}", sending.options);
        let noted = |words: &str| plan.notes.iter().any(|note| note.contains(words));
        assert!(note.map_or(!noted("NAT") && !noted("--nat"), noted), "{:?}", plan.notes);
    }
    // Without CAKE the plan says that hosts are not distinguished.
    let plan = plan(BackEndId::HtbFqCodel, Fact::Known(true), None, hosts);
    assert!(plan.notes.iter().any(|note| note.contains("also behind this host's NAT")), "{:?}", plan.notes);
}

fn rule_by_mark() -> TrafficPolicy {
    let selector = PacketSelector::FirewallMark(FirewallMark(0x20));
    let rule = TrafficRule { selector, importance: TrafficImportance::Bulk, reason: "requested".to_owned() };
    let usual = TrafficPolicy::default();
    TrafficPolicy { rules: [vec![rule], usual.rules.clone()].concat(), ..usual }
}

/// Each back end looks the mark up before its other filters, in both directions.
#[test]
fn rules_by_mark() {
    let all = KernelCapabilities::all_features();
    for (id, goal) in [
        (BackEndId::Cake, "action skbedit priority 1:1"),
        (BackEndId::HtbFqCodel, "flowid 1:30"),
        (BackEndId::HtbFqPie, "flowid 1:30"),
        (BackEndId::HtbSfq, "flowid 1:30"),
        (BackEndId::HtbBfifo, "flowid 1:30"),
    ] {
        let plan = plan_with(id.back_end(), &line(20e3, 50e3), &rule_by_mark(), &all).expect("planned");
        for device in ["eth0", "ifb4eth0"] {
            let filters = || plan.filters().filter(|one| one.device == device && one.parent != TcParent::Ingress);
            let found = filters().find(|one| one.kind == "fw").expect("by mark");
            let expected = format!("tc filter add dev {device} parent 1: protocol all prio 6 handle 0x20 fw {goal}");
            assert_eq!(found.command().to_string(), expected, "{id}");
            assert!(filters().filter(|one| one.kind != "fw").all(|one| one.preference > found.preference), "{id}");
        }
        let redirect = plan.filters().find(|one| one.parent == TcParent::Ingress).expect("redirected");
        assert!(redirect.options.join(" ").contains("action ctinfo cpmark"), "{id}");
    }
}

/// A rule that a back end or the kernel cannot follow is refused, and never left out in silence.
#[test]
fn rules_that_nothing_follows_are_refused() {
    let (all, link) = (KernelCapabilities::all_features(), line(20e3, 50e3));
    let refusal = |id: BackEndId, policy: &TrafficPolicy, kernel: &KernelCapabilities| {
        plan_with(id.back_end(), &link, policy, kernel).expect_err("refused").to_string()
    };
    for id in [BackEndId::Tbf, BackEndId::HtbDualpi2, BackEndId::LartcHtb, BackEndId::CakeMq] {
        assert!(refusal(id, &own_policy(), &all).contains("(--interactive, --bulk)"), "{id}");
    }
    let lacking = refusal(BackEndId::Cake, &own_policy(), &without(KernelFeature::Action("skbedit")));
    assert!(lacking.contains("CONFIG_NET_ACT_SKBEDIT"), "{lacking}");
    let lacking = refusal(BackEndId::HtbFqCodel, &own_policy(), &without(KernelFeature::Filter("u32")));
    assert!(lacking.contains("CONFIG_NET_CLS_U32"), "{lacking}");
    let lacking = refusal(BackEndId::HtbFqCodel, &rule_by_mark(), &without(KernelFeature::Filter("fw")));
    assert!(lacking.contains("priorities by mark") && lacking.contains("CONFIG_NET_CLS_FW"), "{lacking}");
    let mut kernel = without(KernelFeature::Action("ctinfo"));
    kernel.replace(KernelFeature::Action("connmark"), FeatureSupport::Absent("unknown".to_owned()));
    let lacking = refusal(BackEndId::Cake, &rule_by_mark(), &kernel);
    assert!(lacking.contains("CONFIG_NET_ACT_CTINFO"), "{lacking}");
    let up = line(20e3, 0.0);
    assert!(plan_with(BackEndId::Cake.back_end(), &up, &rule_by_mark(), &kernel).is_ok(), "sent packets have theirs");
}
