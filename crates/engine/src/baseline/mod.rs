//! Limits of this host without a network: its own TCP over loopback, disk, ciphers.
//!
//! One part per file. Everything is bounded in time and bytes, and ends early when `stop` returns `true`: parts not
//! measured stay unread.

mod cipher;
mod disk;
mod loopback;

use core::time::Duration;
use std::path::PathBuf;

use linerate_model::baseline::{DiskRates, HostBaseline, TimedTransfer};
use linerate_model::fact::Fact;
use linerate_sys::clock;
use linerate_sys::disk::CacheMode;
use linerate_sys::resources;
use linerate_units::{ByteCount, MonotonicTime};

/// Parameters of a baseline.
#[derive(Clone, Debug)]
pub struct BaselinePlan {
    /// Directory of the temporary files.
    pub directory: PathBuf,
    /// Most bytes of a file; fewer are written where the file system has less than twice that left.
    pub most_bytes: ByteCount,
    /// Most time for each part.
    pub time: Duration,
}

/// Part being measured, for progress displays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineStep {
    /// TCP over loopback.
    Loopback,
    /// A disk, past the page cache.
    Direct,
    /// A disk, through the page cache.
    Cached,
    /// Ciphers.
    Ciphers,
}

/// Measures everything and calls `observe` before each step. A part that fails is a fact with the reason.
pub fn measure(
    plan: &BaselinePlan,
    stop: &(dyn Fn() -> bool + Sync),
    mut observe: impl FnMut(BaselineStep),
) -> HostBaseline {
    let space = resources::space_in(&plan.directory);
    let mut baseline = HostBaseline {
        directory: plan.directory.display().to_string(),
        is_in_memory: space.as_ref().ok().map(|space| space.in_memory),
        ..HostBaseline::default()
    };
    observe(BaselineStep::Loopback);
    baseline.loopback = fact(loopback::measure(plan.time, stop));
    // Two files at once for the copy, and as much again for other processes.
    let room = space.map_or(plan.most_bytes, |space| ByteCount::new(space.free.get() / 4).min(plan.most_bytes));
    for (step, access) in [(BaselineStep::Direct, CacheMode::Direct), (BaselineStep::Cached, CacheMode::Cached)] {
        if stop() {
            return baseline;
        }
        observe(step);
        let rates = disk::measure(plan, room, access, stop);
        match access {
            CacheMode::Direct => baseline.direct = rates,
            CacheMode::Cached => baseline.cached = rates,
        }
    }
    if !stop() {
        observe(BaselineStep::Ciphers);
        baseline.ciphers = cipher::measure(plan.time / 4, stop);
    }
    baseline
}

/// Converts an error to a fact.
fn fact<T>(outcome: linerate_sys::Result<T>) -> Fact<T> {
    match outcome {
        Ok(value) => Fact::Known(value),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Fact::denied(error.to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Fact::absent(error.to_string()),
        Err(error) => Fact::failed(error.to_string()),
    }
}

/// Times the bytes that the calling thread moves.
struct TransferTimer {
    began: MonotonicTime,
    used: Duration,
}

impl TransferTimer {
    fn start() -> Self {
        Self { began: clock::monotonic_now(), used: clock::thread_cpu_time() }
    }

    fn elapsed(&self) -> Duration {
        clock::monotonic_now() - self.began
    }

    fn passage(&self, bytes: ByteCount) -> TimedTransfer {
        let processor_time = clock::thread_cpu_time().saturating_sub(self.used);
        TimedTransfer { bytes, time: self.elapsed(), processor_time }
    }
}

/// Rates that are all unknown for the same reason.
fn unknown(reason: &Fact<TimedTransfer>) -> DiskRates {
    DiskRates { write: reason.clone(), read: reason.clone(), copy: reason.clone() }
}
