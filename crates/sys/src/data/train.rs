//! Datagrams to the peer of a connected socket, marked individually, singly or as a train that the kernel segments.
//!
//! Unlike [`super::udp::DatagramSender`], nothing of the socket is changed: streams of different sizes and marks can
//! share it.

use std::io;
use std::net::UdpSocket;

use linerate_units::{ByteCount, TypeOfService};

use crate::error_queue::is_from_earlier_datagram;
use crate::message::{self, ControlBuffer};
use crate::net::canonical;

/// Largest payload of a train, as of one UDP datagram over IPv4.
pub const MAX_TRAIN_BYTES: ByteCount = ByteCount::new(65507);

/// Most datagrams of a train: `UDP_MAX_SEGMENTS` of kernels before 6.9.
pub const MAX_TRAIN_DATAGRAMS: usize = 64;

/// `UDP_SEGMENT` of `include/uapi/linux/udp.h`.
const UDP_SEGMENT: libc::c_int = 103;

/// Marking that a train's datagrams have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramMarking {
    /// Type-of-service octet (IPv6: traffic class); `None` for the socket's own.
    pub type_of_service: Option<TypeOfService>,
    over_ipv4: bool,
}

impl DatagramMarking {
    /// For the datagrams of a connected socket.
    #[must_use]
    pub fn of(socket: &UdpSocket, type_of_service: Option<TypeOfService>) -> Self {
        let over_ipv4 = socket.peer_addr().is_ok_and(|peer| canonical(peer).is_ipv4());
        Self { type_of_service, over_ipv4 }
    }

    fn control(self) -> ControlBuffer {
        let mut control = ControlBuffer::new();
        if let Some(octet) = self.type_of_service {
            let (level, kind) =
                if self.over_ipv4 { (libc::IPPROTO_IP, libc::IP_TOS) } else { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) };
            control.push_number(level, kind, octet.get().into());
        }
        control
    }
}

/// Sends one datagram. Does not wait: a full send buffer is [`io::ErrorKind::WouldBlock`].
pub fn send_datagram(socket: &UdpSocket, datagram: &[u8], mark: DatagramMarking) -> io::Result<()> {
    message::send(socket, datagram, None, &mark.control()).map(drop)
}

/// Sends `train`, which the kernel cuts into datagrams of `datagram` bytes (generic segmentation offload, Linux 4.18);
/// the last may be shorter. At most [`MAX_TRAIN_BYTES`] and [`MAX_TRAIN_DATAGRAMS`]. Does not wait.
pub fn send_train(socket: &UdpSocket, train: &[u8], datagram: u16, mark: DatagramMarking) -> io::Result<()> {
    let mut control = mark.control();
    control.push(libc::IPPROTO_UDP, UDP_SEGMENT, &datagram.to_ne_bytes());
    message::send(socket, train, None, &control).map(drop)
}

/// True when an error of [`send_train`] means that kernel or device cannot segment trains, or not these (udp(7),
/// `udp_send_skb`): single datagrams may succeed.
#[must_use]
pub fn is_segmentation_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// Meaning of a failure to send a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendFailure {
    /// It is about an earlier datagram that was not delivered: this one was not processed, and may be retried.
    Earlier,
    /// The send buffer is full: wait until the socket is writable.
    Full,
    /// The device's queue is full (`ENOBUFS`), or a filter of this host dropped it (`EPERM`).
    NoRoom,
    /// It is larger than the path's or the device's MTU (`EMSGSIZE`).
    TooLarge,
    /// Another error: the socket is unusable.
    Broken,
}

impl SendFailure {
    /// Classifies the error of [`send_datagram`] or [`send_train`].
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            _ if is_from_earlier_datagram(error) => Self::Earlier,
            Some(libc::EAGAIN) => Self::Full,
            Some(libc::ENOBUFS | libc::ENOMEM | libc::EPERM) => Self::NoRoom,
            Some(libc::EMSGSIZE) => Self::TooLarge,
            _ => Self::Broken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::udp::DatagramReceiver;
    use crate::options;

    fn pair(host: &str) -> (UdpSocket, UdpSocket) {
        let receiver = UdpSocket::bind(format!("{host}:0")).expect("bind");
        receiver.set_read_timeout(Some(core::time::Duration::from_secs(5))).expect("timeout");
        options::set_receive_type_of_service(&receiver, true).expect("an option");
        options::set_receive_hop_limit(&receiver, true).expect("an option");
        let sender = UdpSocket::bind(format!("{host}:0")).expect("bind");
        sender.connect(receiver.local_addr().expect("address")).expect("connect");
        (sender, receiver)
    }

    #[test]
    fn trains_of_different_marks_and_sizes_share_a_socket() {
        for host in ["127.0.0.1", "[::1]"] {
            let (sending, receiving) = pair(host);
            let mut receiver = DatagramReceiver::new(&receiving).expect("receiver");
            let mut bytes = vec![0; 30 * 100];
            for (octet, size) in [(0xB8, 100_u16), (0x00, 60)] {
                bytes.fill(octet);
                let mark = DatagramMarking::of(&sending, Some(TypeOfService::new(octet)));
                let train = &bytes[..30 * usize::from(size)];
                match send_train(&sending, train, size, mark) {
                    Ok(()) => {}
                    Err(error) => {
                        assert!(is_segmentation_refusal(&error), "{error}");
                        train.chunks(size.into()).for_each(|one| send_datagram(&sending, one, mark).expect("sent"));
                    }
                }
                let mut seen = 0;
                while seen < 30 {
                    for message in receiver.receive().expect("receive") {
                        assert_eq!(message.type_of_service, Some(TypeOfService::new(octet)));
                        assert_eq!(message.hop_limit, Some(64));
                        for datagram in message.bytes.chunks(message.datagram.to_usize()) {
                            assert_eq!((datagram.len(), datagram[0]), (usize::from(size), octet));
                            seen += 1;
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn refusals_are_distinguished() {
        for (errno, refusal) in [
            (libc::ECONNREFUSED, SendFailure::Earlier),
            // A firewall's rejection over IPv6: ICMPv6 1/1.
            (libc::EACCES, SendFailure::Earlier),
            (libc::EHOSTDOWN, SendFailure::Earlier),
            (libc::EAGAIN, SendFailure::Full),
            (libc::ENOBUFS, SendFailure::NoRoom),
            (libc::EMSGSIZE, SendFailure::TooLarge),
            (libc::EBADF, SendFailure::Broken),
        ] {
            assert_eq!(SendFailure::of(&io::Error::from_raw_os_error(errno)), refusal);
        }
    }
}
