//! Load of a host's processors during a test.

use linerate_units::CompactSort;
use serde::{Deserialize, Serialize};

use crate::host::processors::ProcessorTicks;

/// Use of a host's processors during a test. Shares are from 0 to 1 and of the time of all processors, unless noted.
///
/// Apart from the share of a transfer's own thread
/// ([`LimitShares::sender_cpu`](crate::limit::LimitShares::sender_cpu)): a host can be busy with a transfer that waits for
/// the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessorLoad {
    /// Number of online processors.
    pub processors: u32,
    /// Share that programs other than the measuring one used, interrupts excluded; `None` where unknown.
    pub others: Option<f64>,
    /// Share of interrupts and soft interrupts.
    pub interrupts: f64,
    /// Share taken by a hypervisor.
    pub stolen: f64,
    /// Processor with the most interrupts.
    pub most_interrupted: Option<InterruptedProcessor>,
    /// Largest share of interrupts, of its own time, of the other processors; `None` with a single processor.
    pub interrupts_elsewhere: Option<f64>,
}

/// Processor that spends the most time on interrupts; shares are of its own time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterruptedProcessor {
    /// The kernel's number.
    pub number: u32,
    /// Share of interrupts and soft interrupts.
    pub interrupts: f64,
    /// Share in which it was busy.
    pub busy: f64,
}

impl ProcessorLoad {
    /// Computes the load from the growth of `/proc/stat`: of all processors together, and of each. `own` is the share of
    /// the measuring program.
    #[must_use]
    pub fn of(all: ProcessorTicks, each: &[(u32, ProcessorTicks)], own: Option<f64>) -> Option<Self> {
        let interrupts = all.interrupted()?.get();
        let stolen = all.stolen_share()?.get();
        let busy = all.busy()?.get();
        let mut shares: Vec<InterruptedProcessor> = each
            .iter()
            .filter_map(|(number, ticks)| {
                let (interrupts, busy) = (ticks.interrupted()?.get(), ticks.busy()?.get());
                Some(InterruptedProcessor { number: *number, interrupts, busy })
            })
            .collect();
        shares.sort_compactly_by(|one, other| other.interrupts.total_cmp(&one.interrupts));
        Some(Self {
            processors: u32::try_from(each.len()).unwrap_or(u32::MAX),
            others: own.map(|own| (busy - interrupts - stolen - own).clamp(0.0, 1.0)),
            interrupts,
            stolen,
            most_interrupted: shares.first().copied(),
            interrupts_elsewhere: shares.get(1).map(|processor| processor.interrupts),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(user: u64, soft_interrupts: u64, idle: u64) -> ProcessorTicks {
        ProcessorTicks { user, idle, soft_interrupts, ..ProcessorTicks::default() }
    }

    #[test]
    fn own_time_and_interrupts_are_not_other_programs() {
        let each = [(0, ticks(10, 90, 0)), (1, ticks(50, 0, 50))];
        let load = ProcessorLoad::of(ticks(60, 90, 50), &each, Some(0.1)).expect("time passed");
        assert_eq!((load.processors, load.interrupts, load.interrupts_elsewhere), (2, 0.45, Some(0.0)));
        assert!((load.others.expect("known") - 0.2).abs() < 1e-9, "{load:?}");
        assert_eq!(load.most_interrupted, Some(InterruptedProcessor { number: 0, interrupts: 0.9, busy: 1.0 }));
        // More time of its own than the ticks have is no negative share of others.
        let load = ProcessorLoad::of(ticks(60, 90, 50), &each[..1], Some(0.9)).expect("time passed");
        assert_eq!((load.others, load.interrupts_elsewhere), (Some(0.0), None));
        assert_eq!(ProcessorLoad::of(ProcessorTicks::default(), &[], None), None);
    }
}
