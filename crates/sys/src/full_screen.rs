//! A terminal in full-screen mode with key input, restored in every case.
//!
//! In addition to the guard's end these restore it: a panic (before its message, which would be lost otherwise),
//! `SIGQUIT` and `SIGABRT`. `SIGINT`, `SIGTERM` and `SIGHUP` are for [`crate::signals::InterruptSignals`], and end the
//! program's loop.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Once, OnceLock};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::error::{Error, Result};
use crate::poll::{self, PollInterest, PollItem, Waker};
use crate::signals::{self, InterruptSignals};

/// The alternate screen, without a cursor, without wrapping at the right edge.
const ENTER_SEQUENCE: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
/// Reverts all of that, and resets colours.
const LEAVE_SEQUENCE: &[u8] = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The terminal to restore with its settings, or null; never freed, as a signal may come at any time.
static SAVED: AtomicPtr<SavedTerminal> = AtomicPtr::new(ptr::null_mut());
static RESIZED: AtomicBool = AtomicBool::new(false);
static RESIZE_WAKER: OnceLock<Waker> = OnceLock::new();

/// Reasons for which [`FullScreen::wait`] returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeReasons {
    /// Keys can be read.
    pub keys: bool,
    /// The terminal has another size.
    pub resized: bool,
    /// A signal asks the program to end, or the terminal is gone.
    pub ending: bool,
}

/// A terminal, and the settings that it had.
struct SavedTerminal {
    terminal: BorrowedFd<'static>,
    settings: Termios,
}

/// The process's terminal in full-screen mode. One at a time.
#[derive(Debug)]
pub struct FullScreen {
    terminal: File,
    resizes: &'static Waker,
}

impl FullScreen {
    /// Switches the process's terminal to full-screen mode: its contents are saved, keys arrive at once and are not
    /// echoed.
    pub fn enter() -> Result<Self> {
        let operation = "taking the terminal for a full-screen view";
        let failed = |cause| Error::system(operation, cause);
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(|cause| {
            let hint = "there is no terminal: ask for plain text (--once) or JSON (--json)";
            failed(cause).hint_on(libc::ENXIO, hint).hint_on(libc::ENODEV, hint).hint_on(libc::ENOENT, hint)
        })?;
        Self::on(terminal).map_err(failed)
    }

    fn on(terminal: File) -> io::Result<Self> {
        let resizes = signals::lasting_waker(&RESIZE_WAKER)?;
        // SAFETY: `drop` makes it unreachable before the descriptor is closed.
        let descriptor = unsafe { BorrowedFd::borrow_raw(terminal.as_raw_fd()) };
        let before = SavedTerminal { settings: tcgetattr(&terminal)?, terminal: descriptor };
        // Leaked on purpose: a signal handler may look at it at any time.
        SAVED.store(Box::into_raw(Box::new(before)), Ordering::Release);
        let mut screen = Self { terminal, resizes };
        install_restore_hooks()?;
        screen.take()?;
        Ok(screen)
    }

    /// Columns and rows of the terminal; 80 by 24 when it reports none.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let (columns, rows) = tcgetwinsize(&self.terminal).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        let or = |told: u16, usual: usize| if told == 0 { usual } else { usize::from(told) };
        (or(columns, 80), or(rows, 24))
    }

    /// Writes to the terminal.
    pub fn write(&mut self, text: &str) -> Result<()> {
        self.terminal.write_all(text.as_bytes()).map_err(|cause| Error::system("writing to the terminal", cause))
    }

    /// Waits for keys, another size, a signal, or the end of `timeout`.
    pub fn wait(&self, interrupts: &InterruptSignals, timeout: Duration) -> Result<WakeReasons> {
        let mut items = [
            PollItem::new(&self.terminal, PollInterest::READ),
            PollItem::new(interrupts, PollInterest::READ),
            PollItem::new(self.resizes, PollInterest::READ),
        ];
        poll::wait(&mut items, Some(timeout))?;
        let (keys, ending, resized) = (items[0].is_readable(), items[1].is_readable(), items[2].is_readable());
        if resized {
            self.resizes.drain();
        }
        Ok(WakeReasons { keys, resized: RESIZED.swap(false, Ordering::AcqRel) || resized, ending })
    }

    /// Typed keys, as the bytes that the terminal makes of them; none when it is gone.
    pub fn read_keys(&mut self) -> Result<Vec<u8>> {
        let mut keys = vec![0; 256];
        let length = self.terminal.read(&mut keys).map_err(|cause| Error::system("reading keys", cause))?;
        keys.truncate(length);
        Ok(keys)
    }

    /// Returns the terminal to the shell and stops the process, as Ctrl-Z does elsewhere; resumes at `SIGCONT`.
    pub fn suspend(&mut self) -> Result<()> {
        restore_terminal();
        signals::raise(libc::SIGTSTP);
        self.take().map_err(|cause| Error::system("taking the terminal again", cause))
    }

    fn take(&mut self) -> io::Result<()> {
        if let Some(before) = saved() {
            let mut raw = before.settings.clone();
            raw.make_raw();
            tcsetattr(&self.terminal, OptionalActions::Flush, &raw)?;
        }
        self.terminal.write_all(ENTER_SEQUENCE)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        restore_terminal();
        SAVED.store(ptr::null_mut(), Ordering::Release);
    }
}

/// Restores the terminal. Does only what a signal handler may do (signal-safety(7)).
fn restore_terminal() {
    if let Some(SavedTerminal { terminal, settings }) = saved() {
        // If the terminal is gone there is nothing to restore.
        let _ = rustix::io::write(terminal, LEAVE_SEQUENCE);
        let _ = tcsetattr(terminal, OptionalActions::Flush, settings);
    }
}

fn saved() -> Option<&'static SavedTerminal> {
    // SAFETY: the pointer is null, or to what `on` has leaked.
    unsafe { SAVED.load(Ordering::Acquire).as_ref() }
}

/// Installs hooks that restore the terminal at a panic or a fatal signal that no guard sees, and that notice resizing.
fn install_restore_hooks() -> io::Result<()> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore_terminal();
            usual(panic);
        }));
    });
    for number in [libc::SIGQUIT, libc::SIGABRT] {
        signals::replace_handler(number, end, libc::SA_RESETHAND)?;
    }
    signals::replace_handler(libc::SIGWINCH, note_resize, libc::SA_RESTART)?;
    Ok(())
}

extern "C" fn end(number: libc::c_int) {
    restore_terminal();
    // The handling is the usual one again (SA_RESETHAND).
    signals::raise(number);
}

extern "C" fn note_resize(_: libc::c_int) {
    RESIZED.store(true, Ordering::Release);
    signals::wake_in_handler(&RESIZE_WAKER);
}
