//! Facts about its host that a server reports.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_sys::interface::{self, NetworkInterface};
use linerate_sys::route::{RouteToAddress, route_to};
use linerate_sys::{clock, environment, host, net, options, tcp_info};
use linerate_units::{MonotonicTime, Mss, PacketCount};
use linerate_wire::probe::{FarFacts, InterfaceCounterSample, MAX_CONGESTION_CONTROLS, SynFacts};

use crate::server::session::SessionStart;

/// Cache time of slowly changing facts: a client cannot keep the server busy with them.
const CACHE_TIME: Duration = Duration::from_secs(5);

/// Facts read so far.
#[derive(Debug, Default)]
pub(super) struct CollectedFacts {
    slow: Option<(MonotonicTime, FarFacts)>,
    route: Option<RouteToAddress>,
    /// The kernel returns it only once.
    syn: Option<SynFacts>,
}

impl CollectedFacts {
    pub(super) fn read(&mut self, start: &SessionStart) -> FarFacts {
        let now = clock::monotonic_now();
        if self.syn.is_none() {
            self.syn = options::saved_syn(start.control.stream()).ok().flatten().map(|syn| SynFacts {
                source: net::canonical(syn.source),
                type_of_service: syn.type_of_service,
                hop_limit: syn.hop_limit,
                asks_for_ecn: syn.asks_for_ecn,
                asks_for_accurate_ecn: Some(syn.asks_for_accurate_ecn),
                mss: syn.mss.map(Mss::get).and_then(|mss| u16::try_from(mss).ok()),
                window_scale: syn.window_scale,
                selective_acknowledgements: syn.selective_acknowledgements,
                timestamps: syn.timestamps,
            });
        }
        let slow = match self.slow.take().filter(|(at, _)| now.since(*at) < CACHE_TIME) {
            Some(kept) => kept,
            None => (now, self.read_slow(start.peer)),
        };
        let mut facts = slow.1.clone();
        self.slow = Some(slow);
        facts.control = tcp_info::read(start.control.stream()).ok();
        facts.counters = self.counters();
        facts.syn = self.syn;
        facts.other_sessions = Some(PacketCount::new(start.registry.sessions().saturating_sub(1) as u64));
        facts.time = Some(clock::realtime_now());
        facts
    }

    fn read_slow(&mut self, peer: SocketAddr) -> FarFacts {
        let host = environment::read(None);
        self.route = route_to(peer).ok();
        let queue = self.route.as_ref().and_then(|route| interface::root_queue(route.index).ok().flatten());
        let mut names = host.congestion_controls.unwrap_or_default();
        names.truncate(MAX_CONGESTION_CONTROLS);
        FarFacts {
            kernel: host.kernel,
            architecture: host.architecture,
            processors: u32::try_from(host::cpu_count().get()).ok(),
            congestion_controls: names,
            default_congestion_control: host.congestion_control,
            clock_source: host.clock.source,
            clock_synchronised: host.clock.state.as_ref().map(|state| state.synchronised),
            clock_error_bound: host.clock.state.as_ref().map(|state| state.largest_error),
            interface: self.route.as_ref().map(|route| route.interface.clone()),
            mtu: self.route.as_ref().and_then(RouteToAddress::mtu),
            queueing_discipline: queue.map(|queue| queue.kind),
            ..FarFacts::default()
        }
    }

    fn counters(&self) -> Option<InterfaceCounterSample> {
        let counters = NetworkInterface::by_index(self.route.as_ref()?.index).ok()?.counters?;
        Some(InterfaceCounterSample {
            time: clock::realtime_now(),
            received_bytes: counters.received.bytes,
            received_packets: counters.received.packets,
            sent_bytes: counters.sent.bytes,
            sent_packets: counters.sent.packets,
        })
    }
}
