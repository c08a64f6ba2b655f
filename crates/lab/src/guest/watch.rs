//! The command: started, relayed, watched to its end.

use core::time::Duration;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use linerate_sys::capture::{self, Capture};
use linerate_sys::launch::{self, Ask, Launch, Launched, Outputs};
use linerate_sys::poll::{self, Interest, PollItem};
use linerate_sys::{clock, machine};
use linerate_units::MonotonicTime;

use super::failure::Failure;
use super::network::{Changes, Spaces};
use super::processes;
use super::services::Services;
use super::voice::Voice;
use crate::job::{End, Frame, Job, Message, Request};

/// A sign of life comes each time that this much of the guest's time has passed.
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// As much is read from a pipe at once.
const PIECE: usize = 64 << 10;

/// A pipe cannot hold more than this unless its owner has privileges (`fs.pipe-max-size`).
const LARGEST_PIPE: usize = 1 << 20;

/// No command starts before a kernel of the guest's own has been up for this long. iputils' ping takes a clock that has
/// not reached its first second for one that was never read, and sends without its interval; and by then the devices
/// have found out that nobody else has their IPv6 addresses. In virtual time the wait costs nothing.
const UPTIME: MonotonicTime = MonotonicTime::from_nanos(3_000_000_000);

/// Runs the job's command, and ends everything with it.
pub(super) fn run<'a>(
    job: &'a Job,
    spaces: &'a Spaces,
    services: Services<'a>,
    voice: &mut Voice,
) -> Result<(), Failure> {
    if job.own_kernel {
        clock::sleep_until(UPTIME);
    }
    let capture = job.capture.as_ref();
    let capture = capture.map(|wanted| {
        let space = spaces.get(&wanted.namespace)?;
        capture::start(space, &wanted.device, &wanted.file).map_err(Failure::from)
    });
    let capture = capture.transpose()?;
    let start = clock::monotonic_now();
    voice.say(&Frame::Message(Message::Ready { guest_nanoseconds: voice.guest_nanoseconds(start) }))?;
    let command = start_command(job, spaces)?;
    let mut watch = Watch {
        start,
        next_sign: start + ALIVE_EVERY,
        command,
        services,
        changes: Changes::of(&job.plan),
        spaces,
        voice,
        own_kernel: job.own_kernel,
        interrupted: false,
    };
    let status = watch.until_the_end()?;
    watch.drain()?;
    machine::kill_all_others()?;
    let captured = finish_capture(capture, voice)?;
    if job.own_kernel {
        machine::write_everything_to_disks();
    }
    let guest_nanoseconds = voice.guest_nanoseconds(clock::monotonic_now());
    voice.say(&Frame::Message(Message::Ended { end: end_of(status), guest_nanoseconds, captured }))
}

fn start_command(job: &Job, spaces: &Spaces) -> Result<Launched, Failure> {
    let command = &job.command;
    let Some((program, arguments)) = command.arguments.split_first() else {
        return Err(Failure::new("running a command: none was given"));
    };
    Ok(launch::start(&Launch {
        program,
        arguments,
        directory: Some(&command.directory),
        environment: Some(&command.environment),
        namespace: Some(spaces.get(&command.namespace)?),
        outputs: Outputs::Pipes,
        // Where computing takes no time, a program that only computes would never let anything else run.
        gives_way: job.own_kernel,
    })?)
}

/// A capture that failed does not undo what the command did: that is said beside its end.
fn finish_capture(capture: Option<Capture>, voice: &mut Voice) -> Result<Option<(u64, u64)>, Failure> {
    match capture.map(Capture::finish) {
        None => Ok(None),
        Some(Ok(captured)) => Ok(Some((captured.packets, captured.missed))),
        Some(Err(error)) => voice.note(format!("the capture is not complete: {error}")).map(|()| None),
    }
}

fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Code(code),
        (None, Some(signal)) => End::Signal(signal),
        // A process that was waited for has ended in one of these ways.
        (None, None) => End::Code(status.into_raw()),
    }
}

struct Watch<'a> {
    start: MonotonicTime,
    next_sign: MonotonicTime,
    command: Launched,
    services: Services<'a>,
    changes: Changes<'a>,
    spaces: &'a Spaces,
    voice: &'a mut Voice,
    own_kernel: bool,
    interrupted: bool,
}

/// What there is to do after a wait.
#[derive(Clone, Copy, Default)]
struct Ready {
    output: bool,
    error: bool,
    requests: bool,
}

impl Watch<'_> {
    fn until_the_end(&mut self) -> Result<ExitStatus, Failure> {
        loop {
            self.services.start_due(clock::monotonic_now() - self.start, self.spaces)?;
            self.changes.make_due(clock::monotonic_now() - self.start, self.spaces)?;
            let ready = self.wait()?;
            if ready.output {
                relay(&mut self.command.stdout, Frame::Output, self.voice)?;
            }
            if ready.error {
                relay(&mut self.command.stderr, Frame::Error, self.voice)?;
            }
            if ready.requests {
                self.serve_requests()?;
            }
            self.give_sign()?;
            if let Some(status) = self.reap()? {
                return Ok(status);
            }
        }
    }

    fn wait(&self) -> Result<Ready, Failure> {
        let next = [self.services.next_start(), self.changes.next()].into_iter().flatten().min();
        let until = next.map_or(self.next_sign, |next| (self.start + next).min(self.next_sign));
        let requests = self.voice.requests();
        let mut items = vec![PollItem::new(&self.command, Interest::READ)];
        // Pipes that have ended leave no item behind: each that is there takes the next place.
        items.extend(self.command.stdout.as_ref().map(|pipe| PollItem::new(pipe, Interest::READ)));
        items.extend(self.command.stderr.as_ref().map(|pipe| PollItem::new(pipe, Interest::READ)));
        items.extend(requests.as_ref().map(|requests| PollItem::new(requests, Interest::READ)));
        poll::wait(&mut items, Some(until - clock::monotonic_now()))?;
        let mut places = items[1..].iter();
        let mut ready = |is_there: bool| is_there && places.next().is_some_and(PollItem::is_readable);
        Ok(Ready {
            output: ready(self.command.stdout.is_some()),
            error: ready(self.command.stderr.is_some()),
            requests: ready(requests.is_some()),
        })
    }

    fn serve_requests(&mut self) -> Result<(), Failure> {
        for request in self.voice.take_requests() {
            match request {
                Request::Interrupt if self.interrupted => self.command.ask(Ask::Kill)?,
                Request::Interrupt => {
                    self.interrupted = true;
                    self.command.ask(Ask::Interrupt)?;
                }
                Request::WhoRuns => {
                    self.voice.say(&Frame::Message(Message::Running { processes: processes::running() }))?;
                }
            }
        }
        Ok(())
    }

    fn give_sign(&mut self) -> Result<(), Failure> {
        let now = clock::monotonic_now();
        if now < self.next_sign {
            return Ok(());
        }
        while self.next_sign <= now {
            self.next_sign = self.next_sign + ALIVE_EVERY;
        }
        if self.own_kernel {
            // New ones are made now and then.
            machine::workers_run_before_others();
        }
        self.voice.say(&Frame::Message(Message::Alive { guest_nanoseconds: self.voice.guest_nanoseconds(now) }))
    }

    /// Takes leave of all children that have ended, also those of others; how the command ended, if it has.
    fn reap(&mut self) -> Result<Option<ExitStatus>, Failure> {
        let mut ended = None;
        while let Some((process, status)) = machine::reap() {
            if process == self.command.process() {
                ended = Some(status);
            } else if let Some(text) = self.services.account_of(process, status) {
                self.voice.note(text)?;
            }
        }
        Ok(ended)
    }

    /// Relays what the command left in its pipes. Its children may keep them open: the end is not waited for.
    fn drain(&mut self) -> Result<(), Failure> {
        for _ in 0..LARGEST_PIPE / PIECE {
            let output = relay(&mut self.command.stdout, Frame::Output, self.voice)?;
            let error = relay(&mut self.command.stderr, Frame::Error, self.voice)?;
            if !output && !error {
                break;
            }
        }
        Ok(())
    }
}

/// Passes on what is in the pipe, at most a piece; whether there was anything. At its end the pipe is closed.
fn relay(pipe: &mut Option<File>, frame: fn(Vec<u8>) -> Frame, voice: &mut Voice) -> Result<bool, Failure> {
    let Some(open) = pipe else { return Ok(false) };
    let mut piece = vec![0; PIECE];
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
        assert_eq!(end_of(ExitStatus::from_raw(3 << 8)), End::Code(3));
        assert_eq!(end_of(ExitStatus::from_raw(0)), End::Code(0));
        assert_eq!(end_of(ExitStatus::from_raw(9)), End::Signal(9));
    }
}
