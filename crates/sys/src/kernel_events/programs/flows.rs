//! Programs that count events by flow, and the trial that shows where a packet's socket and its ports are.
//!
//! The kernel's records of drops have no ports. They have the receiving socket (Linux 6.11), or the packet, whose socket
//! is at one offset in all kernels with BPF, as the ports of a socket are. Neither is a promise of the kernel: a datagram
//! of this process has to be found there first.

use std::os::fd::OwnedFd;

use linerate_model::host::tracepoint::TracepointFormat;

use super::super::assembler::{Arithmetic, Assembler, Comparison, Helper, Instruction, Label, Register, Width};
use super::super::maps::{EventMaps, FLOW_DROP, FLOW_TRIAL, flow_key};
use super::{EventScope, ROW_KEY, VALUE, begin, count_row, finish, load_field};

use Register::{R0, R1, R2, R3, R7, R10};
use Width::{Double, Half, Word};

/// Offset of the socket in `struct sk_buff` (64 bits).
const PACKET_SOCKET: i32 = 24;
/// Offsets in `struct sock_common`, and the number of bytes that are read.
const SOCKET_REMOTE_ADDRESS: i16 = 0;
const SOCKET_REMOTE_PORT: i16 = 12;
const SOCKET_LOCAL_PORT: i16 = 14;
const SOCKET_FAMILY: i16 = 16;
const SOCKET_SIZE: i32 = 24;
/// Position of that copy in the frame.
const SOCKET: i16 = -80;

const IPV4: i32 = 2;
const IPV6: i32 = 10;

/// Reads `size` bytes at the address in R3 to `to` of the frame; goes to `end` where there are none.
fn read_kernel(program: &mut Assembler, to: i16, size: i32, end: Label) {
    program.copy(R1, R10);
    program.constant(Arithmetic::Add, R1, to.into());
    program.constant(Arithmetic::Move, R2, size);
    program.call(Helper::ReadKernel);
    program.jump_if(Comparison::NotEqual, R0, 0, end);
}

/// R7 = socket of the packet in R7, or `end`.
fn socket_of_packet(program: &mut Assembler, end: Label) {
    program.copy(R3, R7);
    program.constant(Arithmetic::Add, R3, PACKET_SOCKET);
    read_kernel(program, VALUE, 8, end);
    program.load(Double, R7, R10, VALUE);
    program.jump_if(Comparison::Equal, R7, 0, end);
}

/// Writes the key of the flow of the socket in R7, or goes to `end` for sockets that have no ports.
fn key_of_socket(program: &mut Assembler, kind: i32, end: Label) {
    program.copy(R3, R7);
    read_kernel(program, SOCKET, SOCKET_SIZE, end);
    program.load(Half, R1, R10, SOCKET + SOCKET_FAMILY);
    let has_ports = program.label();
    program.jump_if(Comparison::Equal, R1, IPV4, has_ports);
    program.jump_if(Comparison::NotEqual, R1, IPV6, end);
    program.place(has_ports);
    for (width, from, to) in [
        (Half, SOCKET_LOCAL_PORT, flow_key::LOCAL_PORT),
        (Half, SOCKET_REMOTE_PORT, flow_key::REMOTE_PORT),
        (Word, SOCKET_REMOTE_ADDRESS, flow_key::REMOTE_ADDRESS),
    ] {
        program.load(width, R1, R10, SOCKET + from);
        program.store(width, R10, ROW_KEY + to, R1);
    }
    program.store_constant(Word, R10, ROW_KEY + flow_key::KIND, kind);
}

/// Counts a dropped packet for the flow of its socket.
pub(super) fn count_drop(program: &mut Assembler, format: &TracepointFormat, map: &OwnedFd, end: Label) -> Option<()> {
    let found = program.label();
    if format.field("rx_sk").is_some() {
        load_field(program, format, "rx_sk", R7)?;
        program.jump_if(Comparison::NotEqual, R7, 0, found);
    }
    load_field(program, format, "skbaddr", R7)?;
    socket_of_packet(program, end);
    program.place(found);
    key_of_socket(program, FLOW_DROP, end);
    load_field(program, format, "reason", R1)?;
    program.store(Word, R10, ROW_KEY + flow_key::REASON, R1);
    count_row(program, map, ROW_KEY, end);
    Some(())
}

/// Counts the ports that are found in packets on their way to a device.
pub(in super::super) fn trial(format: &TracepointFormat, maps: &EventMaps, _: EventScope) -> Option<Vec<Instruction>> {
    let mut program = begin();
    let end = program.label();
    load_field(&mut program, format, "skbaddr", R7)?;
    socket_of_packet(&mut program, end);
    key_of_socket(&mut program, FLOW_TRIAL, end);
    program.store_constant(Word, R10, ROW_KEY + flow_key::REASON, 0);
    count_row(&mut program, &maps.flows.descriptor, ROW_KEY, end);
    finish(program, end)
}

/// Counts a retransmission of a flow by the kind in R7.
pub(super) fn count_retransmission(
    program: &mut Assembler,
    format: &TracepointFormat,
    map: &OwnedFd,
    end: Label,
) -> Option<()> {
    for (name, to) in [("sport", flow_key::LOCAL_PORT), ("dport", flow_key::REMOTE_PORT)] {
        load_field(program, format, name, R1)?;
        program.store(Half, R10, ROW_KEY + to, R1);
    }
    let address = format.field("daddr").filter(|field| field.size == 4)?;
    // The address lies between the words: it is read in halves.
    for half in [0, 2] {
        program.load(Half, R1, Register::R6, i16::try_from(address.offset).ok()? + half);
        program.store(Half, R10, ROW_KEY + flow_key::REMOTE_ADDRESS + half, R1);
    }
    program.store(Word, R10, ROW_KEY + flow_key::KIND, R7);
    program.store_constant(Word, R10, ROW_KEY + flow_key::REASON, 0);
    count_row(program, map, ROW_KEY, end);
    Some(())
}
