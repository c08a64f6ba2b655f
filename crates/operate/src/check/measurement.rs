//! Features of the kernel that measurements use, tried on the loopback interface.

use core::time::Duration;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};

use linerate_documents::host_check::{CheckGroup, CheckedItem};
use linerate_model::tcp_info::TcpInfo;
use linerate_sys::data::probe_socket::{OutgoingDatagram, ProbeOptions, ProbeSocket};
use linerate_sys::icmp::{EchoAccess, EchoOptions, EchoSocket};
use linerate_sys::sock_diag::{SocketFilter, SocketReader, SocketStates};
use linerate_sys::tcp_info;
use linerate_sys::time_stamp::StampSource;

const GROUP: CheckGroup = CheckGroup::Measurement;

/// Maximum wait for a datagram over loopback.
const LOOPBACK_WAIT: Duration = Duration::from_secs(2);
/// Datagrams over loopback after which one has a stamp of the kernel, if any gets one.
const MAX_STAMP_ATTEMPTS: u32 = 1000;

pub(super) fn items() -> Vec<CheckedItem> {
    let mut items = match loopback_tcp_info() {
        Ok(info) => of_tcp_info(&info).into(),
        Err(reason) => vec![CheckedItem::missing(GROUP, "tcp_info", reason, "limits of transfers are not found")],
    };
    items.extend([listing(), echo("IPv4", Ipv4Addr::LOCALHOST.into()), echo("IPv6", Ipv6Addr::LOCALHOST.into())]);
    items.push(CheckedItem::tried(
        GROUP,
        "kernel time stamps",
        loopback_stamp(),
        "delays include the time that this program needs to wake up",
    ));
    items
}

fn loopback_tcp_info() -> Result<TcpInfo, String> {
    let connect = || -> io::Result<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        Ok((TcpStream::connect(listener.local_addr()?)?, listener.accept()?.0))
    };
    let (near, _far) = connect().map_err(|cause| format!("connecting over loopback: {cause}"))?;
    tcp_info::read(&near).map_err(|error| error.to_string())
}

fn of_tcp_info(info: &TcpInfo) -> [CheckedItem; 2] {
    let field = |is_there: bool, name: &str, since: &str, consequence: &str| {
        let found =
            if is_there { Ok(String::new()) } else { Err(format!("this kernel does not report it (Linux {since})")) };
        CheckedItem::tried(GROUP, name, found, consequence).with_remedy("use a newer kernel".to_owned())
    };
    [
        field(
            info.bytes_sent.is_some() && info.bytes_retransmitted.is_some(),
            "tcp_info: bytes sent",
            "4.19",
            "retransmitted bytes are unknown: trials of `tune` end undecided",
        ),
        field(info.send_window.is_some(), "tcp_info: send window", "5.4", "a receive window that limits is not seen"),
    ]
}

fn listing() -> CheckedItem {
    let listed = SocketReader::new().and_then(|mut reader| {
        let mut count = 0_u32;
        reader.read(&SocketFilter::in_states(SocketStates::ALL), |_| count += 1)?;
        Ok(format!("{count} TCP sockets"))
    });
    CheckedItem::tried(GROUP, "list of sockets", listed, "no `linerate watch`")
}

fn echo(family: &str, to: IpAddr) -> CheckedItem {
    let opened = EchoSocket::open(SocketAddr::new(to, 0), &EchoOptions::default());
    let name = format!("echo requests, {family}");
    let detail = opened.map(|socket| match socket.access() {
        EchoAccess::PingSocket => "ping socket".to_owned(),
        EchoAccess::RawSocket => "raw socket, as root: net.ipv4.ping_group_range excludes this user".to_owned(),
    });
    CheckedItem::tried(GROUP, name, detail, "the delay under load is measured with a linerate server only")
        .with_remedy("sysctl -w net.ipv4.ping_group_range='0 2147483647', or run it as root".to_owned())
}

/// Sends datagrams to itself over loopback until one is stamped: the kernel begins to stamp a moment after the first
/// socket asks for it (`net_enable_timestamp`).
fn loopback_stamp() -> Result<String, String> {
    let text = |error: io::Error| error.to_string();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(text)?;
    let to = socket.local_addr().map_err(text)?;
    let socket = ProbeSocket::new(socket, ProbeOptions::default()).map_err(|error| error.to_string())?;
    for _ in 0..MAX_STAMP_ATTEMPTS {
        socket.send(b"check", &OutgoingDatagram { to: Some(to), ..OutgoingDatagram::default() }).map_err(text)?;
        let arrival = socket.receive(&mut [0; 16], Some(LOOPBACK_WAIT)).map_err(text)?;
        match arrival.map(|arrival| arrival.arrived.source) {
            Some(StampSource::Kernel | StampSource::Hardware) => return Ok("SO_TIMESTAMPING".to_owned()),
            Some(StampSource::Program) => std::thread::yield_now(),
            None => return Err("a datagram over loopback did not arrive".to_owned()),
        }
    }
    Err("the kernel does not stamp datagrams".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_kernel_lacks_fields() {
        let items = of_tcp_info(&TcpInfo::default());
        assert!(items.iter().all(|item| !item.works && item.consequence.is_some()), "{items:?}");
        assert!(items[0].detail.contains("4.19") && items[1].detail.contains("5.4"), "{items:?}");
    }

    #[test]
    fn this_kernel_measures() {
        let items = items();
        let works = |name: &str| items.iter().any(|item| item.name == name && item.works);
        assert!(works("tcp_info: bytes sent") && works("tcp_info: send window"), "{items:?}");
        assert!(works("list of sockets") && works("kernel time stamps"), "{items:?}");
    }
}
