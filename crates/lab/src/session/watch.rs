//! A session from its launch to its end: passes on what the guest says, and steps in when it is silent or when somebody
//! wants it to end.

use core::time::Duration;
use std::fs;

use linerate_sys::clock::monotonic_now;
use linerate_sys::poll::{self, Interest, PollItem};
use linerate_sys::signals::{Interrupts, Signal};
use linerate_units::{MonotonicTime, PacketCount};

use crate::job::{self, End, Frame, Message};
use crate::session::host_view::running_programs;
use crate::session::kernel_log::{KernelLog, diagnose};
use crate::session::launch::{Guest, launch};
use crate::session::orders::{Report, how_ended};
use crate::session::reader::{Piece, Reader};
use crate::session::watchdog::{Verdict, Watchdog};
use crate::session::{Captured, Containment, Culprit, Outcome, Request, SessionError, SessionEvent};

/// How long a command may take to end after it was interrupted.
const END_WITHIN: Duration = Duration::from_secs(5);

/// How often a guest that was asked for something is nudged.
const NUDGE_EVERY: Duration = Duration::from_millis(100);

/// How long the guest may take to halt after the command's end: it writes files out.
const HALT_WITHIN: Duration = Duration::from_secs(10);

/// How long what is in the pipes may take to arrive after the supervisor's end.
const ARRIVE_WITHIN: Duration = Duration::from_secs(1);

type Observer<'a> = dyn FnMut(SessionEvent<'_>) + 'a;

/// Runs a guest to its end.
pub(super) fn run(
    request: &Request,
    containment: Containment,
    stop: Option<&Interrupts>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, SessionError> {
    let start = monotonic_now();
    let (guest, streams) = launch(request, containment)?;
    let reader = Reader::start(streams)?;
    let mut session = Session {
        guest,
        start,
        watchdog: Watchdog::new(request.stall_limit, start),
        log: KernelLog::default(),
        told: Told::default(),
        interrupted: None,
        deadline: None,
        nudge_at: None,
    };
    let followed = session.follow(&reader, stop, observer);
    let Session { guest, log, told, interrupted, .. } = session;
    // Nothing is left of the guest when the session returns.
    drop(guest);
    followed?;
    told.conclude(start, interrupted, &log)
}

/// What is known of a guest.
#[derive(Debug, Default)]
struct Told {
    /// When the command started: in the guest's time since its boot, and here.
    ready: Option<(Duration, MonotonicTime)>,
    /// The guest's time when it was last heard.
    last_heard: Option<Duration>,
    end: Option<(End, MonotonicTime)>,
    captured: Option<(u64, u64)>,
    error: Option<SessionError>,
    /// The exit code of the guest's process.
    code: Option<i32>,
    killed: bool,
}

struct Session {
    guest: Guest,
    start: MonotonicTime,
    watchdog: Watchdog,
    log: KernelLog,
    told: Told,
    interrupted: Option<Signal>,
    /// When to stop waiting for what should come next.
    deadline: Option<MonotonicTime>,
    /// When to nudge a guest that has not yet done what it was asked for.
    nudge_at: Option<MonotonicTime>,
}

impl Session {
    /// Until everybody who could say something is gone, or there is reason not to wait for that.
    fn follow(
        &mut self,
        reader: &Reader,
        stop: Option<&Interrupts>,
        observer: &mut Observer<'_>,
    ) -> Result<(), SessionError> {
        loop {
            for piece in reader.take() {
                if self.take(piece, observer)? {
                    return Ok(());
                }
            }
            if self.heed(stop)? {
                return Ok(());
            }
            let now = monotonic_now();
            if self.deadline.is_some_and(|deadline| now >= deadline) {
                self.told.killed = true;
                return Ok(());
            }
            let pause = match self.watchdog.look(now) {
                Verdict::Ask => {
                    self.ask(job::Request::WhoRuns);
                    continue;
                }
                Verdict::GiveUp(silence) => return Err(self.stalled(silence, self.seen_from_here())),
                Verdict::Wait(time) => time,
            };
            self.nudge(now);
            let next = [self.deadline, self.nudge_at].into_iter().flatten().map(|at| at - now);
            let pause = next.fold(pause, Duration::min);
            let mut items = vec![PollItem::new(reader.waker(), Interest::READ)];
            items.extend(stop.map(|stop| PollItem::new(stop, Interest::READ)));
            poll::wait(&mut items, Some(pause))?;
        }
    }

    fn ask(&mut self, request: job::Request) {
        self.guest.send(request);
        self.nudge_at = Some(monotonic_now() + NUDGE_EVERY);
    }

    /// Nudges the guest if it is time to.
    fn nudge(&mut self, now: MonotonicTime) {
        if self.nudge_at.is_some_and(|at| now >= at) {
            self.guest.nudge();
            self.nudge_at = Some(now + NUDGE_EVERY);
        }
    }

    /// Looks for a signal: the first interrupts the command, the second ends everything. Whether that is so.
    fn heed(&mut self, stop: Option<&Interrupts>) -> Result<bool, SessionError> {
        let Some((stop, signal)) = stop.and_then(|stop| Some((stop, stop.pending()?))) else { return Ok(false) };
        if self.interrupted.is_some() {
            self.told.killed = true;
            return Ok(true);
        }
        self.interrupted = Some(signal);
        self.ask(job::Request::Interrupt);
        self.deadline.get_or_insert(monotonic_now() + END_WITHIN);
        stop.rearm()?;
        Ok(false)
    }

    /// Whether it was the last piece.
    fn take(&mut self, piece: Piece, observer: &mut Observer<'_>) -> Result<bool, SessionError> {
        match piece {
            Piece::Frame(frame) => self.take_frame(frame, observer)?,
            Piece::Log(bytes) => self.log.add(&bytes, |line| observer(SessionEvent::KernelLine(line))),
            Piece::Report(report) => self.take_report(report)?,
            Piece::Damaged(problem) => return Err(SessionError::Damaged(problem)),
            Piece::SupervisorGone => self.deadline = Some(monotonic_now() + ARRIVE_WITHIN),
            Piece::End => return Ok(true),
        }
        Ok(false)
    }

    fn take_report(&mut self, report: Report) -> Result<(), SessionError> {
        match report {
            Report::Started { process } => self.guest.started(process),
            Report::Failed { error, namespace: true } => return Err(SessionError::NotContained { error }),
            Report::Failed { error, namespace: false } => return Err(SessionError::Supervisor { error }),
            Report::Ended { code } => self.told.code = Some(code),
        }
        Ok(())
    }

    fn take_frame(&mut self, frame: Frame, observer: &mut Observer<'_>) -> Result<(), SessionError> {
        let now = monotonic_now();
        match frame {
            Frame::Message(Message::Running { processes }) => {
                let culprits =
                    processes.into_iter().map(|(process, command)| Culprit { process: Some(process), command });
                return match self.watchdog.hear_answer(now) {
                    Some(silence) => Err(self.stalled(silence, culprits.collect())),
                    None => Ok(()),
                };
            }
            Frame::Output(bytes) => observer(SessionEvent::Output(&bytes)),
            Frame::Error(bytes) => observer(SessionEvent::Error(&bytes)),
            Frame::Message(message) => self.take_message(message, now, observer),
        }
        self.watchdog.hear(now);
        if self.interrupted.is_none() || self.told.end.is_some() {
            self.nudge_at = None;
        }
        Ok(())
    }

    fn take_message(&mut self, message: Message, now: MonotonicTime, observer: &mut Observer<'_>) {
        let wall_time = now - self.start;
        match message {
            Message::Ready { guest_nanoseconds } => {
                self.told.hear(guest_nanoseconds);
                self.told.ready = self.told.last_heard.map(|time| (time, now));
                self.guest.forget_files();
                observer(SessionEvent::Ready { wall_time });
            }
            Message::Alive { guest_nanoseconds } => {
                self.told.hear(guest_nanoseconds);
                if let Some(guest_time) = self.told.guest_time() {
                    observer(SessionEvent::Progress { guest_time, wall_time });
                }
            }
            Message::Ended { end, guest_nanoseconds, captured } => {
                self.told.hear(guest_nanoseconds);
                self.told.end = Some((end, now));
                self.told.captured = captured;
                self.deadline = Some(now + HALT_WITHIN);
            }
            Message::Failed { error, advice } => {
                self.told.error = Some(SessionError::Guest { error, advice });
                self.deadline = Some(now + HALT_WITHIN);
            }
            Message::Note { text } => observer(SessionEvent::Note(&text)),
            Message::Running { .. } => {}
        }
    }

    fn seen_from_here(&self) -> Vec<Culprit> {
        let programs = running_programs(&self.guest.processes());
        programs.into_iter().map(|command| Culprit { process: None, command }).collect()
    }

    fn stalled(&self, silence: Duration, culprits: Vec<Culprit>) -> SessionError {
        SessionError::Stalled { silence, culprits, last_heard: self.told.last_heard, log: self.log.text() }
    }
}

impl Told {
    fn hear(&mut self, guest_nanoseconds: u64) {
        self.last_heard = Some(Duration::from_nanos(guest_nanoseconds));
    }

    /// The command's time in the guest so far.
    fn guest_time(&self) -> Option<Duration> {
        Some(self.last_heard?.saturating_sub(self.ready?.0))
    }

    /// What came out.
    fn conclude(
        self,
        start: MonotonicTime,
        interrupted: Option<Signal>,
        log: &KernelLog,
    ) -> Result<Outcome, SessionError> {
        let guest_time = self.guest_time().unwrap_or_default();
        if let Some(error) = self.error {
            return Err(error);
        }
        let killed_on_request = self.killed && interrupted.is_some();
        if self.end.is_none() && !killed_on_request {
            let log = log.text();
            let trouble = diagnose(&log, self.code, yama_scope());
            return Err(SessionError::Ended { trouble, how: how_ended(self.code), log });
        }
        let ended = self.end.map_or_else(monotonic_now, |(_, at)| at);
        Ok(Outcome {
            end: self.end.map(|(end, _)| end),
            interrupted,
            guest_time,
            wall_time: self.ready.map_or(Duration::ZERO, |(_, at)| ended - at),
            boot_time: self.ready.map(|(_, at)| at - start),
            captured: self.captured.map(|(packets, missed)| Captured {
                packets: PacketCount::new(packets),
                missed: PacketCount::new(missed),
            }),
        })
    }
}

/// What the host lets processes trace; `None` where it has no such restriction.
fn yama_scope() -> Option<u8> {
    fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?.trim().parse().ok()
}
