//! Location of a device in the machine, and the processors that serve it.

use linerate_units::{BitRate, ByteCount};

use crate::host::processors::ProcessorSet;

/// PCI Express link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PciLink {
    /// Raw bits per second of one lane, encoding included: 8 Gbit/s for `8 GT/s`.
    pub lane_rate: BitRate,
    /// Lanes in use.
    pub lanes: u32,
    /// Maximum rate of a lane of the device.
    pub highest_lane_rate: BitRate,
    /// Maximum number of lanes of the device.
    pub most_lanes: u32,
}

impl PciLink {
    /// Usable rate per direction, without headers and acknowledgements of PCI Express: 80 % (8b/10b, up to 5 GT/s) or
    /// 128/130 of the bits, and 90 % of that.
    #[must_use]
    pub fn usable(&self) -> BitRate {
        let bits = self.lane_rate.bits_per_second();
        let encoding = if bits < MIN_LANE_RATE_128B130B { 0.8 } else { 128.0 / 130.0 };
        BitRate::from_bits_per_second(bits * f64::from(self.lanes) * encoding * 0.9)
    }

    /// True when it has fewer or slower lanes than the device supports.
    #[must_use]
    pub fn is_reduced(&self) -> bool {
        self.lanes < self.most_lanes || self.lane_rate < self.highest_lane_rate
    }
}

/// Lowest lane rate with 128b/130b encoding (PCI Express 3.0).
const MIN_LANE_RATE_128B130B: f64 = 8e9;

/// Receive queue and its packet steering (`/sys/class/net/…/queues/rx-…`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiveQueue {
    /// Queue number.
    pub number: u32,
    /// Processors that packets are steered to (`rps_cpus`); none means the interrupted one.
    pub steered_to: ProcessorSet,
    /// Size of the flow table for receive flow steering (`rps_flow_cnt`); 0 means off.
    pub flows: u32,
}

/// Transmit queue (`/sys/class/net/…/queues/tx-…`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransmitQueue {
    /// Queue number.
    pub number: u32,
    /// Processors that transmit through it (`xps_cpus`); `None` without such a setting.
    pub processors: Option<ProcessorSet>,
    /// Present limit of queued bytes (`byte_queue_limits/limit`); `None` when the driver has no such limit.
    pub byte_limit: Option<ByteCount>,
}

/// Interrupt of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceInterrupt {
    /// Interrupt number.
    pub number: u32,
    /// Name given by the driver, for example `eth0-TxRx-3`.
    pub name: String,
    /// Allowed processors (`smp_affinity_list`); `None` when it could not be read.
    pub allowed: Option<ProcessorSet>,
    /// Effective processors (`effective_affinity_list`); `None` when the kernel does not report them.
    pub effective: Option<ProcessorSet>,
    /// Number of interrupts since boot, on all processors.
    pub count: u64,
}

impl DeviceInterrupt {
    /// Processors that it is delivered to, as far as the kernel reports them.
    #[must_use]
    pub fn goes_to(&self) -> Option<&ProcessorSet> {
        self.effective.as_ref().filter(|set| !set.is_empty()).or(self.allowed.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usable_rate_of_a_slot() {
        let lane = BitRate::from_bits_per_second;
        let slot = PciLink { lane_rate: lane(5e9), lanes: 4, highest_lane_rate: lane(8e9), most_lanes: 8 };
        assert!((slot.usable().bits_per_second() - 14.4e9).abs() < 1.0, "5 x 4 x 0.8 x 0.9");
        let most = 8e9 * 8.0 * 128.0 / 130.0 * 0.9;
        assert!(slot.is_reduced());
        let full = PciLink { lane_rate: lane(8e9), lanes: 8, ..slot };
        assert!((full.usable().bits_per_second() - most).abs() < 1.0);
        assert!(!full.is_reduced());
    }

    #[test]
    fn processors_of_an_interrupt() {
        let set = |list| ProcessorSet::parse_list(list);
        let interrupt = DeviceInterrupt { allowed: set("0-3"), effective: set("2"), ..DeviceInterrupt::default() };
        assert_eq!(interrupt.goes_to(), set("2").as_ref());
        assert_eq!(DeviceInterrupt { effective: set(""), ..interrupt }.goes_to(), set("0-3").as_ref());
    }
}
