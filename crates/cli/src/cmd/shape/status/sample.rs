//! What is read of a shaper at one moment.

use std::collections::BTreeMap;

use linerate_model::environment::InterfaceCounters;
use linerate_model::host::processors::ProcessorTicks;
use linerate_shape::link::Direction;
use linerate_shape::plan::Plan;
use linerate_sys::clock::monotonic_now;
use linerate_sys::host::ticks_of_each_processor;
use linerate_sys::interface::Interface;
use linerate_sys::queue_statistics::{self, QueueReading};
use linerate_units::MonotonicTime;

use crate::cmd::shape::error::ShapeError;

/// Counters at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) at: MonotonicTime,
    /// Of the interface itself; `None` where it could not be read.
    pub(crate) interface: Option<InterfaceCounters>,
    /// Of the tree for what is sent.
    pub(crate) up: Vec<QueueReading>,
    /// Of the one for what is received; empty where none is planned.
    pub(crate) down: Vec<QueueReading>,
    /// Of each processor.
    pub(crate) processors: BTreeMap<u32, ProcessorTicks>,
}

impl Sample {
    pub(crate) fn read(plan: &Plan) -> Result<Self, ShapeError> {
        let up = queue_statistics::read(&plan.device)?;
        let down = match &plan.intermediate {
            // One that is gone is found by comparing with the plan.
            Some(device) => queue_statistics::read(device).unwrap_or_default(),
            None => Vec::new(),
        };
        let interface = Interface::by_name(&plan.device)?.counters;
        Ok(Self { at: monotonic_now(), interface, up, down, processors: ticks_of_each_processor() })
    }

    pub(crate) fn tree(&self, direction: Direction) -> &[QueueReading] {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }
}
