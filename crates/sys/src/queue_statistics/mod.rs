//! Counters and backlogs of an interface's queueing disciplines and classes, and of CAKE's tins.
//!
//! Read from the kernel itself (rtnetlink(7), `RTM_GETQDISC` and `RTM_GETTCLASS`), in the calling thread's network
//! namespace: no program is started, so that ten reads per second are possible on a small machine.

mod limits;

use core::time::Duration;
use std::io;

use linerate_model::environment::QueueStatistics;
use linerate_model::far::QueueRateLimit;
use linerate_units::{BitRate, ByteCount, PacketCount};

use crate::error::{Error, Result};
use crate::interface::{QueueDescription, TCMSG_LENGTH, parse_statistics};
use crate::namespace;
use crate::netlink::{NetlinkSocket, attribute, attributes, number};

// From the kernel's linux/rtnetlink.h, linux/gen_stats.h and linux/pkt_sched.h.
const TCA_STATS_APP: u16 = 4;
const TCA_CAKE_STATS_TIN_STATS: u16 = 10;
const TIN_SENT_PACKETS: u16 = 2;
const TIN_SENT_BYTES: u16 = 3;
const TIN_DROPPED: u16 = 4;
const TIN_ACKNOWLEDGEMENTS_DROPPED: u16 = 6;
const TIN_MARKED: u16 = 8;
const TIN_BACKLOG_BYTES: u16 = 11;
const TIN_THRESHOLD: u16 = 12;
const TIN_PEAK_DELAY: u16 = 18;
const TIN_AVERAGE_DELAY: u16 = 19;
const TIN_BASE_DELAY: u16 = 20;

/// Disciplines whose "classes" are single flows, made up for the listing: one for each flow that waits.
const FLOW_CLASS_KINDS: [&str; 5] = ["cake", "fq_codel", "sfq", "choke", "sfb"];

/// Disciplines without classes. A request to list them costs as much as that for a whole tree, and a tree has one for each
/// of thousands of classes.
const CLASSLESS_KINDS: [&str; 12] = [
    "bfifo",
    "pfifo",
    "pfifo_fast",
    "pfifo_head_drop",
    "noqueue",
    "fq",
    "fq_pie",
    "pie",
    "codel",
    "gred",
    "dualpi2",
    "hhf",
];

/// One queueing discipline or class.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSample {
    /// True for a class.
    pub is_class: bool,
    /// `htb`, `fq_codel`, …
    pub kind: String,
    /// Major and minor number.
    pub handle: (u16, u16),
    /// Parent; `None` at the root.
    pub parent: Option<(u16, u16)>,
    /// Counters.
    pub statistics: QueueStatistics,
    /// Packets marked instead of dropped (ECN); `None` where they are not counted.
    pub marked: Option<PacketCount>,
    /// CAKE's tins, lowest first; empty for others.
    pub tins: Vec<CakeTin>,
    /// Rate limit, where it has one.
    pub limit: Option<QueueRateLimit>,
}

/// One tin of CAKE (`TCA_CAKE_STATS_TIN_STATS`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CakeTin {
    /// Rate above which it has no precedence.
    pub threshold: BitRate,
    /// Bytes received, as CAKE counts them on enqueue: they include those that wait and those dropped later.
    pub sent: ByteCount,
    /// Packets, counted in the same way.
    pub packets: PacketCount,
    /// Bytes that wait.
    pub backlog: ByteCount,
    /// Packets dropped, filtered acknowledgements included.
    pub dropped: PacketCount,
    /// Packets marked.
    pub marked: PacketCount,
    /// Recent peak delay.
    pub peak_delay: Duration,
    /// Average delay.
    pub average_delay: Duration,
    /// Delay of sparse flows.
    pub base_delay: Duration,
}

/// Reads the queues of one interface repeatedly: its socket stays open, and classes are requested only where there are
/// any.
#[derive(Debug)]
pub struct QueueWatch {
    socket: NetlinkSocket,
    index: u32,
    interface: String,
}

impl QueueWatch {
    /// Prepares to read the queues of the interface with this name.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn new(interface: &str) -> Result<Self> {
        Self::of_index(namespace::device_index(interface)?, interface)
    }

    /// Prepares to read the queues of the interface with this number and name.
    ///
    /// # Errors
    /// When the kernel refuses a socket.
    pub fn of_index(index: u32, interface: &str) -> Result<Self> {
        let socket = NetlinkSocket::route().map_err(|cause| failure(interface, cause))?;
        Ok(Self { socket, index, interface: interface.to_owned() })
    }

    /// All disciplines and classes, disciplines first, in the order in which the kernel lists them. Classes of single
    /// flows (those of CAKE, FQ-CoDel and SFQ) are omitted, and so are those without counters.
    ///
    /// # Errors
    /// When the kernel refuses, or the interface is gone.
    pub fn read(&mut self) -> Result<Vec<QueueSample>> {
        self.list().map_err(|cause| failure(&self.interface, cause))
    }

    /// Backlog of the whole tree at the interface's root; `None` without one. A system call and its answer.
    ///
    /// # Errors
    /// As [`QueueWatch::read`].
    pub fn backlog(&mut self) -> Result<Option<ByteCount>> {
        let mut found = Vec::new();
        let asked = self.ask(libc::RTM_GETQDISC, 0, false, &mut found);
        asked.map_err(|cause| failure(&self.interface, cause))?;
        // A discipline with classes includes the backlog below it.
        let root = found.iter().find(|reading| reading.parent.is_none());
        Ok(root.map(|reading| reading.statistics.backlog))
    }

    fn list(&mut self) -> io::Result<Vec<QueueSample>> {
        let mut found = Vec::new();
        self.ask(libc::RTM_GETQDISC, 0, false, &mut found)?;
        for (major, _) in with_classes(&found) {
            self.ask(libc::RTM_GETTCLASS, u32::from(major) << 16, true, &mut found)?;
        }
        Ok(found)
    }

    /// Lists one kind of object; of classes only those of the discipline `parent`.
    fn ask(&mut self, request: u16, parent: u32, is_class: bool, found: &mut Vec<QueueSample>) -> io::Result<()> {
        let mut question = [0; TCMSG_LENGTH];
        question[4..8].copy_from_slice(&self.index.to_ne_bytes());
        question[12..16].copy_from_slice(&parent.to_ne_bytes());
        let index = self.index;
        self.socket.list(request, &question, |message| {
            // The kernel lists the disciplines of all interfaces, whichever is asked for.
            if number(message.body, 4) == Some(index) {
                found.extend(parse(message.body, is_class));
            }
        })
    }
}

/// All queues of one interface, disciplines first: [`QueueWatch::read`] once.
///
/// # Errors
/// When there is no such interface, or the kernel refuses.
pub fn read(interface: &str) -> Result<Vec<QueueSample>> {
    QueueWatch::new(interface)?.read()
}

fn failure(interface: &str, cause: io::Error) -> Error {
    Error::system(format!("reading the queues of {interface}"), cause)
        .hint_on(libc::ENODEV, "`ip link` lists this host's interfaces")
}

/// The disciplines that may have classes of their own.
fn with_classes(disciplines: &[QueueSample]) -> Vec<(u16, u16)> {
    let may_have = |reading: &&QueueSample| {
        let kind = reading.kind.as_str();
        !FLOW_CLASS_KINDS.contains(&kind) && !CLASSLESS_KINDS.contains(&kind)
    };
    disciplines.iter().filter(may_have).map(|reading| reading.handle).filter(|(major, _)| *major != 0).collect()
}

/// One description (`tcmsg` and attributes); `None` when it has no kind or no counters.
fn parse(body: &[u8], is_class: bool) -> Option<QueueSample> {
    let queue = QueueDescription::parse(body)?;
    let (kind, counters) = (queue.kind, queue.counters?);
    let limit = queue.options.and_then(|options| limits::parse(&kind, is_class, options));
    // A class counts the marks of single flows only: its discipline has all of them.
    let own = if is_class { None } else { attribute(counters, TCA_STATS_APP) };
    let tins = own.filter(|_| kind == "cake").map(parse_tins).unwrap_or_default();
    Some(QueueSample {
        is_class,
        marked: own.and_then(|own| marked_packets(&kind, own, &tins)),
        statistics: parse_statistics(counters)?,
        handle: major_minor(queue.handle),
        parent: queue.parent.map(major_minor),
        kind,
        tins,
        limit,
    })
}

/// The major and the minor number.
fn major_minor(handle: u32) -> (u16, u16) {
    let [first, second, third, fourth] = handle.to_be_bytes();
    (u16::from_be_bytes([first, second]), u16::from_be_bytes([third, fourth]))
}

/// Count of marked packets in a kind's statistics (`tc_*_xstats`).
fn marked_packets(kind: &str, own: &[u8], tins: &[CakeTin]) -> Option<PacketCount> {
    let place = match kind {
        "cake" => {
            let sum = tins.iter().map(|tin| tin.marked.get()).sum();
            return (!tins.is_empty()).then(|| PacketCount::new(sum));
        }
        // The first word marks the statistics of a discipline; then the largest packet and drops at the limit.
        "fq_codel" if number(own, 0) == Some(0) => 12,
        "codel" => 24,
        "fq_pie" => 16,
        "pie" => 36,
        "red" => 12,
        _ => return None,
    };
    number(own, place).map(|count| PacketCount::new(count.into()))
}

/// The nested attributes of CAKE's tins, each under its number, counted from 1 on.
fn parse_tins(own: &[u8]) -> Vec<CakeTin> {
    let listed = attribute(own, TCA_CAKE_STATS_TIN_STATS).unwrap_or_default();
    attributes(listed).filter_map(|(_, content)| parse_tin(content)).collect()
}

fn parse_tin(content: &[u8]) -> Option<CakeTin> {
    let word = |kind| attribute(content, kind).and_then(|content| number(content, 0)).map(u64::from);
    let long = |kind| attribute(content, kind)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
    let microseconds = |kind| word(kind).map(Duration::from_micros);
    Some(CakeTin {
        threshold: ByteCount::new(long(TIN_THRESHOLD)?).rate_over(Duration::from_secs(1)),
        sent: ByteCount::new(long(TIN_SENT_BYTES)?),
        packets: PacketCount::new(word(TIN_SENT_PACKETS)?),
        backlog: ByteCount::new(word(TIN_BACKLOG_BYTES)?),
        dropped: PacketCount::new(word(TIN_DROPPED)? + word(TIN_ACKNOWLEDGEMENTS_DROPPED).unwrap_or(0)),
        marked: PacketCount::new(word(TIN_MARKED)?),
        peak_delay: microseconds(TIN_PEAK_DELAY)?,
        average_delay: microseconds(TIN_AVERAGE_DELAY)?,
        base_delay: microseconds(TIN_BASE_DELAY)?,
    })
}

#[cfg(test)]
mod tests;
