//! Host evidence of a test: settings, the growth of the counters, and the load of the processors.

mod kernel_events;
mod queues;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_model::environment::{InterfaceCounters, ProtocolCounters};
use linerate_model::far::{HostEvidence, LinkEvidence, ProcessorLoad, ReceivingEvidence};
use linerate_model::host::processors::ProcessorTicks;
use linerate_model::socket::ProcessId;
use linerate_sys::clock::{self, CpuTime};
use linerate_sys::interface::InterfaceWatch;
use linerate_sys::{environment, host};
use linerate_units::{ByteCount, MonotonicTime, Ratio};

use kernel_events::KernelEventTrace;
use queues::EgressWatch;

/// Counters at the start of the test.
pub(crate) struct HostWatch {
    started: MonotonicTime,
    protocol: Option<ProtocolCounters>,
    link: Option<WatchedLink>,
    receiving: Option<ReceivingEvidence>,
    processors: BTreeMap<Option<u32>, ProcessorTicks>,
    own: CpuTime,
    kernel_events: Option<KernelEventTrace>,
}

/// Interface towards the peer.
struct WatchedLink {
    evidence: LinkEvidence,
    counters: Option<(InterfaceWatch, InterfaceCounters)>,
    queues: Option<EgressWatch>,
}

impl WatchedLink {
    fn towards(remote: SocketAddr, now: MonotonicTime) -> Option<Self> {
        let (index, evidence) = environment::link_towards(remote).ok()?;
        let counters = InterfaceWatch::new(index).ok().and_then(|mut watch| {
            let counters = watch.read().ok()?;
            Some((watch, counters))
        });
        let queues = EgressWatch::start(index, &evidence.interface, now);
        Some(Self { evidence, counters, queues })
    }

    /// Counters since the start.
    fn grown(&mut self) -> Option<InterfaceCounters> {
        let (watch, before) = self.counters.as_mut()?;
        Some(watch.read().ok()?.since(before))
    }
}

impl HostWatch {
    /// Reads the counters of this host and of its interface towards `remote`; traces the kernel's events on request.
    pub(crate) fn start(remote: SocketAddr, traces_kernel: bool) -> Self {
        Self::of_process(remote, traces_kernel.then(|| ProcessId(std::process::id())))
    }

    /// The same, with the kernel's events about the threads of this process, if any.
    pub(crate) fn of_process(remote: SocketAddr, traced: Option<ProcessId>) -> Self {
        let kernel_events = traced.map(|process| KernelEventTrace::start(process, remote));
        let started = clock::monotonic_now();
        Self {
            started,
            protocol: environment::process_protocol_counters().ok(),
            link: WatchedLink::towards(remote, started),
            receiving: receiving(),
            processors: host::all_processor_ticks(),
            own: clock::process_cpu_time(),
            kernel_events,
        }
    }

    /// Looks at the backlog of the interface's queues, at most ten times a second.
    pub(crate) fn sample(&mut self, now: MonotonicTime) {
        if let Some(queues) = self.link.as_mut().and_then(|link| link.queues.as_mut()) {
            queues.sample(now);
        }
    }

    /// Evidence since the start. The program that measures is this one.
    pub(crate) fn finish(self) -> HostEvidence {
        let own = self.own_share();
        self.evidence(own)
    }

    /// Evidence since the start about another program's transfer: which share of the processors it used is unknown.
    pub(crate) fn finish_for_another_program(self) -> HostEvidence {
        self.evidence(None)
    }

    fn evidence(mut self, own: Option<f64>) -> HostEvidence {
        let (busy, processors) = self.load(own);
        let grown = self.link.as_mut().and_then(WatchedLink::grown);
        let bytes = |counters: InterfaceCounters| (counters.received.bytes.get(), counters.sent.bytes.get());
        let errors = grown.map(|counters| counters.received.errors.get() + counters.sent.errors.get());
        let counters = self.grown();
        let (link, queues) =
            self.link.map_or((None, None), |link| (Some(link.evidence), link.queues.and_then(EgressWatch::finish)));
        HostEvidence {
            kernel: Some(host::kernel_release()),
            settings: environment::settings(),
            counters,
            interface_bytes: grown.map(bytes),
            busy,
            processors,
            link: link.map(|link| LinkEvidence { errors, ..link }),
            queues,
            memory_bytes: environment::memory().map(ByteCount::get),
            kernel_events: self.kernel_events.map(KernelEventTrace::finish),
            receiving: receiving().zip(self.receiving).and_then(|(now, before)| now.since(before)),
        }
    }

    /// Share of the time of all processors that this program used.
    fn own_share(&self) -> Option<f64> {
        let used = clock::process_cpu_time().total().saturating_sub(self.own.total());
        let elapsed = clock::monotonic_now().since(self.started);
        let processors = u32::try_from(self.processors.keys().flatten().count()).ok().filter(|count| *count > 0)?;
        Ratio::of(used.as_secs_f64(), elapsed.as_secs_f64() * f64::from(processors)).map(Ratio::get)
    }

    fn load(&self, own: Option<f64>) -> (Option<f64>, Option<ProcessorLoad>) {
        let now = host::all_processor_ticks();
        let since = |number: &Option<u32>| Some(now.get(number)?.since(self.processors.get(number)?));
        let Some(all) = since(&None) else { return (None, None) };
        let each: Vec<(u32, ProcessorTicks)> =
            now.keys().filter_map(|number| Some(((*number)?, since(number)?))).collect();
        (all.busy().map(Ratio::get), ProcessorLoad::of(all, &each, own))
    }

    fn grown(&self) -> BTreeMap<String, u64> {
        let now = environment::process_protocol_counters().ok();
        self.protocol.as_ref().zip(now).map(|(before, now)| now.since(before).0).unwrap_or_default()
    }
}

fn receiving() -> Option<ReceivingEvidence> {
    environment::process_softnet().map(|rows| ReceivingEvidence::of(&rows))
}
