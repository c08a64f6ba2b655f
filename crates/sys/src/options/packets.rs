//! Metadata that comes with each received packet, and reports on sent ones.

use std::os::fd::AsFd;

use super::ip::{is_ipv6, set_in_both_families};
use crate::error::Result;
use crate::sockopt::{SocketOption, flag, set};

const PACKET_TIMESTAMPS: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, "SO_TIMESTAMPING", "packet time stamp switches");
const RECEIVE_TTL: SocketOption =
    SocketOption::new(libc::IPPROTO_IP, libc::IP_RECVTTL, "IP_RECVTTL", "IPv4 time-to-live reception");
const RECEIVE_TOS: SocketOption =
    SocketOption::new(libc::IPPROTO_IP, libc::IP_RECVTOS, "IP_RECVTOS", "IPv4 type-of-service reception");
const RECEIVE_ADDRESS: SocketOption =
    SocketOption::new(libc::IPPROTO_IP, libc::IP_PKTINFO, "IP_PKTINFO", "IPv4 destination address reception");
const RECEIVE_ERRORS: SocketOption =
    SocketOption::new(libc::IPPROTO_IP, libc::IP_RECVERR, "IP_RECVERR", "IPv4 error queue");
const RECEIVE_HOP_LIMIT: SocketOption =
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, "IPV6_RECVHOPLIMIT", "IPv6 hop limit reception");
const RECEIVE_CLASS: SocketOption =
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, "IPV6_RECVTCLASS", "IPv6 traffic class reception");
const RECEIVE_ADDRESS_V6: SocketOption =
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, "IPV6_RECVPKTINFO", "IPv6 destination reception");
const RECEIVE_ERRORS_V6: SocketOption =
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, "IPV6_RECVERR", "IPv6 error queue");
const ERROR_EXTENSIONS: SocketOption =
    SocketOption::new(libc::IPPROTO_IP, 26, "IP_RECVERR_RFC4884", "IPv4 ICMP extensions");
const ERROR_EXTENSIONS_V6: SocketOption =
    SocketOption::new(libc::IPPROTO_IPV6, 31, "IPV6_RECVERR_RFC4884", "IPv6 ICMP extensions");
const HOP_LIMIT: SocketOption = SocketOption::new(libc::IPPROTO_IP, libc::IP_TTL, "IP_TTL", "IPv4 time to live");
const HOP_LIMIT_V6: SocketOption =
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, "IPV6_UNICAST_HOPS", "IPv6 hop limit");

/// Adds to each received packet its time of arrival: the kernel's, and the device's where that is enabled
/// (`SO_TIMESTAMPING`, Linux 2.6.30). With `sent`, the error queue reports the departure of each packet, too, with its
/// number, counted from 0 at the moment of enabling (Linux 4.0).
pub fn set_packet_timestamps(socket: &impl AsFd, sent: bool) -> Result<()> {
    let received = libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_RX_SOFTWARE
        | libc::SOF_TIMESTAMPING_RAW_HARDWARE
        | libc::SOF_TIMESTAMPING_RX_HARDWARE;
    let leaving =
        libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_ID | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set(socket, PACKET_TIMESTAMPS, if sent { received | leaving } else { received })
}

/// Adds to each received packet its remaining hop limit (time to live); on an IPv6 socket that of IPv4, too.
pub fn set_receive_hop_limit(socket: &impl AsFd, on: bool) -> Result<()> {
    set_in_both_families(socket, RECEIVE_TTL, RECEIVE_HOP_LIMIT, flag(on))
}

/// Adds to each received packet its type of service (traffic class); on an IPv6 socket that of IPv4, too.
pub fn set_receive_type_of_service(socket: &impl AsFd, on: bool) -> Result<()> {
    set_in_both_families(socket, RECEIVE_TOS, RECEIVE_CLASS, flag(on))
}

/// Adds to each received packet its destination address on this host.
pub fn set_receive_destination(socket: &impl AsFd, on: bool) -> Result<()> {
    // An IPv6 socket reports IPv4 addresses in the same way, mapped.
    set(socket, if is_ipv6(socket)? { RECEIVE_ADDRESS_V6 } else { RECEIVE_ADDRESS }, flag(on))
}

/// Keeps ICMP errors from routers and hosts about this socket's packets, to be read with [`crate::error_queue::read`].
/// On TCP, errors that the kernel would outlast then also end the connection (ip(7)).
pub fn set_path_errors(socket: &impl AsFd, on: bool) -> Result<()> {
    set_in_both_families(socket, RECEIVE_ERRORS, RECEIVE_ERRORS_V6, flag(on))
}

/// Reports where the ICMP extensions of an error begin (RFC 4884; Linux 5.9).
pub fn set_error_extensions(socket: &impl AsFd, on: bool) -> Result<()> {
    set_in_both_families(socket, ERROR_EXTENSIONS, ERROR_EXTENSIONS_V6, flag(on))
}

/// Sets the hop limit of the socket's packets, 1 to 255.
pub fn set_hop_limit(socket: &impl AsFd, hops: u8) -> Result<()> {
    set_in_both_families(socket, HOP_LIMIT, HOP_LIMIT_V6, libc::c_int::from(hops))
}
