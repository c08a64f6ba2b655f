//! Signals that ask the program to end, turned into something that can be waited for.

use core::sync::atomic::{AtomicI32, Ordering};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use crate::error::{Error, Result, check};
use crate::poll::Waker;

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

    /// Its name and number as iperf3 prints them (`iperf_got_sigend`), for example `Interrupt(2)`.
    #[must_use]
    pub fn describe(self) -> String {
        let name = match self {
            Self::Interrupt => "Interrupt",
            Self::Terminate => "Terminated",
            Self::Hangup => "Hangup",
        };
        format!("{name}({})", self.number())
    }

    /// In words: who usually sends it, and its name.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Interrupt => "Ctrl-C (SIGINT)",
            Self::Terminate => "asked to end (SIGTERM)",
            Self::Hangup => "the terminal is gone (SIGHUP)",
        }
    }

    /// Its number in the kernel's headers.
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

/// The first signal that came, or 0.
static PENDING: AtomicI32 = AtomicI32::new(0);
/// The descriptor that the handler makes readable.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
static WAKER: OnceLock<Waker> = OnceLock::new();

/// Catches `SIGINT`, `SIGTERM` and `SIGHUP` for the whole process.
///
/// Becomes readable for [`crate::poll::wait`] with the first signal, and stays so. The handler takes itself away: a
/// second signal of the same kind ends a program that hangs.
#[derive(Clone, Copy, Debug)]
pub struct Interrupts {
    waker: &'static Waker,
}

impl Interrupts {
    /// Begins to catch signals, or goes on with it; also ignores `SIGPIPE`, so that writing to a connection that is gone
    /// is an error, not the end. A hang-up that the parent had us ignore (`nohup`) stays ignored.
    pub fn install() -> Result<Self> {
        let waker = if let Some(waker) = WAKER.get() {
            waker
        } else {
            let new = Waker::new()?;
            WAKER.get_or_init(|| new)
        };
        DESCRIPTOR.store(waker.as_fd().as_raw_fd(), Ordering::Release);
        for signal in Signal::ALL {
            // Shells start background jobs of scripts with SIGINT ignored; whoever sends one all the same means it.
            if signal != Signal::Hangup || !is_ignored(signal.number())? {
                let flags = libc::SA_RESTART | libc::SA_RESETHAND;
                let number = signal.number();
                replace_handler(number, handle, flags).map_err(|cause| cannot_catch(number, cause))?;
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

    /// Forgets the signal that came and catches the next one.
    pub fn rearm(&self) -> Result<()> {
        self.waker.drain();
        PENDING.store(0, Ordering::Release);
        Self::install().map(drop)
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// Writing to a connection that is gone becomes an error (`EPIPE`) instead of the end of the process.
pub fn ignore_broken_pipes() -> Result<()> {
    let number = libc::SIGPIPE;
    replace_action(number, libc::SIG_IGN, 0).map(drop).map_err(|cause| cannot_catch(number, cause))
}

extern "C" fn handle(number: libc::c_int) {
    let _ = PENDING.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
    wake_in_handler(&DESCRIPTOR);
}

/// Makes the eventfd whose number is in `descriptor` readable, from within a signal handler.
pub(crate) fn wake_in_handler(descriptor: &AtomicI32) {
    // SAFETY: errno is this thread's own. The handler may run between a system call and the reading of its errno, so it
    // is put back below.
    let errno = unsafe { *libc::__errno_location() };
    let one = 1_u64.to_ne_bytes();
    // SAFETY: write(2) may be called in a signal handler; the pointer and length describe `one`; the descriptor is never
    // closed, as its owner is a static.
    unsafe { libc::write(descriptor.load(Ordering::Acquire), one.as_ptr().cast(), one.len()) };
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// What a signal handler looks like. It may do only what signal-safety(7) allows.
pub(crate) type Handler = extern "C" fn(libc::c_int);

/// Has `handler` called for this signal; returns what was done before.
pub(crate) fn replace_handler(
    number: libc::c_int,
    handler: Handler,
    flags: libc::c_int,
) -> io::Result<libc::sigaction> {
    replace_action(number, handler as libc::sighandler_t, flags)
}

/// Puts back what [`replace_handler`] returned.
pub(crate) fn restore_handler(number: libc::c_int, action: &libc::sigaction) {
    // SAFETY: `action` is what the kernel itself said was in force.
    unsafe { libc::sigaction(number, core::ptr::from_ref(action), core::ptr::null_mut()) };
}

fn replace_action(number: libc::c_int, handler: libc::sighandler_t, flags: libc::c_int) -> io::Result<libc::sigaction> {
    // SAFETY: sigaction is integers and an optional pointer, for which zero is a value (an empty mask).
    let (mut new, mut old): (libc::sigaction, libc::sigaction) = unsafe { core::mem::zeroed() };
    new.sa_sigaction = handler;
    new.sa_flags = flags;
    // SAFETY: both structures live through the call; the handler is one of the kernel's own or a `Handler`.
    check(unsafe { libc::sigaction(number, &raw const new, &raw mut old) })?;
    Ok(old)
}

fn cannot_catch(number: libc::c_int, cause: io::Error) -> Error {
    Error::system(format!("catching signal {number}"), cause)
}

fn is_ignored(number: libc::c_int) -> Result<bool> {
    // SAFETY: sigaction is integers and an optional pointer, for which zero is a value.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: `action` is ours alone; without a new action the call only reads.
    check(unsafe { libc::sigaction(number, core::ptr::null(), &raw mut action) })
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
    use crate::poll::{Interest, wait_for};

    fn raise(signal: Signal) {
        // SAFETY: raise only sends a signal to this thread, and a handler for it is installed.
        unsafe { libc::raise(signal.number()) };
    }

    #[test]
    fn names_are_iperf3s() {
        let names: Vec<_> = Signal::ALL.iter().map(|signal| signal.describe()).collect();
        assert_eq!(names, ["Interrupt(2)", "Terminated(15)", "Hangup(1)"]);
    }

    #[test]
    fn the_first_signal_is_kept_and_can_be_waited_for() {
        let _alone = SIGNAL_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let interrupts = Interrupts::install().expect("signals can be caught");
        assert_eq!(interrupts.pending(), None);
        assert!(!wait_for(&interrupts, Interest::READ, Some(Duration::ZERO)).expect("poll"));

        raise(Signal::Terminate);
        raise(Signal::Interrupt);
        assert_eq!(interrupts.pending(), Some(Signal::Terminate));
        assert!(wait_for(&interrupts, Interest::READ, Some(Duration::ZERO)).expect("poll"));
        assert!(!is_ignored(libc::SIGTERM).expect("readable"));
        // SAFETY: as in `is_ignored`.
        let action = unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            libc::sigaction(libc::SIGTERM, core::ptr::null(), &raw mut action);
            action
        };
        assert_eq!(action.sa_sigaction, libc::SIG_DFL, "the next one ends the program");

        interrupts.rearm().expect("signals can be caught");
        assert_eq!(interrupts.pending(), None);
        assert!(!wait_for(&interrupts, Interest::READ, Some(Duration::ZERO)).expect("poll"));
        raise(Signal::Hangup);
        assert_eq!(interrupts.pending(), Some(Signal::Hangup));
        interrupts.rearm().expect("signals can be caught");
        assert!(is_ignored(libc::SIGPIPE).expect("readable"));
    }
}
