//! What is to be set up on a host, as plain data.

mod changes;
mod command;
mod handle;

pub use linerate_model::change::intermediate_device;
use linerate_units::BitRate;

pub use self::changes::changes;
pub use self::command::Command;
pub(crate) use self::command::words;
pub use self::handle::Handle;
use crate::link::Direction;
use crate::policy::Importance;
use crate::prediction::Prediction;

/// A shaper for one interface: everything that is created, in an order that is safe at each step.
///
/// What is sent is shaped before anything is redirected, and the redirect comes last: until then received packets take
/// their usual way, and from then on the device that they are sent through is up and shaped.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Which back end made it: an id of [`BACK_ENDS`](crate::back_ends::BACK_ENDS).
    pub back_end: &'static str,
    /// The interface.
    pub device: String,
    /// The intermediate device that carries what is received; `None` when there is none.
    pub intermediate: Option<String>,
    /// How what is received is held to its rate.
    pub receiving: Receiving,
    /// What is set up, in this order.
    pub steps: Vec<Step>,
    /// Offloads that are to be off before the first step.
    pub offloads: Vec<Offload>,
    /// The delay that is to be expected.
    pub prediction: Prediction,
    /// What the reader should know: sentences.
    pub notes: Vec<String>,
}

/// How received packets are held to their rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receiving {
    /// Nobody asked for it.
    NotAsked,
    /// They pass an intermediate device that is shaped.
    Redirected,
    /// They are dropped above the rate.
    Policed,
    /// They are not: why, as a phrase without a full stop.
    Uncontrolled(String),
}

/// One thing that is set up, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What.
    pub part: Part,
    /// For which direction.
    pub direction: Direction,
    /// Why, as a phrase without a full stop.
    pub reason: String,
}

/// What a step sets up.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// An intermediate device is made.
    Create(Device),
    /// It is set up, which it must be before anything is redirected to it.
    SetUp(Device),
    /// A queueing discipline.
    Discipline(Discipline),
    /// A class of HTB or CBQ.
    Class(Class),
    /// A filter.
    Filter(Filter),
}

/// An interface by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device(pub String);

/// Where a queueing discipline or a filter hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parent {
    /// The interface's root.
    Root,
    /// The hook for received packets.
    Ingress,
    /// A class, or a discipline with minor number 0.
    At(Handle),
}

/// A queueing discipline.
#[derive(Clone, Debug, PartialEq)]
pub struct Discipline {
    /// Its interface.
    pub device: String,
    /// Where it hangs.
    pub parent: Parent,
    /// Its handle.
    pub handle: Handle,
    /// `htb`, `fq_codel`, …
    pub kind: &'static str,
    /// The rate that it holds by itself (CAKE, TBF).
    pub rate: Option<BitRate>,
    /// `tc`'s words behind the kind, the rate among them.
    pub options: Vec<String>,
}

/// A class.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its interface.
    pub device: String,
    /// Above it: a class, or the discipline itself.
    pub parent: Handle,
    /// Its number.
    pub handle: Handle,
    /// `htb` or `cbq`.
    pub kind: &'static str,
    /// What it is guaranteed.
    pub rate: BitRate,
    /// What it may have when others leave it; `None` where it is not stated and the kernel takes `rate`.
    pub ceiling: Option<BitRate>,
    /// Which traffic it carries; `None` for a class above others.
    pub importance: Option<Importance>,
    /// `tc`'s words behind the kind, rate and ceiling among them.
    pub options: Vec<String>,
}

/// A filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// Its interface.
    pub device: String,
    /// Whose packets it sorts.
    pub parent: Parent,
    /// `ip`, `ipv6` or `all`.
    pub protocol: Protocol,
    /// `tc`'s `prio`: lower ones are asked first.
    pub preference: u16,
    /// `u32`, `matchall`.
    pub kind: &'static str,
    /// Where its packets go; `None` for a step on the way there.
    pub target: Option<Goal>,
    /// `tc`'s words behind the kind.
    pub options: Vec<String>,
}

/// Which packets a filter is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// IPv4's.
    Ipv4,
    /// IPv6's.
    Ipv6,
    /// All.
    All,
}

impl Protocol {
    /// `tc`'s word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ipv4 => "ip",
            Self::Ipv6 => "ipv6",
            Self::All => "all",
        }
    }
}

/// Where a filter sends packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Into a class.
    Class(Handle),
    /// Into a tin of CAKE, by number.
    Tin(u8),
    /// Out through another interface.
    Redirect(String),
    /// Nowhere when they come too fast.
    Police,
}

/// An offload that is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offload {
    /// The interface.
    pub device: String,
    /// `ethtool -K`'s short name.
    pub feature: &'static str,
    /// Its long name, as `ethtool -k` lists it.
    pub long_name: &'static str,
    /// Why, as a phrase without a full stop.
    pub reason: String,
}

impl Plan {
    /// A plan without steps.
    pub(crate) fn empty(back_end: &'static str, device: &str) -> Self {
        Self {
            back_end,
            device: device.to_owned(),
            intermediate: None,
            receiving: Receiving::NotAsked,
            steps: Vec::new(),
            offloads: Vec::new(),
            prediction: Prediction::default(),
            notes: Vec::new(),
        }
    }

    /// The commands that set it up, in order; the offloads first.
    #[must_use]
    pub fn commands(&self) -> Vec<Command> {
        let offloads = self.offloads.iter().map(Offload::command);
        offloads.chain(self.steps.iter().map(|step| step.part.command())).collect()
    }

    /// The commands that remove what the steps created. Each fails when there is nothing to remove, which is no error.
    ///
    /// What the interface receives is let go before its intermediate device is taken away, because packets that are
    /// redirected to a device which is down are dropped.
    #[must_use]
    pub fn removal(&self) -> Vec<Command> {
        let uses = |parent| self.disciplines().any(|one| one.device == self.device && one.parent == parent);
        let mut commands = Vec::new();
        if uses(Parent::Ingress) {
            commands.push(Command::tc(["qdisc", "del", "dev", &self.device, "ingress"]));
        }
        if uses(Parent::Root) {
            commands.push(Command::tc(["qdisc", "del", "dev", &self.device, "root"]));
        }
        if let Some(name) = &self.intermediate {
            commands.push(Command::ip(["link", "del", "dev", name]));
        }
        commands
    }

    /// The queueing disciplines in it.
    pub fn disciplines(&self) -> impl Iterator<Item = &Discipline> {
        self.steps.iter().filter_map(|step| match &step.part {
            Part::Discipline(discipline) => Some(discipline),
            _ => None,
        })
    }

    /// The classes in it.
    pub fn classes(&self) -> impl Iterator<Item = &Class> {
        self.steps.iter().filter_map(|step| match &step.part {
            Part::Class(class) => Some(class),
            _ => None,
        })
    }

    /// The filters in it.
    pub fn filters(&self) -> impl Iterator<Item = &Filter> {
        self.steps.iter().filter_map(|step| match &step.part {
            Part::Filter(filter) => Some(filter),
            _ => None,
        })
    }

    /// The device on which a direction is shaped: the interface itself, or its intermediate device.
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
    use super::*;

    #[test]
    fn names_of_intermediate_devices() {
        assert_eq!(intermediate_device("eth0"), "ifb4eth0");
        assert_eq!(intermediate_device("enp0s31f6u2c2"), "ifb4enp0s31f6u2");
        assert_eq!(intermediate_device("enp0s31f6u2c2").len(), 15);
        assert_eq!(intermediate_device("abcdefghijé"), "ifb4abcdefghij", "a letter is not cut in two");
    }
}
