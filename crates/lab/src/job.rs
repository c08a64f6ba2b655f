//! Messages between a session and its guest.
//!
//! The job is a JSON file that the guest reads at its start. After that there is a byte stream in each
//! direction: single bytes to the guest ([`GuestRequest`]), frames from it ([`GuestFrame`]: kind, length, content).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::plan::PathPlan;

/// Task of a guest: set up, run the command, halt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestJob {
    /// Plan to set up.
    pub plan: PathPlan,
    /// Command to run after the set-up; the guest ends with it.
    pub command: GuestCommand,
    /// True for a kernel of its own (then file systems are mounted first, settings of the whole system written, and the
    /// machine halted at the end), false for namespaces of a host that goes on.
    pub own_kernel: bool,
    /// Directories in which the command may write; everything else that it writes is discarded at the end.
    pub writable: Vec<PathBuf>,
    /// Packets to capture.
    pub capture: Option<CaptureRequest>,
    /// The linerate binary, which runs servers and cross traffic.
    pub linerate: PathBuf,
}

/// A program with its arguments, in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestCommand {
    /// Name or path of the program, then its arguments.
    pub arguments: Vec<String>,
    /// Namespace to run in.
    pub namespace: String,
    /// Working directory.
    pub directory: PathBuf,
    /// Environment.
    pub environment: Vec<(String, String)>,
}

/// Packets of one device, as a capture file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureRequest {
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
pub enum GuestRequest {
    /// Interrupt the command (as Ctrl-C does), so that it can end with a partial result.
    Interrupt = b'i',
    /// Report the processes that are running now: the guest has been silent for long.
    WhoRuns = b'w',
}

/// Message from a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestMessage {
    /// The path is set up; the command starts. With the guest's time since its boot.
    Ready {
        /// Nanoseconds.
        guest_nanoseconds: u64,
    },
    /// A second of the guest's time has passed.
    Alive {
        /// Nanoseconds since the guest's boot.
        guest_nanoseconds: u64,
    },
    /// Answer to [`GuestRequest::WhoRuns`]: processes that are running or could be, by their command lines.
    Running {
        /// Process identifier and command line.
        processes: Vec<(u32, String)>,
    },
    /// Note for people about this run, which goes on.
    Note {
        /// A sentence.
        text: String,
    },
    /// The command has ended.
    Ended {
        /// Exit code or signal.
        end: CommandEnd,
        /// Nanoseconds since the guest's boot.
        guest_nanoseconds: u64,
        /// Packets captured, and those that the capture missed.
        captured: Option<(u64, u64)>,
    },
    /// The set-up failed.
    Failed {
        /// Operation, its object, and the error of the kernel or the program.
        error: String,
        /// Remedy, if there is one.
        advice: Option<String>,
    },
}

/// End of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEnd {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// A piece of the stream from the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestFrame {
    /// The command's standard output.
    Output(Vec<u8>),
    /// The command's standard error.
    Error(Vec<u8>),
    /// A message.
    Message(GuestMessage),
}
