//! Restoring a record, and removing the present objects, over rtnetlink.

use std::collections::BTreeMap;
use std::io;

use linerate_model::change::{LinkAttribute, intermediate_device};

use super::dump::{DumpedDevice, TCA_CHAIN, TCA_KIND, TCA_OPTIONS, TCA_STAB, devices, dump, request};
use super::record::{
    FilterPosition, INGRESS, ObjectCategory, ROOT, RecordedLink, TrafficControlObject, TrafficControlRecord,
};
use super::{inputs, intermediate, volatile};
use crate::error::{Error, Result, describe_os_error};
use crate::host_access::write_link;
use crate::interface::{
    IFLA_ADDRESS, IFLA_IFALIAS, IFLA_IFNAME, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_MTU, IFLA_NUM_RX_QUEUES,
    IFLA_NUM_TX_QUEUES, IFLA_TXQLEN, LINK_DESCRIPTION,
};
use crate::namespace::device_index;
use crate::netlink::{NetlinkSocket, append_attribute};

/// The kind of interface that intermediate devices are.
pub(super) const INTERMEDIATE: &str = "ifb";
/// Flag in the kind of an attribute that holds others (`NLA_F_NESTED`).
const NESTED: u16 = 0x8000;

/// A socket to the routing subsystem, and the numbers of the interfaces.
pub(super) struct RecordReplayer {
    socket: NetlinkSocket,
    numbers: BTreeMap<String, u32>,
}

impl RecordReplayer {
    pub(super) fn new() -> Result<Self> {
        let failed = |cause| Error::system("opening a socket to the routing subsystem", cause);
        let mut maker = Self { socket: NetlinkSocket::route_with_extack().map_err(failed)?, numbers: BTreeMap::new() };
        maker.look()?;
        Ok(maker)
    }

    /// Lists the present interfaces.
    fn look(&mut self) -> Result<Vec<DumpedDevice>> {
        let devices = devices(&mut self.socket)?;
        self.numbers = devices.iter().map(|device| (device.link.name.clone(), device.link.index)).collect();
        Ok(devices)
    }

    fn number(&self, device: &str) -> Result<u32> {
        // A request for a missing one is answered with the kernel's error.
        self.numbers.get(device).copied().map_or_else(|| device_index(device), Ok)
    }

    /// The interface of this name.
    fn link(&mut self, name: &str) -> Result<Option<RecordedLink>> {
        Ok(self.look()?.into_iter().map(|device| device.link).find(|link| link.name == name))
    }

    /// Makes all of these, in their order.
    pub(super) fn make<'a>(&mut self, objects: impl IntoIterator<Item = &'a TrafficControlObject>) -> Result<()> {
        objects.into_iter().try_for_each(|object| self.make_one(object))
    }

    fn make_one(&mut self, object: &TrafficControlObject) -> Result<()> {
        let refused = |reason: String| Error::refused(format!("restoring {}", object.head()), reason);
        let options = self.options(object)?;
        let mut outcome = self.try_to_make(object, options.as_deref(), 0);
        // Some kinds require the flag of nested attributes, others are older than it.
        if outcome.as_ref().is_err_and(|cause| cause.raw_os_error() == Some(libc::EINVAL)) {
            let text = self.socket.said.take();
            let again = self.try_to_make(object, options.as_deref(), NESTED);
            if again.is_ok() {
                outcome = again;
            } else {
                self.socket.said = text;
            }
        }
        outcome.map_err(|cause| match self.socket.said.take() {
            Some(text) => refused(format!("{} (the kernel reports: {text})", describe_os_error(&cause))),
            None => refused(describe_os_error(&cause)),
        })
    }

    fn options(&self, object: &TrafficControlObject) -> Result<Option<Vec<u8>>> {
        let refused = |reason: String| Error::refused(format!("restoring {}", object.head()), reason);
        let Some(options) = object.options.as_deref() else { return Ok(None) };
        match object.what {
            ObjectCategory::Discipline => inputs::of_discipline(&object.kind, options).map(Some).map_err(refused),
            ObjectCategory::Class => Ok(Some(options.to_vec())),
            ObjectCategory::Filter(_) => {
                let numbers = object.towards.iter().map(|device| self.number(device)).collect::<Result<Vec<u32>>>()?;
                let options = inputs::of_filter(&object.kind, options).map_err(refused)?;
                volatile::with_interfaces(&object.kind, &options, &numbers).map(Some).map_err(refused)
            }
        }
    }

    fn try_to_make(&mut self, object: &TrafficControlObject, options: Option<&[u8]>, mark: u16) -> io::Result<()> {
        let index = self.number(&object.device).map_err(io::Error::from)?;
        let mut body = request(index, object.parent);
        body[8..12].copy_from_slice(&object.handle.to_ne_bytes());
        let kind = match object.what {
            ObjectCategory::Discipline => libc::RTM_NEWQDISC,
            ObjectCategory::Class => libc::RTM_NEWTCLASS,
            ObjectCategory::Filter(FilterPosition { protocol, preference, chain }) => {
                let information = u32::from(preference) << 16 | u32::from(protocol.to_be());
                body[16..20].copy_from_slice(&information.to_ne_bytes());
                if chain != 0 {
                    append_attribute(&mut body, TCA_CHAIN, &chain.to_ne_bytes())?;
                }
                libc::RTM_NEWTFILTER
            }
        };
        append_attribute(&mut body, TCA_KIND, &nul_terminated(&object.kind))?;
        if let Some(sizes) = &object.sizes {
            append_attribute(&mut body, TCA_STAB, &inputs::size_table(sizes).map_err(io::Error::other)?)?;
        }
        if let Some(options) = options {
            append_attribute(&mut body, TCA_OPTIONS | mark, options)?;
        }
        self.socket.make(kind, &body)
    }

    /// Removes everything that was set up on a device; that there is nothing is no error.
    pub(super) fn clear(&mut self, device: &str) -> Result<()> {
        let index = self.number(device)?;
        // The redirect is removed first.
        for parent in [INGRESS, ROOT] {
            match self.socket.change(libc::RTM_DELQDISC, &request(index, parent)) {
                Err(cause) if !matches!(cause.raw_os_error(), Some(libc::ENOENT | libc::EINVAL | libc::EOPNOTSUPP)) => {
                    let operation = format!("removing the traffic control of {device}");
                    let hint = "changing a host needs root (CAP_NET_ADMIN): run it with sudo";
                    return Err(Error::system(operation, cause).hint_on(libc::EPERM, hint));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes an interface, with this number if it is free.
    pub(super) fn make_link(&mut self, link: &RecordedLink) -> Result<()> {
        let first = self.try_to_make_link(link, link.index);
        let made = match first {
            Err(cause) if link.index != 0 && cause.raw_os_error() == Some(libc::EBUSY) => {
                self.try_to_make_link(link, 0)
            }
            Err(cause) if link.index != 0 && cause.raw_os_error() == Some(libc::EEXIST) => {
                self.try_to_make_link(link, 0)
            }
            other => other,
        };
        made.map_err(|cause| Error::system(format!("making the interface {} ({})", link.name, link.kind), cause))?;
        self.look()?;
        if link.alias.is_empty() { Ok(()) } else { self.set_alias(link) }
    }

    /// The kernel takes it from an existing interface only; an empty one removes it.
    fn set_alias(&mut self, link: &RecordedLink) -> Result<()> {
        let failed = |cause| Error::system(format!("setting the alias of {}", link.name), cause);
        let mut body = by_number(self.number(&link.name)?);
        append_attribute(&mut body, IFLA_IFALIAS, link.alias.as_bytes()).map_err(failed)?;
        self.socket.change(libc::RTM_NEWLINK, &body).map_err(failed)
    }

    fn try_to_make_link(&mut self, link: &RecordedLink, index: u32) -> io::Result<()> {
        let mut body = vec![0; LINK_DESCRIPTION];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        append_attribute(&mut body, IFLA_IFNAME, &nul_terminated(&link.name))?;
        if !link.address.is_empty() {
            append_attribute(&mut body, IFLA_ADDRESS, &link.address)?;
        }
        let numbers = [
            (IFLA_MTU, link.mtu),
            (IFLA_TXQLEN, link.queue_length),
            (IFLA_NUM_TX_QUEUES, link.queues.0),
            (IFLA_NUM_RX_QUEUES, link.queues.1),
        ];
        for (kind, value) in numbers {
            append_attribute(&mut body, kind, &value.to_ne_bytes())?;
        }
        let mut information = Vec::new();
        append_attribute(&mut information, IFLA_INFO_KIND, link.kind.as_bytes())?;
        append_attribute(&mut body, IFLA_LINKINFO, &information)?;
        self.socket.make(libc::RTM_NEWLINK, &body)
    }

    fn remove_link(&mut self, link: &RecordedLink) -> Result<()> {
        let failed = |cause| Error::system(format!("removing the interface {}", link.name), cause);
        self.socket.change(libc::RTM_DELLINK, &by_number(link.index)).map_err(failed)?;
        self.look().map(drop)
    }

    fn set_up(&mut self, index: u32, name: &str, is_up: bool) -> Result<()> {
        let mut body = by_number(index);
        body[8..12].copy_from_slice(&u32::from(is_up).to_ne_bytes());
        body[12..16].copy_from_slice(&1_u32.to_ne_bytes());
        let failed = |cause| Error::system(format!("setting the interface {name} up or down"), cause);
        self.socket.change(libc::RTM_NEWLINK, &body).map_err(failed)
    }

    /// The intermediate device of an interface. To be found before the redirection to it is removed.
    fn intermediate(&mut self, interface: &str) -> Result<Option<RecordedLink>> {
        let devices = self.look()?;
        Ok(intermediate::find(&mut self.socket, &devices, interface)?.cloned())
    }

    /// Removes this intermediate device, if it is one.
    fn remove_intermediate(&mut self, link: Option<&RecordedLink>) -> Result<()> {
        match link {
            Some(link) if link.kind == INTERMEDIATE => self.remove_link(link),
            _ => Ok(()),
        }
    }

    /// Restores the intermediate device, without objects on it.
    fn restore_intermediate(&mut self, record: &TrafficControlRecord, wanted: &RecordedLink) -> Result<()> {
        let mut found = self.link(&wanted.name)?;
        if let Some(link) = &found {
            self.clear(&wanted.name)?;
            // One that was never up has no default discipline, and loses it only in this way.
            let was_bare = !wanted.is_up && !record.objects.iter().any(|object| object.device == wanted.name);
            if was_bare && link.kind == INTERMEDIATE {
                self.remove_link(link)?;
                found = None;
            }
        }
        let Some(link) = found else { return self.make_link(wanted) };
        if link.mtu != wanted.mtu {
            set(wanted, LinkAttribute::Mtu, wanted.mtu)?;
        }
        if link.queue_length != wanted.queue_length {
            set(wanted, LinkAttribute::TransmitQueueLength, wanted.queue_length)?;
        }
        if link.alias != wanted.alias {
            self.set_alias(wanted)?;
        }
        Ok(())
    }

    /// Renews the default discipline: the kernel makes the one of `net.core.default_qdisc`, but only when there was
    /// another.
    fn renew_defaults(&mut self, device: &str) -> Result<()> {
        let index = self.number(device)?;
        let mut body = request(index, ROOT);
        body[8..12].copy_from_slice(&0x1_0000_u32.to_ne_bytes());
        let failed = |cause| Error::system(format!("renewing the discipline of {device}"), cause);
        append_attribute(&mut body, TCA_KIND, &nul_terminated("pfifo")).map_err(failed)?;
        self.socket.make(libc::RTM_NEWQDISC, &body).map_err(failed)?;
        self.clear(device)
    }
}

fn set(link: &RecordedLink, attribute: LinkAttribute, value: u32) -> Result<()> {
    let failed = |cause| Error::system(format!("setting {} {}", link.name, attribute.name()), cause);
    write_link(&link.name, attribute, &value.to_string()).map_err(failed)
}

fn by_number(index: u32) -> Vec<u8> {
    let mut body = vec![0; LINK_DESCRIPTION];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body
}

fn nul_terminated(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// Removes all objects on an interface and on its intermediate device, which stays if it exists.
pub(super) fn clear(interface: &str) -> Result<Option<String>> {
    let mut maker = RecordReplayer::new()?;
    let intermediate = maker.intermediate(interface)?;
    maker.clear(interface)?;
    let Some(link) = intermediate else { return Ok(None) };
    if link.kind != INTERMEDIATE {
        let operation = format!("setting up the traffic control of {interface}");
        let reason = format!("{} is not an intermediate device (ifb), but has its name: rename it", link.name);
        return Err(Error::refused(operation, reason));
    }
    if link.name != intermediate_device(interface) {
        // The interface was renamed: its commands make one with the new name.
        maker.remove_link(&link)?;
        return Ok(None);
    }
    maker.clear(&link.name)?;
    Ok(Some(link.name))
}

/// Removes everything, the intermediate device as well, even when the interface is gone.
pub(super) fn remove(interface: &str) -> Result<()> {
    let mut maker = RecordReplayer::new()?;
    let intermediate = maker.intermediate(interface)?;
    let cleared = maker.clear(interface);
    maker.remove_intermediate(intermediate.as_ref())?;
    cleared
}

/// Removes what was set up on an interface itself.
pub(super) fn clear_interface(interface: &str) -> Result<()> {
    RecordReplayer::new()?.clear(interface)
}

/// Restores everything in the record.
pub(super) fn restore(record: &TrafficControlRecord) -> Result<()> {
    let interface = &record.interface;
    let mut maker = RecordReplayer::new()?;
    let present = maker.intermediate(interface)?;
    if let Err(error) = maker.clear(interface) {
        // Without the interface its intermediate device is of no use, unless it existed before.
        if record.intermediate.is_none() {
            maker.remove_intermediate(present.as_ref())?;
        }
        return Err(error);
    }
    match &record.intermediate {
        None => maker.remove_intermediate(present.as_ref())?,
        Some(link) => maker.restore_intermediate(record, link)?,
    }
    let (own, beside): (Vec<&TrafficControlObject>, Vec<&TrafficControlObject>) =
        record.made().partition(|object| object.device == *interface);
    maker.make(beside)?;
    if let Some(link) = &record.intermediate
        && maker.link(&link.name)?.is_some_and(|now| now.is_up != link.is_up)
    {
        let index = maker.number(&link.name)?;
        maker.set_up(index, &link.name, link.is_up)?;
    }
    maker.make(own)?;
    restore_defaults(&mut maker, record)
}

/// Last corrections: the kernel's defaults become those of the record.
fn restore_defaults(maker: &mut RecordReplayer, record: &TrafficControlRecord) -> Result<()> {
    let now = dump(&record.interface)?;
    if record.has_no_queue && !now.has_no_queue {
        let failed = |cause| Error::system(format!("setting the queue length of {}", record.interface), cause);
        write_link(&record.interface, LinkAttribute::TransmitQueueLength, "0").map_err(failed)?;
    }
    let kernels = |record: &TrafficControlRecord, device: &str| -> Vec<String> {
        let own = record.objects.iter().filter(|object| object.is_kernels && object.device == device);
        own.map(TrafficControlObject::head).collect()
    };
    let devices = core::iter::once(&record.interface).chain(record.intermediate.iter().map(|link| &link.name));
    for device in devices {
        let has_root = record.made().any(|object| object.device == *device && object.parent == ROOT);
        if !has_root && kernels(record, device) != kernels(&now, device) {
            maker.renew_defaults(device)?;
            let ingress = record.made().filter(|object| object.device == *device && object.is_ingress());
            maker.make(ingress)?;
        }
    }
    Ok(())
}
