//! Signals that ask the program to end, turned into something that can be waited for.

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use crate::error::{Error, Result, check};
use crate::poll::Waker;
use crate::{clock, full_screen};

/// A signal that asks the program to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// `SIGINT`: Ctrl-C.
    Interrupt,
    /// `SIGTERM`.
    Terminate,
    /// `SIGHUP`: the terminal is gone.
    Hangup,
}

impl Signal {
    const ALL: [Self; 3] = [Self::Interrupt, Self::Terminate, Self::Hangup];

    /// Name and number as iperf3 prints them (`iperf_got_sigend`), for example `Interrupt(2)`.
    #[must_use]
    pub fn describe(self) -> String {
        let name = match self {
            Self::Interrupt => "Interrupt",
            Self::Terminate => "Terminated",
            Self::Hangup => "Hangup",
        };
        format!("{name}({})", self.number())
    }

    /// Label: the usual sender, and the name.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Interrupt => "Ctrl-C (SIGINT)",
            Self::Terminate => "asked to end (SIGTERM)",
            Self::Hangup => "the terminal is gone (SIGHUP)",
        }
    }

    /// Number in the kernel's headers.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Interrupt => libc::SIGINT,
            Self::Terminate => libc::SIGTERM,
            Self::Hangup => libc::SIGHUP,
        }
    }

    fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|signal| signal.number() == number)
    }
}

/// Time within which a signal of the same kind is the same request: timeout(1) and others signal a process, and then its group.
const REPEAT_TIME: Duration = Duration::from_millis(500);

/// The first signal that came, or 0.
static PENDING: AtomicI32 = AtomicI32::new(0);
/// Time at which the first one of each kind came, in nanoseconds of the monotonic clock, or 0.
static FIRST_AT: [AtomicU64; Signal::ALL.len()] = [const { AtomicU64::new(0) }; Signal::ALL.len()];
/// True when the present phase of a measurement is to end.
static PHASE_END: AtomicBool = AtomicBool::new(false);
/// The one that the handler makes readable.
static WAKER: OnceLock<Waker> = OnceLock::new();

/// Catches `SIGINT`, `SIGTERM` and `SIGHUP` for the whole process.
///
/// Becomes readable for [`crate::poll::wait`] with the first signal, and stays so. A second signal of the same kind, half a
/// second later or more, ends a program that hangs.
#[derive(Clone, Copy, Debug)]
pub struct InterruptSignals {
    waker: &'static Waker,
}

impl InterruptSignals {
    /// Starts or continues catching signals; also ignores `SIGPIPE`, so that writing to a connection that is gone is an
    /// error, not the end. A hang-up that the parent had us ignore (`nohup`) stays ignored.
    pub fn install() -> Result<Self> {
        let waker = lasting_waker(&WAKER)?;
        for signal in Signal::ALL {
            // Shells start background jobs of scripts with SIGINT ignored; one that is sent all the same is intended.
            if signal != Signal::Hangup || !is_ignored(signal.number())? {
                let number = signal.number();
                replace_handler(number, handle, libc::SA_RESTART).map_err(|cause| cannot_catch(number, cause))?;
            }
        }
        ignore_broken_pipes()?;
        Ok(Self { waker })
    }

    /// The signal that came first, if one came.
    #[must_use]
    pub fn pending(&self) -> Option<Signal> {
        Signal::from_number(PENDING.load(Ordering::Acquire))
    }

    /// Acts as if this signal had come: for a key that asks the program to end.
    pub fn request(&self, signal: Signal) {
        let _ = PENDING.compare_exchange(0, signal.number(), Ordering::AcqRel, Ordering::Acquire);
        self.waker.wake();
    }

    /// Asks the running measurement to end its present phase, and to go on with the next one.
    pub fn request_phase_end(&self) {
        PHASE_END.store(true, Ordering::Release);
    }

    /// True once after each [`InterruptSignals::request_phase_end`]. A phase that begins forgets earlier requests.
    #[must_use]
    pub fn take_phase_end(&self) -> bool {
        PHASE_END.swap(false, Ordering::AcqRel)
    }

    /// Forgets the signal that came and catches the next one.
    pub fn rearm(&self) -> Result<()> {
        self.waker.drain();
        PENDING.store(0, Ordering::Release);
        for first in &FIRST_AT {
            first.store(0, Ordering::Release);
        }
        Self::install().map(drop)
    }
}

impl AsFd for InterruptSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// Makes writing to a connection that is gone an error (`EPIPE`) instead of the end of the process.
pub fn ignore_broken_pipes() -> Result<()> {
    let number = libc::SIGPIPE;
    replace_action(number, libc::SIG_IGN, 0).map(drop).map_err(|cause| cannot_catch(number, cause))
}

/// Makes writing beyond the limit of a file's size (`ulimit -f`) an error (`EFBIG`) instead of the end of the process.
pub fn ignore_file_size_limit() -> Result<()> {
    let number = libc::SIGXFSZ;
    replace_action(number, libc::SIG_IGN, 0).map(drop).map_err(|cause| cannot_catch(number, cause))
}

/// Ignores the signals that ask a program to end, for a process that ends by another event.
pub fn ignore_requests_to_end() -> Result<()> {
    for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        replace_action(number, libc::SIG_IGN, 0).map(drop).map_err(|cause| cannot_catch(number, cause))?;
    }
    Ok(())
}

extern "C" fn handle(number: libc::c_int) {
    keep_errno(|| {
        if is_second_request(number) {
            full_screen::restore_terminal();
            // Blocked until the handler returns, the signal has its default effect then.
            let _ = restore_default(number);
            raise(number);
        }
    });
    let _ = PENDING.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
    wake_in_handler(&WAKER);
}

/// Notes that this signal came; true when it is another request to end than the first one of its kind.
fn is_second_request(number: libc::c_int) -> bool {
    let Some(index) = Signal::ALL.iter().position(|signal| signal.number() == number) else { return false };
    let now = clock::monotonic_now().as_nanos().max(1);
    let first = FIRST_AT[index].compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
    first.is_err_and(|first| Duration::from_nanos(now.saturating_sub(first)) >= REPEAT_TIME)
}

/// The waker of a signal handler, created at the first call.
pub(crate) fn lasting_waker(place: &'static OnceLock<Waker>) -> Result<&'static Waker> {
    if let Some(waker) = place.get() {
        return Ok(waker);
    }
    let new = Waker::new()?;
    Ok(place.get_or_init(|| new))
}

/// Makes a waker readable from within a signal handler: write(2) may be called there.
pub(crate) fn wake_in_handler(waker: &OnceLock<Waker>) {
    keep_errno(|| {
        if let Some(waker) = waker.get() {
            waker.wake();
        }
    });
}

/// Performs `action` within a signal handler, which may run between a system call and the reading of its errno.
pub(crate) fn keep_errno(action: impl FnOnce()) {
    // SAFETY: errno is this thread's own integer, and as a cell it may be changed by calls.
    let errno = unsafe { &*libc::__errno_location().cast::<Cell<libc::c_int>>() };
    let before = errno.get();
    action();
    errno.set(before);
}

/// Gives a signal its usual effect again.
pub(crate) fn restore_default(number: libc::c_int) -> io::Result<()> {
    replace_action(number, libc::SIG_DFL, 0).map(drop)
}

/// Sends the calling thread a signal; may be called in a signal handler.
pub(crate) fn raise(number: libc::c_int) {
    // SAFETY: takes a number.
    unsafe { libc::raise(number) };
}

/// A signal handler. It may do only what signal-safety(7) allows.
pub(crate) type SignalHandler = extern "C" fn(libc::c_int);

/// Installs `handler` for this signal; returns the previous action.
pub(crate) fn replace_handler(
    number: libc::c_int,
    handler: SignalHandler,
    flags: libc::c_int,
) -> io::Result<libc::sigaction> {
    replace_action(number, handler as libc::sighandler_t, flags)
}

/// Restores the action that [`replace_handler`] returned.
pub(crate) fn restore_handler(number: libc::c_int, action: &libc::sigaction) {
    // It cannot fail: the action was in effect before.
    let _ = exchange_action(number, Some(action));
}

fn replace_action(number: libc::c_int, handler: libc::sighandler_t, flags: libc::c_int) -> io::Result<libc::sigaction> {
    // SAFETY: sigaction is integers and an optional pointer, for which zero is a value (an empty mask).
    let mut new: libc::sigaction = unsafe { core::mem::zeroed() };
    new.sa_sigaction = handler;
    new.sa_flags = flags;
    exchange_action(number, Some(&new))
}

/// Installs an action, if there is one; returns the one before.
fn exchange_action(number: libc::c_int, new: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: both structures live through the call; the handler of `new` is one of the kernel's own, a `SignalHandler`,
    // or one that was in effect before. Integers and an optional pointer are returned, for which zero is a value.
    unsafe {
        check(libc::sigaction(number, new.map_or(core::ptr::null(), core::ptr::from_ref), old.as_mut_ptr()))?;
        Ok(old.assume_init())
    }
}

fn cannot_catch(number: libc::c_int, cause: io::Error) -> Error {
    Error::system(format!("catching signal {number}"), cause)
}

fn is_ignored(number: libc::c_int) -> Result<bool> {
    let action = exchange_action(number, None)
        .map_err(|cause| Error::system(format!("asking how signal {number} is handled"), cause))?;
    Ok(action.sa_sigaction == libc::SIG_IGN)
}

/// Signals belong to the whole process: tests that use them take turns.
#[cfg(test)]
pub(crate) static SIGNAL_TESTS: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::sync::PoisonError;

    use super::*;
    use crate::poll::{PollInterest, wait_for};

    fn raise(signal: Signal) {
        super::raise(signal.number());
    }

    #[test]
    fn names_are_iperf3s() {
        let names: Vec<_> = Signal::ALL.iter().map(|signal| signal.describe()).collect();
        assert_eq!(names, ["Interrupt(2)", "Terminated(15)", "Hangup(1)"]);
    }

    #[test]
    fn a_key_acts_as_a_signal_and_the_end_of_a_phase_is_taken_once() {
        let _alone = SIGNAL_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let interrupts = InterruptSignals::install().expect("signals can be caught");
        assert!(!interrupts.take_phase_end());
        interrupts.request_phase_end();
        assert_eq!((interrupts.take_phase_end(), interrupts.take_phase_end()), (true, false));
        assert_eq!(interrupts.pending(), None, "the end of a phase is not that of the program");
        interrupts.request(Signal::Interrupt);
        interrupts.request(Signal::Terminate);
        assert_eq!(interrupts.pending(), Some(Signal::Interrupt));
        assert!(wait_for(&interrupts, PollInterest::READ, Some(Duration::ZERO)).expect("poll"));
        interrupts.rearm().expect("signals can be caught");
        assert_eq!(interrupts.pending(), None);
    }

    #[test]
    fn the_first_signal_is_kept_and_can_be_waited_for() {
        let _alone = SIGNAL_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let interrupts = InterruptSignals::install().expect("signals can be caught");
        assert_eq!(interrupts.pending(), None);
        assert!(!wait_for(&interrupts, PollInterest::READ, Some(Duration::ZERO)).expect("poll"));

        raise(Signal::Terminate);
        raise(Signal::Interrupt);
        assert_eq!(interrupts.pending(), Some(Signal::Terminate));
        assert!(wait_for(&interrupts, PollInterest::READ, Some(Duration::ZERO)).expect("poll"));
        assert!(!is_ignored(libc::SIGTERM).expect("readable"));
        let now = clock::monotonic_now().as_nanos();
        let is_second_after = |nanoseconds: u64| {
            FIRST_AT[1].store(now.saturating_sub(nanoseconds), Ordering::Release);
            is_second_request(libc::SIGTERM)
        };
        // The clock goes on.
        assert!(is_second_after(500_000_000), "half a second later, the program is to end");
        assert!(!is_second_request(libc::SIGUSR1));
        FIRST_AT[1].store(u64::MAX, Ordering::Release);
        assert!(!is_second_request(libc::SIGTERM), "at the same time, it is the same request");

        interrupts.rearm().expect("signals can be caught");
        assert_eq!(interrupts.pending(), None);
        assert!(!wait_for(&interrupts, PollInterest::READ, Some(Duration::ZERO)).expect("poll"));
        raise(Signal::Hangup);
        assert_eq!(interrupts.pending(), Some(Signal::Hangup));
        interrupts.rearm().expect("signals can be caught");
        assert!(is_ignored(libc::SIGPIPE).expect("readable"));
    }
}
