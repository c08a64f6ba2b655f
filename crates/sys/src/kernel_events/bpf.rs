//! Maps and programs of BPF (`bpf(2)`), attached to tracepoints, by `perf_event_open(2)` where they read its records.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use linerate_model::far::ProgramRunTime;

use super::assembler::Instruction;
use crate::error::{Error, Result, check, describe_os_error};

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_DELETE: libc::c_int = 3;
const MAP_NEXT_KEY: libc::c_int = 4;
const PROGRAM_LOAD: libc::c_int = 5;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;

const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_FLAG_CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
/// Size of the first version of `struct perf_event_attr`.
const PERF_ATTRIBUTES_SIZE: u32 = 64;
/// Requests of `ioctl(2)`: `_IO('$', 0)` and `_IOW('$', 8, __u32)`.
const PERF_ENABLE: u64 = 0x2400;
const PERF_SET_BPF: u64 = 0x4004_2408;

/// Remedy where the kernel refuses.
const NEEDS_ROOT: &str = "tracing needs root (CAP_BPF and CAP_PERFMON)";

/// Kind of a map (`enum bpf_map_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum MapKind {
    Hash = 1,
    ProcessorArray = 6,
    LeastRecentlyUsedHash = 9,
}

/// Data that a program at a tracepoint reads: numbers of `enum bpf_prog_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum ProgramInput {
    /// The record, in the format of tracefs.
    Record = 5,
    /// The arguments in words, before a record is made of them: cheaper, for arguments that are plain numbers (Linux 4.17).
    Arguments = 17,
}

/// Size of the attributes that bpf(2) gets; the kernel takes zeros beyond those that it knows.
const ATTRIBUTES_SIZE: usize = 72;

/// Attributes of bpf(2) as bytes at their offsets.
struct Attributes([u8; ATTRIBUTES_SIZE]);

impl Attributes {
    const fn new() -> Self {
        Self([0; ATTRIBUTES_SIZE])
    }

    fn number(mut self, offset: usize, value: u32) -> Self {
        self.0[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn address<T>(mut self, offset: usize, value: *const T) -> Self {
        self.0[offset..offset + 8].copy_from_slice(&(value as u64).to_ne_bytes());
        self
    }

    /// # Safety
    ///
    /// The addresses among the attributes have to be valid for this command during the call.
    unsafe fn call(&mut self, command: libc::c_int) -> io::Result<RawFd> {
        // SAFETY: the attributes live through the call, the length is theirs, and the caller vouches for addresses.
        let answer = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), ATTRIBUTES_SIZE) };
        check(answer).map(|answer| RawFd::try_from(answer).unwrap_or(RawFd::MAX))
    }
}

/// Takes a descriptor that a system call has just returned.
fn owned(descriptor: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just opened it for this call alone.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// Map with its sizes.
#[derive(Debug)]
pub(super) struct Map {
    pub(super) descriptor: OwnedFd,
    kind: MapKind,
    key_size: usize,
    value_size: usize,
}

impl Map {
    /// Creates a map; sizes in bytes, values in whole words of eight.
    pub(super) fn new(kind: MapKind, key_size: u32, value_size: u32, entries: u32) -> Result<Self> {
        let mut attributes =
            Attributes::new().number(0, kind as u32).number(4, key_size).number(8, value_size).number(12, entries);
        // SAFETY: there are no addresses among these attributes.
        let descriptor = unsafe { attributes.call(MAP_CREATE) }.map_err(|cause| {
            Error::system("creating a map for traced events (bpf)", cause)
                .hint_on(libc::EPERM, NEEDS_ROOT)
                .hint_on(libc::ENOSYS, "this kernel has no BPF (CONFIG_BPF_SYSCALL)")
        })?;
        let (key_size, value_size) = (key_size as usize, value_size as usize);
        Ok(Self { descriptor: owned(descriptor), kind, key_size, value_size })
    }

    /// Values at a key, as words: one of each of `processors`, or one. Empty where there is none.
    pub(super) fn values(&self, key: &[u8], processors: usize) -> Vec<Vec<u64>> {
        let copies = if self.kind == MapKind::ProcessorArray { processors } else { 1 };
        let words = self.value_size.div_ceil(8);
        let mut buffer = vec![0_u64; words * copies];
        if key.len() != self.key_size || words == 0 {
            return Vec::new();
        }
        let mut attributes = self.attributes().address(8, key.as_ptr()).address(16, buffer.as_mut_ptr().cast_const());
        // SAFETY: the key has the map's size, and the buffer that of the values of all possible processors.
        match unsafe { attributes.call(MAP_LOOKUP) } {
            Ok(_) => buffer.chunks(words).map(<[u64]>::to_vec).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Stores the words of a value at a key, where the map has place for it.
    pub(super) fn insert(&self, key: &[u8], value: &[u64]) {
        if key.len() == self.key_size && value.len() * 8 == self.value_size {
            let mut attributes = self.attributes().address(8, key.as_ptr()).address(16, value.as_ptr());
            // SAFETY: key and value have the map's sizes.
            let _ = unsafe { attributes.call(MAP_UPDATE) };
        }
    }

    /// Removes a key, if it is there.
    pub(super) fn remove(&self, key: &[u8]) {
        if key.len() == self.key_size {
            let mut attributes = self.attributes().address(8, key.as_ptr());
            // SAFETY: the key has the map's size.
            let _ = unsafe { attributes.call(MAP_DELETE) };
        }
    }

    /// All keys, at most `limit`: the map may change meanwhile.
    pub(super) fn keys(&self, limit: usize) -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        while keys.len() < limit {
            let mut next = vec![0_u8; self.key_size];
            let previous = keys.last().map_or(core::ptr::null(), Vec::as_ptr);
            let mut attributes = self.attributes().address(8, previous).address(16, next.as_mut_ptr().cast_const());
            // SAFETY: both keys have the map's size; a null pointer asks for the first one.
            if unsafe { attributes.call(MAP_NEXT_KEY) }.is_err() {
                break;
            }
            keys.push(next);
        }
        keys
    }

    fn attributes(&self) -> Attributes {
        Attributes::new().number(0, self.descriptor.as_raw_fd().cast_unsigned())
    }
}

/// Program that runs at each event of a tracepoint, until it is dropped.
#[derive(Debug)]
pub(super) struct AttachedProgram {
    program: Arc<OwnedFd>,
    attachment: Option<OwnedFd>,
}

/// Program at the arguments of a tracepoint that can be detached and attached again.
#[derive(Debug)]
pub(super) struct DetachableProgram {
    tracepoint: &'static str,
    program: Arc<OwnedFd>,
    attachment: Option<OwnedFd>,
}

impl DetachableProgram {
    /// Detaches the program.
    pub(super) fn detach(&mut self) {
        self.attachment = None;
    }

    /// Attaches it again.
    pub(super) fn attach(&mut self) -> io::Result<()> {
        self.attachment = Some(attach_to_arguments(self.tracepoint, &self.program)?);
        Ok(())
    }
}

impl AttachedProgram {
    /// Loads a program and attaches it to a tracepoint, which has a name with its group and a number.
    pub(super) fn attach(
        (tracepoint, id): (&str, u64),
        input: ProgramInput,
        instructions: &[Instruction],
    ) -> Result<Self> {
        let failed = |cause| {
            Error::system(format!("tracing {tracepoint}"), cause)
                .hint_on(libc::EPERM, NEEDS_ROOT)
                .hint_on(libc::EACCES, NEEDS_ROOT)
        };
        let program = load(tracepoint, input, instructions)?;
        let attachment = match input {
            ProgramInput::Record => attach_to_record(id, &program),
            ProgramInput::Arguments => attach_to_arguments(tracepoint, &program),
        };
        Ok(Self { attachment: Some(attachment.map_err(failed)?), program: Arc::new(program) })
    }

    /// Passes the attachment of a program at arguments on; the run time is still known here.
    pub(super) fn detachable(&mut self, tracepoint: &'static str) -> DetachableProgram {
        DetachableProgram { tracepoint, program: Arc::clone(&self.program), attachment: self.attachment.take() }
    }

    /// Number and time of the runs so far; `None` while the kernel does not count them (`kernel.bpf_stats_enabled`).
    pub(super) fn run_time(&self) -> Option<ProgramRunTime> {
        let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", self.program.as_raw_fd())).ok()?;
        let figure = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        let (runs, time_ns) = (figure("run_cnt:")?, figure("run_time_ns:")?);
        (runs > 0).then_some(ProgramRunTime { runs, time_ns, ..ProgramRunTime::default() })
    }
}

/// Attaches a program to a perf event of the tracepoint with this number.
fn attach_to_record(id: u64, program: &OwnedFd) -> io::Result<OwnedFd> {
    let event = open_event(id)?;
    let descriptor = event.as_raw_fd();
    // SAFETY: both requests take a number.
    unsafe {
        check(libc::ioctl(descriptor, PERF_SET_BPF as _, program.as_raw_fd()))?;
        check(libc::ioctl(descriptor, PERF_ENABLE as _, 0))?;
    }
    Ok(event)
}

/// Attaches a program to the tracepoint itself, by its name without the group.
fn attach_to_arguments(tracepoint: &str, program: &OwnedFd) -> io::Result<OwnedFd> {
    let name = tracepoint.rsplit('/').next().unwrap_or(tracepoint);
    let name = CString::new(name)?;
    let program = program.as_raw_fd().cast_unsigned();
    let mut attributes = Attributes::new().address(0, name.as_ptr()).number(8, program);
    // SAFETY: the name lives through the call.
    unsafe { attributes.call(RAW_TRACEPOINT_OPEN) }.map(owned)
}

fn load(tracepoint: &str, input: ProgramInput, instructions: &[Instruction]) -> Result<OwnedFd> {
    let refused = match load_with_log(input, instructions, &mut []) {
        Ok(program) => return Ok(program),
        Err(cause) => cause,
    };
    let operation = format!("loading the program for {tracepoint} (bpf)");
    if refused.raw_os_error() == Some(libc::EPERM) {
        return Err(Error::system(operation, refused).hint_on(libc::EPERM, NEEDS_ROOT));
    }
    // The verifier's reason is in its log.
    let mut log = vec![0_u8; 1 << 16];
    let _ = load_with_log(input, instructions, &mut log);
    let text = String::from_utf8_lossy(&log);
    let mut lines = text.trim_end_matches('\0').lines().filter(|line| !line.starts_with("processed "));
    let reason = lines.next_back().map_or_else(String::new, |line| format!(": {}", line.trim()));
    Err(Error::refused(operation, format!("{}{reason}", describe_os_error(&refused))))
}

fn load_with_log(input: ProgramInput, instructions: &[Instruction], log: &mut [u8]) -> io::Result<OwnedFd> {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut attributes = Attributes::new()
        .number(0, input as u32)
        .number(4, number(instructions.len()))
        .address(8, instructions.as_ptr())
        // Helpers for tracing are for programs with a licence compatible to the GPL, as "Dual MIT/GPL" is.
        .address(16, c"Dual MIT/GPL".as_ptr());
    if !log.is_empty() {
        attributes = attributes.number(24, 1).number(28, number(log.len())).address(32, log.as_mut_ptr().cast_const());
    }
    // SAFETY: instructions, licence and log live through the call, with these lengths.
    unsafe { attributes.call(PROGRAM_LOAD) }.map(owned)
}

/// Event of a tracepoint. It is opened for one processor; its program runs on all of them.
fn open_event(id: u64) -> io::Result<OwnedFd> {
    let mut attributes = [0_u64; PERF_ATTRIBUTES_SIZE as usize / 8];
    attributes[0] = u64::from_ne_bytes(two_words(PERF_TYPE_TRACEPOINT, PERF_ATTRIBUTES_SIZE));
    attributes[1] = id;
    attributes[2] = 1; // sample_period
    let (every_process, processor, no_group) = (-1, 0, -1);
    // SAFETY: the attributes have the size that they state, and live through the call.
    let descriptor = unsafe {
        check(libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            every_process,
            processor,
            no_group,
            PERF_FLAG_CLOSE_ON_EXEC,
        ))
    }?;
    Ok(owned(RawFd::try_from(descriptor).unwrap_or(RawFd::MAX)))
}

fn two_words(first: u32, second: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    bytes
}
