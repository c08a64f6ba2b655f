//! What holds for every back end.

mod choosing;
mod hygiene;
mod properties;
mod reading;

use linerate_units::{BitRate, Port};

use crate::back_ends::{BackEnd, DeviceFacts, Inputs};
use crate::capability::{Capabilities, Feature, Support};
use crate::link::Line;
use crate::plan::Plan;
use crate::policy::{Importance, Policy, Rule, Selector, Transport};
use crate::refusal::Refusal;

/// A line of these rates in kbit/s; 0 is none.
fn line(up: f64, down: f64) -> Line {
    let rate = |kilobits: f64| Some(BitRate::from_bits_per_second(kilobits * 1e3)).filter(|rate| !rate.is_zero());
    Line::new(rate(up), rate(down))
}

/// A kernel without one thing.
fn without(feature: Feature) -> Capabilities {
    let mut capabilities = Capabilities::everything();
    capabilities.replace(feature, Support::Absent("Specified qdisc kind is unknown".to_owned()));
    capabilities
}

fn device() -> DeviceFacts {
    DeviceFacts { transmit_queues: Some(4), ..DeviceFacts::ethernet("eth0") }
}

fn plan_with(back_end: &BackEnd, line: &Line, policy: &Policy, capabilities: &Capabilities) -> Result<Plan, Refusal> {
    back_end.plan(&Inputs { line, policy, capabilities, device: &device() })
}

fn plan(back_end: &BackEnd, line: &Line) -> Plan {
    plan_with(back_end, line, &Policy::default(), &Capabilities::everything()).expect("everything is there")
}

/// A policy that says more than the usual.
fn own_policy() -> Policy {
    let mut policy = Policy::default();
    let rule = |selector, importance| Rule { selector, importance, reason: "asked for".to_owned() };
    let ssh = Selector::Port(Transport::Tcp, Port::new(22).expect("not zero"));
    policy.rules.push(rule(ssh, Importance::Interactive));
    for prefix in ["192.0.2.0/24", "2001:db8::/32"] {
        policy.rules.push(rule(Selector::Host(prefix.parse().expect("a prefix")), Importance::Bulk));
    }
    policy
}

/// The back ends that are not of the year 2002.
fn of_today() -> impl Iterator<Item = &'static BackEnd> {
    crate::back_ends::BACK_ENDS.iter().copied().filter(|back_end| back_end.automatic)
}
