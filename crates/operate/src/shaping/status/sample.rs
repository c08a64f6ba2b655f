//! Sample of a shaper's counters.

use linerate_model::direction::Direction;
use std::collections::BTreeMap;

use linerate_model::environment::InterfaceCounters;
use linerate_model::host::processors::ProcessorTicks;
use linerate_shape::plan::ShaperPlan;
use linerate_sys::clock::monotonic_now;
use linerate_sys::host::ticks_of_each_processor;
use linerate_sys::interface::NetworkInterface;
use linerate_sys::queue_statistics::{self, QueueSample};
use linerate_units::MonotonicTime;

use crate::shaping::error::ShapeError;

/// Counters at one point in time.
#[derive(Clone, Debug)]
pub(crate) struct ShaperSample {
    pub(crate) at: MonotonicTime,
    /// Counters of the interface; `None` when unreadable.
    pub(crate) interface: Option<InterfaceCounters>,
    /// Counters of the egress tree.
    pub(crate) up: Vec<QueueSample>,
    /// Counters of the ingress tree; empty without one.
    pub(crate) down: Vec<QueueSample>,
    /// Ticks of each processor.
    pub(crate) processors: BTreeMap<u32, ProcessorTicks>,
}

impl ShaperSample {
    pub(crate) fn read(plan: &ShaperPlan) -> Result<Self, ShapeError> {
        let up = queue_statistics::read(&plan.device)?;
        let down = match &plan.intermediate {
            // A missing tree is detected by the comparison with the plan.
            Some(device) => queue_statistics::read(device).unwrap_or_default(),
            None => Vec::new(),
        };
        let interface = NetworkInterface::by_name(&plan.device)?.counters;
        Ok(Self { at: monotonic_now(), interface, up, down, processors: ticks_of_each_processor() })
    }

    pub(crate) fn tree(&self, direction: Direction) -> &[QueueSample] {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }
}
