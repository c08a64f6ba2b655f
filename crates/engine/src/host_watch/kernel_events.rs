//! Events of the kernel during a test, or the reason why they are unknown.

use std::net::SocketAddr;

use linerate_model::far::KernelEvents;
use linerate_model::socket::ProcessId;
use linerate_sys::environment;
use linerate_sys::kernel_events::KernelEventWatch;

use super::queues::has_queue;

/// Trace of this host's kernel. A refusal is part of the evidence and never fails a measurement.
pub(super) struct KernelEventTrace(Result<KernelEventWatch, String>);

impl KernelEventTrace {
    /// Starts to trace the threads of a process, and the queueing discipline towards `remote`.
    pub(super) fn start(process: ProcessId, remote: SocketAddr) -> Self {
        // Programs at queues run for each packet of the host, also where this interface has none.
        let link = environment::link_towards(remote).ok();
        let interface = link.filter(|(index, link)| has_queue(*index, &link.interface)).map(|(index, _)| index);
        Self(KernelEventWatch::of_process(process, interface).map_err(|refusal| refusal.to_string()))
    }

    /// Events since the start.
    pub(super) fn finish(self) -> KernelEvents {
        match self.0 {
            Ok(watch) => watch.finish(),
            Err(reason) => KernelEvents { unavailable: Some(reason), ..KernelEvents::default() },
        }
    }
}
