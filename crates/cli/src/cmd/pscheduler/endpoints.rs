//! Addresses of both hosts: as the specification names them, of one family.

use std::net::{IpAddr, SocketAddr};

use linerate_fleet::pscheduler::SpecValues;
use linerate_model::address_family::AddressFamily;
use linerate_sys::net;
use linerate_units::Port;

/// Endpoints of a test.
pub(super) struct TestEndpoints {
    /// Address of the destination.
    pub(super) remote: SocketAddr,
    /// Local address; `None` lets the kernel choose.
    pub(super) local: Option<IpAddr>,
}

/// Finds the addresses: IPv6 where both hosts have it, as pScheduler prefers it, else IPv4.
pub(super) fn find(spec: &SpecValues, port: Port) -> Result<TestEndpoints, String> {
    let family = spec.ip_version.map(|version| if version == 6 { AddressFamily::Ipv6 } else { AddressFamily::Ipv4 });
    let resolve = |name: &str| net::resolve(name, port, family).map_err(|cause| cause.to_string());
    let dest = spec.dest.as_deref().unwrap_or_default();
    let remote = resolve(dest)?;
    let source = spec.local_address.as_deref().or(spec.source.as_deref());
    let local = source.map(resolve).transpose()?;
    let of = |addresses: &[SocketAddr], family| {
        addresses.iter().find(|address| AddressFamily::of(address.ip()) == family).copied()
    };
    let mut pairs = [AddressFamily::Ipv6, AddressFamily::Ipv4].into_iter().filter_map(|family| {
        let remote = of(&remote, family)?;
        match &local {
            Some(local) => Some(TestEndpoints { remote, local: Some(of(local, family)?.ip()) }),
            None => Some(TestEndpoints { remote, local: None }),
        }
    });
    pairs.next().ok_or_else(|| {
        let source = source.unwrap_or("this host");
        format!("{source} and {dest} have no addresses of the same family: set \"ip-version\", or name other addresses")
    })
}
