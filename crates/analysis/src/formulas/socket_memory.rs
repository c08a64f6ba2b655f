use linerate_units::{ByteCount, StreamCount};

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "socket memory",
    text: "memory = sockets × factor × buffer",
    citation: "socket(7), SO_RCVBUF: the kernel doubles the value; Linux Documentation/networking/ip-sysctl.rst, tcp_mem",
    explanation: "The most that buffers can take when all of them are full. It is a ceiling and no reservation: a \
                  buffer takes memory when data is in it, and tcp_mem bounds the sum for all of TCP.\n\n\
                  A guide for Red Hat Enterprise Linux states that 256 KiB for one million sockets may use 512 GB, as \
                  the kernel doubles what a program asks for. 1 000 000 × 2 × 262 144 bytes are 524 GB, or 488 GiB. \
                  The doubling is for SO_SNDBUF and SO_RCVBUF; the values of tcp_rmem and tcp_wmem are not doubled \
                  (--factor 1).",
};

/// Factor by which the kernel raises a buffer size set with `SO_SNDBUF` or `SO_RCVBUF` (socket(7)).
pub const SOCKET_BUFFER_FACTOR: u64 = 2;

/// Maximum memory of buffers of this size in this many sockets.
#[must_use]
pub fn socket_memory(sockets: StreamCount, buffer: ByteCount, factor: u64) -> ByteCount {
    sockets * buffer * factor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_sockets_of_the_red_hat_guide() {
        let (sockets, buffer) = (StreamCount::new(1_000_000), ByteCount::from_kibibytes(256));
        let memory = socket_memory(sockets, buffer, SOCKET_BUFFER_FACTOR);
        assert_eq!(memory, ByteCount::new(524_288_000_000));
    }
}
