//! Plan of a shaper, as plain data.

mod changes;
mod codepoint_table;
mod command;
mod handle;

use std::collections::BTreeMap;

pub use linerate_model::change::intermediate_device;
use linerate_model::direction::Direction;
use linerate_units::BitRate;

pub use self::changes::changes;
pub use self::codepoint_table::CodepointTable;
pub use self::command::PlanCommand;
pub(crate) use self::command::arguments;
pub use self::handle::QdiscHandle;
use crate::back_ends::BackEndId;
use crate::policy::{QdiscOptions, TrafficImportance};
use crate::prediction::{ClassBehaviour, PredictedDelays};
use crate::verify::PerDirection;

/// Plan of a shaper for one interface, in an order that is safe at each step.
///
/// Egress is shaped before anything is redirected, and the redirect comes last: until then received packets take their
/// usual route, and from then on their intermediate device is up and shaped.
#[derive(Clone, Debug, PartialEq)]
pub struct ShaperPlan {
    /// Back end of the plan.
    pub back_end: BackEndId,
    /// Interface.
    pub device: String,
    /// Intermediate device for received packets; `None` without one.
    pub intermediate: Option<String>,
    /// Control of received packets.
    pub receiving: IngressControl,
    /// Steps, in order.
    pub steps: Vec<PlanStep>,
    /// Offloads to switch off before the first step.
    pub offloads: Vec<PlannedOffload>,
    /// Table that stores the codepoints of sent packets, after the last step; `None` without one.
    pub table: Option<CodepointTable>,
    /// Options of its queueing disciplines that were asked for.
    pub options: PerDirection<QdiscOptions>,
    /// Predicted delay.
    pub prediction: PredictedDelays,
    /// Behaviour of its classes, from which the delay is predicted.
    pub(crate) behaviours: Vec<ClassBehaviour>,
    /// Notes shown below the plan: sentences.
    pub notes: Vec<String>,
}

/// Control of received packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IngressControl {
    /// Not requested.
    NotAsked,
    /// Redirected to a shaped intermediate device.
    Redirected,
    /// Dropped above the rate.
    Policed,
    /// Not controlled: reason, as a phrase without a full stop.
    Uncontrolled(String),
}

/// Step of a plan, with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanStep {
    /// Object to set up.
    pub part: PlannedObject,
    /// Direction.
    pub direction: Direction,
    /// Reason, as a phrase without a full stop.
    pub reason: String,
}

/// Object that a step sets up.
#[derive(Clone, Debug, PartialEq)]
pub enum PlannedObject {
    /// Creates an intermediate device.
    Create(DeviceName),
    /// Sets the device up, which precedes any redirect to it.
    SetUp(DeviceName),
    /// A queueing discipline.
    Discipline(PlannedDiscipline),
    /// A class of HTB or CBQ.
    Class(PlannedClass),
    /// A filter.
    Filter(PlannedFilter),
}

/// An interface by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName(pub String);

/// Parent of a queueing discipline or filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TcParent {
    /// Root of the interface.
    Root,
    /// Ingress hook.
    Ingress,
    /// A class, or a discipline with minor number 0.
    At(QdiscHandle),
}

/// A queueing discipline.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedDiscipline {
    /// Interface.
    pub device: String,
    /// Parent.
    pub parent: TcParent,
    /// Handle.
    pub handle: QdiscHandle,
    /// `htb`, `fq_codel`, …
    pub kind: &'static str,
    /// Rate to which it shapes itself (CAKE, TBF).
    pub rate: Option<BitRate>,
    /// `tc` options after the kind, including the rate.
    pub options: Vec<String>,
    /// Names of the options that are compared when it is read back.
    pub requested: Vec<&'static str>,
}

/// A class.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedClass {
    /// Interface.
    pub device: String,
    /// Parent: a class, or the discipline itself.
    pub parent: QdiscHandle,
    /// Handle.
    pub handle: QdiscHandle,
    /// `htb` or `cbq`.
    pub kind: &'static str,
    /// Guaranteed rate.
    pub rate: BitRate,
    /// Ceiling when others leave rate unused; `None` when not stated, and the kernel uses `rate`.
    pub ceiling: Option<BitRate>,
    /// Importance of its traffic; `None` for an inner class.
    pub importance: Option<TrafficImportance>,
    /// Position of its traffic class in the policy's list; `None` for a class of the plan itself.
    pub traffic_class: Option<usize>,
    /// `tc` options after the kind, including rate and ceiling.
    pub options: Vec<String>,
}

/// A filter.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedFilter {
    /// Interface.
    pub device: String,
    /// Parent whose packets it classifies.
    pub parent: TcParent,
    /// `ip`, `ipv6` or `all`.
    pub protocol: FilterProtocol,
    /// `tc` preference (`prio`): lower ones are evaluated first.
    pub preference: u16,
    /// `u32`, `matchall`.
    pub kind: &'static str,
    /// Target of its packets; `None` for an intermediate match.
    pub target: Option<FilterTarget>,
    /// `tc` options after the kind.
    pub options: Vec<String>,
}

/// Protocol of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FilterProtocol {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// All protocols.
    All,
}

impl FilterProtocol {
    /// `tc` keyword.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Ipv4 => "ip",
            Self::Ipv6 => "ipv6",
            Self::All => "all",
        }
    }
}

/// Target of a filter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FilterTarget {
    /// Class.
    Class(QdiscHandle),
    /// Tin of CAKE, by number.
    Tin(u8),
    /// Egress of another interface.
    Redirect(String),
    /// Policer, which drops packets above the rate.
    Police,
}

/// Aggregated packets of an interface that must not pass the queues as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedOffload {
    /// Interface.
    pub device: String,
    /// Origin of the packets.
    pub aggregates: AggregatedPackets,
    /// Reason, as a phrase without a full stop.
    pub reason: String,
}

/// Origin of aggregated packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregatedPackets {
    /// Built by this host's TCP for sending: since Linux 4.17 whatever the segmentation features say (software cuts them
    /// up behind the queues), but at most `gso_max_segs` segments each.
    Sent,
    /// Merged from received ones: generic receive offload.
    Received,
}

impl AggregatedPackets {
    /// Setting that keeps them out, as `ip link` and `ethtool -K` name it.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Sent => "gso_max_segs 1",
            Self::Received => "gro off",
        }
    }
}

impl ShaperPlan {
    /// Creates a plan without steps.
    pub(crate) fn empty(back_end: BackEndId, device: &str) -> Self {
        Self {
            back_end,
            device: device.to_owned(),
            intermediate: None,
            receiving: IngressControl::NotAsked,
            steps: Vec::new(),
            offloads: Vec::new(),
            table: None,
            options: PerDirection::default(),
            prediction: PredictedDelays::default(),
            behaviours: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Commands that set it up, in order; the offloads first, the table last.
    #[must_use]
    pub fn commands(&self) -> Vec<PlanCommand> {
        let offloads = self.offloads.iter().map(PlannedOffload::command);
        let table = self.table.iter().flat_map(CodepointTable::commands);
        offloads.chain(self.steps.iter().map(|step| step.part.command())).chain(table).collect()
    }

    /// Commands that remove the objects of the steps. A failure for a missing object is no error.
    ///
    /// The redirect is removed before its intermediate device, because packets redirected to a device that is down are
    /// dropped.
    #[must_use]
    pub fn removal(&self) -> Vec<PlanCommand> {
        let uses = |parent| self.disciplines().any(|one| one.device == self.device && one.parent == parent);
        let mut commands: Vec<PlanCommand> = self.table.iter().map(CodepointTable::removal).collect();
        if uses(TcParent::Ingress) {
            commands.push(PlanCommand::tc(["qdisc", "del", "dev", &self.device, "ingress"]));
        }
        if uses(TcParent::Root) {
            commands.push(PlanCommand::tc(["qdisc", "del", "dev", &self.device, "root"]));
        }
        if let Some(name) = &self.intermediate {
            commands.push(PlanCommand::ip(["link", "del", "dev", name]));
        }
        commands
    }

    /// Queueing disciplines of the plan.
    pub fn disciplines(&self) -> impl Iterator<Item = &PlannedDiscipline> {
        self.steps.iter().filter_map(|step| match &step.part {
            PlannedObject::Discipline(discipline) => Some(discipline),
            _ => None,
        })
    }

    /// Classes of the plan.
    pub fn classes(&self) -> impl Iterator<Item = &PlannedClass> {
        self.steps.iter().filter_map(|step| match &step.part {
            PlannedObject::Class(class) => Some(class),
            _ => None,
        })
    }

    /// Classes of the policy's traffic classes in a direction, by their position in the list.
    #[must_use]
    pub fn traffic_classes(&self, direction: Direction) -> BTreeMap<usize, &PlannedClass> {
        let device = self.shaped_device(direction);
        let here = self.classes().filter(|class| Some(class.device.as_str()) == device);
        here.filter_map(|class| Some((class.traffic_class?, class))).collect()
    }

    /// Filters of the plan.
    pub fn filters(&self) -> impl Iterator<Item = &PlannedFilter> {
        self.steps.iter().filter_map(|step| match &step.part {
            PlannedObject::Filter(filter) => Some(filter),
            _ => None,
        })
    }

    /// Device on which a direction is shaped: the interface itself, or its intermediate device.
    #[must_use]
    pub fn shaped_device(&self, direction: Direction) -> Option<&str> {
        match direction {
            Direction::Up => Some(&self.device),
            Direction::Down => self.intermediate.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_of_intermediate_devices() {
        assert_eq!(intermediate_device("eth0"), "ifb4eth0");
        assert_eq!(intermediate_device("enp0s31f6u2"), "ifb4enp0s31f6u2");
        let long = ["enp0s31f6.100", "enp0s31f6.101", "enx001122334455", "enx001122334466", "abcdéfghijkl"];
        let names = BTreeSet::from(long.map(intermediate_device));
        assert_eq!(names.len(), long.len(), "{names:?}");
        assert!(names.iter().all(|name| name.len() <= 15 && name.starts_with("ifb4")), "{names:?}");
        assert!(intermediate_device("enp0s31f6.100").starts_with("ifb4enp0s"));
    }
}
