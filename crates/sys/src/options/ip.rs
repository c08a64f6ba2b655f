//! Options of the internet layer, and the choice of interface.

use std::net::SocketAddrV6;
use std::os::fd::AsFd;

use linerate_units::{FlowLabel, Mtu, TypeOfService};

use crate::error::{Error, Result};
use crate::namespace;
use crate::sockopt::{self, SocketOption, flag, get, set};

const DOMAIN: SocketOption = SocketOption::new(libc::SOL_SOCKET, libc::SO_DOMAIN, "SO_DOMAIN", "address family");
const KIND: SocketOption = SocketOption::new(libc::SOL_SOCKET, libc::SO_TYPE, "SO_TYPE", "kind of socket");
const TYPE_OF_SERVICE: SocketOption =
    SocketOption::new(libc::IPPROTO_IP, libc::IP_TOS, "IP_TOS", "IPv4 type of service");
const TRAFFIC_CLASS: SocketOption =
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, "IPV6_TCLASS", "IPv6 traffic class");
const FLOW_LABEL_MANAGER: SocketOption =
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_FLOWLABEL_MGR, "IPV6_FLOWLABEL_MGR", "IPv6 flow label");
const FLOW_INFO_SEND: SocketOption =
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_FLOWINFO_SEND, "IPV6_FLOWINFO_SEND", "IPv6 flow label switch");
const PATH_MTU_DISCOVERY: SocketOption =
    SocketOption::new(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, "IP_MTU_DISCOVER", "IPv4 don't-fragment mode");
const PATH_MTU_DISCOVERY_V6: SocketOption =
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, "IPV6_MTU_DISCOVER", "IPv6 don't-fragment mode");
const PATH_MTU: SocketOption = SocketOption::new(libc::IPPROTO_IP, libc::IP_MTU, "IP_MTU", "IPv4 path MTU");
const PATH_MTU_V6: SocketOption = SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_MTU, "IPV6_MTU", "IPv6 path MTU");
const IPV6_ONLY: SocketOption =
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, "IPV6_V6ONLY", "IPv6-only switch");
const DEVICE: SocketOption = SocketOption::new(libc::SOL_SOCKET, libc::SO_BINDTODEVICE, "SO_BINDTODEVICE", "interface");

/// True for an IPv6 socket, which may also carry IPv4 (mapped addresses).
pub fn is_ipv6(socket: &impl AsFd) -> Result<bool> {
    let family: libc::c_int = get(socket, DOMAIN)?;
    Ok(family == libc::AF_INET6)
}

/// Marks the socket's packets. TCP keeps the two ECN bits for itself. An IPv6 socket is marked in both families, as it
/// may carry IPv4 too.
pub fn set_type_of_service(socket: &impl AsFd, value: TypeOfService) -> Result<()> {
    set_in_both_families(socket, TYPE_OF_SERVICE, TRAFFIC_CLASS, libc::c_int::from(value.get()))
}

/// Sets an option, for an IPv6 socket in both families, as it may carry IPv4, too. A raw one does not, and has no
/// option of IPv4.
pub(super) fn set_in_both_families(
    socket: &impl AsFd,
    ipv4: SocketOption,
    ipv6: SocketOption,
    value: libc::c_int,
) -> Result<()> {
    if is_ipv6(socket)? {
        set(socket, ipv6, value)?;
        let kind: libc::c_int = get(socket, KIND)?;
        if kind == libc::SOCK_RAW {
            return Ok(());
        }
    }
    set(socket, ipv4, value)
}

/// True for a socket of datagrams; false for any other, also when the kernel does not say.
#[must_use]
pub fn is_datagram(socket: &impl AsFd) -> bool {
    get::<libc::c_int>(socket, KIND).is_ok_and(|kind| kind == libc::SOCK_DGRAM)
}

/// The mark of the socket's packets: the traffic class of an IPv6 socket, else the IPv4 type of service.
pub fn type_of_service(socket: &impl AsFd) -> Result<TypeOfService> {
    let option = if is_ipv6(socket)? { TRAFFIC_CLASS } else { TYPE_OF_SERVICE };
    let octet: libc::c_int = get(socket, option)?;
    Ok(TypeOfService::new(u8::try_from(octet).unwrap_or(0)))
}

const FLOW_LABEL_GET: u8 = 0; // IPV6_FL_A_GET
const FLOW_LABEL_SHARED: u8 = 255; // IPV6_FL_S_ANY
const FLOW_LABEL_CREATE: u16 = 1; // IPV6_FL_F_CREATE

/// Reserves `label` for packets to `remote`. To use it, connect to the address that is returned: it is `remote` with
/// the label in its flow information.
pub fn set_flow_label(socket: &impl AsFd, remote: SocketAddrV6, label: FlowLabel) -> Result<SocketAddrV6> {
    // `struct in6_flowlabel_req` (`include/uapi/linux/in6.h`): destination, label, action, sharing, flags, two times.
    let mut request = [0; 32];
    request[..16].copy_from_slice(&remote.ip().octets());
    request[16..20].copy_from_slice(&label.get().to_be_bytes());
    request[20..22].copy_from_slice(&[FLOW_LABEL_GET, FLOW_LABEL_SHARED]);
    request[22..24].copy_from_slice(&FLOW_LABEL_CREATE.to_ne_bytes());
    sockopt::set_bytes(socket, FLOW_LABEL_MANAGER, &request)?;
    set(socket, FLOW_INFO_SEND, flag(true))?;
    let mut labelled = remote;
    labelled.set_flowinfo(label.get().to_be()); // the kernel reads it in network byte order
    Ok(labelled)
}

/// Sends datagrams whole or not at all: IPv4's don't-fragment bit, and no fragmenting by this host. Datagrams larger
/// than the path MTU fail with `EMSGSIZE`.
pub fn set_dont_fragment(socket: &impl AsFd) -> Result<()> {
    // The numbers of the modes are the same for both families.
    set_in_both_families(socket, PATH_MTU_DISCOVERY, PATH_MTU_DISCOVERY_V6, libc::IP_PMTUDISC_DO)
}

/// As [`set_dont_fragment`], but ignores this host's record of the path's MTU: for probing it (RFC 4821, RFC 8899).
/// Datagrams larger than the interface's MTU fail with `EMSGSIZE`; routers' reports on others are on the error queue
/// ([`set_path_errors`](super::set_path_errors)) and change nothing.
pub fn set_path_mtu_probing(socket: &impl AsFd) -> Result<()> {
    set_in_both_families(socket, PATH_MTU_DISCOVERY, PATH_MTU_DISCOVERY_V6, libc::IP_PMTUDISC_PROBE)
}

/// Reverts [`set_path_mtu_probing`]: datagrams are sent as most systems do by default, larger ones than the path's MTU
/// in fragments (`IP_PMTUDISC_WANT`, ip(7)).
pub fn unset_path_mtu_probing(socket: &impl AsFd) -> Result<()> {
    set_in_both_families(socket, PATH_MTU_DISCOVERY, PATH_MTU_DISCOVERY_V6, libc::IP_PMTUDISC_WANT)
}

/// The path MTU that this host assumes for a connected socket: learnt from routers, else the route's, else the
/// interface's.
pub fn path_mtu(socket: &impl AsFd) -> Result<Mtu> {
    let option = if is_ipv6(socket)? { PATH_MTU_V6 } else { PATH_MTU };
    let size: libc::c_int = get(socket, option)
        .map_err(|error| error.hint_on(libc::ENOTCONN, "only a connected socket has a path: connect it first"))?;
    Ok(Mtu::new(u32::try_from(size).unwrap_or(0)))
}

/// Makes an IPv6 listener refuse IPv4, or accept it. Set it before it is bound.
pub fn set_ipv6_only(socket: &impl AsFd, on: bool) -> Result<()> {
    set(socket, IPV6_ONLY, flag(on))
}

/// Uses only the interface `device`, regardless of the routing table. Needs no privilege since Linux 5.7, before that
/// `CAP_NET_RAW`.
pub fn bind_to_device(socket: &impl AsFd, device: &str) -> Result<()> {
    check_interface_name(device)?;
    sockopt::set_bytes(socket, DEVICE, device.as_bytes())
        .map_err(|error| error.with_value(device).hint_on(libc::ENODEV, "`ip link` lists this host's interfaces"))
}

/// Refuses invalid names of interfaces: empty, longer than 15 bytes, `.` and `..`, or with `/`, `:` or blanks in them
/// (`dev_valid_name` of the kernel). Existence is not checked.
pub fn check_interface_name(device: &str) -> Result<()> {
    let valid = (1..=15).contains(&device.len())
        && device != "."
        && device != ".."
        && !device.bytes().any(|byte| byte == b'/' || byte == b':' || byte == 0 || byte.is_ascii_whitespace());
    if valid {
        return Ok(());
    }
    Err(Error::refused(
        format!("using the interface {device:?}"),
        "an interface's name has 1 to 15 bytes without blanks, `/` and `:`; `ip link` lists this host's",
    ))
}

/// The number of the interface `device`, as the scope of a link-local address has it.
pub fn interface_index(device: &str) -> Result<u32> {
    check_interface_name(device)?;
    namespace::index_of(device).map_err(|cause| {
        Error::system(format!("looking up the interface {device}"), cause)
            .hint_on(libc::ENODEV, "`ip link` lists this host's interfaces")
    })
}
