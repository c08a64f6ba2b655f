//! Names of addresses, and the name servers of this host.

use core::ffi::CStr;
use std::net::{IpAddr, SocketAddr};

use socket2::SockAddr;

/// Longest host name (`NI_MAXHOST`, `<netdb.h>`).
const MAX_NAME: usize = 1025;

/// Host name of an address by this host's resolver: `/etc/hosts`, or a PTR record that it asks its name servers for.
/// `None` where there is none. Waits as long as the resolver does: some seconds for each server that does not answer.
#[must_use]
pub fn host_name_of(address: IpAddr) -> Option<String> {
    let address = SockAddr::from(SocketAddr::new(address, 0));
    let mut name = [0_u8; MAX_NAME];
    let (host, length) = (name.as_mut_ptr().cast(), libc::socklen_t::try_from(MAX_NAME).ok()?);
    // SAFETY: the address is one that socket2 has filled, with its length; `host` is a buffer of `length` bytes; no buffer
    // for a service is given.
    let outcome = unsafe {
        libc::getnameinfo(
            address.as_ptr().cast(),
            address.len(),
            host,
            length,
            core::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    if outcome != 0 {
        return None;
    }
    let name = CStr::from_bytes_until_nul(&name).ok()?.to_str().ok()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Name servers that this host asks (resolv.conf(5)), in their order; empty where none are configured.
#[must_use]
pub fn name_servers() -> Vec<IpAddr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    servers_in(&text)
}

fn servers_in(text: &str) -> Vec<IpAddr> {
    let server = |line: &str| {
        let mut fields = line.split_whitespace();
        (fields.next()? == "nameserver").then_some(())?;
        fields.next()?.split('%').next()?.parse().ok()
    };
    text.lines().filter_map(server).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn name_servers_of_a_file() {
        let text =
            "# comment\nsearch example.net\nnameserver 192.0.2.53\nnameserver fe80::1%eth0 # link\nnameserver x\n";
        let expected: [IpAddr; 2] = [Ipv4Addr::new(192, 0, 2, 53).into(), "fe80::1".parse().expect("an address")];
        assert_eq!(servers_in(text), expected);
    }

    #[test]
    fn loopback_has_its_name_or_none() {
        let name = host_name_of(Ipv4Addr::LOCALHOST.into());
        assert!(name.as_deref().is_none_or(|name| name.contains("localhost")), "{name:?}");
    }
}
