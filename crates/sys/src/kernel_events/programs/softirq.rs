//! Programs at software interrupts, and at what is sent in them.

use linerate_model::host::tracepoint::TracepointFormat;

use super::super::assembler::{Arithmetic, Assembler, Comparison, Helper, Instruction, Register, Width};
use super::super::maps::{
    BY_ACKNOWLEDGEMENT, BY_TIMER, EventMaps, FLOW_ACKNOWLEDGEMENT, FLOW_TIMER, SOFTIRQ_BEGIN, SOFTIRQ_ROWS,
    SOFTIRQ_TIMER, VECTOR_INTERRUPTED, VECTOR_RUNS, VECTOR_SIZE, VECTOR_TIME, VECTOR_TIMED, VECTORS,
};
use super::{EventScope, begin, elapsed_since, finish, flows, leave_foreign_process, only_value};

use Register::{R0, R1, R2, R6, R7, R8, R9};
use Width::Double;

/// Longest time of a run: what looks longer began in an earlier window.
const MAX_RUN_NS: i32 = 60_000_000;
/// One of this many runs of a vector is timed, a power of two: reading the clock costs most of a program's time.
const RUNS_PER_TIMED: i32 = 8;

/// Position of the vector among the arguments of both tracepoints.
const VECTOR_ARGUMENT: i16 = 0;

/// R9 += position of the row of the vector that is the event's argument.
fn add_row(program: &mut Assembler) {
    program.load(Double, R1, R6, VECTOR_ARGUMENT);
    program.constant(Arithmetic::And, R1, i32::from(VECTORS) - 1);
    program.constant(Arithmetic::Multiply, R1, VECTOR_SIZE.into());
    program.register(Arithmetic::Add, R9, R1);
}

/// Remembers the time of one run of several.
pub(super) fn entry(_: &TracepointFormat, maps: &EventMaps, _: EventScope) -> Option<Vec<Instruction>> {
    let mut program = begin();
    let end = program.label();
    only_value(&mut program, &maps.softirqs.descriptor, end);
    program.copy(R8, R0);
    program.copy(R9, R0);
    add_row(&mut program);
    program.load(Double, R1, R9, SOFTIRQ_ROWS + VECTOR_RUNS);
    program.constant(Arithmetic::And, R1, RUNS_PER_TIMED - 1);
    program.jump_if(Comparison::NotEqual, R1, 0, end);
    program.call(Helper::Clock);
    program.store(Double, R8, SOFTIRQ_BEGIN, R0);
    finish(program, end)
}

/// Counts the run, and its time where that began.
pub(super) fn exit(_: &TracepointFormat, maps: &EventMaps, scope: EventScope) -> Option<Vec<Instruction>> {
    let mut program = begin();
    let end = program.label();
    only_value(&mut program, &maps.softirqs.descriptor, end);
    program.copy(R9, R0);
    program.load(Double, R8, R9, SOFTIRQ_BEGIN);
    program.store_constant(Double, R9, SOFTIRQ_BEGIN, 0);
    add_row(&mut program);
    program.constant(Arithmetic::Move, R1, 1);
    program.add_to(R9, SOFTIRQ_ROWS + VECTOR_RUNS, R1, R2);
    program.jump_if(Comparison::Equal, R8, 0, end);
    elapsed_since(&mut program, end);
    let is_run = program.label();
    program.jump_if(Comparison::Less, R7, MAX_RUN_NS, is_run);
    program.jump(end);
    program.place(is_run);
    program.constant(Arithmetic::Move, R1, 1);
    program.add_to(R9, SOFTIRQ_ROWS + VECTOR_TIMED, R1, R2);
    program.add_to(R9, SOFTIRQ_ROWS + VECTOR_TIME, R7, R2);
    program.copy(R8, R9);
    leave_foreign_process(&mut program, maps, scope, end)?;
    program.add_to(R8, SOFTIRQ_ROWS + VECTOR_INTERRUPTED, R7, R2);
    finish(program, end)
}

/// Remembers that a timer of the kernel runs on this processor.
pub(super) fn timer_entry(_: &TracepointFormat, maps: &EventMaps, _: EventScope) -> Option<Vec<Instruction>> {
    store_timer(maps, 1)
}

/// Forgets the timer.
pub(super) fn timer_exit(_: &TracepointFormat, maps: &EventMaps, _: EventScope) -> Option<Vec<Instruction>> {
    store_timer(maps, 0)
}

fn store_timer(maps: &EventMaps, runs: i32) -> Option<Vec<Instruction>> {
    let mut program = begin();
    let end = program.label();
    only_value(&mut program, &maps.softirqs.descriptor, end);
    program.store_constant(Double, R0, SOFTIRQ_TIMER, runs);
    finish(program, end)
}

/// Counts a retransmission by its trigger: a timer that runs, else an acknowledgement.
pub(super) fn tcp_retransmit(
    format: &TracepointFormat,
    maps: &EventMaps,
    scope: EventScope,
) -> Option<Vec<Instruction>> {
    let mut program = begin();
    let (counted, end, by_timer) = (program.label(), program.label(), program.label());
    only_value(&mut program, &maps.softirqs.descriptor, end);
    program.load(Double, R8, R0, SOFTIRQ_TIMER);
    only_value(&mut program, &maps.retransmissions.descriptor, end);
    program.constant(Arithmetic::Move, R1, 1);
    program.jump_if(Comparison::Equal, R8, 1, by_timer);
    program.add_to(R0, BY_ACKNOWLEDGEMENT, R1, R2);
    program.constant(Arithmetic::Move, R7, FLOW_ACKNOWLEDGEMENT);
    program.jump(counted);
    program.place(by_timer);
    program.add_to(R0, BY_TIMER, R1, R2);
    program.constant(Arithmetic::Move, R7, FLOW_TIMER);
    program.place(counted);
    if scope.has_flows {
        flows::count_retransmission(&mut program, format, &maps.flows.descriptor, end)?;
    }
    finish(program, end)
}
