//! Events of the kernel for the flows of a watch: which process waits for a processor, what is dropped, what timers retransmit.

use std::collections::BTreeSet;
use std::time::Duration;

use linerate_documents::watch::{WatchFlowEvents, WatchKernelEvents};
use linerate_model::far::{PacketDrops, SoftirqTime};
use linerate_model::flow_events::{FlowEvents, IntervalEvents};
use linerate_model::socket::ProcessId;
use linerate_sys::kernel_events::FlowEventWatch;
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, Ratio, display};

use super::figures;
use super::flows::FlowRow;

/// Largest number of drop reasons in the line of the host.
const MAX_REASONS: usize = 3;

/// Trace of the kernel's events with those of the latest interval, or the reason why there are none.
#[derive(Debug)]
pub(crate) enum FlowEventTrace {
    Active { watch: Box<FlowEventWatch>, latest: Box<IntervalEvents> },
    Unavailable(String),
}

impl FlowEventTrace {
    /// Starts to trace. A refusal is shown, and ends nothing.
    pub(crate) fn start() -> Self {
        match FlowEventWatch::start() {
            Ok(watch) => Self::Active { watch: Box::new(watch), latest: Box::default() },
            Err(refusal) => Self::Unavailable(refusal.to_string()),
        }
    }

    /// Reads the interval that ends now, and traces these processes in the next.
    pub(crate) fn update(&mut self, processes: &BTreeSet<ProcessId>) {
        if let Self::Active { watch, latest } = self {
            **latest = watch.interval(processes.iter().copied());
        }
    }

    /// Events of the latest interval.
    pub(crate) const fn latest(&self) -> Option<&IntervalEvents> {
        match self {
            Self::Active { latest, .. } => Some(&**latest),
            Self::Unavailable(_) => None,
        }
    }

    /// Line about the host, or about why nothing is traced.
    pub(crate) fn host_line(&self) -> String {
        match self {
            Self::Active { latest, .. } => host_line(latest),
            Self::Unavailable(reason) => format!("No kernel events: {reason}"),
        }
    }

    /// Part of the document.
    pub(crate) fn document(&self) -> WatchKernelEvents {
        match self {
            Self::Active { latest, .. } => WatchKernelEvents {
                unavailable: None,
                missing: latest.host.missing.clone(),
                softirqs: latest.host.softirqs.clone(),
                drops: latest.host.drops.clone(),
            },
            Self::Unavailable(reason) => {
                WatchKernelEvents { unavailable: Some(reason.clone()), ..WatchKernelEvents::default() }
            }
        }
    }
}

/// Busiest software interrupt and the drops of the host: `Host: CPU 1 34 % in NET_RX (eth0-rx-0); dropped: QDISC_DROP 20`.
/// Software interrupts are traced for a part of the time: an interval may have none of it.
pub(super) fn host_line(events: &IntervalEvents) -> String {
    let is_traced = !events.host.missing.iter().any(|name| name.starts_with("irq/softirq"));
    let softirqs = events.host.softirqs.as_deref();
    let untraced = || {
        let text = softirqs.map_or("software interrupts not traced in this interval", |_| "no software interrupts");
        is_traced.then(|| text.to_owned())
    };
    let busiest = softirqs.and_then(<[SoftirqTime]>::first).and_then(|one| {
        let used = Ratio::of(Duration::from_nanos(one.time_ns).as_secs_f64(), events.elapsed.as_secs_f64())?;
        let device = one.interrupt.as_deref().map_or_else(String::new, |name| format!(" ({name})"));
        Some(format!("CPU {} {} in {}{device}", one.processor, display::percent(used), one.vector))
    });
    let drops = events.host.drops.as_deref().map(|drops| {
        let list: Vec<String> = drops.iter().take(MAX_REASONS).map(reason_text).collect();
        if list.is_empty() { "no drops".to_owned() } else { format!("dropped: {}", list.join(", ")) }
    });
    let parts: Vec<String> = [busiest.or_else(untraced), drops].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!("Host: {}", parts.join("; ")) }
}

fn reason_text(drop: &PacketDrops) -> String {
    format!("{} {}", drop.reason, drop.packets)
}

impl FlowRow<'_> {
    /// Time for which the thread of the flow's process that waited most waited for a processor, and its share.
    pub(crate) fn wait(&self) -> Option<(Duration, Ratio)> {
        let events = self.events?;
        let wait = *events.waits.as_ref()?.get(&self.owner.known()?.process)?;
        Some((wait, Ratio::of(wait.as_secs_f64(), events.elapsed.as_secs_f64())?))
    }

    /// Drops of the flow by reason.
    pub(crate) fn drops(&self) -> Option<FlowEvents> {
        self.flow_events(|events| events.has_flow_drops)
    }

    /// Retransmissions of the flow by trigger.
    pub(crate) fn retransmissions(&self) -> Option<FlowEvents> {
        self.flow_events(|events| events.has_flow_retransmissions)
    }

    fn flow_events(&self, is_traced: fn(&IntervalEvents) -> bool) -> Option<FlowEvents> {
        self.events.filter(|events| is_traced(events))?.of_flow(&self.flow.reading.key)
    }

    /// Part of the document.
    pub(crate) fn event_document(&self) -> Option<WatchFlowEvents> {
        self.events?;
        let (wait, drops, retransmissions) = (self.wait(), self.drops(), self.retransmissions());
        Some(WatchFlowEvents {
            run_queue_wait_ns: wait.map(|(wait, _)| nanoseconds(wait)),
            run_queue_wait_share: wait.map(|(_, share)| share.get()),
            drops: drops.map(|events| events.drops),
            retransmitted_by_timer: retransmissions.as_ref().map(|events| events.by_timer),
            retransmitted_by_acknowledgement: retransmissions.as_ref().map(|events| events.by_acknowledgement),
        })
    }

    /// Names and texts for the view of one flow.
    pub(crate) fn event_figures(&self) -> [(&'static str, Option<String>); 3] {
        let wait = self.wait().map(|(_, share)| format!("{} of the time for a processor", display::percent(share)));
        let drops = self.drops().map(|events| {
            let list: Vec<String> =
                events.drops.iter().map(|(reason, packets)| format!("{reason} {packets}")).collect();
            if list.is_empty() { "0 packets".to_owned() } else { list.join(", ") }
        });
        let timers = self.retransmissions().map(|events| {
            let all = events.by_timer.saturating_add(events.by_acknowledgement);
            format!("{} of {all} retransmissions now", events.by_timer)
        });
        [("Waits", wait), ("Dropped", drops), ("By timers", timers)]
    }

    /// Retransmissions by timers of all in the interval: `3/12`, or `0`.
    pub(crate) fn timer_text(&self) -> String {
        self.retransmissions().map_or_else(
            || "-".to_owned(),
            |events| {
                let all = events.by_timer.saturating_add(events.by_acknowledgement);
                if all == 0 { "0".to_owned() } else { format!("{}/{all}", events.by_timer) }
            },
        )
    }

    /// Number of dropped packets: `20`, `1.20k`.
    pub(crate) fn drop_text(&self) -> String {
        let count = self.drops().map(|events| events.dropped());
        count.map_or_else(
            || "-".to_owned(),
            |count| if count < 100_000 { count.to_string() } else { figures::size(Some(ByteCount::new(count))) },
        )
    }
}
