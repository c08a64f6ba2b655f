//! The interfaces of a host, from the driver up to the queueing disciplines.

mod counters;
mod device;
mod listing;
mod placement;
mod queueing;

use std::collections::BTreeMap;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount};

pub use self::counters::{LinkCounters, ReceiveFaults};
pub use self::device::{Channels, Coalescing, Duplex, Offload, Pause, RingSizes, Rings};
pub use self::placement::{Interrupt, PciLink, ReceiveQueue, TransmitQueue};
pub use self::queueing::{Discipline, disciplines_with_parent_kinds, leaves, root};
use crate::fact::Fact;
use crate::host::processors::ProcessorSet;

/// An interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Whether it is switched on (`ip link set … up`).
    pub is_up: bool,
    /// Whether it is the loopback device.
    pub is_loopback: bool,
    /// Its state as the kernel has it (RFC 2863's `ifOperStatus`).
    pub state: LinkState,
    /// What kind of virtual device it is, for example `veth`; `None` for real ones and the loopback device.
    pub kind: Option<String>,
    /// Its driver.
    pub driver: Fact<String>,
    /// What it runs on or is part of.
    pub membership: Membership,
    /// Its MTU.
    pub mtu: Option<Mtu>,
    /// Length of the device's queue (`txqueuelen`).
    pub transmit_queue: Option<PacketCount>,
    /// The largest train of segments that it is given to cut (`gso_max_size`).
    pub segmentation_size: Option<ByteCount>,
    /// The largest train that received segments are joined to (`gro_max_size`); `None` before Linux 5.19.
    pub coalescing_size: Option<ByteCount>,
    /// Queues for sending and receiving that the kernel has for it.
    pub queue_counts: Option<(u32, u32)>,
    /// What has passed through it.
    pub counters: Option<LinkCounters>,
    /// Its speed; absent for devices that have none and links that are down.
    pub speed: Fact<BitRate>,
    /// The highest speed that the device can do.
    pub highest_speed: Fact<BitRate>,
    /// Whether both ends may send at the same time.
    pub duplex: Fact<Duplex>,
    /// Offloads by ethtool's names.
    pub offloads: Fact<BTreeMap<String, Offload>>,
    /// Rings of descriptors.
    pub rings: Fact<Rings>,
    /// Queues of the device.
    pub channels: Fact<Channels>,
    /// When it interrupts.
    pub coalescing: Fact<Coalescing>,
    /// Ethernet's flow control.
    pub pause: Fact<Pause>,
    /// Forward error correction in use, by ethtool's name: `RS`, `BaseR`, `Off`.
    pub error_correction: Fact<String>,
    /// The driver's own counters whose names speak of drops, misses, errors, pauses or error correction.
    pub driver_counters: Fact<BTreeMap<String, u64>>,
    /// Queueing disciplines, the root first.
    pub queueing: Fact<Vec<Discipline>>,
    /// Where packets are steered to on the way in.
    pub receive_queues: Fact<Vec<ReceiveQueue>>,
    /// Who sends through which queue.
    pub transmit_queues: Fact<Vec<TransmitQueue>>,
    /// Whether received packets are handled by threads of the kernel instead of soft interrupts (`threaded`).
    pub has_receive_threads: Fact<bool>,
    /// Its interrupts.
    pub interrupts: Fact<Vec<Interrupt>>,
    /// The node of memory that it is at; absent where there is only one.
    pub memory_node: Fact<u32>,
    /// The processors that are near to it.
    pub near_processors: Fact<ProcessorSet>,
    /// Its PCI Express link.
    pub pci: Fact<PciLink>,
}

/// The state of an interface (`IFLA_OPERSTATE`, RFC 2863).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkState {
    /// The kernel does not know; so for many virtual devices, which work all the same.
    #[default]
    Unknown,
    /// Parts of it are missing.
    NotPresent,
    /// It does not work: no cable, or switched off.
    Down,
    /// What it runs on does not work.
    LowerLayerDown,
    /// Under test.
    Testing,
    /// It waits for something, for example to be let in by a switch.
    Dormant,
    /// It works.
    Up,
}

/// What an interface runs on or is part of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// The bond, bridge or the like that it is part of.
    pub master: Option<String>,
    /// The interface that it runs on, in the same namespace: the carrier of a VLAN or tunnel.
    pub lower: Option<String>,
    /// The number of the VLAN that it is.
    pub vlan: Option<u16>,
    /// How it spreads flows, if it is a bond.
    pub bond: Option<Bond>,
}

/// How a bond works (`Documentation/networking/bonding.rst`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bond {
    /// Mode by the kernel's number: 0 balance-rr, 1 active-backup, 2 balance-xor, 3 broadcast, 4 802.3ad, 5 balance-tlb,
    /// 6 balance-alb.
    pub mode: u8,
    /// By what packets are spread (`xmit_hash_policy`) by the kernel's number: 0 layer2, 1 layer3+4, 2 layer2+3,
    /// 3 encap2+3, 4 encap3+4, 5 vlan+srcmac.
    pub hash_policy: u8,
}

impl Bond {
    /// The mode's name.
    #[must_use]
    pub const fn mode_name(self) -> &'static str {
        match self.mode {
            0 => "balance-rr",
            1 => "active-backup",
            2 => "balance-xor",
            3 => "broadcast",
            4 => "802.3ad",
            5 => "balance-tlb",
            6 => "balance-alb",
            _ => "an unknown mode",
        }
    }

    /// Whether the hash policy decides which way a packet takes.
    #[must_use]
    pub const fn spreads_by_hash(self) -> bool {
        matches!(self.mode, 2 | 4 | 5)
    }
}

impl Link {
    /// Whether an offload is on; `None` when nobody knows, or the kernel has no such one.
    #[must_use]
    pub fn offload(&self, name: &str) -> Option<Offload> {
        self.offloads.known()?.get(name).copied()
    }

    /// Whether it is a device of its own, not one made of software.
    #[must_use]
    pub fn is_hardware(&self) -> bool {
        self.kind.is_none() && !self.is_loopback
    }

    /// Its speed, if it is known to be at least this many Gbit/s.
    #[must_use]
    pub fn at_least_gigabits(&self, gigabits: f64) -> Option<BitRate> {
        self.speed.known().copied().filter(|speed| speed.bits_per_second() >= gigabits * 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_a_link() {
        let on = Offload { active: true, wanted: true, changeable: true };
        let link = Link {
            speed: Fact::Known(BitRate::from_bits_per_second(1e10)),
            offloads: Fact::Known([("rx-gro".to_owned(), on)].into()),
            ..Link::default()
        };
        assert_eq!((link.offload("rx-gro"), link.offload("rx-lro")), (Some(on), None));
        assert_eq!(link.at_least_gigabits(10.0), Some(BitRate::from_bits_per_second(1e10)));
        assert_eq!((link.at_least_gigabits(25.0), Link::default().at_least_gigabits(0.0)), (None, None));
        assert!(link.is_hardware() && !Link { kind: Some("veth".into()), ..Link::default() }.is_hardware());
        let bond = Bond { mode: 4, hash_policy: 0 };
        assert!(bond.spreads_by_hash() && bond.mode_name() == "802.3ad");
    }
}
