//! Tests of every back end.

mod choosing;
mod hygiene;
mod properties;
mod qdisc_options;
mod reading;

use linerate_units::{BitRate, Port};

use crate::back_ends::{BackEnd, DeviceProperties, PlanInputs};
use crate::capability::{FeatureSupport, KernelCapabilities, KernelFeature};
use crate::link::AccessLink;
use crate::plan::ShaperPlan;
use crate::policy::{PacketSelector, PortTransport, TrafficImportance, TrafficPolicy, TrafficRule};
use crate::refusal::ShaperRefusal;

/// A link of these rates in kbit/s; 0 is none.
fn line(up: f64, down: f64) -> AccessLink {
    let rate = |kilobits: f64| Some(BitRate::from_bits_per_second(kilobits * 1e3)).filter(|rate| !rate.is_zero());
    AccessLink::new(rate(up), rate(down))
}

/// A kernel without one feature.
fn without(feature: KernelFeature) -> KernelCapabilities {
    let mut capabilities = KernelCapabilities::all_features();
    capabilities.replace(feature, FeatureSupport::Absent("Specified qdisc kind is unknown".to_owned()));
    capabilities
}

fn device() -> DeviceProperties {
    DeviceProperties { transmit_queues: Some(4), ..DeviceProperties::ethernet("eth0") }
}

fn plan_with(
    back_end: &BackEnd,
    line: &AccessLink,
    policy: &TrafficPolicy,
    capabilities: &KernelCapabilities,
) -> Result<ShaperPlan, ShaperRefusal> {
    back_end.plan(&PlanInputs { line, policy, capabilities, device: &device() })
}

fn plan(back_end: &BackEnd, line: &AccessLink) -> ShaperPlan {
    plan_with(back_end, line, &TrafficPolicy::default(), &KernelCapabilities::all_features()).expect("every feature")
}

/// A policy with rules of its own.
fn own_policy() -> TrafficPolicy {
    let mut policy = TrafficPolicy::default();
    let rule = |selector, importance| TrafficRule { selector, importance, reason: "requested".to_owned() };
    let ssh = PacketSelector::Port(PortTransport::Tcp, Port::new(22).expect("not zero"));
    policy.rules.push(rule(ssh, TrafficImportance::Interactive));
    for prefix in ["192.0.2.0/24", "2001:db8::/32"] {
        policy.rules.push(rule(PacketSelector::Host(prefix.parse().expect("a prefix")), TrafficImportance::Bulk));
    }
    policy
}

/// Back ends other than those of 2002.
fn of_today() -> impl Iterator<Item = &'static BackEnd> {
    crate::back_ends::BACK_ENDS.iter().copied().filter(|back_end| back_end.automatic)
}
