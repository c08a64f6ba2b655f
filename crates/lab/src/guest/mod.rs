//! The guest: the first process of a User-Mode Linux, or of fresh namespaces on a host. It sets up a
//! `Plan`, runs the job's command, reports its progress in frames, and ends with everything that it has
//! started.
//!
//! Nothing here polls without sleeping: in virtual time, that would never end.

mod environment;
mod failure;
mod frame_writer;
mod network;
mod processes;
mod services;
mod settings;
mod watch;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use linerate_model::json;
use linerate_sys::machine;

use crate::job::{GuestFrame, GuestJob, GuestMessage};
use failure::GuestFailure;
use frame_writer::FrameWriter;

/// Subcommand with which the linerate binary becomes a guest, before the job's file and the channel.
pub const HIDDEN_COMMAND: &str = "__lab-guest";

/// Channel on which a guest receives requests and sends frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestChannel {
    /// A terminal device of the guest's own kernel, in both directions.
    Console(PathBuf),
    /// File descriptors that the guest inherits: one to read requests from, one to write frames to.
    Descriptors {
        /// Descriptor of requests.
        requests: i32,
        /// Descriptor of frames.
        frames: i32,
    },
}

impl GuestChannel {
    /// The guest's second argument: the device's path, or the two numbers with a comma between them.
    #[must_use]
    pub fn to_argument(&self) -> OsString {
        match self {
            Self::Console(path) => path.clone().into_os_string(),
            Self::Descriptors { requests, frames } => format!("{requests},{frames}").into(),
        }
    }

    /// Parses the output of [`Self::to_argument`]; `None` for anything else.
    #[must_use]
    pub fn from_argument(argument: &OsStr) -> Option<Self> {
        if Path::new(argument).is_absolute() {
            return Some(Self::Console(argument.into()));
        }
        let (requests, frames) = argument.to_str()?.split_once(',')?;
        Some(Self::Descriptors { requests: requests.parse().ok()?, frames: frames.parse().ok()? })
    }
}

/// Runs a guest from the arguments after [`HIDDEN_COMMAND`]: the job's file and the channel ([`GuestChannel::to_argument`]).
/// Further arguments are ignored: User-Mode Linux appends its own (`console=tty0`) to a kernel's arguments. The code is
/// 2 when the arguments are invalid.
pub fn run_with_arguments(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter();
    match (arguments.next(), arguments.next().as_deref().and_then(GuestChannel::from_argument)) {
        (Some(job), Some(channel)) => run(Path::new(&job), &channel),
        _ => ExitCode::from(2),
    }
}

/// Runs a job. With a kernel of its own the machine is switched off at the end, so that this does not return; otherwise
/// the code is 0 when the command has run, however it ended, 1 when the set-up failed, which a frame has reported, and
/// 2 when the channel cannot be opened.
pub fn run(job_file: &Path, channel: &GuestChannel) -> ExitCode {
    let Ok(mut voice) = FrameWriter::open(channel) else {
        return ExitCode::from(2);
    };
    let job = read_job(job_file);
    let own_kernel = job.as_ref().map_or(matches!(channel, GuestChannel::Console(_)), |job| job.own_kernel);
    let outcome = job.and_then(|job| carry_out(&job, &mut voice));
    let code = if let Err(GuestFailure { error, advice }) = outcome {
        // When the other side is gone there is no one left to report to.
        let _ = voice.say(&GuestFrame::Message(GuestMessage::Failed { error, advice }));
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    };
    voice.finish();
    if own_kernel {
        let error = machine::switch_off().to_string();
        let _ = voice.say(&GuestFrame::Message(GuestMessage::Failed { error, advice: None }));
    }
    code
}

fn read_job(file: &Path) -> Result<GuestJob, GuestFailure> {
    let failed = |cause: String| GuestFailure::new(format!("reading the job {}: {cause}", file.display()));
    let text = std::fs::read(file).map_err(|cause| failed(linerate_sys::describe_os_error(&cause)))?;
    json::from_slice(&text).map_err(|cause| failed(cause.to_string()))
}

fn carry_out(job: &GuestJob, voice: &mut FrameWriter) -> Result<(), GuestFailure> {
    if !machine::is_first_process() {
        return Err(GuestFailure::new("setting a guest up: this is not the first process of its namespace"));
    }
    let host = environment::prepare(job)?;
    if !job.own_kernel {
        voice.start_clock();
    }
    let spaces = network::NamespaceSet::create(job, host.as_ref(), voice)?;
    let services = services::GuestServices::start(job, &spaces)?;
    watch::run(job, &spaces, services, voice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_as_arguments() {
        for channel in
            [GuestChannel::Console("/dev/tty1".into()), GuestChannel::Descriptors { requests: 3, frames: 14 }]
        {
            assert_eq!(GuestChannel::from_argument(&channel.to_argument()), Some(channel));
        }
        for wrong in ["", "3", "3,", "a,b", "dev/tty1", "3,4,5"] {
            assert_eq!(GuestChannel::from_argument(OsStr::new(wrong)), None, "{wrong:?}");
        }
    }

    #[test]
    fn wrong_arguments_start_nothing() {
        let run = |arguments: &[&str]| format!("{:?}", run_with_arguments(arguments.iter().map(OsString::from)));
        let usage = format!("{:?}", ExitCode::from(2));
        for wrong in [&[][..], &["job"], &["job", "x"], &["job", "/no/such/console"]] {
            assert_eq!(run(wrong), usage, "{wrong:?}");
        }
    }
}
