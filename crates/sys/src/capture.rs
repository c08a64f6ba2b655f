//! Capturing the packets of a network device into a file (packet(7), pcap-savefile(5) with nanoseconds).

use core::time::Duration;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use linerate_units::{PacketCount, WallTime};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::error::{Error, Result, check};
use crate::message::{self, ReceiveBatch};
use crate::namespace::{self, NetworkNamespace};
use crate::netlink;
use crate::poll::{self, PollInterest, PollItem, Waker};
use crate::sockopt::{self, SocketOption};

const KERNEL_BUFFER: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, "SO_RCVBUFFORCE", "receive buffer size");
const TIME_STAMPS: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, "SO_TIMESTAMPNS", "receive timestamp switch");
const STATISTICS: SocketOption =
    SocketOption::new(libc::SOL_PACKET, libc::PACKET_STATISTICS, "PACKET_STATISTICS", "capture statistics");

/// Size of the kernel's receive buffer, which holds packets while the file is written.
const KERNEL_BUFFER_BYTES: libc::c_int = 256 << 20;
/// Packets per `recvmmsg` call.
const PACKETS_PER_CALL: usize = 32;
/// Maximum length written of a packet: the largest aggregate of TCP segments that the kernel makes, with its headers.
const LONGEST: usize = (64 << 10) + 256;

/// Packet counts of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounts {
    /// Packets in the file.
    pub packets: PacketCount,
    /// Packets dropped because the kernel's buffer was full; they are not in the file.
    pub missed: PacketCount,
}

/// A running capture; dropping it stops it.
#[derive(Debug)]
pub struct PacketCapture {
    stop: Arc<Waker>,
    thread: Option<JoinHandle<Result<CaptureCounts>>>,
}

/// Starts writing all packets that a device sends and receives, with the kernel's time stamps, to `file`, which is
/// created or truncated. Packets aggregated by segmentation offload are one packet in the file. Needs root.
pub fn start(namespace: &NetworkNamespace, device: &str, file: &Path) -> Result<PacketCapture> {
    let failed = |cause| Error::system(format!("writing the capture {}", file.display()), cause);
    let socket = namespace.within(|| open(device))??;
    let mut output = BufWriter::with_capacity(1 << 20, File::create(file).map_err(failed)?);
    output.write_all(&file_header()).map_err(failed)?;
    let stop = Arc::new(Waker::new()?);
    let writer = CaptureWriter {
        socket,
        output,
        path: file.to_owned(),
        stop: Arc::clone(&stop),
        captured: CaptureCounts::default(),
    };
    let thread = std::thread::Builder::new().name("capture".into()).spawn(|| writer.run());
    let thread = thread.map_err(|cause| Error::system("starting a thread", cause))?;
    Ok(PacketCapture { stop, thread: Some(thread) })
}

impl PacketCapture {
    /// Writes the packets received so far, syncs the file to disk and ends.
    pub fn finish(mut self) -> Result<CaptureCounts> {
        self.stop.wake();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(CaptureCounts::default()),
        }
    }
}

impl Drop for PacketCapture {
    fn drop(&mut self) {
        self.stop.wake();
    }
}

/// A socket of the calling thread's namespace that gets a copy of each packet of the device.
fn open(device: &str) -> Result<OwnedFd> {
    let failed = |cause| {
        Error::system(format!("capturing packets of {device}"), cause)
            .hint_on(libc::EPERM, "capturing needs root (CAP_NET_RAW)")
    };
    let index = namespace::device_index(device)?;
    // Protocol 0: nothing arrives before the device is chosen.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket =
        socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None).map_err(|cause| failed(cause.into()))?;
    sockopt::set(&socket, KERNEL_BUFFER, KERNEL_BUFFER_BYTES).map_err(|error| failed(error.into()))?;
    sockopt::set(&socket, TIME_STAMPS, 1).map_err(|error| failed(error.into()))?;
    let address = libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).unwrap_or_default(),
        sll_protocol: u16::try_from(libc::ETH_P_ALL).unwrap_or_default().to_be(),
        sll_ifindex: i32::try_from(index).unwrap_or_default(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = libc::socklen_t::try_from(size_of_val(&address)).unwrap_or_default();
    // SAFETY: the pointer and length describe `address`, which the kernel only reads.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) }).map_err(failed)?;
    Ok(socket)
}

/// Header of a capture file: magic number for nanoseconds, version 2.4, packets at full length, Ethernet.
fn file_header() -> Vec<u8> {
    let mut header = Vec::with_capacity(24);
    header.extend(0xa1b2_3c4d_u32.to_le_bytes());
    header.extend([2, 0, 4, 0]);
    header.extend([0; 8]);
    header.extend(262_144_u32.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header
}

/// Header of each packet: time, length in the file, length on the wire.
fn packet_header(time: Duration, written: usize, length: usize) -> [u8; 16] {
    let mut header = [0; 16];
    // The format has 32 bits for seconds.
    let fields = [
        u32::try_from(time.as_secs()).unwrap_or(u32::MAX),
        time.subsec_nanos(),
        u32::try_from(written).unwrap_or(u32::MAX),
        u32::try_from(length).unwrap_or(u32::MAX),
    ];
    for (place, field) in header.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    header
}

struct CaptureWriter {
    socket: OwnedFd,
    output: BufWriter<File>,
    path: PathBuf,
    stop: Arc<Waker>,
    captured: CaptureCounts,
}

impl CaptureWriter {
    fn run(mut self) -> Result<CaptureCounts> {
        let mut batch = ReceiveBatch::new(PACKETS_PER_CALL, LONGEST)?;
        loop {
            // Packets received before the stop request belong to the capture: check the request first, then read on.
            let stopping = {
                let mut items =
                    [PollItem::new(&self.socket, PollInterest::READ), PollItem::new(&*self.stop, PollInterest::READ)];
                poll::wait(&mut items, None)?;
                items[1].is_readable()
            };
            while self.transfer(&mut batch)? {}
            if stopping {
                return self.close();
            }
        }
    }

    /// Writes the available packets, at most one batch; returns true if there were any.
    fn transfer(&mut self, batch: &mut ReceiveBatch) -> Result<bool> {
        let count = match batch.receive(&self.socket, libc::MSG_DONTWAIT | libc::MSG_TRUNC) {
            Ok(count) => count,
            Err(cause) if poll::would_block(&cause) => return Ok(false),
            // The device went down; packets come again when it is up.
            Err(cause) if cause.raw_os_error() == Some(libc::ENETDOWN) => return Ok(true),
            Err(cause) => return Err(Error::system("reading captured packets", cause)),
        };
        for index in 0..count {
            let (length, packet, control) = batch.message(index);
            let header = packet_header(time_of(control), packet.len(), length);
            self.output
                .write_all(&header)
                .and_then(|()| self.output.write_all(packet))
                .map_err(|cause| self.cannot_write(cause))?;
        }
        self.captured.packets += PacketCount::new(count as u64);
        Ok(count > 0)
    }

    fn close(mut self) -> Result<CaptureCounts> {
        self.captured.missed = PacketCount::new(missed(&self.socket)?);
        let done = self.output.flush().and_then(|()| self.output.get_ref().sync_all());
        done.map_err(|cause| self.cannot_write(cause))?;
        Ok(self.captured)
    }

    fn cannot_write(&self, cause: io::Error) -> Error {
        Error::system(format!("writing the capture {}", self.path.display()), cause)
            .hint_on(libc::ENOSPC, "the disk is full: a capture has every byte of every packet")
    }
}

/// Number of packets dropped at the full socket buffer since it was opened.
fn missed(socket: &OwnedFd) -> Result<u64> {
    // `tpacket_stats`: packets, drops.
    let mut statistics = [0; 8];
    let read = sockopt::get_bytes(socket, STATISTICS, &mut statistics).map_err(|error| {
        Error::system("reading the number of packets that a capture missed", io::Error::from(error))
    })?;
    Ok(netlink::number(read, 4).unwrap_or(0).into())
}

/// Kernel time stamp of the packet; the Unix epoch when there is none.
fn time_of<'a>(mut control: impl Iterator<Item = (libc::c_int, libc::c_int, &'a [u8])>) -> Duration {
    let stamp = control.find_map(|(level, kind, content)| {
        message::stamps(kind, content).filter(|_| level == libc::SOL_SOCKET)?.kernel
    });
    stamp.map_or(Duration::ZERO, WallTime::since_unix_epoch)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    const _: () = assert!(size_of::<libc::sockaddr_ll>() == 20 && size_of::<libc::tpacket_stats>() == 8);

    #[test]
    fn headers_follow_the_format() {
        let header = file_header();
        assert_eq!(header.len(), 24);
        assert_eq!(header[..8], [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
        assert_eq!(header[16..], [0, 0, 4, 0, 1, 0, 0, 0]);
        let time = Duration::new(1, 258);
        assert_eq!(packet_header(time, 3, 70_000), [1, 0, 0, 0, 2, 1, 0, 0, 3, 0, 0, 0, 0x70, 0x11, 1, 0]);
    }

    #[test]
    #[ignore = "needs root: captures in a network namespace"]
    fn datagrams_are_in_the_file_with_their_times() {
        let namespace = NetworkNamespace::create().expect("root");
        namespace.within(namespace::take_loopback_up).expect("entered").expect("up");
        let path = std::env::temp_dir().join(format!("linerate-capture-{}.pcap", std::process::id()));
        let capture = start(&namespace, "lo", &path).expect("root");
        let before = crate::clock::realtime_now().since_unix_epoch();
        let send = || {
            let (from, to) = (UdpSocket::bind("127.0.0.1:0").expect("lo"), UdpSocket::bind("127.0.0.1:0").expect("lo"));
            for length in [10, 1000, 60_000] {
                from.send_to(&vec![b'x'; length], to.local_addr().expect("bound")).expect("sent");
            }
        };
        namespace.within(send).expect("entered");
        let captured = capture.finish().expect("written");
        // On the loopback device a packet is seen going and coming.
        assert_eq!(captured, CaptureCounts { packets: PacketCount::new(6), missed: PacketCount::ZERO });
        let bytes = std::fs::read(&path).expect("there");
        std::fs::remove_file(&path).expect("ours");
        // Ethernet, IPv4 and UDP headers are 42 bytes.
        assert_eq!(bytes.len(), 24 + 2 * (3 * (16 + 42) + 10 + 1000 + 60_000));
        let word = |place: usize| u32::from_le_bytes(bytes[place..place + 4].try_into().expect("four"));
        assert_eq!((word(32), word(36)), (52, 52));
        let time = Duration::new(word(24).into(), word(28));
        assert!(time >= before && time < before + Duration::from_secs(10), "{time:?} {before:?}");
    }

    #[test]
    fn no_such_device() {
        let error = open("no-such-device").expect_err("none");
        assert_eq!(error.errno(), Some(libc::ENODEV));
    }
}
