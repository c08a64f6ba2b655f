//! What this host can do without a network: memory to memory through its own TCP, to and from a disk, through ciphers.
//!
//! One part per file. Everything is bounded in time and bytes, and ends early when `stop` says so: what was not tried then
//! stays unread.

mod cipher;
mod disk;
mod loopback;

use core::time::Duration;
use std::path::PathBuf;

use linerate_model::baseline::{Baseline, DiskRates, Passage};
use linerate_model::fact::Fact;
use linerate_sys::clock;
use linerate_sys::disk::Access;
use linerate_sys::resources;
use linerate_units::{ByteCount, MonotonicTime};

/// What to try.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where files are made.
    pub directory: PathBuf,
    /// The most that a file may hold; less is written where the file system has less than twice that left.
    pub most_bytes: ByteCount,
    /// The most time for each of the parts.
    pub time: Duration,
}

/// What is being tried, for those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// TCP over loopback.
    Loopback,
    /// A disk, past the page cache.
    Direct,
    /// A disk, through the page cache.
    Cached,
    /// Ciphers.
    Ciphers,
}

/// Tries everything, tells `observe` before each step. What cannot be tried is a fact with the reason.
pub fn measure(plan: &Plan, stop: &(dyn Fn() -> bool + Sync), mut observe: impl FnMut(Step)) -> Baseline {
    let space = resources::space_in(&plan.directory);
    let mut baseline = Baseline {
        directory: plan.directory.display().to_string(),
        is_in_memory: space.as_ref().ok().map(|space| space.in_memory),
        ..Baseline::default()
    };
    observe(Step::Loopback);
    baseline.loopback = fact(loopback::measure(plan.time, stop));
    // Two files at once for the copy, and as much again for everybody else.
    let room = space.map_or(plan.most_bytes, |space| ByteCount::new(space.free.get() / 4).min(plan.most_bytes));
    for (step, access) in [(Step::Direct, Access::Direct), (Step::Cached, Access::Cached)] {
        if stop() {
            return baseline;
        }
        observe(step);
        let rates = disk::measure(plan, room, access, stop);
        match access {
            Access::Direct => baseline.direct = rates,
            Access::Cached => baseline.cached = rates,
        }
    }
    if !stop() {
        observe(Step::Ciphers);
        baseline.ciphers = cipher::measure(plan.time / 4, stop);
    }
    baseline
}

/// What went wrong, as a fact.
fn fact<T>(outcome: linerate_sys::Result<T>) -> Fact<T> {
    match outcome {
        Ok(value) => Fact::Known(value),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Fact::denied(error.to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Fact::absent(error.to_string()),
        Err(error) => Fact::failed(error.to_string()),
    }
}

/// Times what the calling thread moves.
struct Watch {
    began: MonotonicTime,
    used: Duration,
}

impl Watch {
    fn start() -> Self {
        Self { began: clock::monotonic_now(), used: clock::thread_cpu_time() }
    }

    fn elapsed(&self) -> Duration {
        clock::monotonic_now() - self.began
    }

    fn passage(&self, bytes: ByteCount) -> Passage {
        let processor_time = clock::thread_cpu_time().saturating_sub(self.used);
        Passage { bytes, time: self.elapsed(), processor_time }
    }
}

/// Rates of which nothing is known for one reason.
fn unknown(reason: &Fact<Passage>) -> DiskRates {
    DiskRates { write: reason.clone(), read: reason.clone(), copy: reason.clone() }
}
