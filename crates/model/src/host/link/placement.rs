//! Where a device is in the machine, and which processors work for it.

use linerate_units::{BitRate, ByteCount};

use crate::host::processors::ProcessorSet;

/// A PCI Express link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PciLink {
    /// Bits that pass over one lane each second, those of the encoding included: 8 Gbit/s where others say `8 GT/s`.
    pub lane_rate: BitRate,
    /// Lanes in use.
    pub lanes: u32,
    /// The highest rate of a lane that the device can do.
    pub highest_lane_rate: BitRate,
    /// The most lanes that the device can use.
    pub most_lanes: u32,
}

impl PciLink {
    /// What a network device gets out of it each way, headers and acknowledgements of PCI Express taken off: 80 % (8b/10b,
    /// up to 5 GT/s) or 128/130 of the bits, and 90 % of that.
    #[must_use]
    pub fn usable(&self) -> BitRate {
        usable(self.lane_rate, self.lanes)
    }

    /// What the device could get in a slot that gives it all.
    #[must_use]
    pub fn usable_at_most(&self) -> BitRate {
        usable(self.highest_lane_rate, self.most_lanes)
    }

    /// Whether it has fewer lanes, or slower ones, than the device could use.
    #[must_use]
    pub fn is_reduced(&self) -> bool {
        self.lanes < self.most_lanes || self.lane_rate < self.highest_lane_rate
    }
}

/// The lowest rate of a lane at which 128 bits travel as 130 (PCI Express 3.0).
const LATER_ENCODING: f64 = 8e9;

fn usable(lane_rate: BitRate, lanes: u32) -> BitRate {
    let bits = lane_rate.bits_per_second();
    let encoding = if bits < LATER_ENCODING { 0.8 } else { 128.0 / 130.0 };
    BitRate::from_bits_per_second(bits * f64::from(lanes) * encoding * 0.9)
}

/// A queue for receiving and where its packets go (`/sys/class/net/…/queues/rx-…`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiveQueue {
    /// Its number.
    pub number: u32,
    /// Processors that packets are spread over (`rps_cpus`); none means the one that was interrupted.
    pub steered_to: ProcessorSet,
    /// Flows that are followed to the program that reads them (`rps_flow_cnt`); 0 means none.
    pub flows: u32,
}

/// A queue for sending (`/sys/class/net/…/queues/tx-…`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransmitQueue {
    /// Its number.
    pub number: u32,
    /// Processors that send through it (`xps_cpus`); `None` when it has no such setting.
    pub sends_for: Option<ProcessorSet>,
    /// Bytes that the driver may hold at the moment (`byte_queue_limits/limit`); `None` when the driver does not limit
    /// itself.
    pub byte_limit: Option<ByteCount>,
}

/// An interrupt of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// What the driver calls it, for example `eth0-TxRx-3`.
    pub name: String,
    /// Processors that it may go to (`smp_affinity_list`); `None` when it could not be read.
    pub allowed: Option<ProcessorSet>,
    /// Processors that it does go to (`effective_affinity_list`); `None` when the kernel does not tell.
    pub effective: Option<ProcessorSet>,
    /// How often it came since the boot, on all processors.
    pub count: u64,
}

impl Interrupt {
    /// Where it goes: to these, as far as the kernel tells.
    #[must_use]
    pub fn goes_to(&self) -> Option<&ProcessorSet> {
        self.effective.as_ref().filter(|set| !set.is_empty()).or(self.allowed.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_slot_gives() {
        let lane = BitRate::from_bits_per_second;
        let slot = PciLink { lane_rate: lane(5e9), lanes: 4, highest_lane_rate: lane(8e9), most_lanes: 8 };
        assert!((slot.usable().bits_per_second() - 14.4e9).abs() < 1.0, "5 x 4 x 0.8 x 0.9");
        let most = 8e9 * 8.0 * 128.0 / 130.0 * 0.9;
        assert!((slot.usable_at_most().bits_per_second() - most).abs() < 1.0);
        assert!(slot.is_reduced());
        assert!(!PciLink { lane_rate: lane(8e9), lanes: 8, ..slot }.is_reduced());
    }

    #[test]
    fn where_an_interrupt_goes() {
        let set = |list| ProcessorSet::parse_list(list);
        let interrupt = Interrupt { allowed: set("0-3"), effective: set("2"), ..Interrupt::default() };
        assert_eq!(interrupt.goes_to(), set("2").as_ref());
        assert_eq!(Interrupt { effective: set(""), ..interrupt }.goes_to(), set("0-3").as_ref());
    }
}
