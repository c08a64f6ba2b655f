//! Capturing the packets of a network device into a file (packet(7), pcap-savefile(5) with nanoseconds).

use core::mem;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::clock::retry;
use crate::error::{Error, Result, check};
use crate::namespace::{self, NetworkNamespace};
use crate::poll::{self, Interest, PollItem, Waker};

/// The kernel keeps packets for this much memory while the file is being written.
const BUFFER: libc::c_int = 256 << 20;
/// Packets per call of the kernel.
const BATCH: usize = 32;
/// The longest packet that is written whole: the largest that the kernel makes of TCP segments, with its headers.
const LONGEST: usize = (64 << 10) + 256;

/// What a capture has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Packets in the file.
    pub packets: u64,
    /// Packets that came while the kernel's buffer was full: they are not in the file.
    pub missed: u64,
}

/// A capture that goes on until it is stopped; dropping this stops it, too.
#[derive(Debug)]
pub struct Capture {
    stop: Arc<Waker>,
    thread: Option<JoinHandle<Result<Captured>>>,
}

/// Begins to write all packets that a device sends and receives to `file`, which is made or emptied, with the time at
/// which the kernel saw them. Packets that go through the device as one (TCP segmentation in the device's hands) are one
/// in the file. Needs root.
pub fn start(namespace: &NetworkNamespace, device: &str, file: &Path) -> Result<Capture> {
    let failed = |cause| Error::system(format!("writing the capture {}", file.display()), cause);
    let socket = namespace.within(|| open(device))??;
    let mut output = BufWriter::with_capacity(1 << 20, File::create(file).map_err(failed)?);
    output.write_all(&file_header()).map_err(failed)?;
    let stop = Arc::new(Waker::new()?);
    let writer =
        Writer { socket, output, path: file.to_owned(), stop: Arc::clone(&stop), captured: Captured::default() };
    let thread = std::thread::Builder::new().name("capture".into()).spawn(|| writer.run());
    let thread = thread.map_err(|cause| Error::system("starting a thread", cause))?;
    Ok(Capture { stop, thread: Some(thread) })
}

impl Capture {
    /// Writes what has come so far, and ends. What is in the file then is on the disk.
    pub fn finish(mut self) -> Result<Captured> {
        self.stop.wake();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(Captured::default()),
        }
    }
}

impl Drop for Capture {
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
    let all = u16::try_from(libc::ETH_P_ALL).unwrap_or_default().to_be();
    // SAFETY: takes numbers (protocol 0: nothing arrives before the device is chosen); the descriptor that comes back is
    // new, so nothing else owns it.
    let socket = unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0)).map_err(failed)?)
    };
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER).map_err(failed)?;
    set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).map_err(failed)?;
    // SAFETY: sockaddr_ll is integers, for which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or_default();
    address.sll_protocol = all;
    address.sll_ifindex = i32::try_from(index).unwrap_or_default();
    let length = libc::socklen_t::try_from(size_of_val(&address)).unwrap_or_default();
    // SAFETY: the pointer and length describe `address`, which the kernel only reads.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) }).map_err(failed)?;
    Ok(socket)
}

fn set(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of_val(&value)).unwrap_or_default();
    // SAFETY: the pointer and length describe `value`, which the kernel only reads.
    let answer = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    check(answer).map(drop)
}

/// The beginning of a capture file: magic number for nanoseconds, version 2.4, packets at full length, Ethernet.
fn file_header() -> Vec<u8> {
    let mut header = Vec::with_capacity(24);
    header.extend(0xa1b2_3c4d_u32.to_le_bytes());
    header.extend([2, 0, 4, 0]);
    header.extend([0; 8]);
    header.extend(262_144_u32.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header
}

/// What stands before each packet: time, length in the file, length on the wire.
fn packet_header(time: libc::timespec, written: usize, length: usize) -> [u8; 16] {
    let mut header = [0; 16];
    // The format has 32 bits for seconds.
    let fields = [
        u32::try_from(time.tv_sec).unwrap_or(u32::MAX),
        u32::try_from(time.tv_nsec).unwrap_or(0),
        u32::try_from(written).unwrap_or(u32::MAX),
        u32::try_from(length).unwrap_or(u32::MAX),
    ];
    for (place, field) in header.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    header
}

struct Writer {
    socket: OwnedFd,
    output: BufWriter<File>,
    path: PathBuf,
    stop: Arc<Waker>,
    captured: Captured,
}

impl Writer {
    fn run(mut self) -> Result<Captured> {
        let mut batch = Batch::new();
        loop {
            // What came before the request to stop belongs to the capture: look for that first, then read on.
            let stopping = {
                let mut items =
                    [PollItem::new(&self.socket, Interest::READ), PollItem::new(&*self.stop, Interest::READ)];
                poll::wait(&mut items, None)?;
                items[1].is_readable()
            };
            while self.transfer(&mut batch)? {}
            if stopping {
                return self.close();
            }
        }
    }

    /// Writes the packets that are there, at most a batch; whether there were any.
    fn transfer(&mut self, batch: &mut Batch) -> Result<bool> {
        let count = match batch.receive(&self.socket) {
            Ok(count) => count,
            Err(cause) if poll::would_block(&cause) => return Ok(false),
            // The device went down; packets come again when it is up.
            Err(cause) if cause.raw_os_error() == Some(libc::ENETDOWN) => return Ok(true),
            Err(cause) => return Err(Error::system("reading captured packets", cause)),
        };
        for index in 0..count {
            let (time, length, packet) = batch.packet(index);
            let header = packet_header(time, packet.len(), length);
            self.output
                .write_all(&header)
                .and_then(|()| self.output.write_all(packet))
                .map_err(|cause| self.cannot_write(cause))?;
        }
        self.captured.packets += count as u64;
        Ok(count > 0)
    }

    fn close(mut self) -> Result<Captured> {
        self.captured.missed = missed(&self.socket)?;
        let done = self.output.flush().and_then(|()| self.output.get_ref().sync_all());
        done.map_err(|cause| self.cannot_write(cause))?;
        Ok(self.captured)
    }

    fn cannot_write(&self, cause: io::Error) -> Error {
        Error::system(format!("writing the capture {}", self.path.display()), cause)
            .hint_on(libc::ENOSPC, "the disk is full: a capture has every byte of every packet")
    }
}

/// How many packets found the socket's buffer full, since it was opened.
fn missed(socket: &OwnedFd) -> Result<u64> {
    // SAFETY: tpacket_stats is integers, for which zero is a value.
    let mut statistics: libc::tpacket_stats = unsafe { mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of_val(&statistics)).unwrap_or_default();
    // SAFETY: the pointer and length describe `statistics`, which is ours alone.
    let answer = unsafe {
        let place = (&raw mut statistics).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, place, &raw mut length)
    };
    check(answer).map_err(|cause| Error::system("asking how many packets a capture missed", cause))?;
    Ok(statistics.tp_drops.into())
}

/// Room for one control message with a time, aligned as `cmsghdr` wants it.
type Control = [u64; 6];

/// Where the kernel puts packets.
struct Batch {
    packets: Vec<u8>,
    control: Vec<Control>,
    received: Vec<(libc::timespec, usize)>,
}

impl Batch {
    fn new() -> Self {
        Self { packets: vec![0; BATCH * LONGEST], control: vec![[0; 6]; BATCH], received: Vec::with_capacity(BATCH) }
    }

    /// Reads the packets that are there without waiting; how many.
    fn receive(&mut self, socket: &OwnedFd) -> io::Result<usize> {
        let mut places: Vec<libc::iovec> = self
            .packets
            .chunks_exact_mut(LONGEST)
            .map(|place| libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len() })
            .collect();
        let message = |(place, control): (&mut libc::iovec, &mut Control)| {
            // SAFETY: mmsghdr is integers and pointers, for which zero is a value.
            let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
            message.msg_hdr.msg_iov = place;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = size_of::<Control>() as _;
            message
        };
        let mut messages: Vec<libc::mmsghdr> = places.iter_mut().zip(&mut self.control).map(message).collect();
        let count = libc::c_uint::try_from(messages.len()).unwrap_or(0);
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        let descriptor = socket.as_raw_fd();
        let received = retry(|| {
            // SAFETY: each message points to an iovec, a packet's place and a control buffer that live through the call
            // and that nothing else refers to, with their lengths; a null time limit is none.
            let answer =
                unsafe { libc::recvmmsg(descriptor, messages.as_mut_ptr(), count, flags as _, core::ptr::null_mut()) };
            check(answer)
        })?;
        let received = &messages[..usize::try_from(received).unwrap_or(0)];
        self.received.clear();
        // SAFETY: the kernel has just filled these messages, and their control buffers are alive.
        let facts = received.iter().map(|message| unsafe { (time_of(&message.msg_hdr), message.msg_len as usize) });
        self.received.extend(facts);
        Ok(self.received.len())
    }

    /// Time, length on the wire, and as much of it as there was room for.
    fn packet(&self, index: usize) -> (libc::timespec, usize, &[u8]) {
        let (time, length) = self.received[index];
        let start = index * LONGEST;
        (time, length, &self.packets[start..start + length.min(LONGEST)])
    }
}

/// When the kernel saw the packet; the beginning of 1970 when it does not say.
///
/// # Safety
///
/// `message` must have been filled by the kernel, its control buffer still alive.
unsafe fn time_of(message: &libc::msghdr) -> libc::timespec {
    // SAFETY: as this function's contract.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR yield headers within the control buffer.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        if level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPNS {
            // SAFETY: this kind of message has a timespec, perhaps not aligned as one.
            return unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
        }
        // SAFETY: as above.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    libc::timespec { tv_sec: 0, tv_nsec: 0 }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    const _: () = assert!(size_of::<libc::sockaddr_ll>() == 20 && size_of::<libc::tpacket_stats>() == 8);
    // One control message with a timespec of 16 bytes: header, content, both rounded up to 8.
    const _: () = assert!(size_of::<Control>() >= size_of::<libc::cmsghdr>() + size_of::<libc::timespec>());

    #[test]
    fn headers_as_the_format_has_them() {
        let header = file_header();
        assert_eq!(header.len(), 24);
        assert_eq!(header[..8], [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
        assert_eq!(header[16..], [0, 0, 4, 0, 1, 0, 0, 0]);
        let time = libc::timespec { tv_sec: 1, tv_nsec: 258 };
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
        assert_eq!(captured, Captured { packets: 6, missed: 0 });
        let bytes = std::fs::read(&path).expect("there");
        std::fs::remove_file(&path).expect("ours");
        // Ethernet, IPv4 and UDP headers are 42 bytes.
        assert_eq!(bytes.len(), 24 + 2 * (3 * (16 + 42) + 10 + 1000 + 60_000));
        let word = |place: usize| u32::from_le_bytes(bytes[place..place + 4].try_into().expect("four"));
        assert_eq!((word(32), word(36)), (52, 52));
        let time = core::time::Duration::new(word(24).into(), word(28));
        assert!(time >= before && time < before + core::time::Duration::from_secs(10), "{time:?} {before:?}");
    }

    #[test]
    fn no_such_device() {
        let error = open("no-such-device").expect_err("none");
        assert_eq!(error.errno(), Some(libc::ENODEV));
    }
}
