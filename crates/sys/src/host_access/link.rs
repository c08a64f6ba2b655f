//! Attributes of interfaces that `ip link` sets, over rtnetlink (`rtnetlink(7)`, `linux/if_link.h`).

use std::io;

use linerate_model::change::LinkAttribute;

use crate::namespace::device_index;
use crate::netlink::{NetlinkSocket, append_attribute, attributes, number};

/// Length of `ifinfomsg`.
const HEADER: usize = 16;

const fn kind(attribute: LinkAttribute) -> u16 {
    match attribute {
        LinkAttribute::Mtu => libc::IFLA_MTU,
        LinkAttribute::TransmitQueueLength => libc::IFLA_TXQLEN,
        // IFLA_GSO_MAX_SIZE, IFLA_GSO_MAX_SEGS and IFLA_GRO_MAX_SIZE
        LinkAttribute::SegmentationSize => 41,
        LinkAttribute::SegmentCount => 40,
        LinkAttribute::CoalescingSize => 58,
    }
}

fn request(interface: &str) -> io::Result<Vec<u8>> {
    let index = device_index(interface)?;
    let mut body = vec![0; HEADER];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    Ok(body)
}

pub(super) fn read(interface: &str, attribute: LinkAttribute) -> io::Result<Option<String>> {
    let mut found = None;
    let look = |message: crate::netlink::NetlinkMessage<'_>| {
        let content = message.body.get(HEADER..).unwrap_or_default();
        let value = attributes(content).find(|(number, _)| *number == kind(attribute));
        found = value.and_then(|(_, content)| number(content, 0)).or(found);
    };
    NetlinkSocket::route()?.ask(libc::RTM_GETLINK, &request(interface)?, look)?;
    Ok(found.map(|value| value.to_string()))
}

pub(crate) fn write(interface: &str, attribute: LinkAttribute, value: &str) -> io::Result<()> {
    let value: u32 = value.parse().map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let mut body = request(interface)?;
    append_attribute(&mut body, kind(attribute), &value.to_ne_bytes())?;
    NetlinkSocket::route()?.change(libc::RTM_NEWLINK, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_them() {
        assert!(read("lo", LinkAttribute::Mtu).expect("read").is_some());
        assert!(read("lo", LinkAttribute::TransmitQueueLength).expect("read").is_some());
        let error = read("no-such-dev", LinkAttribute::Mtu).expect_err("not there");
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        let error = write("lo", LinkAttribute::Mtu, "many").expect_err("no number");
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
