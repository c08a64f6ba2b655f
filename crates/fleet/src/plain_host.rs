//! Hosts of a description, which become arguments of linerate.

use core::net::{IpAddr, SocketAddr};

/// Longest name of a host (RFC 1035).
const MAX_HOST: usize = 253;

/// True for a host name or address, with or without a port: none of the other forms of a host, which start a lab or log in
/// elsewhere, and no option.
#[must_use]
pub fn is_plain_host(target: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let is_name = |name: &str| !name.is_empty() && !name.starts_with('-') && name.bytes().all(is_name);
    let has_port = target
        .rsplit_once(':')
        .is_some_and(|(name, port)| is_name(name) && !["lab", "ssh"].contains(&name) && port.parse::<u16>().is_ok());
    let is_address = target.parse::<IpAddr>().is_ok() || target.parse::<SocketAddr>().is_ok();
    target.len() <= MAX_HOST && (is_name(target) || has_port || is_address)
}
