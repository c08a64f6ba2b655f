//! Assembler of BPF programs: instructions as typed data, jumps to labels (Documentation/bpf/standardization).

use std::os::fd::{AsRawFd, OwnedFd};

use linerate_model::host::tracepoint::TracepointField;

/// Registers: R0 has results, R1 to R4 have arguments and are lost at calls, R6 to R9 are kept, R10 is the frame's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R6 = 6,
    R7,
    R8,
    R9,
    R10,
}

/// Number of bytes that a load or store moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Half,
    Word,
    Double,
}

impl Width {
    /// Width of a field; `None` for those that no register holds.
    pub(super) const fn of(field: TracepointField) -> Option<Self> {
        match field.size {
            2 => Some(Self::Half),
            4 => Some(Self::Word),
            8 => Some(Self::Double),
            _ => None,
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Word => 0x00,
            Self::Half => 0x08,
            Self::Double => 0x18,
        }
    }
}

/// Arithmetic with a constant or, with [`FROM_REGISTER`], a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Arithmetic {
    Add = 0x07,
    Subtract = 0x17,
    Multiply = 0x27,
    Divide = 0x37,
    And = 0x57,
    ShiftRight = 0x77,
    Move = 0xb7,
}

/// Comparison of a jump, of unsigned numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Comparison {
    Equal = 0x15,
    NotEqual = 0x55,
    Less = 0xa5,
}

/// Helper function of the kernel (`bpf-helpers(7)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Helper {
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    Clock = 5,
    ProcessorNumber = 8,
    CurrentTask = 14,
    ReadKernel = 113,
}

const FROM_REGISTER: u8 = 0x08;
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const STORE_CONSTANT: u8 = 0x62;
const ATOMIC_ADD: u8 = 0xdb;
const LOAD_CONSTANT: u8 = 0x18;
const MAP_DESCRIPTOR: u8 = 1;
const JUMP: u8 = 0x05;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// Instruction in the kernel's form (`struct bpf_insn`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    constant: i32,
}

/// Target of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

/// Program in the making.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    instructions: Vec<Instruction>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn push(&mut self, code: u8, to: Register, from: Register, offset: i16, constant: i32) {
        let registers = to as u8 | (from as u8) << 4;
        self.instructions.push(Instruction { code, registers, offset, constant });
    }

    /// New label, not placed yet.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label in front of the next instruction.
    pub(super) fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.instructions.len());
    }

    /// `to = to OPERATION constant`.
    pub(super) fn constant(&mut self, operation: Arithmetic, to: Register, constant: i32) {
        self.push(operation as u8, to, Register::R0, 0, constant);
    }

    /// `to = to OPERATION from`.
    pub(super) fn register(&mut self, operation: Arithmetic, to: Register, from: Register) {
        self.push(operation as u8 | FROM_REGISTER, to, from, 0, 0);
    }

    /// `to = from`.
    pub(super) fn copy(&mut self, to: Register, from: Register) {
        self.register(Arithmetic::Move, to, from);
    }

    /// `to = *(from + offset)`.
    pub(super) fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) {
        self.push(LOAD | width.code(), to, from, offset, 0);
    }

    /// `*(to + offset) = from`.
    pub(super) fn store(&mut self, width: Width, to: Register, offset: i16, from: Register) {
        self.push(STORE | width.code(), to, from, offset, 0);
    }

    /// `*(to + offset) = constant`.
    pub(super) fn store_constant(&mut self, width: Width, to: Register, offset: i16, constant: i32) {
        self.push(STORE_CONSTANT | width.code(), to, Register::R0, offset, constant);
    }

    /// `*(to + offset) += from`, with 64 bits and against other processors.
    pub(super) fn atomic_add(&mut self, to: Register, offset: i16, from: Register) {
        self.push(ATOMIC_ADD, to, from, offset, 0);
    }

    /// `*(to + offset) += from` through `scratch`, where only this processor writes.
    pub(super) fn add_to(&mut self, to: Register, offset: i16, from: Register, scratch: Register) {
        self.load(Width::Double, scratch, to, offset);
        self.register(Arithmetic::Add, scratch, from);
        self.store(Width::Double, to, offset, scratch);
    }

    /// Jumps when `register COMPARISON constant`.
    pub(super) fn jump_if(&mut self, comparison: Comparison, register: Register, constant: i32, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.push(comparison as u8, register, Register::R0, 0, constant);
    }

    /// Jumps when `register COMPARISON other`.
    pub(super) fn jump_if_register(&mut self, comparison: Comparison, register: Register, other: Register, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(comparison as u8 | FROM_REGISTER, register, other, 0, 0);
    }

    /// Jumps.
    pub(super) fn jump(&mut self, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.push(JUMP, Register::R0, Register::R0, 0, 0);
    }

    /// Calls a helper with the arguments in R1 to R4.
    pub(super) fn call(&mut self, helper: Helper) {
        self.push(CALL, Register::R0, Register::R0, 0, helper as i32);
    }

    /// Calls a helper with a map and the key at `key` of the frame; its answer is in R0.
    pub(super) fn call_map(&mut self, helper: Helper, map: &OwnedFd, key: i16) {
        self.load_map(map);
        self.copy(Register::R2, Register::R10);
        self.constant(Arithmetic::Add, Register::R2, key.into());
        self.call(helper);
    }

    /// Stores the value at `value` of the frame in a map, under the key at `key`.
    pub(super) fn update_map(&mut self, map: &OwnedFd, key: i16, value: i16) {
        self.copy(Register::R3, Register::R10);
        self.constant(Arithmetic::Add, Register::R3, value.into());
        self.constant(Arithmetic::Move, Register::R4, 0);
        self.call_map(Helper::MapUpdate, map, key);
    }

    fn load_map(&mut self, map: &OwnedFd) {
        let registers = Register::R1 as u8 | MAP_DESCRIPTOR << 4;
        self.instructions.push(Instruction { code: LOAD_CONSTANT, registers, offset: 0, constant: map.as_raw_fd() });
        self.instructions.push(Instruction::default());
    }

    /// Ends the program at this place with the result 0: the event is not passed on to perf.
    pub(super) fn exit(&mut self) {
        self.constant(Arithmetic::Move, Register::R0, 0);
        self.push(EXIT, Register::R0, Register::R0, 0, 0);
    }

    /// Instructions with all jumps resolved; `None` where a label was not placed or is too far away.
    pub(super) fn finish(mut self) -> Option<Vec<Instruction>> {
        for (at, label) in self.jumps {
            let target = i64::try_from(self.labels[label.0]?).ok()?;
            let offset = target - i64::try_from(at).ok()? - 1;
            self.instructions[at].offset = i16::try_from(offset).ok()?;
        }
        Some(self.instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodings as `llvm-mc` prints them.
    #[test]
    fn instructions_have_the_kernels_encoding() {
        let mut program = Assembler::default();
        let end = program.label();
        program.load(Width::Word, Register::R8, Register::R6, 24);
        program.jump_if(Comparison::Equal, Register::R8, 7, end);
        program.register(Arithmetic::Subtract, Register::R7, Register::R8);
        program.atomic_add(Register::R0, 8, Register::R7);
        program.place(end);
        program.exit();
        let bytes = |one: &Instruction| (one.code, one.registers, one.offset, one.constant);
        assert_eq!(
            program.finish().expect("placed").iter().map(bytes).collect::<Vec<_>>(),
            [
                (0x61, 0x68, 24, 0),
                (0x15, 0x08, 2, 7),
                (0x1f, 0x87, 0, 0),
                (0xdb, 0x70, 8, 0),
                (0xb7, 0x00, 0, 0),
                (0x95, 0x00, 0, 0),
            ]
        );
    }

    #[test]
    fn a_label_that_is_not_placed_is_refused() {
        let mut program = Assembler::default();
        let nowhere = program.label();
        program.jump(nowhere);
        assert_eq!(program.finish(), None);
    }
}
