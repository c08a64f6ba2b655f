//! Options of the queueing disciplines: their place in the plan, their refusal, and their read-back.

use core::time::Duration;

use crate::back_ends::{BACK_ENDS, BackEndId};
use crate::capability::KernelCapabilities;
use crate::link::AccessLink;
use crate::plan::{ShaperPlan, TcParent, changes};
use crate::policy::{QueueOptions, TrafficPolicy};
use crate::refusal::ShaperRefusal;
use crate::verify::PerDirection;

use super::{line, plan_with};

fn plan(id: BackEndId, link: &AccessLink, up: &str, down: &str) -> Result<ShaperPlan, ShaperRefusal> {
    let options = |text: &str| if text.is_empty() { Ok(<_>::default()) } else { text.parse() };
    let qdisc = PerDirection { up: options(up).expect("valid"), down: options(down).expect("valid") };
    let policy =
        TrafficPolicy { queues: QueueOptions { qdisc, ..QueueOptions::default() }, ..TrafficPolicy::default() };
    plan_with(id.back_end(), link, &policy, &KernelCapabilities::all_features())
}

/// Options of the last discipline of this kind on a device.
fn options_of(plan: &ShaperPlan, kind: &str, device: &str) -> String {
    let found = plan.disciplines().filter(|one| one.kind == kind && one.device == device).last();
    found.expect("a discipline").options.join(" ")
}

#[test]
fn each_direction_has_its_options() {
    let link = line(40e3, 100e3);
    let plan = |id, up, down| plan(id, &link, up, down).expect("a plan");
    let cake = plan(BackEndId::Cake, "tins=diffserv3,ack-filter=aggressive,split-gso=off", "memory=4M,mode=egress");
    let up = options_of(&cake, "cake", "eth0");
    assert!(
        up.starts_with("bandwidth 40000kbit diffserv3 dual-srchost nowash egress ack-filter-aggressive no-split-gso"),
        "{up}"
    );
    let down = options_of(&cake, "cake", "ifb4eth0");
    assert!(
        down.contains("besteffort dual-dsthost wash egress no-ack-filter split-gso")
            && down.ends_with("memlimit 4000000")
    );

    let codel = plan(
        BackEndId::HtbFqCodel,
        "limit=500,flows=64,quantum=1514,interval=50ms,ce-threshold=1ms,memory=1M",
        "limit=2000",
    );
    let expected =
        "limit 500 flows 64 quantum 1514 target 5000us interval 50000us ecn ce_threshold 1000us memory_limit 1000000";
    assert_eq!(options_of(&codel, "fq_codel", "eth0"), expected);
    assert!(
        options_of(&codel, "fq_codel", "ifb4eth0").starts_with("limit 2000 flows 1024 quantum 1514 target 10000us")
    );
    let asked = codel.disciplines().find(|one| one.kind == "fq_codel").expect("a leaf").requested.clone();
    assert!(
        ["limit", "flows", "quantum", "interval", "ce-threshold", "memory"].iter().all(|name| asked.contains(name))
    );

    let pie = plan(BackEndId::HtbFqPie, "limit=500,flows=64,quantum=600,memory=1M", "");
    let expected = "limit 500 flows 64 quantum 600 target 15000us tupdate 15000us memory_limit 1000000";
    assert_eq!(options_of(&pie, "fq_pie", "eth0"), expected);
    let sfq = plan(BackEndId::HtbSfq, "limit=100,quantum=3000,perturb=60", "");
    assert_eq!(options_of(&sfq, "sfq", "eth0"), "limit 100 quantum 3000 perturb 60");
    assert!(options_of(&sfq, "sfq", "ifb4eth0").ends_with("quantum 1514 perturb 10"));
    let fifo = plan(BackEndId::HtbBfifo, "limit=30000", "");
    assert_eq!(options_of(&fifo, "bfifo", "eth0"), "limit 30000");
}

/// A back end that does not know an option says which ones it has, and which back end has that one.
#[test]
fn unknown_options_are_refused_by_name() {
    let link = line(40e3, 100e3);
    let refused = |id, options: &str| plan(id, &link, "", options).expect_err(options).to_string();
    let codel = refused(BackEndId::HtbFqCodel, "limit=100,tins=diffserv3");
    assert!(codel.contains("no option tins (--qdisc-options): it has limit, flows, quantum, interval"), "{codel}");
    assert!(codel.contains("use cake_mq or cake"), "{codel}");
    let cake = refused(BackEndId::Cake, "limit=100");
    assert!(
        cake.contains("it has memory, tins, ack-filter, split-gso, mode, fwmark") && cake.contains("htb+fq_codel"),
        "{cake}"
    );
    assert!(refused(BackEndId::HtbDualpi2, "limit=100").contains("those of --dualpi2"));
    for id in [BackEndId::Tbf, BackEndId::LartcHtb, BackEndId::LartcCbq] {
        assert!(refused(id, "limit=100").contains("it has none"), "{id}");
    }
}

/// CAKE has tins by mark, also for received packets, which get their connection's mark first.
#[test]
fn tins_by_mark() {
    let link = line(40e3, 100e3);
    let cake = plan(BackEndId::Cake, &link, "fwmark=15", "fwmark=0xff00,tins=diffserv3").expect("a plan");
    let up = options_of(&cake, "cake", "eth0");
    assert!(up.contains(" diffserv4 ") && up.ends_with(" fwmark 0xf"), "{up}");
    let down = options_of(&cake, "cake", "ifb4eth0");
    assert!(down.contains(" diffserv3 ") && down.ends_with(" fwmark 0xff00"), "{down}");
    let redirect = |plan: &ShaperPlan| {
        let filter = plan.filters().find(|one| one.parent == TcParent::Ingress).expect("redirected");
        filter.options.join(" ")
    };
    assert!(redirect(&cake).contains("action ctinfo cpmark action mirred"), "{}", redirect(&cake));
    let up_only = plan(BackEndId::Cake, &link, "fwmark=15", "").expect("a plan");
    assert!(!redirect(&up_only).contains("cpmark"), "{}", redirect(&up_only));
}

/// Rules select tins of `diffserv4` by number.
#[test]
fn own_rules_need_their_tins() {
    let options = "tins=diffserv8".parse().expect("valid");
    let queues = QueueOptions { qdisc: PerDirection { up: options, down: options }, ..QueueOptions::default() };
    let policy = TrafficPolicy { queues, ..super::own_policy() };
    let all = KernelCapabilities::all_features();
    let refusal = plan_with(BackEndId::Cake.back_end(), &line(1e3, 1e3), &policy, &all).expect_err("other tins");
    assert!(refusal.reason.contains("diffserv4"), "{refusal}");
}

#[test]
fn other_options_set_the_tree_up_anew() {
    let link = line(40e3, 100e3);
    for (id, one, other) in [
        (BackEndId::Cake, "memory=4M", "tins=diffserv3"),
        (BackEndId::HtbFqCodel, "flows=64", "flows=128"),
        (BackEndId::HtbSfq, "limit=100", "limit=200"),
    ] {
        let plan = |options| plan(id, &link, options, "").expect("a plan");
        assert_eq!(changes(&plan(one), &plan(other)), None, "{id}: one that is left out would stay");
        assert_eq!(changes(&plan(one), &plan(one)), Some(Vec::new()));
    }
}

#[test]
fn each_direction_has_its_round_trip() {
    let round_trip = PerDirection { up: Duration::from_millis(40), down: Duration::from_millis(200) };
    let link = AccessLink { round_trip, ..line(40e3, 100e3) };
    let cake = plan(BackEndId::Cake, &link, "", "").expect("a plan");
    assert!(options_of(&cake, "cake", "eth0").contains("rtt 40000us"));
    assert!(options_of(&cake, "cake", "ifb4eth0").contains("rtt 200000us"));
    let codel = plan(BackEndId::HtbFqCodel, &link, "", "").expect("a plan");
    assert!(options_of(&codel, "fq_codel", "eth0").contains("target 2000us interval 40000us"));
    assert!(options_of(&codel, "fq_codel", "ifb4eth0").contains("target 20000us interval 210000us"));
}

/// Every option that a kind knows appears in its command, with another value than the default.
#[test]
fn no_option_is_forgotten() {
    let link = line(40e3, 100e3);
    let values = [
        ("limit", "limit=123456"),
        ("flows", "flows=77"),
        ("quantum", "quantum=777"),
        ("perturb", "perturb=77"),
        ("interval", "interval=77ms"),
        ("ce-threshold", "ce-threshold=77us"),
        ("memory", "memory=77777"),
        ("tins", "tins=precedence"),
        ("ack-filter", "ack-filter=aggressive"),
        ("split-gso", "split-gso=off"),
        ("mode", "mode=ingress"),
    ];
    for id in BACK_ENDS.iter().map(|back_end| back_end.id) {
        let usual = plan(id, &link, "", "").expect("a plan");
        for (name, option) in values {
            let Ok(changed) = plan(id, &link, option, "") else { continue };
            let leaf = |plan: &ShaperPlan| {
                let is_leaf =
                    |one: &&crate::plan::PlannedDiscipline| one.kind != "htb" && one.parent != TcParent::Ingress;
                plan.disciplines().find(is_leaf).expect("a leaf").clone()
            };
            assert_ne!(leaf(&usual).options, leaf(&changed).options, "{id} {name}");
            assert!(leaf(&changed).requested.contains(&name), "{id} {name}");
        }
    }
}
