//! Programs for each tracepoint. Offsets of the events' fields are those of the running kernel.

pub(super) mod flows;
mod softirq;

use linerate_model::host::tracepoint::TracepointFormat;

use super::assembler::{Arithmetic, Assembler, Comparison, Helper, Instruction, Label, Register, Width};
use super::bpf::ProgramInput;
use super::maps::{
    BUCKETS, DELAY_BUCKETS, DELAY_COUNT, DELAY_LONGEST, DELAY_TOTAL, EventMaps, THREAD_PROCESS, THREAD_SINCE,
    THREAD_TOTAL,
};

use Register::{R0, R1, R2, R3, R6, R7, R8, R9, R10};
use Width::{Double, Word};

/// Positions in the frame: keys and values of maps.
const KEY: i16 = -8;
const VALUE: i16 = -16;
const ROW_KEY: i16 = -48;
const ROW_VALUE: i16 = -80;

/// State of a task that waits for something else than a processor: all bits below `TASK_REPORT_MAX`.
const SLEEPING: i32 = 0xff;
/// Port of sockets whose port the kernel does not report.
pub(super) const UNKNOWN_PORT: u32 = 1 << 16;

/// Processes whose threads are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TracedProcesses {
    One(u32),
    /// Those of a map.
    Listed,
}

/// Scope of the events.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventScope {
    pub(super) processes: TracedProcesses,
    /// True when retransmissions are counted by flow, too.
    pub(super) has_flows: bool,
    /// True when drops are.
    pub(super) has_flow_drops: bool,
    /// Interface whose queueing discipline is watched.
    pub(super) interface: Option<u32>,
}

/// Program for a tracepoint; `None` where its format has not the needed fields.
pub(super) type Program = fn(&TracepointFormat, &EventMaps, EventScope) -> Option<Vec<Instruction>>;

/// Tracepoints with their programs.
pub(super) const PROGRAMS: [(&str, ProgramInput, Program); 13] = [
    ("sched/sched_switch", ProgramInput::Record, sched_switch),
    ("sched/sched_wakeup", ProgramInput::Record, sched_wakeup),
    ("sched/sched_wakeup_new", ProgramInput::Record, sched_wakeup),
    ("irq/softirq_entry", ProgramInput::Arguments, softirq::entry),
    ("irq/softirq_exit", ProgramInput::Arguments, softirq::exit),
    ("timer/timer_expire_entry", ProgramInput::Arguments, softirq::timer_entry),
    ("timer/timer_expire_exit", ProgramInput::Arguments, softirq::timer_exit),
    ("skb/kfree_skb", ProgramInput::Record, kfree_skb),
    ("udp/udp_fail_queue_rcv_skb", ProgramInput::Record, full_socket),
    ("sock/sock_rcvqueue_full", ProgramInput::Record, full_socket),
    ("qdisc/qdisc_enqueue", ProgramInput::Record, qdisc_enqueue),
    ("qdisc/qdisc_dequeue", ProgramInput::Record, qdisc_dequeue),
    ("tcp/tcp_retransmit_skb", ProgramInput::Record, softirq::tcp_retransmit),
];

/// Program with its event in R6.
fn begin() -> Assembler {
    let mut program = Assembler::default();
    program.copy(R6, R1);
    program
}

/// Loads a field of the event.
fn load_field(program: &mut Assembler, format: &TracepointFormat, name: &str, to: Register) -> Option<()> {
    let field = format.field(name)?;
    program.load(Width::of(field)?, to, R6, i16::try_from(field.offset).ok()?);
    Some(())
}

/// Ends the program at `end`.
fn finish(mut program: Assembler, end: Label) -> Option<Vec<Instruction>> {
    program.place(end);
    program.exit();
    program.finish()
}

/// Remembers when a thread of ours became runnable.
fn sched_wakeup(format: &TracepointFormat, maps: &EventMaps, _: EventScope) -> Option<Vec<Instruction>> {
    let mut program = begin();
    let end = program.label();
    load_field(&mut program, format, "pid", R8)?;
    program.store(Word, R10, KEY, R8);
    program.call_map(Helper::MapLookup, &maps.threads.descriptor, KEY);
    program.jump_if(Comparison::Equal, R0, 0, end);
    program.copy(R8, R0);
    program.call(Helper::Clock);
    program.store(Double, R8, THREAD_SINCE, R0);
    finish(program, end)
}

/// Remembers when a thread of ours was preempted; counts the wait of the one that runs next.
fn sched_switch(format: &TracepointFormat, maps: &EventMaps, scope: EventScope) -> Option<Vec<Instruction>> {
    let mut program = begin();
    let (next, end) = (program.label(), program.label());
    note_previous(&mut program, format, maps, scope, next)?;
    program.place(next);
    load_field(&mut program, format, "next_pid", R8)?;
    program.store(Word, R10, KEY, R8);
    program.call_map(Helper::MapLookup, &maps.threads.descriptor, KEY);
    program.jump_if(Comparison::Equal, R0, 0, end);
    program.copy(R9, R0);
    program.load(Double, R8, R9, THREAD_SINCE);
    program.jump_if(Comparison::Equal, R8, 0, end);
    program.store_constant(Double, R9, THREAD_SINCE, 0);
    elapsed_since(&mut program, end);
    program.add_to(R9, THREAD_TOTAL, R7, R1);
    record_delay(&mut program, &maps.run_queue.descriptor, end);
    record_occupant(&mut program, format, maps, end)?;
    finish(program, end)
}

/// The task that stops is the current one. Threads become known when they first stop.
fn note_previous(
    program: &mut Assembler,
    format: &TracepointFormat,
    maps: &EventMaps,
    scope: EventScope,
    next: Label,
) -> Option<()> {
    let threads = &maps.threads.descriptor;
    let known = program.label();
    leave_foreign_process(program, maps, scope, next)?;
    load_field(program, format, "prev_pid", R8)?;
    program.store(Word, R10, KEY, R8);
    program.call(Helper::Clock);
    program.copy(R7, R0);
    program.call_map(Helper::MapLookup, threads, KEY);
    program.jump_if(Comparison::NotEqual, R0, 0, known);
    program.store_constant(Double, R10, ROW_VALUE + THREAD_SINCE, 0);
    program.store_constant(Double, R10, ROW_VALUE + THREAD_TOTAL, 0);
    program.store(Double, R10, ROW_VALUE + THREAD_PROCESS, R9);
    program.update_map(threads, KEY, ROW_VALUE);
    program.call_map(Helper::MapLookup, threads, KEY);
    program.jump_if(Comparison::Equal, R0, 0, next);
    program.place(known);
    let store = program.label();
    load_field(program, format, "prev_state", R1)?;
    program.constant(Arithmetic::And, R1, SLEEPING);
    program.constant(Arithmetic::Move, R2, 0);
    program.jump_if(Comparison::NotEqual, R1, 0, store);
    program.copy(R2, R7);
    program.place(store);
    program.store(Double, R0, THREAD_SINCE, R2);
    Some(())
}

/// Goes to `to` unless the current process is traced; R9 is its number.
fn leave_foreign_process(program: &mut Assembler, maps: &EventMaps, scope: EventScope, to: Label) -> Option<()> {
    program.call(Helper::CurrentTask);
    program.constant(Arithmetic::ShiftRight, R0, 32);
    program.copy(R9, R0);
    match scope.processes {
        TracedProcesses::One(process) => {
            program.jump_if(Comparison::NotEqual, R9, i32::try_from(process).ok()?, to);
        }
        TracedProcesses::Listed => {
            program.store(Word, R10, KEY, R9);
            program.call_map(Helper::MapLookup, &maps.processes.descriptor, KEY);
            program.jump_if(Comparison::Equal, R0, 0, to);
        }
    }
    Some(())
}

/// R7 = now - R8; ends the program where that is negative, as clocks of processors may differ.
fn elapsed_since(program: &mut Assembler, end: Label) {
    program.call(Helper::Clock);
    program.copy(R7, R0);
    program.jump_if_register(Comparison::Less, R7, R8, end);
    program.register(Arithmetic::Subtract, R7, R8);
}

/// Looks up the only value of a processor's array: its address is in R0.
fn only_value(program: &mut Assembler, map: &std::os::fd::OwnedFd, end: Label) {
    program.store_constant(Word, R10, KEY, 0);
    program.call_map(Helper::MapLookup, map, KEY);
    program.jump_if(Comparison::Equal, R0, 0, end);
}

/// Adds the delay in R7 to a distribution.
fn record_delay(program: &mut Assembler, map: &std::os::fd::OwnedFd, end: Label) {
    only_value(program, map, end);
    program.constant(Arithmetic::Move, R1, 1);
    program.add_to(R0, DELAY_COUNT, R1, R2);
    program.add_to(R0, DELAY_TOTAL, R7, R2);
    let shorter = program.label();
    program.load(Double, R1, R0, DELAY_LONGEST);
    program.jump_if_register(Comparison::Less, R7, R1, shorter);
    program.store(Double, R0, DELAY_LONGEST, R7);
    program.place(shorter);
    program.copy(R1, R7);
    program.constant(Arithmetic::Divide, R1, 1000);
    bit_length(program);
    program.constant(Arithmetic::And, R2, i32::from(BUCKETS) - 1);
    program.constant(Arithmetic::Multiply, R2, 8);
    program.register(Arithmetic::Add, R0, R2);
    program.constant(Arithmetic::Move, R1, 1);
    program.add_to(R0, DELAY_BUCKETS, R1, R3);
}

/// R2 = number of bits of R1, at most 31.
fn bit_length(program: &mut Assembler) {
    let small = program.label();
    program.jump_if(Comparison::Less, R1, i32::MAX, small);
    program.constant(Arithmetic::Move, R1, i32::MAX);
    program.place(small);
    program.constant(Arithmetic::Move, R2, 0);
    for bits in [16, 8, 4, 2, 1] {
        let less = program.label();
        program.jump_if(Comparison::Less, R1, 1 << bits, less);
        program.constant(Arithmetic::ShiftRight, R1, bits);
        program.constant(Arithmetic::Add, R2, bits);
        program.place(less);
    }
    program.register(Arithmetic::Add, R2, R1);
}

/// Adds the wait in R7 to those that ended when the current task gave way. The processor is part of the key: no other
/// one writes the same row.
fn record_occupant(program: &mut Assembler, format: &TracepointFormat, maps: &EventMaps, end: Label) -> Option<()> {
    let occupants = &maps.occupants.descriptor;
    program.call(Helper::ProcessorNumber);
    program.store(Word, R10, ROW_KEY, R0);
    load_field(program, format, "prev_pid", R1)?;
    program.store(Word, R10, ROW_KEY + 4, R1);
    let name = i16::try_from(format.field("prev_comm").filter(|field| field.size == 16)?.offset).ok()?;
    for part in [0, 4, 8, 12] {
        program.load(Word, R1, R6, name + part);
        program.store(Word, R10, ROW_KEY + 8 + part, R1);
    }
    program.call_map(Helper::MapLookup, occupants, ROW_KEY);
    let known = program.label();
    program.jump_if(Comparison::NotEqual, R0, 0, known);
    program.store_constant(Double, R10, ROW_VALUE, 1);
    program.store(Double, R10, ROW_VALUE + 8, R7);
    program.store(Double, R10, ROW_VALUE + 16, R7);
    program.update_map(occupants, ROW_KEY, ROW_VALUE);
    program.jump(end);
    program.place(known);
    program.constant(Arithmetic::Move, R1, 1);
    program.add_to(R0, 0, R1, R2);
    program.add_to(R0, 8, R7, R2);
    program.load(Double, R1, R0, 16);
    program.jump_if_register(Comparison::Less, R7, R1, end);
    program.store(Double, R0, 16, R7);
    Some(())
}

/// Adds one to a row that several processors may write; its key is in the frame.
fn count_row(program: &mut Assembler, map: &std::os::fd::OwnedFd, key: i16, end: Label) {
    program.call_map(Helper::MapLookup, map, key);
    let known = program.label();
    program.jump_if(Comparison::NotEqual, R0, 0, known);
    program.store_constant(Double, R10, ROW_VALUE, 1);
    program.update_map(map, key, ROW_VALUE);
    program.jump(end);
    program.place(known);
    program.constant(Arithmetic::Move, R1, 1);
    program.atomic_add(R0, 0, R1);
}

fn kfree_skb(format: &TracepointFormat, maps: &EventMaps, scope: EventScope) -> Option<Vec<Instruction>> {
    let mut program = begin();
    let (counted, end) = (program.label(), program.label());
    load_field(&mut program, format, "reason", R1)?;
    program.store(Word, R10, ROW_KEY, R1);
    load_field(&mut program, format, "protocol", R1)?;
    program.store(Word, R10, ROW_KEY + 4, R1);
    load_field(&mut program, format, "location", R1)?;
    program.store(Double, R10, ROW_KEY + 8, R1);
    count_row(&mut program, &maps.drops.descriptor, ROW_KEY, counted);
    program.place(counted);
    if scope.has_flow_drops {
        flows::count_drop(&mut program, format, &maps.flows.descriptor, end)?;
    }
    finish(program, end)
}

/// Counts by local port, where the event has it: `dport`, before Linux 6.10 `lport`.
fn full_socket(format: &TracepointFormat, maps: &EventMaps, _: EventScope) -> Option<Vec<Instruction>> {
    let mut program = begin();
    let end = program.label();
    let port = ["dport", "lport"].into_iter().find(|name| format.field(name).is_some());
    match port {
        Some(name) => load_field(&mut program, format, name, R1)?,
        None => program.constant(Arithmetic::Move, R1, UNKNOWN_PORT.cast_signed()),
    }
    program.store(Word, R10, KEY, R1);
    count_row(&mut program, &maps.full_sockets.descriptor, KEY, end);
    finish(program, end)
}

/// Leaves the program unless the packet is at the watched interface, then has its address as the key.
fn watched_packet(program: &mut Assembler, format: &TracepointFormat, scope: EventScope, end: Label) -> Option<()> {
    load_field(program, format, "ifindex", R1)?;
    program.jump_if(Comparison::NotEqual, R1, i32::try_from(scope.interface?).ok()?, end);
    load_field(program, format, "skbaddr", R1)?;
    program.jump_if(Comparison::Equal, R1, 0, end);
    program.store(Double, R10, KEY, R1);
    Some(())
}

fn qdisc_enqueue(format: &TracepointFormat, maps: &EventMaps, scope: EventScope) -> Option<Vec<Instruction>> {
    let mut program = begin();
    let end = program.label();
    watched_packet(&mut program, format, scope, end)?;
    program.call(Helper::Clock);
    program.store(Double, R10, VALUE, R0);
    program.update_map(&maps.queued.descriptor, KEY, VALUE);
    finish(program, end)
}

fn qdisc_dequeue(format: &TracepointFormat, maps: &EventMaps, scope: EventScope) -> Option<Vec<Instruction>> {
    let mut program = begin();
    let end = program.label();
    watched_packet(&mut program, format, scope, end)?;
    program.call_map(Helper::MapLookup, &maps.queued.descriptor, KEY);
    program.jump_if(Comparison::Equal, R0, 0, end);
    program.load(Double, R8, R0, 0);
    program.call_map(Helper::MapDelete, &maps.queued.descriptor, KEY);
    elapsed_since(&mut program, end);
    record_delay(&mut program, &maps.qdisc.descriptor, end);
    finish(program, end)
}
