//! Finding the intermediate device of an interface. Its name is that of the interface when it was made; either may have
//! been renamed since, and another interface may have the name. Its alias stays.

use std::collections::BTreeSet;

use linerate_model::change::{INTERMEDIATE_ALIAS, intermediate_device};

use super::dump::{DumpedDevice, TCA_KIND, TCA_OPTIONS, request};
use super::record::RecordedLink;
use super::replay::INTERMEDIATE;
use super::volatile;
use crate::error::{Error, Result};
use crate::interface::{TCMSG_LENGTH, text};
use crate::netlink::{NetlinkMessage, NetlinkSocket, attribute, number};

/// Prefix of the names of intermediate devices ([`intermediate_device`]).
const NAME_PREFIX: &str = "ifb4";

/// Parents of filters for received packets: of `ingress` and of `clsact`.
const INGRESS_HOOKS: [u32; 2] = [0xffff_0000, 0xffff_fff2];

/// The intermediate device to which the interface redirects its received packets; else the one with its name, if no
/// other interface redirects there.
pub(super) fn find<'a>(
    socket: &mut NetlinkSocket,
    devices: &'a [DumpedDevice],
    interface: &str,
) -> Result<Option<&'a RecordedLink>> {
    let links = || devices.iter().map(|device| &device.link);
    let name = intermediate_device(interface);
    let own = links().find(|link| link.name == interface);
    let redirects = own.map(|own| redirect_targets(socket, own)).transpose()?.unwrap_or_default();
    let is_intermediate = |link: &&RecordedLink| {
        link.kind == INTERMEDIATE
            && (link.name.starts_with(NAME_PREFIX) || link.alias == INTERMEDIATE_ALIAS)
            && redirects.contains(&link.index)
    };
    let named = links().find(|link| link.name == name);
    if let Some(link) = named.filter(|link| redirects.contains(&link.index)).or_else(|| links().find(is_intermediate)) {
        return Ok(Some(link));
    }
    let Some(link) = named else { return Ok(None) };
    for other in links().filter(|other| other.name != interface) {
        if redirect_targets(socket, other)?.contains(&link.index) {
            return Ok(None);
        }
    }
    Ok(Some(link))
}

/// Numbers of the interfaces to which received packets are redirected.
fn redirect_targets(socket: &mut NetlinkSocket, link: &RecordedLink) -> Result<BTreeSet<u32>> {
    let failed = |cause| Error::system(format!("reading the filters of {}", link.name), cause);
    let mut targets = BTreeSet::new();
    for parent in INGRESS_HOOKS {
        let look = |message: NetlinkMessage<'_>| {
            let attributes = message.body.get(TCMSG_LENGTH..).unwrap_or_default();
            let options = attribute(attributes, TCA_OPTIONS).filter(|_| number(message.body, 4) == Some(link.index));
            if let (Some(kind), Some(options)) = (attribute(attributes, TCA_KIND), options) {
                // Filters that are not understood redirect to no device of linerate's.
                targets
                    .extend(volatile::of_filter(&text(kind), options).map(|stable| stable.towards).unwrap_or_default());
            }
        };
        match socket.list(libc::RTM_GETTFILTER, &request(link.index, parent), look) {
            // No discipline for received packets.
            Err(cause) if matches!(cause.raw_os_error(), Some(libc::EINVAL | libc::ENOENT | libc::EOPNOTSUPP)) => {}
            other => other.map_err(failed)?,
        }
    }
    Ok(targets)
}
