//! Interfaces of this host, as the routing subsystem describes them (rtnetlink(7)), in the calling thread's network
//! namespace. The files in `/sys/class/net` may be of another one.

use std::net::Ipv6Addr;
use std::{fs, io};

use linerate_model::environment::{DirectionCounters, InterfaceCounters, QueueStatistics};
use linerate_units::{ByteCount, Mtu, PacketCount};

use crate::error::{Error, Result};
use crate::namespace;
use crate::netlink::{NetlinkMessage, NetlinkSocket, attribute, attributes, number};

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkInterface {
    /// Name.
    pub name: String,
    /// Number (index).
    pub index: u32,
    /// MTU.
    pub mtu: Option<Mtu>,
    /// Length of its transmit queue (`txqueuelen`).
    pub transmit_queue: Option<PacketCount>,
    /// Hardware queues for sending and receiving.
    pub queues: Option<(u32, u32)>,
    /// Kind of virtual device, for example `veth`; `None` for real ones and the loopback device.
    pub kind: Option<String>,
    /// Traffic counters.
    pub counters: Option<InterfaceCounters>,
    /// Length of its link-layer header beyond the length of packets that the kernel counts: 14 for Ethernet, 0 for PPP
    /// and tunnels of IP; `None` for others.
    pub link_header: Option<ByteCount>,
}

/// The root queueing discipline of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootQueue {
    /// Kind, for example `fq_codel`.
    pub kind: String,
    /// Traffic counters.
    pub statistics: Option<QueueStatistics>,
}

/// Reads the counters of one interface repeatedly: each time is one system call and its answer.
#[derive(Debug)]
pub struct InterfaceWatch {
    socket: NetlinkSocket,
    index: u32,
}

// From the kernel's linux/if_link.h, linux/rtnetlink.h, linux/pkt_sched.h and linux/gen_stats.h.
pub(crate) const IFLA_ADDRESS: u16 = 1;
pub(crate) const IFLA_IFNAME: u16 = 3;
pub(crate) const IFLA_MTU: u16 = 4;
pub(crate) const IFLA_TXQLEN: u16 = 13;
pub(crate) const IFLA_LINKINFO: u16 = 18;
pub(crate) const IFLA_IFALIAS: u16 = 20;
pub(crate) const IFLA_STATS64: u16 = 23;
pub(crate) const IFLA_NUM_TX_QUEUES: u16 = 31;
pub(crate) const IFLA_NUM_RX_QUEUES: u16 = 32;
pub(crate) const IFLA_INFO_KIND: u16 = 1;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TC_H_ROOT: u32 = u32::MAX;
/// Bare IP, as mobile networks' modems have it (`linux/if_arp.h`).
const ARPHRD_RAWIP: u16 = 519;
/// `IFF_UP` and `IFF_RUNNING`, from linux/if.h.
const UP_AND_RUNNING: u32 = 0x41;
/// Length of `ifinfomsg`: family, type, number, flags, change.
pub(crate) const LINK_DESCRIPTION: usize = 16;
/// Length of `tcmsg`: family, number of the interface, handle, parent, information.
pub(crate) const TCMSG_LENGTH: usize = 20;

impl NetworkInterface {
    /// The interface with this name.
    pub fn by_name(name: &str) -> Result<Self> {
        Self::by_index(namespace::device_index(name)?)
    }

    /// The interface with this number.
    pub fn by_index(index: u32) -> Result<Self> {
        let failed = |cause| describe_failure(index, cause);
        let mut socket = NetlinkSocket::route().map_err(failed)?;
        describe(&mut socket, index, Self::parse).map_err(failed)
    }

    fn parse(body: &[u8]) -> Option<Self> {
        let (description, rest) = body.split_at_checked(LINK_DESCRIPTION)?;
        let index = number(description, 4)?;
        let mut interface = Self {
            name: String::new(),
            index,
            mtu: None,
            transmit_queue: None,
            queues: None,
            kind: None,
            counters: None,
            link_header: link_header(description),
        };
        let (mut sending, mut receiving) = (None, None);
        for (kind, content) in attributes(rest) {
            match kind {
                IFLA_IFNAME => interface.name = text(content),
                IFLA_MTU => interface.mtu = number(content, 0).map(Mtu::new),
                IFLA_TXQLEN => {
                    interface.transmit_queue = number(content, 0).map(|length| PacketCount::new(length.into()));
                }
                IFLA_NUM_TX_QUEUES => sending = number(content, 0),
                IFLA_NUM_RX_QUEUES => receiving = number(content, 0),
                IFLA_LINKINFO => {
                    interface.kind = attribute(content, IFLA_INFO_KIND).map(text);
                }
                IFLA_STATS64 => interface.counters = counters(content),
                _ => {}
            }
        }
        interface.queues = sending.zip(receiving);
        (!interface.name.is_empty()).then_some(interface)
    }
}

impl InterfaceWatch {
    /// Prepares to read the counters of the interface with this number.
    pub fn new(index: u32) -> Result<Self> {
        let socket = NetlinkSocket::route().map_err(|cause| describe_failure(index, cause))?;
        Ok(Self { socket, index })
    }

    /// Current counters, and true when the interface is up and can send (`IFF_UP`, `IFF_RUNNING`).
    pub fn read_with_state(&mut self) -> Result<(InterfaceCounters, bool)> {
        let find = |body: &[u8]| {
            let (description, rest) = body.split_at_checked(LINK_DESCRIPTION)?;
            let flags = number(description, 8)?;
            let counters = attribute(rest, IFLA_STATS64).and_then(counters)?;
            Some((counters, flags & UP_AND_RUNNING == UP_AND_RUNNING))
        };
        describe(&mut self.socket, self.index, find).map_err(|cause| describe_failure(self.index, cause))
    }

    /// Current counters.
    pub fn read(&mut self) -> Result<InterfaceCounters> {
        self.read_with_state().map(|(counters, _)| counters)
    }
}

/// True when the interface with this name is up (`IFF_UP`): packets that are sent through one that is not are dropped.
pub fn is_up(name: &str) -> Result<bool> {
    let index = namespace::device_index(name)?;
    let failed = |cause| describe_failure(index, cause);
    let mut socket = NetlinkSocket::route().map_err(failed)?;
    let up = u32::from_ne_bytes(libc::IFF_UP.to_ne_bytes());
    describe(&mut socket, index, |body| number(body, 8).map(|flags| flags & up != 0)).map_err(failed)
}

/// The root queueing discipline of the interface with this number; `None` when it has none, not even `noqueue`.
pub fn root_queue(index: u32) -> Result<Option<RootQueue>> {
    let failed = |cause| Error::system(format!("reading the queueing disciplines of interface {index}"), cause);
    let mut found = None;
    let mut socket = NetlinkSocket::route().map_err(failed)?;
    let look = |message: NetlinkMessage<'_>| {
        let queue =
            QueueDescription::parse(message.body).filter(|queue| queue.index == index && queue.parent.is_none());
        found = found.take().or(queue.map(|queue| RootQueue { statistics: queue.statistics(), kind: queue.kind }));
    };
    socket.list(libc::RTM_GETQDISC, &[0; TCMSG_LENGTH], look).map_err(failed)?;
    Ok(found)
}

/// Number of the interface that has this IPv6 address in the calling thread's network namespace (`/proc/net/if_inet6`).
/// A link-local one may be on several: the first.
#[must_use]
pub fn interface_of(address: Ipv6Addr) -> Option<u32> {
    let table = fs::read_to_string("/proc/thread-self/net/if_inet6").ok()?;
    index_of(address, &table)
}

/// Number in the line of an address: `fe80…0001 02 40 20 80 eth0`, all in hexadecimal digits.
fn index_of(address: Ipv6Addr, table: &str) -> Option<u32> {
    let digits = format!("{:032x}", address.to_bits());
    let line = table.lines().find_map(|line| line.strip_prefix(&digits))?;
    u32::from_str_radix(line.split_ascii_whitespace().next()?, 16).ok()
}

fn describe_failure(index: u32, cause: io::Error) -> Error {
    Error::system(format!("asking about interface {index}"), cause)
        .hint_on(libc::ENODEV, "`ip link` lists this host's interfaces")
}

fn describe<T>(socket: &mut NetlinkSocket, index: u32, read: impl Fn(&[u8]) -> Option<T>) -> io::Result<T> {
    let mut question = [0; LINK_DESCRIPTION];
    question[4..8].copy_from_slice(&index.to_ne_bytes());
    let mut found = None;
    socket.ask(libc::RTM_GETLINK, &question, |message| found = found.take().or_else(|| read(message.body)))?;
    found.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

pub(crate) fn text(content: &[u8]) -> String {
    String::from_utf8_lossy(content).trim_end_matches('\0').to_owned()
}

/// `rtnl_link_stats64`: of each kind first what was received, then what was sent.
pub(crate) fn counters(content: &[u8]) -> Option<InterfaceCounters> {
    let count = |index: usize| Some(u64::from_ne_bytes(content.get(index * 8..index * 8 + 8)?.try_into().ok()?));
    let direction = |place| {
        Some(DirectionCounters {
            packets: PacketCount::new(count(place)?),
            bytes: ByteCount::new(count(place + 2)?),
            errors: PacketCount::new(count(place + 4)?),
            dropped: PacketCount::new(count(place + 6)?),
        })
    };
    Some(InterfaceCounters { received: direction(0)?, sent: direction(1)? })
}

/// Description of a queueing discipline or class (`tcmsg` and attributes).
pub(crate) struct QueueDescription<'a> {
    /// Number of the interface.
    pub(crate) index: u32,
    pub(crate) handle: u32,
    /// `None` at the root.
    pub(crate) parent: Option<u32>,
    pub(crate) kind: String,
    /// Attributes with statistics (`TCA_STATS2`).
    pub(crate) counters: Option<&'a [u8]>,
    /// Settings of its kind (`TCA_OPTIONS`).
    pub(crate) options: Option<&'a [u8]>,
}

impl<'a> QueueDescription<'a> {
    /// Parses a message's body; `None` when it has no kind.
    pub(crate) fn parse(body: &'a [u8]) -> Option<Self> {
        let find = |wanted| attribute(body.get(TCMSG_LENGTH..)?, wanted);
        Some(Self {
            index: number(body, 4)?,
            handle: number(body, 8)?,
            parent: number(body, 12).filter(|parent| *parent != TC_H_ROOT),
            kind: text(find(TCA_KIND)?),
            counters: find(TCA_STATS2),
            options: find(TCA_OPTIONS),
        })
    }

    pub(crate) fn statistics(&self) -> Option<QueueStatistics> {
        self.counters.and_then(parse_statistics)
    }
}

/// Length for the kernel's number of the link layer (`ifi_type`, `linux/if_arp.h`).
fn link_header(description: &[u8]) -> Option<ByteCount> {
    let kind = u16::from_ne_bytes(*description.get(2..)?.first_chunk()?);
    match kind {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(ByteCount::new(14)),
        libc::ARPHRD_PPP
        | libc::ARPHRD_NONE
        | libc::ARPHRD_TUNNEL
        | libc::ARPHRD_TUNNEL6
        | libc::ARPHRD_SIT
        | libc::ARPHRD_IPGRE
        | ARPHRD_RAWIP => Some(ByteCount::ZERO),
        _ => None,
    }
}

/// `gnet_stats_basic` (bytes, packets) and `gnet_stats_queue` (length, backlog, drops, requeues, overlimits).
pub(crate) fn parse_statistics(content: &[u8]) -> Option<QueueStatistics> {
    let (basic, queue) = (attribute(content, TCA_STATS_BASIC)?, attribute(content, TCA_STATS_QUEUE)?);
    let packets = |bytes, place| number(bytes, place).map(|count| PacketCount::new(count.into()));
    Some(QueueStatistics {
        sent: ByteCount::new(u64::from_ne_bytes(*basic.first_chunk()?)),
        packets: packets(basic, 8)?,
        backlog_packets: packets(queue, 0)?,
        backlog: ByteCount::new(number(queue, 4)?.into()),
        dropped: packets(queue, 8)?,
        requeues: packets(queue, 12)?,
        overlimits: packets(queue, 16)?,
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn the_loopback_device_counts_what_passes() {
        let interface = NetworkInterface::by_name("lo").expect("every host has it");
        assert_eq!((interface.name.as_str(), interface.index, &interface.kind), ("lo", 1, &None));
        assert!(interface.mtu.is_some() && interface.transmit_queue.is_some());
        let mut watch = InterfaceWatch::new(1).expect("a socket");
        let before = watch.read().expect("counters");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
        socket.send_to(&[0; 1000], socket.local_addr().expect("address")).expect("sent");
        let passed = watch.read().expect("counters").since(&before);
        assert!(watch.read_with_state().expect("counters").1, "it is up");
        // Other tests may use the device, too.
        assert!(passed.sent.bytes.get() >= 1028 && passed.received.packets.get() >= 1, "{passed:?}");
        assert!(passed.sent.bytes.get() < 1 << 40);
        let error = NetworkInterface::by_index(0x7fff_fff0).expect_err("none has this number");
        assert!(error.to_string().contains("ip link"), "{error}");
    }

    #[test]
    fn addresses_lead_to_their_interfaces() {
        let table = "00000000000000000000000000000001 01 80 10 80       lo\n\
                     fe80000000000000021122fffe334455 0c 40 20 80     eth1\n";
        let index = |address: &str| index_of(address.parse().expect("valid"), table);
        assert_eq!(index("::1"), Some(1));
        assert_eq!(index("fe80::211:22ff:fe33:4455"), Some(12));
        assert_eq!(index("fe80::1"), None);
        assert_eq!(index_of(Ipv6Addr::LOCALHOST, "00000000000000000000000000000001"), None);
    }

    #[test]
    #[ignore = "needs root, ip and tc: a device in a network namespace"]
    fn a_device_with_a_queue() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let within = || {
            let run = |program: &str, arguments: &[&str]| {
                crate::command::run_checked(program, arguments, None, core::time::Duration::from_secs(10))
                    .expect("runs");
            };
            run("tc", &["qdisc", "add", "dev", "near0", "root", "pfifo", "limit", "7"]);
            run("ip", &["link", "set", "near0", "txqueuelen", "123"]);
            let interface = NetworkInterface::by_name("near0").expect("there");
            assert_eq!((interface.mtu, interface.kind.as_deref()), (Some(Mtu::new(1500)), Some("veth")));
            assert_eq!(interface.transmit_queue, Some(PacketCount::new(123)));
            let socket = UdpSocket::bind("0.0.0.0:0").expect("bind");
            socket.send_to(&[0; 1000], "10.99.1.2:9").expect("sent");
            let queue = root_queue(interface.index).expect("read").expect("there");
            let statistics = queue.statistics.expect("it counts");
            assert_eq!(queue.kind, "pfifo");
            // The link layer's address had to be asked for first, and the datagram has waited for the answer.
            assert!(statistics.sent.get() > 0 && statistics.packets.get() > 0 && statistics.dropped.is_zero());
        };
        chain.near.within(within).expect("entered");
    }

    #[test]
    #[ignore = "needs root: makes a network namespace"]
    fn a_device_that_is_down_and_then_up() {
        let namespace = namespace::NetworkNamespace::create().expect("root");
        let looks = || {
            let before = is_up("lo").expect("there");
            namespace::take_loopback_up().expect("up");
            (before, is_up("lo").expect("there"), is_up("nosuch0").is_err())
        };
        assert_eq!(namespace.within(looks).expect("entered"), (false, true, true));
    }

    #[test]
    fn truncated_counters_are_none() {
        let whole: Vec<u8> = (0..8_u64).flat_map(|count| (count * 10).to_ne_bytes()).collect();
        let read = counters(&whole).expect("eight counters");
        assert_eq!((read.sent.packets, read.received.bytes), (PacketCount::new(10), ByteCount::new(20)));
        assert_eq!((read.sent.errors, read.received.dropped), (PacketCount::new(50), PacketCount::new(60)));
        for length in 0..whole.len() {
            assert_eq!(counters(&whole[..length]), None, "{length}");
        }
        assert!(QueueDescription::parse(&[0; 10]).is_none());
        assert_eq!(NetworkInterface::parse(&[0; 15]), None);
    }
}
