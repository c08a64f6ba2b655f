//! Programs at software interrupts, and at what is sent in them.

use linerate_model::host::tracepoint::TracepointFormat;

use super::super::assembler::{Arithmetic, Assembler, Comparison, Helper, Instruction, Register, Width};
use super::super::maps::{
    BY_ACKNOWLEDGEMENT, BY_TIMER, EventMaps, FLOW_ACKNOWLEDGEMENT, FLOW_TIMER, SOFTIRQ_BEGIN, SOFTIRQ_ROWS,
    SOFTIRQ_VECTOR, VECTOR_INTERRUPTED, VECTOR_RUNS, VECTOR_SIZE, VECTOR_TIME, VECTOR_TIMED, VECTORS,
};
use super::{EventScope, begin, elapsed_since, finish, flows, leave_foreign_process, only_value};

use Register::{R0, R1, R2, R6, R7, R8, R9};
use Width::Double;

/// Vector of timers (`TIMER_SOFTIRQ`).
const TIMER_VECTOR: i32 = 1;
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

/// Remembers the vector, and for one run of several the time.
pub(super) fn entry(_: &TracepointFormat, maps: &EventMaps, _: EventScope) -> Option<Vec<Instruction>> {
    let mut program = begin();
    let end = program.label();
    only_value(&mut program, &maps.softirqs.descriptor, end);
    program.copy(R8, R0);
    program.copy(R9, R0);
    program.load(Double, R1, R6, VECTOR_ARGUMENT);
    program.constant(Arithmetic::Add, R1, 1);
    program.store(Double, R8, SOFTIRQ_VECTOR, R1);
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
    program.store_constant(Double, R9, SOFTIRQ_VECTOR, 0);
    add_row(&mut program);
    program.constant(Arithmetic::Move, R1, 1);
    program.add_to(R9, SOFTIRQ_ROWS + VECTOR_RUNS, R1, R2);
    program.jump_if(Comparison::Equal, R8, 0, end);
    elapsed_since(&mut program, end);
    program.constant(Arithmetic::Move, R1, 1);
    program.add_to(R9, SOFTIRQ_ROWS + VECTOR_TIMED, R1, R2);
    program.add_to(R9, SOFTIRQ_ROWS + VECTOR_TIME, R7, R2);
    program.copy(R8, R9);
    leave_foreign_process(&mut program, maps, scope, end)?;
    program.add_to(R8, SOFTIRQ_ROWS + VECTOR_INTERRUPTED, R7, R2);
    finish(program, end)
}

/// Counts a retransmission by the software interrupt in which the segment is sent.
pub(super) fn tcp_retransmit(
    format: &TracepointFormat,
    maps: &EventMaps,
    scope: EventScope,
) -> Option<Vec<Instruction>> {
    let mut program = begin();
    let (counted, end, by_timer) = (program.label(), program.label(), program.label());
    only_value(&mut program, &maps.softirqs.descriptor, end);
    program.load(Double, R8, R0, SOFTIRQ_VECTOR);
    only_value(&mut program, &maps.retransmissions.descriptor, end);
    program.constant(Arithmetic::Move, R1, 1);
    program.jump_if(Comparison::Equal, R8, TIMER_VECTOR + 1, by_timer);
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
