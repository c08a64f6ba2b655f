//! Interfaces by their numbers: names change, and an interface can move to another network namespace.

use linerate_units::CompactCollect;
use std::collections::BTreeSet;
use std::path::Path;

use linerate_model::change::InterfaceIdentity;

use super::{InterfaceLocation, identity};
use crate::error::{Error, Result};
use crate::interface::{IFLA_ADDRESS, IFLA_IFNAME, LINK_DESCRIPTION, text};
use crate::namespace::{self, NetworkNamespace};
use crate::netlink::{NetlinkMessage, NetlinkSocket, attribute, number};

/// Identity of an interface of this namespace; `None` when there is none of that name.
pub(super) fn identity_of(name: &str) -> Result<Option<InterfaceIdentity>> {
    Ok(interfaces()?.into_iter().find(|found| found.name == name))
}

/// All interfaces of the calling thread's namespace.
fn interfaces() -> Result<Vec<InterfaceIdentity>> {
    let failed = |cause| Error::system("listing interfaces", cause);
    let mut found = Vec::new();
    let take = |message: NetlinkMessage<'_>| found.extend(parse(message.body));
    let mut socket = NetlinkSocket::route().map_err(failed)?;
    socket.list(libc::RTM_GETLINK, &[0; LINK_DESCRIPTION], take).map_err(failed)?;
    Ok(found)
}

fn parse(body: &[u8]) -> Option<InterfaceIdentity> {
    let (description, rest) = body.split_at_checked(LINK_DESCRIPTION)?;
    let address = attribute(rest, IFLA_ADDRESS).map(<[u8]>::to_vec).unwrap_or_default();
    Some(InterfaceIdentity { name: attribute(rest, IFLA_IFNAME).map(text)?, index: number(description, 4)?, address })
}

/// Location of an interface that was in this namespace.
pub(super) fn locate(wanted: &InterfaceIdentity) -> Result<InterfaceLocation> {
    let here = interfaces()?;
    let same_number = here.iter().find(|found| found.index == wanted.index);
    // A number is not used again while its interface is elsewhere, unless that is asked for.
    if let Some(found) = same_number.or_else(|| here.iter().find(|found| is_same(wanted, found))) {
        return Ok(InterfaceLocation::Here { name: found.name.clone() });
    }
    Ok(elsewhere(wanted).unwrap_or(InterfaceLocation::Gone))
}

/// True for the same interface in another namespace, or with another number: those that share an address (a VLAN and
/// its device) differ in both number and name.
fn is_same(wanted: &InterfaceIdentity, found: &InterfaceIdentity) -> bool {
    let (same_name, same_number) = (wanted.name == found.name, wanted.index == found.index);
    if wanted.address.iter().all(|byte| *byte == 0) {
        return same_name && same_number && wanted.address == found.address;
    }
    wanted.address == found.address && (same_name || same_number)
}

/// Looks at all other namespaces that can be entered.
fn elsewhere(wanted: &InterfaceIdentity) -> Option<InterfaceLocation> {
    let mut seen: BTreeSet<u64> = namespace::own_number().into_iter().collect_compactly();
    for (number, file) in identity::namespaces() {
        if seen.insert(number)
            && let Some(name) = name_within(wanted, &file)
        {
            return Some(InterfaceLocation::Moved { name, file: file.display().to_string() });
        }
    }
    None
}

fn name_within(wanted: &InterfaceIdentity, file: &Path) -> Option<String> {
    // A namespace that cannot be entered cannot be searched.
    let there = NetworkNamespace::open(file).ok()?.within(interfaces).ok()?.ok()?;
    there.into_iter().find(|found| is_same(wanted, found)).map(|found| found.name)
}
