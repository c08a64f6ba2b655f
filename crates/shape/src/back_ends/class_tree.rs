//! Classes of devices and groups next to the tiers of all other traffic.
//!
//! ```text
//!   1:1 link ─┬─ 1:2 other traffic ── the tiers
//!             ├─ 1:1000 … classes of devices, each with a queue
//!             └─ 1:1000 … groups ── classes of devices
//! ```

use linerate_model::direction::Direction;
use linerate_units::BitRate;

use super::address_table::{AddressField, AddressTables};
use super::builder::DirectionBuilder;
use super::classify::{self, ROOT};
use super::htb_tree::{self, LINK_CLASS, LeafQueue};
use super::sizes;
use crate::plan::{FilterProtocol, FilterTarget, PlannedClass, QdiscHandle, TcParent};
use crate::policy::{HostPrefix, PacketSelector, TrafficImportance};
use crate::traffic_classes::{ClassRates, ClassSelector, TrafficClass};

/// Class of everything that no traffic class selects.
const OTHERS: QdiscHandle = QdiscHandle::class(1, 2);

/// Minor number of the first class of a device.
const FIRST_CLASS: u16 = 0x1000;

/// Guaranteed share of the other traffic when the classes claim the whole link.
const MIN_OTHER_SHARE: f64 = 1.0 / 32.0;

/// `tc` preferences of the filters, before those of the tiers: one number carries one protocol and one kind.
const MARK_PREFERENCE: u16 = 3;
const ADDRESS_PREFERENCES: [(FilterProtocol, u16); 2] = [(FilterProtocol::Ipv4, 4), (FilterProtocol::Ipv6, 5)];

/// Queues of a leaf's flows: the default of 1024 would take 70 KB for each class.
const FLOWS: (&str, &str) = ("flows 1024", "flows 64");

/// True for a class that only divides its rate between other classes: a packet's turn is decided below it.
pub(super) fn is_inner(handle: QdiscHandle) -> bool {
    handle == LINK_CLASS || handle == OTHERS
}

/// Class below which the tiers belong, and its guaranteed rate. Adds a class above them where devices have classes.
pub(super) fn add_others(builder: &mut DirectionBuilder<'_>, rate: BitRate) -> (QdiscHandle, BitRate) {
    let policy = builder.inputs.policy;
    if policy.classes.is_empty() {
        return (LINK_CLASS, rate);
    }
    let scaled = scaled(builder, rate);
    let claimed: f64 = policy
        .classes
        .list()
        .iter()
        .zip(scaled)
        .filter(|(class, _)| class.group.is_none())
        .filter_map(|(_, rates)| rates.map(|rates| rates.guaranteed.bits_per_second()))
        .sum();
    let rest = BitRate::from_bits_per_second((rate.bits_per_second() - claimed).max(0.0));
    let guaranteed = sizes::representable_rate(rest.max(rate * MIN_OTHER_SHARE));
    let class = htb_tree::class(builder, (LINK_CLASS, OTHERS), (guaranteed, rate), (None, false));
    builder.class(class, "traffic without a class of its own: the rate that the classes leave");
    (OTHERS, guaranteed)
}

/// Rates of the classes in this direction, which together leave a share to the other traffic.
fn scaled(builder: &DirectionBuilder<'_>, rate: BitRate) -> Vec<Option<ClassRates>> {
    let classes = &builder.inputs.policy.classes;
    let cap = |rates: ClassRates| ClassRates {
        guaranteed: sizes::representable_rate(rates.guaranteed),
        ceiling: sizes::representable_rate(rates.ceiling.min(rate)),
    };
    let scaled = classes.scaled(builder.direction, rate * (1.0 - MIN_OTHER_SHARE));
    scaled.into_iter().map(|rates| rates.map(cap)).collect()
}

fn handle(place: usize) -> QdiscHandle {
    QdiscHandle::class(1, FIRST_CLASS + u16::try_from(place).expect("at most 16 000 classes"))
}

/// Adds the classes with their queues, and the filters that select them.
pub(super) fn add_classes(builder: &mut DirectionBuilder<'_>, rate: BitRate, leaf: &LeafQueue) {
    let policy = builder.inputs.policy;
    let list = policy.classes.list();
    for (place, (class, rates)) in list.iter().zip(scaled(builder, rate)).enumerate() {
        let Some(rates) = rates else { continue };
        let parent = class.group.map_or(LINK_CLASS, handle);
        add_class(builder, (parent, place), rates, class, leaf);
    }
    add_filters(builder, list);
}

fn add_class(
    builder: &mut DirectionBuilder<'_>,
    (parent, place): (QdiscHandle, usize),
    rates: ClassRates,
    class: &TrafficClass,
    leaf: &LeafQueue,
) {
    let importance = (!class.is_group()).then_some(TrafficImportance::Default);
    let pair = (rates.guaranteed.min(rates.ceiling), rates.ceiling);
    let handle = handle(place);
    let planned = htb_tree::class(builder, (parent, handle), pair, (importance, importance.is_some()));
    let planned = PlannedClass { traffic_class: Some(place), ..planned };
    let title = class.title();
    if class.is_group() {
        builder.class(planned, format!("the group {title}"));
        return;
    }
    builder.class(planned, format!("the class {title}"));
    let receives_aggregates = builder.direction == Direction::Down && builder.inputs.device.receives_aggregates;
    let has_limit = builder.inputs.policy.queues.qdisc.of(builder.direction).limit.is_some();
    let options = if leaf.kind == "bfifo" && receives_aggregates && !has_limit {
        format!("limit {}", sizes::aggregate_limit(builder.inputs, rates.ceiling).get())
    } else {
        (leaf.options)(builder.inputs, rates.ceiling, builder.direction).replace(FLOWS.0, FLOWS.1)
    };
    builder.discipline(
        (TcParent::At(handle), QdiscHandle::discipline(handle.minor)),
        leaf.kind,
        None,
        &options,
        leaf.reason,
    );
}

fn add_filters(builder: &mut DirectionBuilder<'_>, list: &[TrafficClass]) {
    let direction = builder.direction;
    let with_rate = list.iter().enumerate().filter(|(_, class)| class.rates.of(direction).is_some());
    let selected = with_rate.flat_map(|(place, class)| class.selectors.iter().map(move |one| (*one, handle(place))));
    let (mut addresses, mut codepoints, mut marks) = (Vec::new(), Vec::new(), Vec::new());
    for (selector, class) in selected {
        match selector {
            ClassSelector::Address(prefix) => addresses.push((prefix, class)),
            ClassSelector::Codepoint(codepoint) => codepoints.push((codepoint, class)),
            ClassSelector::FirewallMark(mark) => marks.push((mark, class)),
        }
    }
    for (mark, class) in marks {
        let options = format!("handle {mark} flowid {class}");
        add_filter(builder, (FilterProtocol::All, MARK_PREFERENCE), "fw", (&options, Some(class)), "classes by mark");
    }
    let mut tables = AddressTables::new();
    for place in ADDRESS_PREFERENCES {
        add_address_filters(builder, place, &mut tables, &addresses);
        for (codepoint, class) in &codepoints {
            for matched in classify::matches(&PacketSelector::Codepoint(*codepoint), place.0, direction) {
                let options = format!("{matched} flowid {class}");
                add_filter(builder, place, "u32", (&options, Some(*class)), "classes by DSCP");
            }
        }
    }
}

/// Packets from a device have its address as source, those to it as destination; which of them are sent through this
/// interface depends on its side, so both are looked up.
fn add_address_filters(
    builder: &mut DirectionBuilder<'_>,
    place: (FilterProtocol, u16),
    tables: &mut AddressTables,
    addresses: &[(HostPrefix, QdiscHandle)],
) {
    let fields = match builder.direction {
        Direction::Up => [AddressField::Source, AddressField::Destination],
        Direction::Down => [AddressField::Destination, AddressField::Source],
    };
    for field in fields {
        let Some(filters) = tables.filters(place.0, field, addresses) else {
            builder.note("The addresses of the classes need more hash tables than the kernel has: some have no class.");
            return;
        };
        for (options, class) in filters {
            add_filter(builder, place, "u32", (&options, class), "classes by address, from hash tables");
        }
    }
}

fn add_filter(
    builder: &mut DirectionBuilder<'_>,
    place: (FilterProtocol, u16),
    kind: &'static str,
    (options, class): (&str, Option<QdiscHandle>),
    reason: &str,
) {
    builder.filter(TcParent::At(ROOT), place, (kind, options), class.map(FilterTarget::Class), reason);
}

#[cfg(test)]
mod tests {
    use super::super::{BACK_ENDS, BackEndId, DeviceProperties, PlanInputs};
    use super::*;
    use crate::capability::{FeatureSupport, KernelCapabilities, KernelFeature};
    use crate::link::AccessLink;
    use crate::plan::ShaperPlan;
    use crate::policy::TrafficPolicy;
    use crate::refusal::ShaperRefusal;
    use crate::traffic_classes::parse_class_file;

    fn plan(id: BackEndId, file: &str, capabilities: &KernelCapabilities) -> Result<ShaperPlan, ShaperRefusal> {
        let rate = |megabits: f64| Some(BitRate::from_bits_per_second(megabits * 1e6));
        let line = AccessLink::new(rate(50.0), rate(100.0));
        let classes = parse_class_file(&format!("match,name,group,down,up\n{file}")).expect("good");
        let (policy, device) =
            (TrafficPolicy { classes, ..TrafficPolicy::default() }, DeviceProperties::ethernet("eth0"));
        id.back_end().plan(&PlanInputs { line: &line, policy: &policy, capabilities, device: &device })
    }

    /// Guaranteed rates below one class, which HTB sends whatever the class above has left.
    fn guaranteed(plan: &ShaperPlan, device: &str, parent: QdiscHandle) -> f64 {
        let children = plan.classes().filter(|one| one.device == device && one.parent == parent);
        children.map(|one| one.rate.bits_per_second()).sum()
    }

    #[test]
    fn guaranteed_rates_never_exceed_the_class_above() {
        let file = "group,g,,60M,40M\n10.0.0.1,,g,60M:200M,40M\n10.0.0.2,,,40M,\n2001:db8::/48,,,,10M:20M\n";
        let all = KernelCapabilities::all_features();
        for id in BACK_ENDS.iter().map(|back_end| back_end.id).filter(|id| id.has_traffic_classes()) {
            let plan = plan(id, file, &all).expect("every feature");
            for device in ["eth0", "ifb4eth0"] {
                // The tiers share theirs as without classes.
                let is_own = |handle: QdiscHandle| is_inner(handle) || handle.minor >= FIRST_CLASS;
                for class in plan.classes().filter(|one| one.device == device && is_own(one.handle)) {
                    let below = guaranteed(&plan, device, class.handle);
                    assert!(below <= class.rate.bits_per_second() * 1.0001, "{id} {device} {}: {below}", class.handle);
                    assert!(class.ceiling >= Some(class.rate), "{class:?}");
                }
                let devices = plan.classes().filter(|one| one.device == device && one.handle.minor >= FIRST_CLASS);
                assert_eq!(devices.count(), 3, "{id} {device}");
            }
        }
    }

    /// One packet of ten segments fits into the queue of a slow class.
    #[test]
    fn a_class_holds_an_aggregated_packet_of_a_virtual_link() {
        let limit = |receives_aggregates, interface: &str| {
            let rate = |megabits: f64| Some(BitRate::from_bits_per_second(megabits * 1e6));
            let line = AccessLink::new(rate(50.0), rate(100.0));
            let classes = parse_class_file("match,name,group,down,up\n10.0.0.1,,,2M:3M,2M:3M\n").expect("good");
            let policy = TrafficPolicy { classes, ..TrafficPolicy::default() };
            let device = DeviceProperties { receives_aggregates, ..DeviceProperties::ethernet("eth0") };
            let capabilities = KernelCapabilities::all_features();
            let inputs = PlanInputs { line: &line, policy: &policy, capabilities: &capabilities, device: &device };
            let plan = BackEndId::HtbBfifo.back_end().plan(&inputs).expect("planned");
            let place = TcParent::At(handle(0));
            let queue = plan.disciplines().find(|one| one.device == interface && one.parent == place).expect("a queue");
            queue.options[1].clone()
        };
        assert_eq!((limit(true, "ifb4eth0"), limit(true, "eth0")), ("18168".to_owned(), "7500".to_owned()));
        assert_eq!(limit(false, "ifb4eth0"), "7500");
    }

    #[test]
    fn back_ends_and_kernels_without_classes_are_refused() {
        let all = KernelCapabilities::all_features();
        for id in [BackEndId::Cake, BackEndId::Tbf, BackEndId::LartcHtb] {
            let refusal = plan(id, "10.0.0.1,,,1M,1M\n", &all).expect_err("no classes");
            assert!(refusal.to_string().contains("htb+"), "{refusal}");
        }
        let without = |feature, file: &str| {
            let mut capabilities = KernelCapabilities::all_features();
            capabilities.replace(feature, FeatureSupport::Absent("unknown".to_owned()));
            if feature == KernelFeature::Action("ctinfo") {
                capabilities.replace(KernelFeature::Action("connmark"), FeatureSupport::Absent("unknown".to_owned()));
            }
            plan(BackEndId::HtbFqCodel, file, &capabilities).map_err(|refusal| refusal.to_string())
        };
        let error = without(KernelFeature::Filter("fw"), "mark/1,,,,1M\n").expect_err("no fw");
        assert!(error.contains("CONFIG_NET_CLS_FW"), "{error}");
        assert!(without(KernelFeature::Filter("fw"), "10.0.0.1,,,,1M\n").is_ok());
        let error = without(KernelFeature::Action("ctinfo"), "mark/1,,,1M,1M\n").expect_err("no connection marks");
        assert!(error.contains("CONFIG_NET_ACT_CTINFO"), "{error}");
        assert!(without(KernelFeature::Action("ctinfo"), "mark/1,,,,1M\n").is_ok());
    }

    #[test]
    fn received_packets_get_their_connection_s_mark_first() {
        let plan =
            plan(BackEndId::HtbFqCodel, "mark/1,,,1M,1M\n", &KernelCapabilities::all_features()).expect("planned");
        let redirect = plan.filters().find(|one| one.parent == TcParent::Ingress).expect("redirected");
        let options = redirect.options.join(" ");
        assert_eq!(options, "match u32 0 0 action ctinfo cpmark action mirred egress redirect dev ifb4eth0");
        let by_mark = plan.filters().find(|one| one.kind == "fw").expect("by mark").command().to_string();
        assert_eq!(by_mark, "tc filter add dev eth0 parent 1: protocol all prio 3 handle 0x1 fw flowid 1:1000");
    }
}
