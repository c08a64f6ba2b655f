//! Events that the kernels of the hosts traced: notes on delays and drops inside a host, and figures for verdicts.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, DiagnosisVerdict};
use linerate_model::far::{EventDelay, KernelEvents, PacketDrops, RunQueueOccupant};

use super::TransferEvidence;
use super::host_load::TransferEnd;
use super::lateness::{share, softirq_name, task_name};
use super::text::{percent_of, time};

/// Longest wait for a processor from which a host is late: more than a scheduler's slice, less than a user notices.
const MIN_LATE_WAIT: Duration = Duration::from_millis(4);
/// Share of a processor's time in one software interrupt from which it leaves little for programs.
const MIN_SOFTIRQ_SHARE: f64 = 0.5;
/// Drops below which a count is no pattern.
const MIN_DROPS: u64 = 10;
/// Time in the sender's own queueing discipline that a path's round trip does not explain.
const MIN_SOJOURN: Duration = Duration::from_millis(5);
/// Share of the retransmissions from which timers are their usual trigger.
const MIN_TIMER_SHARE: f64 = 0.5;
/// Largest number of drop reasons in one note.
const MAX_REASONS: usize = 3;

/// Place of a drop that a limit of the host explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DropPlace {
    Queue,
    Socket,
    Processor,
    Filter,
}

impl DropPlace {
    /// Place by the kernel's reason (`enum skb_drop_reason`); `None` for packets that no limit dropped.
    fn of(reason: &str) -> Option<Self> {
        match reason {
            "QDISC_DROP" | "QDISC_OVERLIMIT" | "QDISC_CONGESTED" | "CAKE_FLOOD" | "FQ_BAND_LIMIT"
            | "FQ_HORIZON_LIMIT" | "FQ_FLOW_LIMIT" | "DUALPI2_STEP_DROP" | "FULL_RING" => Some(Self::Queue),
            "SOCKET_RCVBUFF" | "SOCKET_BACKLOG" | "PROTO_MEM" | "TCP_OFO_QUEUE_PRUNE" | "TCP_OFO_DROP" => {
                Some(Self::Socket)
            }
            "CPU_BACKLOG" | "NOMEM" | "PFMEMALLOC" => Some(Self::Processor),
            "NETFILTER_DROP" | "TC_INGRESS" | "TC_EGRESS" | "XDP" | "BPF_CGROUP_EGRESS" | "SOCKET_FILTER"
            | "IP_RPFILTER" => Some(Self::Filter),
            _ => None,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Queue => "full queues",
            Self::Socket => "full sockets",
            Self::Processor => "processors that fall behind",
            Self::Filter => "filters",
        }
    }
}

impl<'o> TransferEvidence<'o> {
    /// Returns the events of a host's kernel, where they were traced.
    pub(super) fn kernel_events(&self, end: TransferEnd) -> Option<&'o KernelEvents> {
        self.host(end)?.kernel_events.as_ref().filter(|events| events.unavailable.is_none())
    }
}

/// Longest wait of a thread for a processor, with the task that ran meanwhile.
pub(super) fn longest_wait(events: &KernelEvents) -> Option<String> {
    let run_queue = events.run_queue.as_ref().filter(|run_queue| run_queue.delay.count > 0)?;
    let longest = time(Duration::from_nanos(run_queue.delay.longest_ns));
    let behind = late_occupant(&run_queue.occupants).map(|one| format!(", {}", described(one)));
    Some(format!("{longest}{}", behind.unwrap_or_default()))
}

/// Mean and longest time of packets in the queueing discipline.
pub(super) fn sojourn(events: &KernelEvents) -> Option<String> {
    let delay = events.qdisc.as_ref()?;
    Some(format!("{} on average, {} at most", time(mean(delay)?), time(Duration::from_nanos(delay.longest_ns))))
}

/// Drops at limits of the host by reason and location, most first.
pub(super) fn drop_reasons(events: &KernelEvents) -> Option<String> {
    let drops = events.drops.as_deref()?.iter().filter(|drop| DropPlace::of(&drop.reason).is_some());
    let list: Vec<String> = drops.take(MAX_REASONS).map(dropped).collect();
    (!list.is_empty()).then(|| list.join(", "))
}

fn mean(delay: &EventDelay) -> Option<Duration> {
    delay.total_ns.checked_div(delay.count).map(Duration::from_nanos)
}

/// Task behind which threads waited longest, other than an idle processor that wakes up.
fn late_occupant(occupants: &[RunQueueOccupant]) -> Option<&RunQueueOccupant> {
    occupants.iter().filter(|one| one.thread != 0).max_by_key(|one| one.longest_ns)
}

/// `on processor 1 behind rt-spinner`.
fn described(one: &RunQueueOccupant) -> String {
    format!("on processor {} behind {}", one.processor, task_name(one))
}

/// `QDISC_DROP: 20 in tbf_enqueue`.
fn dropped(drop: &PacketDrops) -> String {
    let place = drop.location.as_deref().map(|name| format!(" in {}", kernel_name(name)));
    format!("{}: {}{}", kernel_name(&drop.reason), drop.packets, place.unwrap_or_default())
}

/// Characters of a kernel's name that are safe to print: a far end reports any text.
fn kernel_name(name: &str) -> String {
    let is_plain = |character: &char| character.is_ascii_alphanumeric() || matches!(character, '_' | '.');
    name.chars().filter(is_plain).take(64).collect()
}

/// Notes on both hosts; none on lateness that a verdict names.
pub(super) fn notes(evidence: &TransferEvidence<'_>, verdicts: &[DiagnosisVerdict]) -> Vec<String> {
    let is_named = verdicts.iter().any(|verdict| verdict.cause == Cause::HostBusy);
    let named = evidence.late_end().filter(|_| is_named);
    let ends = [TransferEnd::Sender, TransferEnd::Receiver];
    let hosts = ends.into_iter().filter_map(|end| Some((end, evidence.kernel_events(end)?)));
    let of = |(end, events): (TransferEnd, &KernelEvents)| {
        let notes = [
            late_host(end, events).filter(|_| named != Some(end)),
            softirq(end, events),
            full_socket(end, events),
            drops(end, events),
            long_sojourn(end, events),
            timers(end, events),
        ];
        notes.into_iter().flatten().collect::<Vec<String>>()
    };
    hosts.flat_map(of).collect()
}

/// Note on a host that is late: threads of the transfer waited long for a processor.
fn late_host(end: TransferEnd, events: &KernelEvents) -> Option<String> {
    let run_queue = events.run_queue.as_ref()?;
    let longest = Duration::from_nanos(run_queue.delay.longest_ns);
    let occupant = late_occupant(&run_queue.occupants)?;
    (longest >= MIN_LATE_WAIT).then(|| {
        format!(
            "The {} host is late: threads of the transfer waited up to {} for a processor, {} in all, longest {}.",
            end.participle(),
            time(longest),
            time(Duration::from_nanos(run_queue.delay.total_ns)),
            described(occupant)
        )
    })
}

/// Note on a processor that is busy with one software interrupt.
fn softirq(end: TransferEnd, events: &KernelEvents) -> Option<String> {
    let busiest = events.softirqs.as_deref()?.iter().max_by_key(|one| one.time_ns)?;
    let used = share(busiest.time_ns, events.traced_ns).filter(|used| *used >= MIN_SOFTIRQ_SHARE)?;
    Some(format!(
        "Processor {} of the {} host spent {} of the time in {}.",
        busiest.processor,
        end.participle(),
        percent_of(used),
        softirq_name(busiest)
    ))
}

fn full_socket(end: TransferEnd, events: &KernelEvents) -> Option<String> {
    let queues = events.full_sockets.as_deref()?;
    let fullest = queues.iter().max_by_key(|queue| queue.packets).filter(|queue| queue.packets >= MIN_DROPS)?;
    let port = fullest.port.map_or_else(|| "a socket".to_owned(), |port| format!("the UDP socket on port {port}"));
    Some(format!(
        "The receive queue of {port} of the {} host was full: {} packets were dropped there. Its program reads too slowly, \
        or its buffer is too small for bursts.",
        end.participle(),
        fullest.packets
    ))
}

/// Note on drops at limits of the host, by the place that most of them have. They are those of all its programs.
fn drops(end: TransferEnd, events: &KernelEvents) -> Option<String> {
    let places = [DropPlace::Queue, DropPlace::Socket, DropPlace::Processor, DropPlace::Filter];
    let all = events.drops.as_deref()?;
    let at = |place: DropPlace| all.iter().filter(move |drop| DropPlace::of(&drop.reason) == Some(place));
    let count = |place: DropPlace| at(place).map(|drop| drop.packets).fold(0, u64::saturating_add);
    let place = places.into_iter().max_by_key(|place| count(*place)).filter(|place| count(*place) >= MIN_DROPS)?;
    let list: Vec<String> = at(place).take(MAX_REASONS).map(dropped).collect();
    Some(format!(
        "The {} host dropped {} packets at {}, of this transfer or of other programs ({}).",
        end.participle(),
        count(place),
        place.text(),
        list.join(", ")
    ))
}

fn long_sojourn(end: TransferEnd, events: &KernelEvents) -> Option<String> {
    let delay = events.qdisc.as_ref()?;
    let mean = mean(delay).filter(|mean| *mean >= MIN_SOJOURN)?;
    Some(format!(
        "Packets waited in the queueing discipline of the {} host for {} on average and {} at most.",
        end.participle(),
        time(mean),
        time(Duration::from_nanos(delay.longest_ns))
    ))
}

fn timers(end: TransferEnd, events: &KernelEvents) -> Option<String> {
    let triggers = events.retransmissions?;
    let all = triggers.by_timer.saturating_add(triggers.by_acknowledgement);
    let by_timer = share(triggers.by_timer, all).filter(|by_timer| *by_timer >= MIN_TIMER_SHARE)?;
    (all >= MIN_DROPS).then(|| {
        format!(
            "Timers (timeouts, or probes for lost tails) triggered {} of the {all} retransmissions of the {} host, of this transfer \
            or of other programs.",
            percent_of(by_timer),
            end.participle()
        )
    })
}
