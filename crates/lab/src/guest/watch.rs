//! Runs the command: starts it, relays its output, waits for its end.

use core::time::Duration;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use linerate_sys::capture::{self, PacketCapture};
use linerate_sys::launch::{self, LaunchParameters, LaunchSignal, LaunchedProcess, OutputTarget};
use linerate_sys::poll::{self, PollInterest, PollItem};
use linerate_sys::{clock, machine};
use linerate_units::MonotonicTime;

use super::failure::GuestFailure;
use super::frame_writer::FrameWriter;
use super::network::{NamespaceSet, PendingChanges};
use super::processes;
use super::services::GuestServices;
use crate::job::{CommandEnd, GuestFrame, GuestJob, GuestMessage, GuestRequest};

/// Interval of alive messages, in the guest's time.
const ALIVE_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum size of a read from a pipe.
const READ_SIZE: usize = 64 << 10;

/// Maximum capacity of a pipe whose owner has no privileges (`fs.pipe-max-size`).
const MAX_PIPE_CAPACITY: usize = 1 << 20;

/// Minimum uptime of a kernel of the guest's own before a command starts. iputils' ping treats a clock in its first
/// second as one that was never read, and sends without its interval; and by then duplicate address detection of IPv6
/// has ended. In virtual time the wait costs nothing.
const MIN_UPTIME: MonotonicTime = MonotonicTime::from_nanos(3_000_000_000);

/// Runs the job's command, and ends everything with it.
pub(super) fn run<'a>(
    job: &'a GuestJob,
    spaces: &'a NamespaceSet,
    services: GuestServices<'a>,
    voice: &mut FrameWriter,
) -> Result<(), GuestFailure> {
    if job.own_kernel {
        clock::sleep_until(MIN_UPTIME);
    }
    let capture = job.capture.as_ref();
    let capture = capture.map(|wanted| {
        let space = spaces.get(&wanted.namespace)?;
        capture::start(space, &wanted.device, &wanted.file).map_err(GuestFailure::from)
    });
    let capture = capture.transpose()?;
    let start = clock::monotonic_now();
    voice.say(&GuestFrame::Message(GuestMessage::Ready { guest_nanoseconds: voice.guest_nanoseconds(start) }))?;
    let command = start_command(job, spaces)?;
    let mut watch = CommandWatch {
        start,
        next_sign: start + ALIVE_INTERVAL,
        command,
        services,
        changes: PendingChanges::of(&job.plan),
        spaces,
        voice,
        own_kernel: job.own_kernel,
        interrupted: false,
    };
    let status = watch.run_to_end()?;
    watch.drain()?;
    machine::kill_all_other_processes()?;
    let captured = finish_capture(capture, voice)?;
    if job.own_kernel {
        machine::sync_disks();
    }
    let guest_nanoseconds = voice.guest_nanoseconds(clock::monotonic_now());
    voice.say(&GuestFrame::Message(GuestMessage::Ended { end: end_of(status), guest_nanoseconds, captured }))
}

fn start_command(job: &GuestJob, spaces: &NamespaceSet) -> Result<LaunchedProcess, GuestFailure> {
    let command = &job.command;
    let Some((program, arguments)) = command.arguments.split_first() else {
        return Err(GuestFailure::new("running a command: none was given"));
    };
    Ok(launch::start(&LaunchParameters {
        program,
        arguments,
        directory: Some(&command.directory),
        environment: Some(&command.environment),
        namespace: Some(spaces.get(&command.namespace)?),
        outputs: OutputTarget::Pipes,
        // Where computing takes no time, a busy program would never let anything else run.
        gives_way: job.own_kernel,
    })?)
}

/// A failed capture does not undo the command's result: it is reported in addition.
fn finish_capture(capture: Option<PacketCapture>, voice: &mut FrameWriter) -> Result<Option<(u64, u64)>, GuestFailure> {
    match capture.map(PacketCapture::finish) {
        None => Ok(None),
        Some(Ok(captured)) => Ok(Some((captured.packets.get(), captured.missed.get()))),
        Some(Err(error)) => voice.note(format!("the capture is not complete: {error}")).map(|()| None),
    }
}

fn end_of(status: ExitStatus) -> CommandEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => CommandEnd::Code(code),
        (None, Some(signal)) => CommandEnd::Signal(signal),
        // A process that was waited for has ended in one of these ways.
        (None, None) => CommandEnd::Code(status.into_raw()),
    }
}

struct CommandWatch<'a> {
    start: MonotonicTime,
    next_sign: MonotonicTime,
    command: LaunchedProcess,
    services: GuestServices<'a>,
    changes: PendingChanges<'a>,
    spaces: &'a NamespaceSet,
    voice: &'a mut FrameWriter,
    own_kernel: bool,
    interrupted: bool,
}

/// Pending work after a wait.
#[derive(Clone, Copy, Default)]
struct PendingWork {
    output: bool,
    error: bool,
    requests: bool,
}

impl CommandWatch<'_> {
    fn run_to_end(&mut self) -> Result<ExitStatus, GuestFailure> {
        loop {
            self.services.start_due(clock::monotonic_now() - self.start, self.spaces)?;
            self.changes.make_due(clock::monotonic_now() - self.start, self.spaces)?;
            let ready = self.wait()?;
            if ready.output {
                relay(&mut self.command.stdout, GuestFrame::Output, self.voice)?;
            }
            if ready.error {
                relay(&mut self.command.stderr, GuestFrame::Error, self.voice)?;
            }
            if ready.requests {
                self.serve_requests()?;
            }
            self.send_alive()?;
            if let Some(status) = self.reap()? {
                return Ok(status);
            }
        }
    }

    fn wait(&self) -> Result<PendingWork, GuestFailure> {
        let next = [self.services.next_start(), self.changes.next()].into_iter().flatten().min();
        let until = next.map_or(self.next_sign, |next| (self.start + next).min(self.next_sign));
        let requests = self.voice.requests();
        let mut items = vec![PollItem::new(&self.command, PollInterest::READ)];
        // Pipes that have ended have no item: each that is open takes the next index.
        items.extend(self.command.stdout.as_ref().map(|pipe| PollItem::new(pipe, PollInterest::READ)));
        items.extend(self.command.stderr.as_ref().map(|pipe| PollItem::new(pipe, PollInterest::READ)));
        items.extend(requests.as_ref().map(|requests| PollItem::new(requests, PollInterest::READ)));
        poll::wait(&mut items, Some(until - clock::monotonic_now()))?;
        let mut places = items[1..].iter();
        let mut ready = |is_there: bool| is_there && places.next().is_some_and(PollItem::is_readable);
        Ok(PendingWork {
            output: ready(self.command.stdout.is_some()),
            error: ready(self.command.stderr.is_some()),
            requests: ready(requests.is_some()),
        })
    }

    fn serve_requests(&mut self) -> Result<(), GuestFailure> {
        for request in self.voice.take_requests() {
            match request {
                GuestRequest::Interrupt if self.interrupted => self.command.ask(LaunchSignal::Kill)?,
                GuestRequest::Interrupt => {
                    self.interrupted = true;
                    self.command.ask(LaunchSignal::Interrupt)?;
                }
                GuestRequest::WhoRuns => {
                    self.voice.say(&GuestFrame::Message(GuestMessage::Running { processes: processes::running() }))?;
                }
            }
        }
        Ok(())
    }

    fn send_alive(&mut self) -> Result<(), GuestFailure> {
        let now = clock::monotonic_now();
        if now < self.next_sign {
            return Ok(());
        }
        while self.next_sign <= now {
            self.next_sign = self.next_sign + ALIVE_INTERVAL;
        }
        if self.own_kernel {
            // The kernel creates new ones from time to time.
            machine::prioritise_kernel_workers();
        }
        self.voice
            .say(&GuestFrame::Message(GuestMessage::Alive { guest_nanoseconds: self.voice.guest_nanoseconds(now) }))
    }

    /// Reaps all children that have ended, orphans included; returns how the command ended, if it has.
    fn reap(&mut self) -> Result<Option<ExitStatus>, GuestFailure> {
        let mut ended = None;
        while let Some((process, status)) = machine::reap() {
            if process == self.command.process() {
                ended = Some(status);
            } else if let Some(text) = self.services.exit_report(process, status) {
                self.voice.note(text)?;
            }
        }
        Ok(ended)
    }

    /// Relays what the command left in its pipes. Its children may keep them open: their end is not awaited.
    fn drain(&mut self) -> Result<(), GuestFailure> {
        for _ in 0..MAX_PIPE_CAPACITY / READ_SIZE {
            let output = relay(&mut self.command.stdout, GuestFrame::Output, self.voice)?;
            let error = relay(&mut self.command.stderr, GuestFrame::Error, self.voice)?;
            if !output && !error {
                break;
            }
        }
        Ok(())
    }
}

/// Relays at most a piece from the pipe; returns whether there was anything. At its end the pipe is closed.
fn relay(
    pipe: &mut Option<File>,
    frame: fn(Vec<u8>) -> GuestFrame,
    voice: &mut FrameWriter,
) -> Result<bool, GuestFailure> {
    let Some(open) = pipe else { return Ok(false) };
    let mut piece = vec![0; READ_SIZE];
    match open.read(&mut piece) {
        Ok(0) => *pipe = None,
        Ok(length) => {
            piece.truncate(length);
            voice.say(&frame(piece))?;
            return Ok(true);
        }
        Err(cause) if poll::would_block(&cause) || cause.kind() == io::ErrorKind::Interrupted => {}
        Err(_) => *pipe = None,
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_codes_or_signals() {
        // wait(2): the code in the second byte, else the signal in the first.
        assert_eq!(end_of(ExitStatus::from_raw(3 << 8)), CommandEnd::Code(3));
        assert_eq!(end_of(ExitStatus::from_raw(0)), CommandEnd::Code(0));
        assert_eq!(end_of(ExitStatus::from_raw(9)), CommandEnd::Signal(9));
    }
}
