//! Events of the kernel during a measurement, traced by BPF programs at its tracepoints: waits for a processor, software
//! interrupts, drops with their reason, full socket queues, time in queueing disciplines, triggers of retransmissions.
//!
//! The programs are assembled here for the running kernel, whose record formats are read from tracefs: neither headers
//! nor type information (BTF) nor a compiler is needed. They count in maps; no event is copied to this process.

mod assembler;
mod bpf;
mod by_flow;
pub mod fuzzing;
mod interrupts;
mod maps;
mod programs;
mod read;
mod symbols;
#[cfg(test)]
mod tests;
mod tracefs;
mod windows;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_model::far::KernelEvents;
use linerate_model::socket::ProcessId;
use linerate_units::MonotonicTime;

use crate::clock;
use crate::error::{Error, Result};
use bpf::{AttachedProgram, ProgramInput};
pub use by_flow::FlowEventWatch;
use interrupts::{DeviceInterrupts, InterruptCounts};
use maps::EventMaps;
use programs::{EventScope, PROGRAMS, TracedProcesses};
use tracefs::Tracefs;
use windows::TracingWindows;

/// True while a watch of this process is active: its programs run at events of the whole host, so one has to do.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Right to be the active watch.
#[derive(Debug)]
struct ActiveWatch;

impl ActiveWatch {
    fn claim() -> Result<Self> {
        let refused = || Error::refused("tracing the kernel's events", "another test of this process traces them");
        if ACTIVE.swap(true, Ordering::AcqRel) { Err(refused()) } else { Ok(Self) }
    }
}

impl Drop for ActiveWatch {
    fn drop(&mut self) {
        ACTIVE.store(false, Ordering::Release);
    }
}

/// Active programs with their maps.
#[derive(Debug)]
pub struct KernelEventWatch {
    started: MonotonicTime,
    programs: BTreeMap<&'static str, AttachedProgram>,
    missing: Vec<String>,
    maps: EventMaps,
    vectors: BTreeMap<u32, String>,
    reasons: BTreeMap<u32, String>,
    interrupts: InterruptCounts,
    devices: DeviceInterrupts,
    /// Windows of the programs at software interrupts.
    softirq_windows: Option<TracingWindows>,
    /// True when drops are counted by flow, too.
    has_flow_drops: bool,
    _active: ActiveWatch,
}

impl KernelEventWatch {
    /// Starts to trace: waits of this process's threads, packets in the queueing discipline of the interface with this
    /// index, and the other events of the whole host. Tracepoints that this kernel lacks are reported as missing.
    ///
    /// # Errors
    ///
    /// This process may not trace, the kernel has no tracepoints, or another watch is active.
    pub fn start(interface: Option<u32>) -> Result<Self> {
        Self::of_process(ProcessId(std::process::id()), interface)
    }

    /// The same for the threads of another process.
    pub fn of_process(process: ProcessId, interface: Option<u32>) -> Result<Self> {
        let processes = TracedProcesses::One(process.0);
        Self::with_scope(EventScope { processes, has_flows: false, has_flow_drops: false, interface })
    }

    fn with_scope(mut scope: EventScope) -> Result<Self> {
        let active = ActiveWatch::claim()?;
        let tracefs = Tracefs::open()?;
        let mut watch = Self {
            started: clock::monotonic_now(),
            programs: BTreeMap::new(),
            missing: Vec::new(),
            maps: EventMaps::new(scope.has_flows)?,
            vectors: BTreeMap::new(),
            reasons: BTreeMap::new(),
            interrupts: InterruptCounts::read(),
            devices: DeviceInterrupts::read(),
            softirq_windows: None,
            has_flow_drops: false,
            _active: active,
        };
        watch.has_flow_drops = scope.has_flows && watch.try_flow_drops(&tracefs, scope);
        scope.has_flow_drops = watch.has_flow_drops;
        let mut refusal = None;
        for (name, input, program) in PROGRAMS {
            if let Err(error) = watch.attach(&tracefs, name, (input, program), scope) {
                watch.missing.push(format!("{name} ({})", error.reason()));
                refusal.get_or_insert(error);
            }
        }
        watch.open_windows()?;
        match refusal {
            Some(error) if watch.programs.is_empty() => Err(error),
            _ => Ok(watch),
        }
    }

    /// Passes the programs at software interrupts on to windows: on a busy path these are the most frequent events by far.
    fn open_windows(&mut self) -> Result<()> {
        // The one at the exit is the first to be attached and the last to be detached.
        let names = ["irq/softirq_entry", "irq/softirq_exit"];
        if names.iter().all(|name| self.has(name)) {
            let mut programs = Vec::new();
            for name in names {
                programs.extend(self.programs.get_mut(name).map(|program| program.detachable(name)));
            }
            self.softirq_windows = Some(TracingWindows::start(programs)?);
        }
        Ok(())
    }

    fn attach(
        &mut self,
        tracefs: &Tracefs,
        name: &'static str,
        (input, program): (ProgramInput, programs::Program),
        scope: EventScope,
    ) -> Result<()> {
        if scope.interface.is_none() && name.starts_with("qdisc/") {
            return Ok(());
        }
        if name.starts_with("sched/") && !has_global_process_numbers() {
            let reason = "events have the process numbers of the host, which a container does not know";
            return Err(Error::refused(format!("tracing {name}"), reason));
        }
        let format = tracefs.format(name)?;
        let instructions = program(&format, &self.maps, scope)
            .ok_or_else(|| Error::refused(format!("tracing {name}"), "its record has not the needed fields"))?;
        self.programs.insert(name, AttachedProgram::attach((name, format.id), input, &instructions)?);
        match name {
            "irq/softirq_entry" => self.vectors = format.symbols("vec"),
            "skb/kfree_skb" => self.reasons = format.symbols("reason"),
            _ => {}
        }
        Ok(())
    }

    /// Events since the start, with the kernel functions that dropped packets.
    #[must_use]
    pub fn finish(self) -> KernelEvents {
        let events = self.located_events();
        // Detaching waits for all processors: not the measurement's time.
        let programs = self.programs;
        let detach = std::thread::Builder::new().name("detach".to_owned()).spawn(move || drop(programs));
        drop(detach);
        events
    }

    fn has(&self, tracepoint: &str) -> bool {
        self.programs.contains_key(tracepoint)
    }
}

/// True in the initial process namespace (`PROC_PID_INIT_INO`): there the kernel's events have this process's numbers.
fn has_global_process_numbers() -> bool {
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == "pid:[4026531836]")
}
