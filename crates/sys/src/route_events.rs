//! Changes of this host's links and their queueing, as announced by the kernel (rtnetlink(7)).
//!
//! The kernel announces the present state; this module remembers the previous one, so that each event is a difference.
//! Changes by this process itself are announced to it like all others.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::error::{Error, Result};
use crate::netlink::{KernelNotification, NetlinkMessage, NetlinkSocket, attribute, messages, number};

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteEvent {
    /// A link was added: it was made, plugged in, or moved into this network namespace.
    Appeared {
        /// Number of the link, which no other link has had since the namespace was made.
        index: u32,
        /// Name of the link.
        name: String,
        /// True when it is up and has a carrier.
        is_up: bool,
    },
    /// A link was removed.
    Gone {
        /// The number that it had.
        index: u32,
        /// The name that it had.
        name: String,
    },
    /// A link has another name.
    Renamed {
        /// Number of the link.
        index: u32,
        /// The old name.
        from: String,
        /// The new name.
        to: String,
    },
    /// A link is up and has a carrier, which it had not.
    Up {
        /// Number of the link.
        index: u32,
        /// Name of the link.
        name: String,
    },
    /// A link was set down, or has lost its carrier.
    Down {
        /// Number of the link.
        index: u32,
        /// Name of the link.
        name: String,
    },
    /// A queueing discipline, a class or a filter of a link was made, changed or removed.
    QueueingChanged {
        /// The link's number.
        index: u32,
        /// The link's name; `None` when it has gone in the meantime.
        name: Option<String>,
    },
    /// Events were lost, as there were more than the kernel keeps (`ENOBUFS`), or one does not name its link (a filter
    /// that several links share): everything is to be checked again. Events about the links' differences from their
    /// known state follow.
    Lost,
}

/// Known state of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LinkState {
    name: String,
    is_up: bool,
}

/// Links by their numbers.
type KnownLinks = BTreeMap<u32, LinkState>;

// From the kernel's linux/rtnetlink.h and linux/if_link.h.
const IFLA_IFNAME: u16 = 3;
/// Length of `ifinfomsg`: family, type, number, flags, changed flags.
const IFINFOMSG_LENGTH: usize = 16;
/// Number in place of a link's for a block of filters that several links share (`TCM_IFINDEX_MAGIC_BLOCK`).
const SHARED_BLOCK_INDEX: u32 = u32::MAX;
const RTM_NEWCHAIN: u16 = 100;
const RTM_DELCHAIN: u16 = 101;

/// The events of the network namespace of the thread that opened it. Readable for [`crate::poll::wait`] when there are
/// any.
#[derive(Debug)]
pub struct RouteEvents {
    socket: NetlinkSocket,
    links: KnownLinks,
}

impl RouteEvents {
    /// Starts listening. Existing links are known, and cause no events.
    pub fn open() -> Result<Self> {
        let socket = NetlinkSocket::route_listener(&[libc::RTNLGRP_LINK, libc::RTNLGRP_TC])
            .map_err(|cause| Error::system("listening to changes of links and queueing", cause))?;
        // After subscribing, so that nothing falls between the two.
        Ok(Self { socket, links: listed()? })
    }

    /// True when the link of this name is up and has a carrier, as far as events were read; `None` when it does not
    /// exist.
    #[must_use]
    pub fn is_up(&self, name: &str) -> Option<bool> {
        self.links.values().find(|link| link.name == name).map(|link| link.is_up)
    }

    /// The number of the link of this name, as far as events were read.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<u32> {
        self.links.iter().find(|(_, link)| link.name == name).map(|(index, _)| *index)
    }

    /// Reads all events since the last call; does not wait.
    pub fn read(&mut self) -> Result<Vec<RouteEvent>> {
        let mut events = Vec::new();
        loop {
            match self.socket.announcement() {
                Ok(KernelNotification::FromKernel(bytes)) => {
                    for message in messages(bytes) {
                        apply_message(&mut self.links, message, &mut events);
                    }
                }
                Ok(KernelNotification::Other) => {}
                Ok(KernelNotification::TooLong) => events.push(RouteEvent::Lost),
                Err(cause) if cause.raw_os_error() == Some(libc::ENOBUFS) => events.push(RouteEvent::Lost),
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => break,
                Err(cause) => return Err(Error::system("reading changes of links and queueing", cause)),
            }
        }
        if events.contains(&RouteEvent::Lost) {
            compare(&mut self.links, listed()?, &mut events);
        }
        Ok(events)
    }
}

impl AsFd for RouteEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// All present links.
fn listed() -> Result<KnownLinks> {
    let mut links = KnownLinks::new();
    let mut keep = |message: NetlinkMessage<'_>| links.extend(link(message.body));
    let listing =
        NetlinkSocket::route().and_then(|mut socket| socket.list(libc::RTM_GETLINK, &[0; IFINFOMSG_LENGTH], &mut keep));
    listing.map_err(|cause| Error::system("listing the links", cause))?;
    Ok(links)
}

/// A link's number and state; `None` for messages about it as a port of a bridge, and for truncated ones.
fn link(body: &[u8]) -> Option<(u32, LinkState)> {
    let (description, rest) = body.split_at_checked(IFINFOMSG_LENGTH)?;
    if i32::from(description[0]) != libc::AF_UNSPEC {
        return None;
    }
    let name = attribute(rest, IFLA_IFNAME)?;
    let name = String::from_utf8_lossy(name.split(|byte| *byte == 0).next()?).into_owned();
    // Running: it has a carrier, or cannot detect one, as tunnels and PPP.
    let needed = (libc::IFF_UP | libc::IFF_RUNNING).cast_unsigned();
    let is_up = number(description, 8)? & needed == needed;
    Some((number(description, 4)?, LinkState { name, is_up }))
}

/// Applies an announcement.
fn apply_message(links: &mut KnownLinks, message: NetlinkMessage<'_>, events: &mut Vec<RouteEvent>) {
    match message.kind {
        libc::RTM_NEWLINK => {
            if let Some((index, state)) = link(message.body) {
                update_link(links, index, state, events);
            }
        }
        libc::RTM_DELLINK => {
            if let Some((index, state)) = link(message.body) {
                links.remove(&index);
                events.push(RouteEvent::Gone { index, name: state.name });
            }
        }
        libc::RTM_NEWQDISC
        | libc::RTM_DELQDISC
        | libc::RTM_NEWTCLASS
        | libc::RTM_DELTCLASS
        | libc::RTM_NEWTFILTER
        | libc::RTM_DELTFILTER
        | RTM_NEWCHAIN
        | RTM_DELCHAIN => events.push(match number(message.body, 4) {
            None | Some(SHARED_BLOCK_INDEX) => RouteEvent::Lost,
            Some(index) => RouteEvent::QueueingChanged { index, name: links.get(&index).map(|link| link.name.clone()) },
        }),
        _ => {}
    }
}

/// Records the present state of a link, and reports the differences.
fn update_link(links: &mut KnownLinks, index: u32, state: LinkState, events: &mut Vec<RouteEvent>) {
    let (name, is_up) = (state.name.clone(), state.is_up);
    match links.insert(index, state) {
        None => events.push(RouteEvent::Appeared { index, name, is_up }),
        Some(before) => {
            if before.name != name {
                events.push(RouteEvent::Renamed { index, from: before.name, to: name.clone() });
            }
            match (before.is_up, is_up) {
                (false, true) => events.push(RouteEvent::Up { index, name }),
                (true, false) => events.push(RouteEvent::Down { index, name }),
                _ => {}
            }
        }
    }
}

/// Does the same for all links at once.
fn compare(links: &mut KnownLinks, now: KnownLinks, events: &mut Vec<RouteEvent>) {
    let gone: Vec<u32> = links.keys().filter(|index| !now.contains_key(index)).copied().collect();
    for index in gone {
        if let Some(state) = links.remove(&index) {
            events.push(RouteEvent::Gone { index, name: state.name });
        }
    }
    for (index, state) in now {
        update_link(links, index, state, events);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::command;
    use crate::namespace::NetworkNamespace;
    use crate::netlink::append_attribute;
    use crate::poll::{PollInterest, wait_for};
    use crate::sockopt::{self, SocketOption};

    const UP: i32 = libc::IFF_UP | libc::IFF_RUNNING;

    fn link_body(family: i32, index: u32, flags: i32, name: &str) -> Vec<u8> {
        let mut body = vec![u8::try_from(family).expect("small"), 0, 1, 0];
        body.extend(index.to_ne_bytes());
        body.extend(flags.to_ne_bytes());
        body.extend([0; 4]);
        append_attribute(&mut body, IFLA_IFNAME, format!("{name}\0").as_bytes()).expect("short");
        body
    }

    fn tell(links: &mut KnownLinks, kind: u16, body: &[u8]) -> Vec<RouteEvent> {
        let mut events = Vec::new();
        apply_message(links, NetlinkMessage { kind, sequence: 0, body }, &mut events);
        events
    }

    #[test]
    fn a_link_comes_goes_up_and_down_and_is_renamed() {
        let mut links = KnownLinks::new();
        let mut new = |flags, name: &str| tell(&mut links, libc::RTM_NEWLINK, &link_body(0, 7, flags, name));
        let name = || "ppp0".to_owned();
        assert_eq!(new(libc::IFF_UP, "ppp0"), [RouteEvent::Appeared { index: 7, name: name(), is_up: false }]);
        assert_eq!(new(libc::IFF_UP, "ppp0"), []);
        assert_eq!(new(UP, "ppp0"), [RouteEvent::Up { index: 7, name: name() }]);
        assert_eq!(new(UP | libc::IFF_PROMISC, "ppp0"), []);
        assert_eq!(
            new(0, "dsl"),
            [
                RouteEvent::Renamed { index: 7, from: name(), to: "dsl".to_owned() },
                RouteEvent::Down { index: 7, name: "dsl".to_owned() }
            ]
        );
        let gone = tell(&mut links, libc::RTM_DELLINK, &link_body(0, 7, 0, "dsl"));
        assert_eq!(gone, [RouteEvent::Gone { index: 7, name: "dsl".to_owned() }]);
        assert!(links.is_empty());
    }

    #[test]
    fn leaving_a_bridge_is_not_the_end() {
        let mut links = KnownLinks::from([(7, LinkState { name: "eth0".to_owned(), is_up: true })]);
        assert_eq!(tell(&mut links, libc::RTM_DELLINK, &link_body(libc::AF_BRIDGE, 7, UP, "eth0")), []);
        assert_eq!(links.len(), 1);
    }

    #[test]
    fn queueing_changes_are_reported_by_link() {
        let mut links = KnownLinks::from([(7, LinkState { name: "eth0".to_owned(), is_up: true })]);
        let body = |index: u32| [[0; 4], index.to_ne_bytes()].concat();
        for kind in [libc::RTM_NEWQDISC, libc::RTM_DELTCLASS, libc::RTM_NEWTFILTER, RTM_DELCHAIN] {
            let expected = RouteEvent::QueueingChanged { index: 7, name: Some("eth0".to_owned()) };
            assert_eq!(tell(&mut links, kind, &body(7)), [expected]);
        }
        let unknown = tell(&mut links, libc::RTM_DELQDISC, &body(8));
        assert_eq!(unknown, [RouteEvent::QueueingChanged { index: 8, name: None }]);
        assert_eq!(tell(&mut links, libc::RTM_NEWTFILTER, &body(SHARED_BLOCK_INDEX)), [RouteEvent::Lost]);
        assert_eq!(tell(&mut links, libc::RTM_NEWROUTE, &body(7)), []);
    }

    proptest! {
        #[test]
        fn any_message_is_survived(kind in 16_u16..110, body in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut links = KnownLinks::new();
            let events = tell(&mut links, kind, &body);
            prop_assert!(events.len() <= 1);
        }

        #[test]
        fn the_state_is_recovered_after_a_loss(before in some_links(), now in some_links()) {
            let (mut links, mut events) = (before.clone(), Vec::new());
            compare(&mut links, now.clone(), &mut events);
            prop_assert_eq!(&links, &now);
            prop_assert_eq!(events.is_empty(), before == now);
            let mut again = Vec::new();
            compare(&mut links, now, &mut again);
            prop_assert_eq!(again, Vec::new());
        }
    }

    fn some_links() -> impl Strategy<Value = KnownLinks> {
        let state = ("[a-c]", any::<bool>()).prop_map(|(name, is_up)| LinkState { name, is_up });
        proptest::collection::btree_map(1_u32..5, state, 0..4)
    }

    fn run(program: &str, words: &str) {
        let words: Vec<&str> = words.split(' ').collect();
        command::run_checked(program, &words, None, Duration::from_secs(10)).expect("done");
    }

    /// All events up to the first that is `last`.
    fn until(events: &mut RouteEvents, last: impl Fn(&RouteEvent) -> bool) -> Vec<RouteEvent> {
        let mut all = Vec::new();
        while !all.iter().any(&last) {
            assert!(wait_for(events, PollInterest::READ, Some(Duration::from_secs(10))).expect("poll"), "{all:?}");
            all.extend(events.read().expect("read"));
        }
        all
    }

    fn is_of(event: &RouteEvent, device: &str) -> bool {
        matches!(event, RouteEvent::QueueingChanged { name: Some(name), .. } if name == device)
    }

    #[test]
    #[ignore = "needs root, ip and tc: links of a network namespace"]
    fn the_kernel_announces_changes_of_links_and_their_queueing() {
        let within = || {
            let mut events = RouteEvents::open().expect("needs no privilege");
            assert_eq!(events.read().expect("read"), []);
            assert_eq!((events.is_up("lo"), events.is_up("t0")), (Some(false), None));
            run("ip", "link add t0 type veth peer name t1");
            run("ip", "link set t1 up");
            run("ip", "link set t0 up");
            until(&mut events, |event| matches!(event, RouteEvent::Up { name, .. } if name == "t0"));
            let index = events.index("t0").expect("there");
            assert_eq!(events.is_up("t0"), Some(true));
            run("tc", "qdisc add dev t0 root handle 1: tbf rate 1mbit burst 5kb latency 50ms");
            until(&mut events, |event| is_of(event, "t0"));
            run("tc", "qdisc change dev t0 root handle 1: tbf rate 2mbit burst 5kb latency 50ms");
            until(&mut events, |event| is_of(event, "t0"));
            run("tc", "qdisc del dev t0 root");
            until(&mut events, |event| is_of(event, "t0"));
            run("ip", "link set t1 down");
            until(&mut events, |event| *event == RouteEvent::Down { index, name: "t0".to_owned() });
            run("ip", "link del t0");
            until(&mut events, |event| *event == RouteEvent::Gone { index, name: "t0".to_owned() });
            run("ip", "link add t0 type veth peer name t1");
            let again = until(&mut events, |event| matches!(event, RouteEvent::Appeared { name, .. } if name == "t0"));
            assert!(events.index("t0").is_some_and(|now| now != index), "a new number: {again:?}");
        };
        NetworkNamespace::create().expect("root").within(within).expect("entered");
    }

    #[test]
    #[ignore = "needs root and ip: links of a network namespace"]
    fn lost_events_are_reported_and_recovered() {
        let within = || {
            let mut events = RouteEvents::open().expect("needs no privilege");
            let room = SocketOption::new(libc::SOL_SOCKET, libc::SO_RCVBUF, "SO_RCVBUF", "receive buffer");
            // The kernel gives its minimum.
            sockopt::set::<libc::c_int>(&events, room, 0).expect("needs no privilege");
            for number in 0..20 {
                run("ip", &format!("link add t{number} type veth peer name u{number}"));
            }
            let all = until(&mut events, |event| *event == RouteEvent::Lost);
            assert_eq!((0..20).filter(|number| events.index(&format!("t{number}")).is_some()).count(), 20, "{all:?}");
            run("ip", "link del t3");
            until(&mut events, |event| matches!(event, RouteEvent::Gone { name, .. } if name == "t3"));
        };
        NetworkNamespace::create().expect("root").within(within).expect("entered");
    }
}
