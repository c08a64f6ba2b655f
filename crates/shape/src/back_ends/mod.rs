//! Back ends that can shape a link, best first: one file each.

mod address_table;
mod builder;
mod cake;
mod cake_mq;
mod class_tree;
mod classify;
mod host_leaves;
mod htb_bfifo;
mod htb_dualpi2;
mod htb_fq_codel;
mod htb_fq_pie;
mod htb_sfq;
mod htb_tree;
mod id;
mod ingress;
mod lartc_cbq;
mod lartc_htb;
mod sizes;
mod tbf;

use linerate_model::direction::Direction;
use linerate_model::fact::Fact;
use linerate_units::{BitRate, ByteCount, Mtu, Ratio, display};

use crate::capability::{KernelCapabilities, KernelFeature};
use crate::link::AccessLink;
use crate::plan::{CodepointTable, ShaperPlan, intermediate_device};
use crate::policy::{CakeTins, ReceivedMarks, TrafficPolicy, known_options};
use crate::prediction::PredictedDelays;
use crate::refusal::ShaperRefusal;

pub use id::BackEndId;

/// Properties of the interface to shape.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceProperties {
    /// Name.
    pub name: String,
    /// Name of the device to which received packets are redirected.
    pub intermediate: String,
    /// MTU.
    pub mtu: Mtu,
    /// Link-layer header bytes that the kernel counts: 14 for Ethernet, 0 for PPP and tunnels.
    pub header: ByteCount,
    /// Number of transmit queues; `None` when unknown, which counts as one.
    pub transmit_queues: Option<u32>,
    /// Speed of its link; `None` when unknown.
    pub link_speed: Option<BitRate>,
    /// True when this host gives packets that leave through it another source address (NAT).
    pub translates_addresses: Fact<bool>,
    /// True when received packets come aggregated whatever the receive offload is: from a virtual link (veth), whose other end
    /// hands over what its TCP has built.
    pub receives_aggregates: bool,
    /// Packet processing load of the busiest processor; `None` when not measured.
    pub busiest_processor: Option<Ratio>,
}

impl DeviceProperties {
    /// Properties of an Ethernet interface known by name only.
    #[must_use]
    pub fn ethernet(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            intermediate: intermediate_device(name),
            mtu: Mtu::new(1500),
            header: ByteCount::new(14),
            transmit_queues: None,
            link_speed: None,
            translates_addresses: Fact::default(),
            receives_aggregates: false,
            busiest_processor: None,
        }
    }
}

/// Inputs of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanInputs<'a> {
    /// Access link.
    pub line: &'a AccessLink,
    /// Policy.
    pub policy: &'a TrafficPolicy,
    /// Capabilities of the kernel.
    pub capabilities: &'a KernelCapabilities,
    /// Interface.
    pub device: &'a DeviceProperties,
}

impl PlanInputs<'_> {
    /// Size of the largest packet on the link; without a stated overhead, as the kernel counts it.
    #[must_use]
    pub fn full_packet(&self) -> ByteCount {
        self.line.full_packet().max(self.full_frame())
    }

    /// True when hosts have to be distinguished by conntrack: as the policy states, else as the host was found.
    #[must_use]
    pub fn translates_addresses(&self) -> bool {
        self.policy.translates_addresses.or(self.device.translates_addresses.known().copied()).unwrap_or(false)
    }

    /// Size of the largest packet as the kernel counts it, with the interface's header.
    #[must_use]
    pub fn full_frame(&self) -> ByteCount {
        self.line.mtu.byte_count() + self.device.header
    }
}

/// A back end.
#[derive(Debug)]
pub struct BackEnd {
    /// Identifier.
    pub id: BackEndId,
    /// Title: one line without a full stop.
    pub title: &'static str,
    /// Method and purpose, in some sentences.
    pub explanation: &'static str,
    /// Source of the method.
    pub citation: &'static str,
    /// Features required to shape egress.
    pub needs: &'static [KernelFeature],
    /// Reason against its automatic choice for this link, as a phrase; `None` when suitable. A request by name
    /// overrides it.
    pub unsuitable: fn(&PlanInputs<'_>) -> Option<String>,
    /// True when it may be chosen automatically; historical scripts are not.
    pub automatic: bool,
    /// Remedy when it is unavailable, as a phrase without a full stop.
    remedy: &'static str,
    /// Adds its steps to an empty plan.
    make: fn(&PlanInputs<'_>, ShaperPlan) -> ShaperPlan,
}

impl BackEnd {
    /// True when this kernel has the features of the back end itself, whatever the options need.
    pub(crate) fn is_present(&self, inputs: &PlanInputs<'_>) -> bool {
        self.needs.iter().all(|feature| inputs.capabilities.has(*feature))
    }

    /// Plans for this link and kernel, or returns what is wrong with the request, or the missing feature.
    pub fn plan(&self, inputs: &PlanInputs<'_>) -> Result<ShaperPlan, ShaperRefusal> {
        let refusal = |reason| ShaperRefusal { back_end: Some(self.id), reason, way_out: self.remedy.to_owned() };
        input_refusal(inputs)?;
        option_refusal(self.id, inputs)?;
        if let Some(lacking) = self.needs.iter().find_map(|feature| inputs.capabilities.lacks(*feature)) {
            return Err(refusal(lacking));
        }
        option_kernel_refusal(self.id, inputs)?;
        let mut plan = (self.make)(inputs, ShaperPlan::empty(self.id, &inputs.device.name));
        plan.prediction = PredictedDelays::new(inputs.line, &plan.behaviours);
        plan.notes.extend(link_speed_note(inputs));
        plan.table = codepoint_table(inputs);
        plan.options = inputs.policy.queues.qdisc;
        Ok(plan)
    }
}

/// Table that stores codepoints, where the policy asks for it.
fn codepoint_table(inputs: &PlanInputs<'_>) -> Option<CodepointTable> {
    let device = inputs.device.name.clone();
    inputs.policy.stores_codepoints.then(|| CodepointTable { device, codepoints: inputs.policy.codepoints() })
}

/// Refuses a request that no back end on any kernel can carry out: a mistake of the user.
pub(crate) fn input_refusal(inputs: &PlanInputs<'_>) -> Result<(), ShaperRefusal> {
    let refusal =
        |reason: String, way_out: &str| Err(ShaperRefusal { back_end: None, reason, way_out: way_out.to_owned() });
    if inputs.line.up.is_none_or(BitRate::is_zero) && inputs.line.down.is_none_or(BitRate::is_zero) {
        return refusal("neither direction has a rate".to_owned(), "give --up, --down or both");
    }
    // The controller of a variable link may set any rate.
    if inputs.line.variable {
        return Ok(());
    }
    let link = crate::verify::PerDirection { up: inputs.line.up, down: inputs.line.down };
    inputs.policy.classes.check_sums(link).or_else(|reason| {
        refusal(reason, "give them less, with a ceiling to use more (RATE:CEILING), or scale them with --oversubscribe")
    })
}

/// Refuses options of the policy that a back end does not have, on any kernel.
pub(crate) fn option_refusal(id: BackEndId, inputs: &PlanInputs<'_>) -> Result<(), ShaperRefusal> {
    use BackEndId::{Cake, CakeMq, HtbDualpi2, HtbFqCodel, HtbFqPie, LartcCbq, LartcHtb, Tbf};
    let policy = inputs.policy;
    let is_cake = matches!(id, Cake | CakeMq);
    let is_plain = matches!(id, Tbf | HtbDualpi2 | LartcHtb | LartcCbq);
    let has_aqm = is_cake || matches!(id, HtbFqCodel | HtbFqPie | HtbDualpi2);
    let refusal = |reason: &str, way_out: &str| {
        Err(ShaperRefusal { back_end: Some(id), reason: reason.to_owned(), way_out: way_out.to_owned() })
    };
    if policy.queues.filters_acknowledgements && !is_cake {
        return refusal("it has no filter of acknowledgements (--ack-filter)", "use cake");
    }
    if !policy.classes.is_empty() && !id.has_traffic_classes() {
        return refusal("it has no classes for --class and --classes", "use one of the back ends htb+*");
    }
    for direction in Direction::BOTH {
        match policy.queues.ecn.of(direction) {
            Some(true) if !has_aqm => return refusal("it cannot mark packets (--ecn)", "use cake or htb+fq_codel"),
            Some(false) if id == HtbDualpi2 => {
                return refusal("a dual queue always uses ECN (--ecn off)", "use htb+fq_codel");
            }
            Some(false) if is_cake => return refusal("CAKE always uses ECN (--ecn off)", "use htb+fq_codel"),
            _ => {}
        }
        if !policy.queues.dual.of(direction).is_default() && id != HtbDualpi2 {
            return refusal(
                "it has no dual queue (--dualpi2)",
                "add --back-end htb+dualpi2, which is chosen by name only",
            );
        }
        qdisc_option_refusal(id, policy, direction)?;
        if policy.queues.target.of(direction).is_some() && !has_aqm {
            return refusal("its queues have no target (--target)", "use cake, htb+fq_codel or htb+fq_pie");
        }
    }
    if policy.has_own_rules() && is_plain {
        return refusal("it takes no rules (--interactive, --bulk)", "use cake or htb+fq_codel");
    }
    if policy.has_own_rules() && id == CakeMq {
        return refusal("its filters cannot select tins (--interactive, --bulk)", "use cake");
    }
    if policy.divides_hosts && is_plain {
        return refusal("it has no classes for hosts (--per-host)", "use cake or htb+*");
    }
    if policy.stores_codepoints && !CodepointTable::can_name(&inputs.device.name) {
        return refusal("nftables cannot have its name in that of a table (--store-dscp)", "rename the interface");
    }
    let is_received_changed = inputs.line.down.is_some() && policy.received_marks != ReceivedMarks::Untouched;
    if is_received_changed && matches!(id, LartcHtb | LartcCbq) {
        return refusal("it polices received packets and leaves their DSCP alone", "use cake or htb+*");
    }
    Ok(())
}

/// Kind of the queueing discipline to which `--qdisc-options` belongs.
const fn optioned_kind(id: BackEndId) -> &'static str {
    match id {
        BackEndId::Cake => "cake",
        BackEndId::CakeMq => "cake_mq",
        BackEndId::HtbFqCodel => "fq_codel",
        BackEndId::HtbFqPie => "fq_pie",
        BackEndId::HtbSfq => "sfq",
        BackEndId::HtbBfifo => "bfifo",
        BackEndId::Tbf | BackEndId::HtbDualpi2 | BackEndId::LartcHtb | BackEndId::LartcCbq => "",
    }
}

/// Refuses options that the queueing discipline of a back end does not know.
fn qdisc_option_refusal(id: BackEndId, policy: &TrafficPolicy, direction: Direction) -> Result<(), ShaperRefusal> {
    let refusal = |reason: String, way_out: String| Err(ShaperRefusal { back_end: Some(id), reason, way_out });
    let (options, known) = (policy.queues.qdisc.of(direction), known_options(optioned_kind(id)));
    if let Some(unknown) = options.names().find(|name| !known.contains(name)) {
        let has = match (known, id) {
            ([], BackEndId::HtbDualpi2) => "its options are those of --dualpi2".to_owned(),
            ([], _) => "it has none".to_owned(),
            _ => format!("it has {}", known.join(", ")),
        };
        let others =
            BACK_ENDS.iter().map(|one| one.id).filter(|id| known_options(optioned_kind(*id)).contains(&unknown));
        let others: Vec<&str> = others.map(BackEndId::name).collect();
        let reason = format!("it has no option {unknown} (--qdisc-options): {has}");
        return refusal(reason, format!("leave {unknown} out, or use {}", others.join(" or ")));
    }
    if options.tins.is_some_and(|tins| tins != CakeTins::Diffserv4) && policy.has_own_rules() {
        let reason = "--interactive and --bulk select tins of diffserv4 (--qdisc-options tins)".to_owned();
        return refusal(reason, "leave tins out, or the rules".to_owned());
    }
    Ok(())
}

/// Refuses options for which this kernel lacks a feature that a back end does not need itself.
fn option_kernel_refusal(id: BackEndId, inputs: &PlanInputs<'_>) -> Result<(), ShaperRefusal> {
    let (policy, is_cake) = (inputs.policy, matches!(id, BackEndId::Cake | BackEndId::CakeMq));
    let check = |features: &[KernelFeature], way_out: &str| match features
        .iter()
        .find_map(|feature| inputs.capabilities.lacks(*feature))
    {
        Some(reason) => Err(ShaperRefusal { back_end: Some(id), reason, way_out: way_out.to_owned() }),
        None => Ok(()),
    };
    if policy.divides_hosts && !is_cake {
        check(&[KernelFeature::Filter("u32")], "use a kernel with CONFIG_NET_CLS_U32 for --per-host")?;
    }
    if policy.has_own_rules() {
        let tins = if is_cake { &[KernelFeature::Action("skbedit")][..] } else { &[] };
        check(tins, "use a kernel with CONFIG_NET_ACT_SKBEDIT for --interactive and --bulk, or htb+fq_codel")?;
        check(&[KernelFeature::Filter("u32")], "use a kernel with CONFIG_NET_CLS_U32 for --interactive and --bulk")?;
    }
    if !policy.classes.is_empty() {
        check(&[KernelFeature::Filter("u32")], "use a kernel with CONFIG_NET_CLS_U32 for --class and --classes")?;
    }
    mark_kernel_refusal(id, inputs)?;
    if inputs.line.down.is_none() {
        return Ok(());
    }
    match policy.received_marks {
        ReceivedMarks::Untouched => Ok(()),
        ReceivedMarks::Washed if is_cake => Ok(()),
        ReceivedMarks::Restored => {
            check(&[KernelFeature::Action("ctinfo")], "use a kernel with CONFIG_NET_ACT_CTINFO for --restore-dscp")
        }
        ReceivedMarks::Washed => check(
            &[KernelFeature::Action("pedit"), KernelFeature::Action("csum")],
            "use a kernel with CONFIG_NET_ACT_PEDIT and CONFIG_NET_ACT_CSUM for --wash, or cake",
        ),
    }
}

/// Refuses rules, classes and tins by firewall mark where the kernel cannot look it up, or received packets have none.
fn mark_kernel_refusal(id: BackEndId, inputs: &PlanInputs<'_>) -> Result<(), ShaperRefusal> {
    let (policy, capabilities) = (inputs.policy, inputs.capabilities);
    let refusal =
        |reason: String, way_out: &str| Err(ShaperRefusal { back_end: Some(id), reason, way_out: way_out.to_owned() });
    let has_classes = Direction::BOTH.iter().any(|direction| policy.classes.has_marks(*direction));
    let what = if has_classes { "classes" } else { "priorities" };
    if let Some(lacking) =
        capabilities.lacks(KernelFeature::Filter("fw")).filter(|_| has_classes || policy.has_mark_rules())
    {
        return refusal(
            format!("{what} by mark: {lacking}"),
            "select by address or DSCP, or use a kernel with CONFIG_NET_CLS_FW",
        );
    }
    let needs_connection_marks = inputs.line.down.is_some() && policy.reads_marks(Direction::Down);
    if needs_connection_marks && ingress::mark_action(capabilities).is_none() {
        let lacking = ["ctinfo", "connmark"].map(|kind| capabilities.lacks(KernelFeature::Action(kind)));
        return refusal(
            lacking.into_iter().flatten().collect::<Vec<_>>().join(", "),
            "received packets have no mark without: use a kernel with CONFIG_NET_ACT_CTINFO or CONFIG_NET_ACT_CONNMARK, \
             or use marks for what is sent only",
        );
    }
    Ok(())
}

/// Note on a rate that the interface's link does not reach.
fn link_speed_note(inputs: &PlanInputs<'_>) -> Option<String> {
    let speed = inputs.device.link_speed?;
    let above: Vec<String> = Direction::BOTH
        .into_iter()
        .filter_map(|direction| Some((direction, inputs.line.rate(direction).filter(|rate| *rate > speed)?)))
        .map(|(direction, rate)| format!("{} {}", display::rate(rate), direction.name()))
        .collect();
    let name = &inputs.device.name;
    (!above.is_empty()).then(|| {
        format!(
            "The link of {name} runs at {}, below {}: the queue forms in front of the link, and this shaper changes nothing.",
            display::rate(speed),
            above.join(" and ")
        )
    })
}

/// All back ends, in order of preference.
pub static BACK_ENDS: &[&BackEnd] = &[
    &cake_mq::BACK_END,
    &cake::BACK_END,
    &htb_fq_codel::BACK_END,
    &htb_fq_pie::BACK_END,
    &htb_sfq::BACK_END,
    &htb_bfifo::BACK_END,
    &tbf::BACK_END,
    &htb_dualpi2::BACK_END,
    &lartc_htb::BACK_END,
    &lartc_cbq::BACK_END,
];
