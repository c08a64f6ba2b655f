use linerate_units::{ByteCount, StreamCount};

use super::Formula;

/// What it is, where it comes from, and what is easily got wrong.
pub const FORMULA: Formula = Formula {
    name: "socket memory",
    text: "memory = sockets × factor × buffer",
    citation: "socket(7), SO_RCVBUF: the kernel doubles the value; Linux Documentation/networking/ip-sysctl.rst, tcp_mem",
    explanation: "The most that buffers can take when all of them are full. It is a ceiling and no reservation: a \
                  buffer takes memory when data is in it, and tcp_mem bounds the sum for all of TCP.\n\n\
                  A guide for Red Hat Enterprise Linux says that 256 KiB for one million sockets may use 512 GB, as \
                  the kernel doubles what a program asks for. 1 000 000 × 2 × 262 144 bytes are 524 GB, or 488 GiB. \
                  The doubling is for SO_SNDBUF and SO_RCVBUF; the values of tcp_rmem and tcp_wmem are not doubled \
                  (--factor 1).",
};

/// The factor by which the kernel raises what a program asks for with `SO_SNDBUF` or `SO_RCVBUF` (socket(7)).
pub const SOCKET_BUFFER_FACTOR: u64 = 2;

/// The most that buffers of this size can take in so many sockets.
#[must_use]
pub fn socket_memory(sockets: StreamCount, buffer: ByteCount, factor: u64) -> ByteCount {
    sockets * buffer * factor
}

/// The buffer that each of so many sockets can have: an inverse of [`socket_memory`], in whole bytes. `None` for no socket
/// and a factor of nothing.
#[must_use]
pub fn buffer_of_socket_memory(memory: ByteCount, sockets: StreamCount, factor: u64) -> Option<ByteCount> {
    memory.get().checked_div(sockets.get().saturating_mul(factor)).map(ByteCount::new)
}

/// How many sockets can have this buffer: another inverse of [`socket_memory`], whole ones. `None` for a buffer of nothing
/// and a factor of nothing.
#[must_use]
pub fn sockets_of_memory(memory: ByteCount, buffer: ByteCount, factor: u64) -> Option<StreamCount> {
    memory.get().checked_div(buffer.get().saturating_mul(factor)).map(StreamCount::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_sockets_of_the_red_hat_guide() {
        let (sockets, buffer) = (StreamCount::new(1_000_000), ByteCount::from_kibibytes(256));
        let memory = socket_memory(sockets, buffer, SOCKET_BUFFER_FACTOR);
        assert_eq!(memory, ByteCount::new(524_288_000_000));
        assert_eq!(buffer_of_socket_memory(memory, StreamCount::ZERO, 2), None);
        assert_eq!(sockets_of_memory(memory, ByteCount::ZERO, 2), None);
    }

    proptest::proptest! {
        #[test]
        fn the_inverses_return(sockets in 1_u64..1 << 24, buffer in 1_u64..1 << 30, factor in 1_u64..3) {
            let (sockets, buffer) = (StreamCount::new(sockets), ByteCount::new(buffer));
            let memory = socket_memory(sockets, buffer, factor);
            proptest::prop_assert_eq!(buffer_of_socket_memory(memory, sockets, factor), Some(buffer));
            proptest::prop_assert_eq!(sockets_of_memory(memory, buffer, factor), Some(sockets));
        }
    }
}
