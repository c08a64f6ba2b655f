//! Memory use of a socket (`getsockopt(SO_MEMINFO)`, Linux 4.12).

use std::os::fd::AsFd;

use linerate_model::socket::{LockedBuffers, SocketMemory};
use linerate_units::{ByteCount, PacketCount};

use crate::error::Result;
use crate::netlink::number;
use crate::sockopt::{self, SocketOption};

/// `SO_MEMINFO` of `include/uapi/asm-generic/socket.h`.
const SOCKET_MEMORY: SocketOption =
    SocketOption::new(libc::SOL_SOCKET, libc::SO_MEMINFO, "SO_MEMINFO", "socket memory");

/// Number of 32-bit values that today's kernels return (`SK_MEMINFO_VARS`).
const NUMBERS: usize = 9;

/// `SO_BUF_LOCK` of `include/uapi/asm-generic/socket.h` (Linux 5.14): the buffers that a program set.
const BUFFER_LOCK: SocketOption = SocketOption::new(libc::SOL_SOCKET, 72, "SO_BUF_LOCK", "locked buffers");

/// `SOCK_SNDBUF_LOCK` and `SOCK_RCVBUF_LOCK` of `include/uapi/linux/socket.h`.
const SEND_BUFFER_LOCK: u32 = 1;
const RECEIVE_BUFFER_LOCK: u32 = 2;

/// Current memory use of a socket.
pub fn socket_memory(socket: &impl AsFd) -> Result<SocketMemory> {
    // Later kernels may add values.
    let mut buffer = [0_u8; (NUMBERS + 7) * 4];
    let memory =
        sockopt::get_bytes(socket, SOCKET_MEMORY, &mut buffer).map(|bytes| parse(bytes).unwrap_or_default())?;
    Ok(SocketMemory { locked: locked_buffers(socket), ..memory })
}

/// Buffers that a program set; `None` on kernels that do not report it.
fn locked_buffers(socket: &impl AsFd) -> Option<LockedBuffers> {
    let mut buffer = [0_u8; 4];
    let locks = number(sockopt::get_bytes(socket, BUFFER_LOCK, &mut buffer).ok()?, 0)?;
    Some(LockedBuffers { send: locks & SEND_BUFFER_LOCK != 0, receive: locks & RECEIVE_BUFFER_LOCK != 0 })
}

/// Parses `SK_MEMINFO_*` (`include/uapi/linux/sock_diag.h`); `None` when it is shorter than any kernel's.
pub(crate) fn parse(bytes: &[u8]) -> Option<SocketMemory> {
    let place = |index: usize| number(bytes, index * 4).map(u64::from);
    let size = |index: usize| place(index).map(ByteCount::new);
    Some(SocketMemory {
        receive_allocated: size(0)?,
        receive_buffer: size(1)?,
        send_allocated: size(2)?,
        send_buffer: size(3)?,
        forward_allocated: size(4)?,
        send_queued: size(5)?,
        option_memory: size(6)?,
        backlog: size(7)?,
        drops: place(8).map(PacketCount::new),
        locked: None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::options;

    #[test]
    fn unread_data_uses_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let mut client = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
        let (server, _) = listener.accept().expect("a client came");
        client.write_all(&vec![7; 50_000]).expect("buffer space");
        while options::unread_bytes(&server).expect("TCP") < ByteCount::new(50_000) {
            std::thread::yield_now();
        }
        let memory = socket_memory(&server).expect("Linux 4.12");
        assert!(memory.receive_allocated >= ByteCount::new(50_000), "{memory:?}");
        assert_eq!(memory.receive_buffer, options::receive_buffer(&server).expect("TCP"));
        assert_eq!(memory.send_buffer, options::send_buffer(&server).expect("TCP"));
        assert_eq!(memory.drops, Some(PacketCount::ZERO));
    }

    #[test]
    fn a_buffer_that_a_program_set_is_locked() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
        // Kernels before 5.14 do not report it.
        let Some(before) = socket_memory(&client).expect("Linux 4.12").locked else { return };
        assert_eq!(before, LockedBuffers::default());
        options::set_receive_buffer(&client, ByteCount::new(65_536)).expect("allowed");
        let after = socket_memory(&client).expect("Linux 4.12").locked;
        assert_eq!(after, Some(LockedBuffers { send: false, receive: true }));
    }

    #[test]
    fn older_kernels_count_no_drops() {
        let bytes: Vec<u8> = (1..=8_u32).flat_map(u32::to_ne_bytes).collect();
        let memory = parse(&bytes).expect("eight numbers");
        assert_eq!((memory.receive_allocated, memory.backlog), (ByteCount::new(1), ByteCount::new(8)));
        assert_eq!(memory.drops, None);
        assert_eq!(parse(&bytes[..31]), None);
    }
}
