//! Network interfaces of a host, from the driver up to the queueing disciplines.

mod counters;
mod device;
mod listing;
mod placement;
mod queueing;

use std::collections::BTreeMap;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount};

pub use self::counters::{LinkCounters, ReceiveErrors};
pub use self::device::{
    DescriptorRings, DeviceChannels, DuplexMode, InterruptCoalescing, OffloadState, PauseSettings, RingSizes,
};
pub use self::placement::{DeviceInterrupt, PciLink, ReceiveQueue, TransmitQueue};
pub use self::queueing::{QdiscNode, disciplines_with_parent_kinds, leaves, root};
use crate::fact::Fact;
use crate::host::processors::ProcessorSet;

/// Network interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkLink {
    /// Name.
    pub name: String,
    /// Interface index.
    pub index: u32,
    /// True when it is administratively up (`ip link set … up`).
    pub is_up: bool,
    /// True for the loopback device.
    pub is_loopback: bool,
    /// Operational state (RFC 2863, `ifOperStatus`).
    pub state: LinkState,
    /// Kind of virtual device, for example `veth`; `None` for hardware and the loopback device.
    pub kind: Option<String>,
    /// Driver.
    pub driver: Fact<String>,
    /// Master and lower interface.
    pub membership: LinkMembership,
    /// MTU.
    pub mtu: Option<Mtu>,
    /// Length of the device's queue (`txqueuelen`).
    pub transmit_queue: Option<PacketCount>,
    /// Maximum size of a GSO packet (`gso_max_size`).
    pub segmentation_size: Option<ByteCount>,
    /// Maximum size of a GRO packet (`gro_max_size`); `None` before Linux 5.19.
    pub coalescing_size: Option<ByteCount>,
    /// Number of transmit and receive queues in the kernel.
    pub queue_counts: Option<(u32, u32)>,
    /// Traffic counters.
    pub counters: Option<LinkCounters>,
    /// Speed; absent for devices that have none and links that are down.
    pub speed: Fact<BitRate>,
    /// Maximum speed of the device.
    pub max_speed: Fact<BitRate>,
    /// Duplex mode.
    pub duplex: Fact<DuplexMode>,
    /// Offloads by ethtool's names.
    pub offloads: Fact<BTreeMap<String, OffloadState>>,
    /// Descriptor rings.
    pub rings: Fact<DescriptorRings>,
    /// Device queues.
    pub channels: Fact<DeviceChannels>,
    /// Interrupt coalescing.
    pub coalescing: Fact<InterruptCoalescing>,
    /// Ethernet flow control.
    pub pause: Fact<PauseSettings>,
    /// Active forward error correction, by ethtool's name: `RS`, `BaseR`, `Off`.
    pub error_correction: Fact<String>,
    /// Driver counters whose names mention drops, misses, errors, pauses or error correction.
    pub driver_counters: Fact<BTreeMap<String, u64>>,
    /// Queueing disciplines, the root first.
    pub queueing: Fact<Vec<QdiscNode>>,
    /// Steering of received packets.
    pub receive_queues: Fact<Vec<ReceiveQueue>>,
    /// Processors assigned to the transmit queues.
    pub transmit_queues: Fact<Vec<TransmitQueue>>,
    /// True when received packets are handled by kernel threads instead of soft interrupts (`threaded`).
    pub has_receive_threads: Fact<bool>,
    /// Interrupts.
    pub interrupts: Fact<Vec<DeviceInterrupt>>,
    /// NUMA node of the device; absent where there is only one.
    pub memory_node: Fact<u32>,
    /// Processors local to the device.
    pub near_processors: Fact<ProcessorSet>,
    /// PCI Express link.
    pub pci: Fact<PciLink>,
}

/// State of an interface (`IFLA_OPERSTATE`, RFC 2863).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkState {
    /// Unknown to the kernel; usual for virtual devices, which work nevertheless.
    #[default]
    Unknown,
    /// Components are missing.
    NotPresent,
    /// Not working: no cable, or administratively down.
    Down,
    /// The lower layer is down.
    LowerLayerDown,
    /// Under test.
    Testing,
    /// Waiting for an external event, for example admission by a switch.
    Dormant,
    /// Working.
    Up,
}

/// Relation of an interface to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkMembership {
    /// Bond, bridge or other master interface.
    pub master: Option<String>,
    /// Lower interface in the same namespace: the carrier of a VLAN or tunnel.
    pub lower: Option<String>,
    /// VLAN id.
    pub vlan: Option<u16>,
    /// Bond settings, for a bond.
    pub bond: Option<BondSettings>,
}

/// Bond settings (`Documentation/networking/bonding.rst`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BondSettings {
    /// Mode by the kernel's number: 0 balance-rr, 1 active-backup, 2 balance-xor, 3 broadcast, 4 802.3ad, 5
    /// balance-tlb, 6 balance-alb.
    pub mode: u8,
    /// Transmit hash policy (`xmit_hash_policy`) by the kernel's number: 0 layer2, 1 layer3+4, 2 layer2+3, 3 encap2+3,
    /// 4 encap3+4, 5 vlan+srcmac.
    pub hash_policy: u8,
}

impl BondSettings {
    /// Name of the mode.
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

    /// True when the hash policy selects the member of a packet.
    #[must_use]
    pub const fn spreads_by_hash(self) -> bool {
        matches!(self.mode, 2 | 4 | 5)
    }
}

impl NetworkLink {
    /// State of an offload; `None` when it is unknown, or the kernel does not have it.
    #[must_use]
    pub fn offload(&self, name: &str) -> Option<OffloadState> {
        self.offloads.known()?.get(name).copied()
    }

    /// True for a hardware device.
    #[must_use]
    pub fn is_hardware(&self) -> bool {
        self.kind.is_none() && !self.is_loopback
    }

    /// Speed, if it is known to be at least `rate`.
    #[must_use]
    pub fn speed_of_at_least(&self, rate: BitRate) -> Option<BitRate> {
        self.speed.known().copied().filter(|speed| *speed >= rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_a_link() {
        let on = OffloadState { active: true, wanted: true, changeable: true };
        let link = NetworkLink {
            speed: Fact::Known(BitRate::from_bits_per_second(1e10)),
            offloads: Fact::Known([("rx-gro".to_owned(), on)].into()),
            ..NetworkLink::default()
        };
        assert_eq!((link.offload("rx-gro"), link.offload("rx-lro")), (Some(on), None));
        let gigabits = |number: f64| BitRate::from_bits_per_second(number * 1e9);
        assert_eq!(link.speed_of_at_least(gigabits(10.0)), Some(gigabits(10.0)));
        assert_eq!(link.speed_of_at_least(gigabits(25.0)), None);
        assert_eq!(NetworkLink::default().speed_of_at_least(gigabits(0.0)), None);
        assert!(
            link.is_hardware() && !NetworkLink { kind: Some("veth".into()), ..NetworkLink::default() }.is_hardware()
        );
        let bond = BondSettings { mode: 4, hash_policy: 0 };
        assert!(bond.spreads_by_hash() && bond.mode_name() == "802.3ad");
    }
}
