//! A session from its launch to its end: relays the guest's messages, and intervenes when it is silent or when the
//! session is interrupted.

use core::time::Duration;
use std::fs;

use linerate_sys::clock::monotonic_now;
use linerate_sys::poll::{self, PollInterest, PollItem};
use linerate_sys::signals::{InterruptSignals, Signal};
use linerate_units::{MonotonicTime, PacketCount};

use crate::job::{self, CommandEnd, GuestFrame, GuestMessage};
use crate::session::host_view::running_programs;
use crate::session::kernel_log::{KernelLog, diagnose};
use crate::session::launch::{RunningGuest, launch};
use crate::session::orders::{SupervisorReport, exit_description};
use crate::session::reader::{InputPiece, InputReader};
use crate::session::watchdog::{SilenceWatchdog, WatchdogAction};
use crate::session::{
    CapturedPackets, ProcessContainment, SessionError, SessionEvent, SessionOutcome, SessionRequest, StallingProcess,
};

/// Maximum time for a command to end after it was interrupted.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval at which a guest with a pending request is nudged.
const NUDGE_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum time for the guest to halt after the command's end: it flushes files.
const HALT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time for the pipes' contents to arrive after the supervisor's end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

type EventObserver<'a> = dyn FnMut(SessionEvent<'_>) + 'a;

/// Runs a guest to its end.
pub(super) fn run(
    request: &SessionRequest,
    containment: ProcessContainment,
    stop: Option<&InterruptSignals>,
    observer: &mut EventObserver<'_>,
) -> Result<SessionOutcome, SessionError> {
    let start = monotonic_now();
    let (guest, streams) = launch(request, containment)?;
    let reader = InputReader::start(streams)?;
    let mut session = GuestSession {
        guest,
        start,
        watchdog: SilenceWatchdog::new(request.stall_limit, start),
        log: KernelLog::default(),
        told: ReportedState::default(),
        interrupted: None,
        deadline: None,
        nudge_at: None,
    };
    let followed = session.follow(&reader, stop, observer);
    let GuestSession { guest, log, told, interrupted, .. } = session;
    // Nothing is left of the guest when the session returns.
    drop(guest);
    followed?;
    told.into_result(start, interrupted, &log)
}

/// Reported state of a guest.
#[derive(Debug, Default)]
struct ReportedState {
    /// Start of the command: in the guest's time since its boot, and here.
    ready: Option<(Duration, MonotonicTime)>,
    /// The guest's time of its last message.
    last_heard: Option<Duration>,
    end: Option<(CommandEnd, MonotonicTime)>,
    captured: Option<(u64, u64)>,
    error: Option<SessionError>,
    /// The exit code of the guest's process.
    code: Option<i32>,
    killed: bool,
}

struct GuestSession {
    guest: RunningGuest,
    start: MonotonicTime,
    watchdog: SilenceWatchdog,
    log: KernelLog,
    told: ReportedState,
    interrupted: Option<Signal>,
    /// Time to stop waiting for the next expected event.
    deadline: Option<MonotonicTime>,
    /// Time to nudge a guest that has not yet done what it was asked for.
    nudge_at: Option<MonotonicTime>,
}

impl GuestSession {
    /// Runs until all sources are gone, or there is reason not to wait for that.
    fn follow(
        &mut self,
        reader: &InputReader,
        stop: Option<&InterruptSignals>,
        observer: &mut EventObserver<'_>,
    ) -> Result<(), SessionError> {
        loop {
            for piece in reader.drain() {
                if self.take(piece, observer)? {
                    return Ok(());
                }
            }
            if self.check_interrupts(stop)? {
                return Ok(());
            }
            let now = monotonic_now();
            if self.deadline.is_some_and(|deadline| now >= deadline) {
                self.told.killed = true;
                return Ok(());
            }
            let pause = match self.watchdog.next_action(now) {
                WatchdogAction::Ask => {
                    self.ask(job::GuestRequest::WhoRuns);
                    continue;
                }
                WatchdogAction::GiveUp(silence) => return Err(self.stalled(silence, self.seen_from_here())),
                WatchdogAction::Wait(time) => time,
            };
            self.nudge(now);
            let next = [self.deadline, self.nudge_at].into_iter().flatten().map(|at| at - now);
            let pause = next.fold(pause, Duration::min);
            let mut items = vec![PollItem::new(reader.waker(), PollInterest::READ)];
            items.extend(stop.map(|stop| PollItem::new(stop, PollInterest::READ)));
            poll::wait(&mut items, Some(pause))?;
        }
    }

    fn ask(&mut self, request: job::GuestRequest) {
        self.guest.send(request);
        self.nudge_at = Some(monotonic_now() + NUDGE_INTERVAL);
    }

    /// Nudges the guest when it is due.
    fn nudge(&mut self, now: MonotonicTime) {
        if self.nudge_at.is_some_and(|at| now >= at) {
            self.guest.nudge();
            self.nudge_at = Some(now + NUDGE_INTERVAL);
        }
    }

    /// Checks for a signal: the first interrupts the command, the second ends everything, and so does the first of a guest that
    /// still boots, which has no command to interrupt. Returns true where all ends.
    fn check_interrupts(&mut self, stop: Option<&InterruptSignals>) -> Result<bool, SessionError> {
        let Some((stop, signal)) = stop.and_then(|stop| Some((stop, stop.pending()?))) else { return Ok(false) };
        if self.interrupted.is_some() || self.told.ready.is_none() {
            self.interrupted.get_or_insert(signal);
            self.told.killed = true;
            return Ok(true);
        }
        self.interrupted = Some(signal);
        self.ask(job::GuestRequest::Interrupt);
        self.deadline.get_or_insert(monotonic_now() + INTERRUPT_TIMEOUT);
        stop.rearm()?;
        Ok(false)
    }

    /// Returns true for the last piece.
    fn take(&mut self, piece: InputPiece, observer: &mut EventObserver<'_>) -> Result<bool, SessionError> {
        match piece {
            InputPiece::Frame(frame) => self.take_frame(frame, observer)?,
            InputPiece::Log(bytes) => self.log.add(&bytes, |line| observer(SessionEvent::KernelLine(line))),
            InputPiece::Report(report) => self.take_report(report)?,
            InputPiece::Damaged(problem) => return Err(SessionError::Damaged(problem)),
            InputPiece::SupervisorGone => self.deadline = Some(monotonic_now() + DRAIN_TIMEOUT),
            InputPiece::End => return Ok(true),
        }
        Ok(false)
    }

    fn take_report(&mut self, report: SupervisorReport) -> Result<(), SessionError> {
        match report {
            SupervisorReport::Started { process } => self.guest.started(process),
            SupervisorReport::Failed { error, namespace: true } => return Err(SessionError::NotContained { error }),
            SupervisorReport::Failed { error, namespace: false } => return Err(SessionError::Supervisor { error }),
            SupervisorReport::Ended { code } => self.told.code = Some(code),
        }
        Ok(())
    }

    fn take_frame(&mut self, frame: GuestFrame, observer: &mut EventObserver<'_>) -> Result<(), SessionError> {
        let now = monotonic_now();
        match frame {
            GuestFrame::Message(GuestMessage::Running { processes }) => {
                let culprits =
                    processes.into_iter().map(|(process, command)| StallingProcess { process: Some(process), command });
                return match self.watchdog.record_answer(now) {
                    Some(silence) => Err(self.stalled(silence, culprits.collect())),
                    None => Ok(()),
                };
            }
            GuestFrame::Output(bytes) => observer(SessionEvent::Output(&bytes)),
            GuestFrame::Error(bytes) => observer(SessionEvent::Error(&bytes)),
            GuestFrame::Message(message) => self.take_message(message, now, observer),
        }
        self.watchdog.record_message(now);
        if self.interrupted.is_none() || self.told.end.is_some() {
            self.nudge_at = None;
        }
        Ok(())
    }

    fn take_message(&mut self, message: GuestMessage, now: MonotonicTime, observer: &mut EventObserver<'_>) {
        let wall_time = now - self.start;
        match message {
            GuestMessage::Ready { guest_nanoseconds } => {
                self.told.record_time(guest_nanoseconds);
                self.told.ready = self.told.last_heard.map(|time| (time, now));
                self.guest.forget_files();
                observer(SessionEvent::Ready { wall_time });
            }
            GuestMessage::Alive { guest_nanoseconds } => {
                self.told.record_time(guest_nanoseconds);
                if let Some(guest_time) = self.told.guest_time() {
                    observer(SessionEvent::Progress { guest_time, wall_time });
                }
            }
            GuestMessage::Ended { end, guest_nanoseconds, captured } => {
                self.told.record_time(guest_nanoseconds);
                self.told.end = Some((end, now));
                self.told.captured = captured;
                self.deadline = Some(now + HALT_TIMEOUT);
            }
            GuestMessage::Failed { error, advice } => {
                self.told.error = Some(SessionError::Guest { error, advice });
                self.deadline = Some(now + HALT_TIMEOUT);
            }
            GuestMessage::Note { text } => observer(SessionEvent::Note(&text)),
            GuestMessage::Running { .. } => {}
        }
    }

    fn seen_from_here(&self) -> Vec<StallingProcess> {
        let programs = running_programs(&self.guest.processes());
        programs.into_iter().map(|command| StallingProcess { process: None, command }).collect()
    }

    fn stalled(&self, silence: Duration, culprits: Vec<StallingProcess>) -> SessionError {
        SessionError::Stalled { silence, culprits, last_heard: self.told.last_heard, log: self.log.text() }
    }
}

impl ReportedState {
    fn record_time(&mut self, guest_nanoseconds: u64) {
        self.last_heard = Some(Duration::from_nanos(guest_nanoseconds));
    }

    /// The command's time in the guest so far.
    fn guest_time(&self) -> Option<Duration> {
        Some(self.last_heard?.saturating_sub(self.ready?.0))
    }

    /// Result of the session.
    fn into_result(
        self,
        start: MonotonicTime,
        interrupted: Option<Signal>,
        log: &KernelLog,
    ) -> Result<SessionOutcome, SessionError> {
        let guest_time = self.guest_time().unwrap_or_default();
        if let Some(error) = self.error {
            return Err(error);
        }
        let killed_on_request = self.killed && interrupted.is_some();
        if self.end.is_none() && !killed_on_request {
            let log = log.text();
            let trouble = diagnose(&log, self.code, yama_scope());
            return Err(SessionError::Ended { trouble, how: exit_description(self.code), log });
        }
        let ended = self.end.map_or_else(monotonic_now, |(_, at)| at);
        Ok(SessionOutcome {
            end: self.end.map(|(end, _)| end),
            interrupted,
            guest_time,
            wall_time: self.ready.map_or(Duration::ZERO, |(_, at)| ended - at),
            boot_time: self.ready.map(|(_, at)| at - start),
            captured: self.captured.map(|(packets, missed)| CapturedPackets {
                packets: PacketCount::new(packets),
                missed: PacketCount::new(missed),
            }),
        })
    }
}

/// The host's restriction of tracing (`kernel.yama.ptrace_scope`); `None` where it has none.
fn yama_scope() -> Option<u8> {
    fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?.trim().parse().ok()
}
