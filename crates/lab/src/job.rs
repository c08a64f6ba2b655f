//! What a guest is told, and what it says: the only words between the two sides.
//!
//! The job is a JSON file that the guest reads at its start. After that a byte stream goes each way: single bytes to the
//! guest ([`Request`]), frames from it ([`Frame`]: kind, length, content).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// What a guest does: set up, run the command, halt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// What to set up.
    pub plan: Plan,
    /// The command to run once everything stands; its end is the guest's.
    pub command: Command,
    /// Whether this is a kernel of its own (then file systems are mounted first, settings of the whole system written,
    /// and the machine halted at the end) or namespaces of a host that goes on.
    pub own_kernel: bool,
    /// Directories in which the command may write; everything else that it writes is gone at the end.
    pub writable: Vec<PathBuf>,
    /// Packets to capture.
    pub capture: Option<Capture>,
    /// The linerate binary, which runs servers and cross traffic.
    pub linerate: PathBuf,
}

/// A program with its arguments, in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Name or path of the program, then its arguments.
    pub arguments: Vec<String>,
    /// Namespace to run in.
    pub namespace: String,
    /// Where it runs.
    pub directory: PathBuf,
    /// Its environment.
    pub environment: Vec<(String, String)>,
}

/// Packets of one device, as a capture file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Namespace of the device.
    pub namespace: String,
    /// The device.
    pub device: String,
    /// The file, in a writable directory.
    pub file: PathBuf,
}

/// A byte to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Request {
    /// Interrupt the command (as Ctrl-C does), so that it can end with a partial result.
    Interrupt = b'i',
    /// Say which processes are running now: nothing has been heard for long.
    WhoRuns = b'w',
}

/// What a guest says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// Everything stands; the command starts. With the guest's time since its boot.
    Ready {
        /// Nanoseconds.
        guest_nanoseconds: u64,
    },
    /// A second of the guest's time has passed.
    Alive {
        /// Nanoseconds since the guest's boot.
        guest_nanoseconds: u64,
    },
    /// The answer to [`Request::WhoRuns`]: processes that are running or could be, by their command lines.
    Running {
        /// Process identifier and command line.
        processes: Vec<(u32, String)>,
    },
    /// Something that a person should know about this run, which goes on.
    Note {
        /// A sentence.
        text: String,
    },
    /// The command has ended.
    Ended {
        /// How.
        end: End,
        /// Nanoseconds since the guest's boot.
        guest_nanoseconds: u64,
        /// Packets captured, and those that the capture missed.
        captured: Option<(u64, u64)>,
    },
    /// Setting up failed: what was tried and what came of it, and the way out if there is one.
    Failed {
        /// What was tried, on what, and what the kernel or the program said.
        error: String,
        /// What would help.
        advice: Option<String>,
    },
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// A piece of the stream from the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The command's standard output.
    Output(Vec<u8>),
    /// The command's standard error.
    Error(Vec<u8>),
    /// A message about it.
    Message(Message),
}
