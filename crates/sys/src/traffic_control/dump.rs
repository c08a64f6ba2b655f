//! Reading the traffic control of an interface over rtnetlink (rtnetlink(7), `linux/rtnetlink.h`).

use linerate_units::{CompactCollect, CompactSort};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::record::{
    FilterPosition, INGRESS, NO_INTERFACE, ObjectCategory, ROOT, RecordedLink, TrafficControlObject,
    TrafficControlRecord,
};
use super::{intermediate, volatile};
use crate::error::{Error, Result};
use crate::interface::{
    IFLA_ADDRESS, IFLA_IFALIAS, IFLA_IFNAME, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_MTU, IFLA_NUM_RX_QUEUES,
    IFLA_NUM_TX_QUEUES, IFLA_TXQLEN, LINK_DESCRIPTION, TCMSG_LENGTH, text,
};
use crate::namespace::device_index;
use crate::netlink::{ATTRIBUTE_TYPE_MASK, NetlinkMessage, NetlinkSocket, attribute, attributes, number};

pub(super) const TCA_KIND: u16 = 1;
pub(super) const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_RATE_EST: u16 = 2;
pub(super) const TCA_STAB: u16 = 8;
pub(super) const TCA_STAB_BASE: u16 = 1;
pub(super) const TCA_CHAIN: u16 = 11;
const TCA_INGRESS_BLOCK: u16 = 13;
const TCA_EGRESS_BLOCK: u16 = 14;

/// Disciplines whose classes are created one by one; those of others come with them.
const CLASSFUL_KINDS: [&str; 6] = ["atm", "cbq", "drr", "hfsc", "htb", "qfq"];

/// The hooks of `clsact`: for received packets, and for sent ones.
const CLSACT_HOOKS: [u32; 2] = [0xffff_fff2, 0xffff_fff3];

/// One message about a discipline, class or filter.
struct RawObject {
    handle: u32,
    parent: u32,
    information: u32,
    kind: String,
    options: Option<Vec<u8>>,
    sizes: Option<Vec<u8>>,
    chain: u32,
    has_block: bool,
    /// True when the kernel estimates its rate, over times that it does not report.
    has_estimator: bool,
}

impl RawObject {
    fn parse(body: &[u8]) -> Option<Self> {
        let (handle, parent, information) = (number(body, 8)?, number(body, 12)?, number(body, 16)?);
        let (kind, options, sizes) = (String::new(), None, None);
        let mut raw = Self {
            handle,
            parent,
            information,
            kind,
            options,
            sizes,
            chain: 0,
            has_block: false,
            has_estimator: false,
        };
        for (kind, content) in attributes(body.get(TCMSG_LENGTH..)?) {
            match kind & ATTRIBUTE_TYPE_MASK {
                TCA_KIND => raw.kind = text(content),
                TCA_OPTIONS => raw.options = Some(content.to_vec()),
                TCA_STAB => {
                    raw.sizes = attribute(content, TCA_STAB_BASE).map(<[u8]>::to_vec);
                }
                TCA_CHAIN => raw.chain = number(content, 0).unwrap_or(0),
                TCA_INGRESS_BLOCK | TCA_EGRESS_BLOCK => raw.has_block = true,
                TCA_STATS2 => {
                    raw.has_estimator = attribute(content, TCA_STATS_RATE_EST).is_some();
                }
                _ => {}
            }
        }
        Some(raw)
    }

    fn object(self, device: &str, what: ObjectCategory) -> TrafficControlObject {
        let Self { handle, parent, kind, options, sizes, .. } = self;
        let device = device.to_owned();
        TrafficControlObject {
            what,
            device,
            parent,
            handle,
            kind,
            options,
            sizes,
            towards: Vec::new(),
            is_kernels: false,
        }
    }

    fn place(&self) -> FilterPosition {
        let [preference, protocol] = [self.information >> 16, self.information & 0xffff];
        // Both are 16 bits; the protocol is in the network's order.
        let part = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
        FilterPosition { protocol: u16::from_be(part(protocol)), preference: part(preference), chain: self.chain }
    }
}

/// An interface of this network namespace.
pub(super) struct DumpedDevice {
    pub(super) link: RecordedLink,
}

impl DumpedDevice {
    fn parse(body: &[u8]) -> Option<Self> {
        let (index, flags) = (number(body, 4)?, number(body, 8)?);
        let mut link = RecordedLink {
            name: String::new(),
            kind: String::new(),
            index,
            is_up: flags & 1 != 0,
            mtu: 0,
            queue_length: 0,
            address: Vec::new(),
            queues: (1, 1),
            alias: String::new(),
        };
        for (kind, content) in attributes(body.get(LINK_DESCRIPTION..)?) {
            let value = number(content, 0).unwrap_or(0);
            match kind & ATTRIBUTE_TYPE_MASK {
                IFLA_ADDRESS => link.address = content.to_vec(),
                IFLA_IFNAME => link.name = text(content),
                IFLA_IFALIAS => link.alias = text(content),
                IFLA_MTU => link.mtu = value,
                IFLA_TXQLEN => link.queue_length = value,
                IFLA_NUM_TX_QUEUES => link.queues.0 = value,
                IFLA_NUM_RX_QUEUES => link.queues.1 = value,
                IFLA_LINKINFO => {
                    link.kind = attribute(content, IFLA_INFO_KIND).map(text).unwrap_or_default();
                }
                _ => {}
            }
        }
        (!link.name.is_empty()).then_some(Self { link })
    }
}

/// All interfaces of the calling thread's network namespace.
pub(super) fn devices(socket: &mut NetlinkSocket) -> Result<Vec<DumpedDevice>> {
    let mut found = Vec::new();
    let take = |message: NetlinkMessage<'_>| found.extend(DumpedDevice::parse(message.body));
    socket
        .list(libc::RTM_GETLINK, &[0; LINK_DESCRIPTION], take)
        .map_err(|cause| Error::system("listing interfaces", cause))?;
    Ok(found)
}

/// The request about this interface and the objects below `parent`.
pub(super) fn request(index: u32, parent: u32) -> Vec<u8> {
    let mut body = vec![0; TCMSG_LENGTH];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[12..16].copy_from_slice(&parent.to_ne_bytes());
    body
}

/// All objects on the interface and on its intermediate device.
pub(super) fn dump(interface: &str) -> Result<TrafficControlRecord> {
    device_index(interface)?;
    let failed = |cause| Error::system(format!("reading the traffic control of {interface}"), cause);
    let mut socket = NetlinkSocket::route().map_err(failed)?;
    let devices = devices(&mut socket)?;
    let find = |name: &str| devices.iter().find(|device| device.link.name == name).map(|device| &device.link);
    let gone = || failed(io::Error::from_raw_os_error(libc::ENODEV));
    let own = find(interface).ok_or_else(gone)?;
    let intermediate = intermediate::find(&mut socket, &devices, interface)?.cloned();
    let by_number: BTreeMap<u32, &str> =
        devices.iter().map(|device| (device.link.index, device.link.name.as_str())).collect_compactly();
    let mut reader = TrafficControlReader { socket, names: by_number, interface };
    let mut objects = Vec::new();
    // The intermediate device first: it has to be ready when packets are sent there.
    for link in intermediate.iter().chain([own]) {
        objects.extend(reader.tree(link)?);
    }
    objects.sort_compactly_by_key(|object| object.device == interface && object.is_ingress());
    Ok(TrafficControlRecord {
        interface: interface.to_owned(),
        has_no_queue: own.queue_length == 0,
        intermediate,
        objects,
    })
}

struct TrafficControlReader<'a> {
    socket: NetlinkSocket,
    names: BTreeMap<u32, &'a str>,
    interface: &'a str,
}

impl TrafficControlReader<'_> {
    fn refused(&self, what: &str, reason: &str) -> Error {
        let operation = format!("reading the traffic control of {}", self.interface);
        let way_out = "it could not be restored exactly: remove it first (`tc qdisc`, `tc filter`), or leave this \
                       interface to the program that set it up";
        Error::refused(operation, format!("{what}: {reason}; {way_out}"))
    }

    fn list(&mut self, kind: u16, index: u32, parent: u32) -> Result<Vec<RawObject>> {
        let mut found = Vec::new();
        let take = |message: NetlinkMessage<'_>| {
            if number(message.body, 4) == Some(index) {
                found.extend(RawObject::parse(message.body));
            }
        };
        let failed = |cause| Error::system(format!("reading the traffic control of {}", self.interface), cause);
        self.socket.list(kind, &request(index, parent), take).map_err(failed)?;
        Ok(found)
    }

    /// All objects on one device: disciplines and classes, parents first, then filters, those for received packets
    /// last.
    fn tree(&mut self, link: &RecordedLink) -> Result<Vec<TrafficControlObject>> {
        let disciplines = self.list(libc::RTM_GETQDISC, link.index, 0)?;
        let classes = self.list(libc::RTM_GETTCLASS, link.index, 0)?;
        if let Some(raw) = disciplines.iter().find(|raw| raw.has_block) {
            let what = format!("the {} of {}", raw.kind, link.name);
            return Err(self.refused(&what, "its filters belong to several interfaces (a shared block)"));
        }
        // Classes of HTB have one by an option of its module, and have it again when they are restored.
        let mut both = disciplines.iter().chain(classes.iter().filter(|raw| raw.kind != "htb"));
        if let Some(raw) = both.find(|raw| raw.has_estimator) {
            let what = format!("the {} of {}", raw.kind, link.name);
            return Err(self.refused(&what, "the kernel does not report the times of its rate estimator"));
        }
        let own = |raw: &&RawObject| CLASSFUL_KINDS.contains(&raw.kind.as_str()) && raw.handle & 0xffff != 0;
        let hooks: Vec<u32> =
            disciplines.iter().flat_map(hooks).chain(classes.iter().filter(own).map(|raw| raw.handle)).collect();
        let mut objects = Vec::new();
        for raw in disciplines {
            objects.push(self.discipline(raw, &link.name)?);
        }
        let classes = classes.into_iter().filter(|raw| own(&raw));
        objects.extend(classes.map(|raw| raw.object(&link.name, ObjectCategory::Class)));
        let mut objects = parents_first(objects);
        let mut filters = Vec::new();
        for parent in hooks {
            filters.append(&mut self.filters(link, parent)?);
        }
        // Tables are counted over all hooks of one discipline.
        filters.sort_compactly_by_key(|(rank, object)| (object.parent >> 16, *rank));
        objects.extend(filters.into_iter().map(|(_, object)| object));
        Ok(objects)
    }

    fn discipline(&self, raw: RawObject, device: &str) -> Result<TrafficControlObject> {
        let mut object = raw.object(device, ObjectCategory::Discipline);
        if object.handle == 0 {
            return Ok(TrafficControlObject { options: None, sizes: None, is_kernels: true, ..object });
        }
        let lasting = object.options.as_deref().map(|options| volatile::of_discipline(&object.kind, options));
        object.options = lasting.transpose().map_err(|reason| self.refused(&object.head(), &reason))?;
        Ok(object)
    }

    /// The filters at one place, in the order in which they have to be made, each with its rank among those of its
    /// discipline.
    fn filters(&mut self, link: &RecordedLink, parent: u32) -> Result<Vec<(u32, TrafficControlObject)>> {
        let all = self.list(libc::RTM_GETTFILTER, link.index, parent)?;
        // Those without a handle only announce what follows.
        let mut raws: Vec<RawObject> = all.into_iter().filter(|raw| raw.handle != 0 && raw.options.is_some()).collect();
        // For these kinds the latest comes first.
        if raws.iter().any(|raw| raw.kind == "bpf" || raw.kind == "basic") {
            raws.reverse();
        }
        let mut groups: BTreeMap<(FilterPosition, String), Vec<RawObject>> = BTreeMap::new();
        for raw in raws {
            groups.entry((raw.place(), raw.kind.clone())).or_default().push(raw);
        }
        let mut ordered = Vec::new();
        for ((place, kind), mut group) in groups {
            let rank = if kind == "u32" { order_tables(&mut group) } else { u32::MAX };
            for raw in group {
                // `ingress` and `parent ffff:` are the same hook, which the kernel calls as the latest command did.
                let parent = if parent >> 16 == 0xffff { raw.parent } else { parent };
                let object = TrafficControlObject { parent, ..raw.object(&link.name, ObjectCategory::Filter(place)) };
                ordered.push((rank, self.filter(object)?));
            }
        }
        Ok(ordered)
    }

    fn filter(&self, mut object: TrafficControlObject) -> Result<TrafficControlObject> {
        let lasting = volatile::of_filter(&object.kind, object.options.as_deref().unwrap_or_default())
            .map_err(|reason| self.refused(&object.head(), &reason))?;
        let name = |index: &u32| self.names.get(index).map_or(NO_INTERFACE, |name| *name).to_owned();
        object.towards = lasting.towards.iter().map(name).collect();
        object.options = Some(lasting.options);
        Ok(object)
    }
}

/// Parents of a discipline's filters.
fn hooks(raw: &RawObject) -> Vec<u32> {
    match (raw.handle, raw.kind.as_str()) {
        (0, _) => Vec::new(),
        (_, "clsact") => CLSACT_HOOKS.to_vec(),
        (handle, _) => vec![handle],
    }
}

/// Sorts the tables and entries of one preference of `u32` as they have to be made, without the default table; returns
/// its number, which the kernel counts up from one preference to the next.
fn order_tables(group: &mut Vec<RawObject>) -> u32 {
    let is_table = |raw: &RawObject| raw.handle.trailing_zeros() >= 20;
    // The latest table comes first, so the last one is the first.
    let Some(root) = group.iter().rev().find(|raw| is_table(raw)).map(|raw| raw.handle) else { return u32::MAX };
    group.retain(|raw| raw.handle != root);
    group.sort_compactly_by_key(|raw| (!is_table(raw), raw.handle));
    root
}

/// Sorts disciplines and classes so that each comes after its parent; the kernel's own come first.
fn parents_first(mut left: Vec<TrafficControlObject>) -> Vec<TrafficControlObject> {
    left.sort_compactly_by_key(|object| (!object.is_kernels, object.what, object.handle, object.parent));
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waiting: BTreeSet<u32> =
            left.iter().filter(|object| !object.is_kernels).map(|object| object.handle).collect_compactly();
        let is_ready = |object: &TrafficControlObject| {
            let class_is_there = object.parent == ROOT || !waiting.contains(&object.parent);
            let above = match object.what {
                ObjectCategory::Class => object.handle & 0xffff_0000,
                _ => object.parent & 0xffff_0000,
            };
            let is_top =
                object.parent == INGRESS || (object.parent == ROOT && object.what == ObjectCategory::Discipline);
            is_top || object.is_kernels || (class_is_there && !waiting.contains(&above))
        };
        let (mut ready, rest): (Vec<TrafficControlObject>, Vec<TrafficControlObject>) =
            left.into_iter().partition(is_ready);
        if ready.is_empty() {
            // There can be no cycle; if there were, the kernel would refuse to make it again.
            ordered.extend(rest);
            break;
        }
        ordered.append(&mut ready);
        left = rest;
    }
    ordered
}
