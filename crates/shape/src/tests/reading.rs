//! Comparison of `tc` output with plans. The output is from iproute2 6.1 on Linux 6.12.

use super::{line, plan};
use crate::back_ends::BackEndId;
use crate::plan::{FilterTarget, QdiscHandle, ShaperPlan, TcParent};
use crate::read_back::{
    FoundClass, FoundDiscipline, FoundFilter, FoundQueueing, QueueingFault, classes, compare, disciplines, filters,
    filters_of_text,
};

/// Queueing that matches a plan exactly.
fn standing(plan: &ShaperPlan) -> FoundQueueing {
    let seen_discipline = |one: &crate::plan::PlannedDiscipline| FoundDiscipline {
        device: one.device.clone(),
        kind: one.kind.to_owned(),
        handle: one.handle,
        parent: Some(one.parent),
        rate: one.rate,
        options: serde_json::Map::new(),
    };
    let seen_class = |one: &crate::plan::PlannedClass| FoundClass {
        device: one.device.clone(),
        kind: one.kind.to_owned(),
        handle: one.handle,
        rate: Some(one.rate),
        ceiling: Some(one.ceiling.unwrap_or(one.rate)),
    };
    let seen_filter = |one: &crate::plan::PlannedFilter| {
        let target = one.target.clone()?;
        Some(FoundFilter {
            device: one.device.clone(),
            parent: one.parent,
            protocol: one.protocol.keyword().to_owned(),
            kind: one.kind.to_owned(),
            class: if let FilterTarget::Class(class) = target { Some(class) } else { None },
            redirect: if let FilterTarget::Redirect(to) = &target { Some(to.clone()) } else { None },
            polices: target == FilterTarget::Police,
        })
    };
    FoundQueueing {
        disciplines: plan.disciplines().map(seen_discipline).collect(),
        classes: plan.classes().map(seen_class).collect(),
        filters: plan.filters().filter_map(seen_filter).collect(),
    }
}

fn usual(id: BackEndId) -> ShaperPlan {
    plan(id.back_end(), &line(220.0, 850.0))
}

fn faults(plan: &ShaperPlan, standing: &FoundQueueing) -> Vec<QueueingFault> {
    compare(plan, standing).iter().map(|difference| difference.fault).collect()
}

/// Answers of iproute2 5.9 and 6.1: the same filters, of which the older one has no JSON.
#[test]
fn filters_of_older_programs_are_read_from_text() {
    let older = "filter protocol all pref 49152 u32 chain 0 \n\
                 filter protocol all pref 49152 u32 chain 0 fh 800: ht divisor 1 \n\
                 filter protocol all pref 49152 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 flowid 1:1 not_in_hw \n  \
                 match 00000000/00000000 at 0\n\taction order 1: mirred (Egress Redirect to device ifb9) stolen\n \t\
                 index 1 ref 1 bind 1\n\n";
    let newer = r#"[{"protocol":"all","pref":49152,"kind":"u32","chain":0},
        {"protocol":"all","pref":49152,"kind":"u32","chain":0,"options":{"fh":"800:","ht_divisor":1}},
        {"protocol":"all","pref":49152,"kind":"u32","chain":0,"options":{"fh":"800::800","order":2048,"key_ht":"800",
        "bkt":"0","flowid":"1:1","not_in_hw":true,"match":{"value":"0","mask":"0","offmask":"","off":0},
        "actions":[{"order":1,"kind":"mirred","mirred_action":"redirect","direction":"egress","to_dev":"ifb9",
        "control_action":{"type":"stolen"},"index":1,"ref":1,"bind":1}]}}]"#;
    let expected = filters(newer, "eth0", TcParent::Ingress).expect("JSON");
    assert_eq!(expected.len(), 1);
    assert_eq!(filters_of_text(older, "eth0", TcParent::Ingress), expected);
    // iproute2 6.1 marks the class of a match.
    assert_eq!(filters_of_text(&older.replace(" flowid", " *flowid"), "eth0", TcParent::Ingress), expected);
    let broken = r#"[{"protocol":"ip","kind":"u32","options":{fh 800: ht divisor 1 }}]"#;
    assert!(filters(broken, "eth0", TcParent::Root).is_err());
    assert_eq!(filters_of_text("", "eth0", TcParent::Root), []);
}

#[test]
fn a_policer_in_text_is_found() {
    let text = "filter protocol all pref 1 matchall chain 0 \nfilter protocol all pref 1 matchall chain 0 handle 0x1 flowid :1 \n  \
                not_in_hw\n\taction order 1:  police 0x1 rate 8Mbit burst 10Kb mtu 2Kb action drop overhead 0b \n\tref 1 bind 1 \n";
    let found = filters_of_text(text, "eth0", TcParent::Ingress);
    assert_eq!(found.len(), 1);
    assert!(found[0].polices && found[0].redirect.is_none() && found[0].kind == "matchall", "{found:?}");
}

/// iproute2 6.1 prints `fw` as text within its JSON, and an empty line before its actions.
#[test]
fn a_mark_that_selects_a_tin_is_found_in_text() {
    let text = "filter protocol all pref 6 fw chain 0 \nfilter protocol all pref 6 fw chain 0 handle 0x20 \n\n\taction order 1: \
                skbedit  priority 1:1 pipe\n\t index 1 ref 1 bind 1\n\n";
    let found = filters_of_text(text, "eth0", TcParent::Root);
    assert_eq!(found.iter().map(|one| one.kind.as_str()).collect::<Vec<_>>(), ["fw"], "{found:?}");
}

#[test]
fn a_matching_shaper_has_no_differences() {
    for back_end in crate::back_ends::BACK_ENDS {
        let plan = usual(back_end.id);
        assert_eq!(compare(&plan, &standing(&plan)), [], "{}", back_end.id);
        assert!(!compare(&plan, &FoundQueueing::default()).is_empty(), "{}: no queueing", back_end.id);
    }
}

#[test]
fn each_missing_object_is_found() {
    for back_end in crate::back_ends::BACK_ENDS {
        let plan = usual(back_end.id);
        let whole = standing(&plan);
        for number in 0..whole.disciplines.len() {
            let mut partly = whole.clone();
            partly.disciplines.remove(number);
            assert_eq!(faults(&plan, &partly), [QueueingFault::Missing], "{}", back_end.id);
        }
        for number in 0..whole.classes.len() {
            let mut partly = whole.clone();
            partly.classes.remove(number);
            assert_eq!(faults(&plan, &partly), [QueueingFault::Missing], "{}", back_end.id);
        }
        for number in 0..whole.filters.len() {
            let mut partly = whole.clone();
            partly.filters.remove(number);
            assert!(!faults(&plan, &partly).is_empty(), "{}: filter {number}", back_end.id);
        }
    }
}

/// A device without its tree, or without many of its objects, is no page of differences.
#[test]
fn many_missing_objects_are_counted() {
    let plan = usual(BackEndId::HtbBfifo);
    let whole = standing(&plan);
    let mut without_tree = whole.clone();
    without_tree.disciplines.retain(|one| one.device != "ifb4eth0");
    without_tree.classes.retain(|one| one.device != "ifb4eth0");
    without_tree.filters.retain(|one| one.device != "ifb4eth0");
    let found = compare(&plan, &without_tree);
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["ifb4eth0: no htb at the root"]);
    let mut without_classes = whole.clone();
    without_classes.classes.retain(|one| one.device != "eth0");
    let found = compare(&plan, &without_classes);
    let missing = plan.classes().filter(|class| class.device == "eth0").count();
    let last = format!("and {} more like it", missing - 4);
    assert!(found.len() == 4 && found[3].to_string().ends_with(&last), "{found:?}");
}

#[test]
fn a_shaper_that_does_nothing_is_found() {
    let plan = usual(BackEndId::Cake);
    let mut changed = standing(&plan);
    changed.filters.clear();
    let found = compare(&plan, &changed);
    assert_eq!(found[0].fault, QueueingFault::NoRedirect);
    assert_eq!(
        found[0].to_string(),
        "eth0: received packets (all) are not redirected to ifb4eth0, so nothing shapes them"
    );

    // Swapped rates, as observed in practice.
    let mut swapped = standing(&plan);
    let rates: Vec<_> = swapped.disciplines.iter().map(|one| one.rate).collect();
    swapped.disciplines[0].rate = rates[1];
    swapped.disciplines[1].rate = rates[0];
    assert_eq!(faults(&plan, &swapped), [QueueingFault::OtherRate; 2]);

    let mut replaced = standing(&plan);
    replaced.disciplines[0].kind = "pfifo_fast".to_owned();
    assert_eq!(faults(&plan, &replaced), [QueueingFault::OtherKind]);
}

#[test]
fn foreign_objects_are_found() {
    let plan = usual(BackEndId::HtbFqCodel);
    let mut more = standing(&plan);
    let (mut class, mut filter) = (more.classes[1].clone(), more.filters[0].clone());
    class.handle = QdiscHandle::class(1, 0x99);
    filter.class = Some(class.handle);
    more.classes.push(class);
    more.filters.push(filter);
    let mut discipline = more.disciplines[0].clone();
    discipline.parent = Some(TcParent::At(QdiscHandle::class(1, 0x99)));
    discipline.handle = QdiscHandle::discipline(0x99);
    more.disciplines.push(discipline.clone());
    // The kernel's own disciplines, and those of other interfaces, are ignored.
    discipline.handle = QdiscHandle::discipline(0);
    more.disciplines.push(discipline.clone());
    discipline.device = "eth1".to_owned();
    more.disciplines.push(discipline);
    assert_eq!(faults(&plan, &more), [QueueingFault::Foreign; 3]);
}

#[test]
fn disciplines_are_read() {
    let text = r#"[{"kind":"noqueue","handle":"0:","dev":"lo","root":true,"refcnt":2,"options":{}},
        {"kind":"htb","handle":"1:","dev":"eth0","root":true,"refcnt":2,"options":{"r2q":10,"default":"0x20"}},
        {"kind":"fq_codel","handle":"10:","dev":"eth0","parent":"1:10","options":{"limit":1001}},
        {"kind":"ingress","handle":"ffff:","dev":"eth0","parent":"ffff:fff1","options":{}},
        {"kind":"cake","handle":"1:","dev":"ifb4eth0","root":true,"options":{"bandwidth":106250,"diffserv":"besteffort"}},
        {"kind":"cake","handle":"2:","dev":"ifb1","root":true,"options":{"bandwidth":"unlimited"}}]"#;
    let seen = disciplines(text, None).expect("JSON");
    let parents: Vec<_> = seen.iter().map(|one| one.parent).collect();
    let leaf = TcParent::At(QdiscHandle::class(1, 0x10));
    let roots = Some(TcParent::Root);
    assert_eq!(parents, [roots, roots, Some(leaf), Some(TcParent::Ingress), roots, roots]);
    assert_eq!(seen[4].rate.map(linerate_units::BitRate::whole_bits_per_second), Some(850_000));
    assert_eq!(seen[5].rate, None);
    assert!(disciplines("", None).is_ok_and(|none| none.is_empty()));
    let error = disciplines("Cannot find device", None).expect_err("not JSON");
    assert!(error.to_string().contains("queueing disciplines"), "{error}");
}

/// Answer of iproute2 6.1 on Linux 7.2.
#[test]
fn a_discipline_that_tc_does_not_know_is_read() {
    let text = r#"[{"kind":"dualpi2","handle":"20:","dev":"v0","root":true,"refcnt":2,"options":{[Unknown qdisc, optlen=112] }},
        {"kind":"dualpi2","handle":"30:","dev":"v1","parent":"1:20","options":{[Unknown qdisc, optlen=112] }}]"#;
    let kinds: Vec<_> = disciplines(text, None).expect("read").into_iter().map(|one| (one.kind, one.device)).collect();
    assert_eq!(
        kinds,
        [("dualpi2", "v0"), ("dualpi2", "v1")].map(|(kind, device)| (kind.to_owned(), device.to_owned()))
    );
    assert!(disciplines("[{\"options\":{[Unknown qdisc, optlen=", None).is_err());
}

#[test]
fn classes_are_read_as_text_and_as_json() {
    let text = "class htb 1:1 root rate 220Kbit ceil 220Kbit burst 28b cburst 28b \n\
                class htb 1:10 parent 1:1 leaf 10: prio 0 rate 73328bit ceil 1Mbit burst 1515b cburst 28b \n";
    let seen = classes(text, "eth0").expect("text");
    let bits = |rate: Option<linerate_units::BitRate>| rate.map(linerate_units::BitRate::whole_bits_per_second);
    assert_eq!(
        (bits(seen[0].rate), bits(seen[1].rate), bits(seen[1].ceiling)),
        (Some(220_000), Some(73_328), Some(1_000_000))
    );
    assert_eq!((seen.len(), seen[1].handle), (2, QdiscHandle::class(1, 0x10)));
    let json = r#"[{"class":"htb","handle":"1:1","root":true,"rate":27500,"ceil":27500,"burst":28,"cburst":28}]"#;
    assert_eq!(classes(json, "eth0").expect("JSON")[0], seen[0]);
}

/// `u32` repeats the key `match`, and lists chain and table before the filters.
#[test]
fn filters_are_read() {
    let text = r#"[{"protocol":"all","pref":10,"kind":"u32","chain":0},
        {"protocol":"all","pref":10,"kind":"u32","chain":0,"options":{"fh":"800:","ht_divisor":1}},
        {"protocol":"all","pref":10,"kind":"u32","chain":0,"options":{"fh":"800::800","order":2048,"key_ht":"800",
         "bkt":"0","not_in_hw":true,"match":{"value":"0","mask":"0","offmask":"","off":0},"actions":[{"order":1,
         "kind":"mirred","mirred_action":"redirect","direction":"egress","to_dev":"ifb4eth0",
         "control_action":{"type":"stolen"},"index":1,"ref":1,"bind":1}]}},
        {"parent":"1:","protocol":"ip","pref":10,"kind":"u32","chain":0,"options":{"fh":"800::801","flowid":"1:20",
         "match":{"value":"60000","mask":"ff0000"},"match":{"value":"5000000","mask":"f00ffc0"}}}]"#;
    let seen = filters(text, "eth0", TcParent::Ingress).expect("JSON");
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].redirect.as_deref(), Some("ifb4eth0"));
    assert_eq!((seen[1].class, seen[1].protocol.as_str()), (Some(QdiscHandle::class(1, 0x20)), "ip"));
}

/// With the keyword `action`, and as the LARTC script writes it.
#[test]
fn policers_are_read_in_both_forms() {
    let head = r#"[{"protocol":"ip","pref":50,"kind":"u32","chain":0,"options":{"fh":"800::800","flowid":":1","#;
    let tail = [
        r#""actions":[{"order":1,"kind":"police","index":1,"control_action":{"type":"drop"},"overhead":0}]}}]"#,
        r#""not_in_hw":true,"kind":"police","index":1,"control_action":{"type":"drop"},"overhead":0}}]"#,
    ];
    for tail in tail {
        let seen = filters(&format!("{head}{tail}"), "eth0", TcParent::Ingress).expect("JSON");
        assert!(seen[0].polices && seen[0].redirect.is_none(), "{tail}");
    }
}
