//! The guest: the first process of a User-Mode Linux, or of fresh namespaces on a host. It sets a [`crate::plan::Plan`]
//! up, runs the job's command, says in frames what becomes of it, and ends with everything that it has started.
//!
//! Nothing here waits by looking again and again without sleeping: in virtual time, that would never end.

mod failure;
mod network;
mod processes;
mod services;
mod settings;
mod surroundings;
mod voice;
mod watch;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use linerate_sys::machine;

use crate::job::{Frame, Job, Message};
use failure::Failure;
use voice::Voice;

/// The word that has the linerate binary become a guest, before the job's file and the channel.
pub const HIDDEN_COMMAND: &str = "__lab-guest";

/// How a guest is told things, and says things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Channel {
    /// A terminal device of the guest's own kernel, both ways.
    Console(PathBuf),
    /// File descriptors that the guest inherits: one to read requests from, one to write frames to.
    Descriptors {
        /// Requests come from here.
        requests: i32,
        /// Frames go here.
        frames: i32,
    },
}

impl Channel {
    /// As the guest's second argument: the device's path, or the two numbers with a comma between them.
    #[must_use]
    pub fn to_argument(&self) -> OsString {
        match self {
            Self::Console(path) => path.clone().into_os_string(),
            Self::Descriptors { requests, frames } => format!("{requests},{frames}").into(),
        }
    }

    /// Reads what [`Self::to_argument`] writes; `None` for anything else.
    #[must_use]
    pub fn from_argument(argument: &OsStr) -> Option<Self> {
        if Path::new(argument).is_absolute() {
            return Some(Self::Console(argument.into()));
        }
        let (requests, frames) = argument.to_str()?.split_once(',')?;
        Some(Self::Descriptors { requests: requests.parse().ok()?, frames: frames.parse().ok()? })
    }
}

/// Runs a guest from the arguments after [`HIDDEN_COMMAND`]: the job's file and the channel ([`Channel::to_argument`]).
/// What comes after them is not looked at: User-Mode Linux puts words of its own (`console=tty0`) behind a kernel's
/// arguments. The code is 2 when they are not that.
pub fn run_with_arguments(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter();
    match (arguments.next(), arguments.next().as_deref().and_then(Channel::from_argument)) {
        (Some(job), Some(channel)) => run(Path::new(&job), &channel),
        _ => ExitCode::from(2),
    }
}

/// Carries a job out. With a kernel of its own the machine is switched off at the end, so that this does not return;
/// otherwise the code is 0 when the command has run, however it ended, 1 when the set-up failed, which a frame has said,
/// and 2 when the channel cannot be opened.
pub fn run(job_file: &Path, channel: &Channel) -> ExitCode {
    let Ok(mut voice) = Voice::open(channel) else {
        return ExitCode::from(2);
    };
    let job = read_job(job_file);
    let own_kernel = job.as_ref().map_or(matches!(channel, Channel::Console(_)), |job| job.own_kernel);
    let outcome = job.and_then(|job| carry_out(&job, &mut voice));
    let code = if let Err(Failure { error, advice }) = outcome {
        // When the other side is gone there is nobody left to tell.
        let _ = voice.say(&Frame::Message(Message::Failed { error, advice }));
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    };
    voice.finish();
    if own_kernel {
        let error = machine::switch_off().to_string();
        let _ = voice.say(&Frame::Message(Message::Failed { error, advice: None }));
    }
    code
}

fn read_job(file: &Path) -> Result<Job, Failure> {
    let failed = |cause: String| Failure::new(format!("reading the job {}: {cause}", file.display()));
    let text = std::fs::read(file).map_err(|cause| failed(linerate_sys::describe_os_error(&cause)))?;
    serde_json::from_slice(&text).map_err(|cause| failed(cause.to_string()))
}

fn carry_out(job: &Job, voice: &mut Voice) -> Result<(), Failure> {
    if !machine::is_first_process() {
        return Err(Failure::new("setting a guest up: this is not the first process of its namespace"));
    }
    let host = surroundings::prepare(job)?;
    if !job.own_kernel {
        voice.count_time_from_here();
    }
    let spaces = network::Spaces::create(job, host.as_ref(), voice)?;
    let services = services::Services::start(job, &spaces)?;
    watch::run(job, &spaces, services, voice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_as_arguments() {
        for channel in [Channel::Console("/dev/tty1".into()), Channel::Descriptors { requests: 3, frames: 14 }] {
            assert_eq!(Channel::from_argument(&channel.to_argument()), Some(channel));
        }
        for wrong in ["", "3", "3,", "a,b", "dev/tty1", "3,4,5"] {
            assert_eq!(Channel::from_argument(OsStr::new(wrong)), None, "{wrong:?}");
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
