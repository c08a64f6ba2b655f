//! What the queueing disciplines and classes of an interface have done: counters, backlogs, and those of CAKE's tins.
//!
//! Asked of the kernel itself (rtnetlink(7), `RTM_GETQDISC` and `RTM_GETTCLASS`), in the calling thread's network
//! namespace: no program is started, so that it can be read ten times a second on a small machine.

use core::time::Duration;
use std::io;

use linerate_model::environment::QueueStatistics;
use linerate_units::{BitRate, ByteCount, PacketCount};

use crate::error::{Error, Result};
use crate::interface::{QUEUE_DESCRIPTION, parse_statistics, text};
use crate::namespace;
use crate::netlink::{RouteSocket, attributes, number};

// From the kernel's linux/rtnetlink.h, linux/gen_stats.h and linux/pkt_sched.h.
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_APP: u16 = 4;
const TC_H_ROOT: u32 = u32::MAX;
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
/// The type of an attribute, without the flag that it holds others (`NLA_TYPE_MASK`).
const TYPE: u16 = 0x3fff;

/// Disciplines whose "classes" are single flows, made up for the listing: one for each flow that waits.
const CLASSES_ARE_FLOWS: [&str; 5] = ["cake", "fq_codel", "sfq", "choke", "sfb"];

/// One queueing discipline or class.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueReading {
    /// Whether it is a class.
    pub is_class: bool,
    /// `htb`, `fq_codel`, …
    pub kind: String,
    /// Major and minor number.
    pub handle: (u16, u16),
    /// What it hangs on: `None` at the root.
    pub parent: Option<(u16, u16)>,
    /// Its counters.
    pub statistics: QueueStatistics,
    /// Packets that it marked instead of dropping (ECN); `None` where it does not tell.
    pub marked: Option<PacketCount>,
    /// CAKE's tins, the first one lowest; empty for others.
    pub tins: Vec<Tin>,
}

/// One tin of CAKE (`TCA_CAKE_STATS_TIN_STATS`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tin {
    /// The rate above which it has no precedence.
    pub threshold: BitRate,
    /// Bytes that came to it, as CAKE counts them on their way in: what waits and what was dropped later are among them.
    pub sent: ByteCount,
    /// Packets, counted in the same way.
    pub packets: PacketCount,
    /// What waits.
    pub backlog: ByteCount,
    /// Packets that it dropped, acknowledgements that were filtered out among them.
    pub dropped: PacketCount,
    /// Packets that it marked.
    pub marked: PacketCount,
    /// The longest delay of late.
    pub peak_delay: Duration,
    /// The usual one.
    pub average_delay: Duration,
    /// That of sparse flows.
    pub base_delay: Duration,
}

/// Reads the queues of one interface, as often as one likes: its socket stays open, and classes are asked for only where
/// there are any.
#[derive(Debug)]
pub struct QueueWatch {
    socket: RouteSocket,
    index: u32,
    interface: String,
}

impl QueueWatch {
    /// Prepares to read the queues of the interface with this name.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn new(interface: &str) -> Result<Self> {
        let index = namespace::device_index(interface)?;
        let socket = RouteSocket::open().map_err(|cause| failure(interface, cause))?;
        Ok(Self { socket, index, interface: interface.to_owned() })
    }

    /// Everything, disciplines first, in the order in which the kernel lists them. Classes that stand for single flows
    /// (those of CAKE, FQ-CoDel and SFQ) are left out, and so is what has no counters.
    ///
    /// # Errors
    /// When the kernel refuses, or the interface is gone.
    pub fn read(&mut self) -> Result<Vec<QueueReading>> {
        self.list().map_err(|cause| failure(&self.interface, cause))
    }

    /// What waits in the whole tree at the interface's root; `None` without one. A system call and its answer.
    ///
    /// # Errors
    /// As [`QueueWatch::read`].
    pub fn backlog(&mut self) -> Result<Option<ByteCount>> {
        let mut found = Vec::new();
        let asked = self.ask(libc::RTM_GETQDISC, 0, false, &mut found);
        asked.map_err(|cause| failure(&self.interface, cause))?;
        // A discipline with classes counts what waits below it.
        let root = found.iter().find(|reading| reading.parent.is_none());
        Ok(root.map(|reading| reading.statistics.backlog))
    }

    fn list(&mut self) -> io::Result<Vec<QueueReading>> {
        let mut found = Vec::new();
        self.ask(libc::RTM_GETQDISC, 0, false, &mut found)?;
        for (major, _) in with_classes(&found) {
            self.ask(libc::RTM_GETTCLASS, u32::from(major) << 16, true, &mut found)?;
        }
        Ok(found)
    }

    /// Lists one kind of thing; of classes only those of the discipline `parent`.
    fn ask(&mut self, request: u16, parent: u32, is_class: bool, found: &mut Vec<QueueReading>) -> io::Result<()> {
        let mut question = [0; QUEUE_DESCRIPTION];
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

/// Everything of one interface, disciplines first: [`QueueWatch::read`] once.
///
/// # Errors
/// When there is no such interface, or the kernel refuses.
pub fn read(interface: &str) -> Result<Vec<QueueReading>> {
    QueueWatch::new(interface)?.read()
}

fn failure(interface: &str, cause: io::Error) -> Error {
    Error::system(format!("reading the queues of {interface}"), cause)
        .hint_on(libc::ENODEV, "`ip link` lists this host's interfaces")
}

/// The disciplines that may have classes of their own.
fn with_classes(disciplines: &[QueueReading]) -> Vec<(u16, u16)> {
    let may_have = |reading: &&QueueReading| !CLASSES_ARE_FLOWS.contains(&reading.kind.as_str());
    disciplines.iter().filter(may_have).map(|reading| reading.handle).filter(|(major, _)| *major != 0).collect()
}

/// One description (`tcmsg` and attributes); `None` when it has no kind or no counters.
fn parse(body: &[u8], is_class: bool) -> Option<QueueReading> {
    let (handle, parent) = (number(body, 8)?, number(body, 12)?);
    let (mut kind, mut counters) = (None, None);
    for (attribute, content) in attributes(body.get(QUEUE_DESCRIPTION..)?) {
        match attribute & TYPE {
            TCA_KIND => kind = Some(text(content)),
            TCA_STATS2 => counters = Some(content),
            _ => {}
        }
    }
    let (kind, counters) = (kind?, counters?);
    // A class's own counts of marks are single flows': those of its discipline are the whole.
    let own = if is_class { None } else { attribute(counters, TCA_STATS_APP) };
    let tins = own.filter(|_| kind == "cake").map(parse_tins).unwrap_or_default();
    Some(QueueReading {
        is_class,
        marked: own.and_then(|own| marks(&kind, own, &tins)),
        statistics: parse_statistics(counters)?,
        handle: halves(handle),
        parent: (parent != TC_H_ROOT).then(|| halves(parent)),
        kind,
        tins,
    })
}

/// The major and the minor number.
fn halves(handle: u32) -> (u16, u16) {
    let [first, second, third, fourth] = handle.to_be_bytes();
    (u16::from_be_bytes([first, second]), u16::from_be_bytes([third, fourth]))
}

fn attribute(content: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(content).find(|(kind, _)| kind & TYPE == wanted).map(|(_, content)| content)
}

/// Where a kind has its count of marked packets (`tc_*_xstats`).
fn marks(kind: &str, own: &[u8], tins: &[Tin]) -> Option<PacketCount> {
    let place = match kind {
        "cake" => {
            let sum = tins.iter().map(|tin| tin.marked.get()).sum();
            return (!tins.is_empty()).then(|| PacketCount::new(sum));
        }
        // The first word says that the rest is a discipline's; then the largest packet and drops for want of room.
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
fn parse_tins(own: &[u8]) -> Vec<Tin> {
    let listed = attribute(own, TCA_CAKE_STATS_TIN_STATS).unwrap_or_default();
    attributes(listed).filter_map(|(_, content)| parse_tin(content)).collect()
}

fn parse_tin(content: &[u8]) -> Option<Tin> {
    let word = |kind| attribute(content, kind).and_then(|content| number(content, 0)).map(u64::from);
    let long = |kind| attribute(content, kind)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
    let microseconds = |kind| word(kind).map(Duration::from_micros);
    Some(Tin {
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
