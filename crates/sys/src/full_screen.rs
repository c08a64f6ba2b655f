//! A terminal in full-screen mode with key input, restored in every case.
//!
//! In addition to the guard's end these restore it: a panic (before its message, which would be lost otherwise),
//! `SIGQUIT`, `SIGABRT`, and `SIGTSTP` until the process runs in the foreground again. `SIGINT`, `SIGTERM` and `SIGHUP`
//! are for [`crate::signals::InterruptSignals`], and end the program's loop; a second one, which ends the process,
//! restores the terminal first.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Once, OnceLock};

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr};

use crate::error::{Error, Result};
use crate::poll::{self, PollInterest, PollItem, Waker};
use crate::signals;

/// The alternate screen, without a cursor, without wrapping at the right edge.
const ENTER_SEQUENCE: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
/// Reverts all of that, and resets colours.
const LEAVE_SEQUENCE: &[u8] = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The terminal to restore with its settings, or null; never freed, as a signal may come at any time.
static SAVED: AtomicPtr<SavedTerminal> = AtomicPtr::new(ptr::null_mut());
static RESIZED: AtomicBool = AtomicBool::new(false);
/// True while the shell has the terminal (`SIGTSTP`).
static SUSPENDED: AtomicBool = AtomicBool::new(false);
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

/// Effect of Ctrl-C, Ctrl-Z and Ctrl-\ in full-screen mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlKeys {
    /// Keys like all others.
    Keys,
    /// Their signals, as usual: for a program that is busy with other things than keys.
    Signals,
}

/// The process's terminal in full-screen mode. One at a time.
#[derive(Debug)]
pub struct FullScreen {
    terminal: File,
    control_keys: ControlKeys,
    resizes: &'static Waker,
}

impl FullScreen {
    /// Switches the process's terminal to full-screen mode: its contents are saved, keys arrive at once and are not
    /// echoed.
    pub fn enter(control_keys: ControlKeys) -> Result<Self> {
        let operation = "taking the terminal for a full-screen view";
        let failed = |cause| Error::system(operation, cause);
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(|cause| {
            let hint = "there is no terminal: ask for plain text (--once) or JSON (--json)";
            failed(cause).hint_on(libc::ENXIO, hint).hint_on(libc::ENODEV, hint).hint_on(libc::ENOENT, hint)
        })?;
        Self::on(terminal, control_keys).map_err(failed)
    }

    fn on(terminal: File, control_keys: ControlKeys) -> io::Result<Self> {
        let resizes = signals::lasting_waker(&RESIZE_WAKER)?;
        // SAFETY: `drop` makes it unreachable before the descriptor is closed.
        let descriptor = unsafe { BorrowedFd::borrow_raw(terminal.as_raw_fd()) };
        let before = SavedTerminal { settings: tcgetattr(&terminal)?, terminal: descriptor };
        // Leaked on purpose: a signal handler may look at it at any time.
        SAVED.store(Box::into_raw(Box::new(before)), Ordering::Release);
        let mut screen = Self { terminal, control_keys, resizes };
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

    /// Writes to the terminal; nothing while the shell has it.
    pub fn write(&mut self, text: &str) -> Result<()> {
        if SUSPENDED.load(Ordering::Acquire) || saved().is_none() {
            return Ok(());
        }
        self.terminal.write_all(text.as_bytes()).map_err(|cause| Error::system("writing to the terminal", cause))
    }

    /// Waits for keys, another size, one of `others` to become readable, or the end of `timeout`. Takes the terminal
    /// again when the process is back in the foreground: that counts as another size.
    pub fn wait(&mut self, others: &[BorrowedFd<'_>], timeout: Duration) -> Result<WakeReasons> {
        let resumed = self.resume().map_err(|cause| Error::system("taking the terminal again", cause))?;
        let mut items =
            vec![PollItem::new(&self.terminal, PollInterest::READ), PollItem::new(self.resizes, PollInterest::READ)];
        items.extend(others.iter().map(|other| PollItem::new(other, PollInterest::READ)));
        poll::wait(&mut items, Some(if resumed { Duration::ZERO } else { timeout }))?;
        let (keys, resized) = (items[0].is_readable(), items[1].is_readable());
        let ending = items[2..].iter().any(PollItem::is_readable);
        if resized {
            self.resizes.drain();
        }
        Ok(WakeReasons { keys, resized: RESIZED.swap(false, Ordering::AcqRel) || resized || resumed, ending })
    }

    /// Typed keys, as the bytes that the terminal makes of them; none when it is gone.
    pub fn read_keys(&mut self) -> Result<Vec<u8>> {
        let mut keys = vec![0; 256];
        let length = self.terminal.read(&mut keys).map_err(|cause| Error::system("reading keys", cause))?;
        keys.truncate(length);
        Ok(keys)
    }

    /// Returns the terminal to the shell and stops the process, as Ctrl-Z does elsewhere, until `SIGCONT`;
    /// [`FullScreen::wait`] takes it again.
    pub fn suspend(&self) {
        signals::raise(libc::SIGTSTP);
    }

    /// Takes the terminal again after a suspension, as soon as the shell has put the process into the foreground.
    fn resume(&mut self) -> io::Result<bool> {
        if !SUSPENDED.load(Ordering::Acquire) || !is_foreground(&self.terminal) {
            return Ok(false);
        }
        SUSPENDED.store(false, Ordering::Release);
        self.take()?;
        Ok(true)
    }

    fn take(&mut self) -> io::Result<()> {
        if let Some(before) = saved() {
            let mut raw = before.settings.clone();
            raw.make_raw();
            if self.control_keys == ControlKeys::Signals {
                raw.local_modes.insert(LocalModes::ISIG);
            }
            tcsetattr(&self.terminal, OptionalActions::Flush, &raw)?;
        }
        self.terminal.write_all(ENTER_SEQUENCE)
    }
}

/// True when the process may use its terminal: in the background, setting it would stop the process.
fn is_foreground(terminal: &File) -> bool {
    tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
}

/// True when this process can take its terminal for a full-screen view: there is one, and the process is in the
/// foreground.
#[must_use]
pub fn is_available() -> bool {
    OpenOptions::new().read(true).write(true).open("/dev/tty").is_ok_and(|terminal| is_foreground(&terminal))
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        restore_terminal();
        SAVED.store(ptr::null_mut(), Ordering::Release);
        SUSPENDED.store(false, Ordering::Release);
        let _ = signals::restore_default(libc::SIGTSTP);
    }
}

/// Restores the terminal, if this process has taken it. Does only what a signal handler may do (signal-safety(7)).
pub(crate) fn restore_terminal() {
    if let Some(SavedTerminal { terminal, settings }) = saved().filter(|_| !SUSPENDED.load(Ordering::Acquire)) {
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
            // Another thread may still draw.
            SAVED.store(ptr::null_mut(), Ordering::Release);
            usual(panic);
        }));
    });
    for number in [libc::SIGQUIT, libc::SIGABRT] {
        signals::replace_handler(number, end, libc::SA_RESETHAND)?;
    }
    signals::replace_handler(libc::SIGWINCH, note_resize, libc::SA_RESTART)?;
    signals::replace_handler(libc::SIGTSTP, stop, STOP_FLAGS)?;
    Ok(())
}

extern "C" fn end(number: libc::c_int) {
    restore_terminal();
    // The handling is the usual one again (SA_RESETHAND).
    signals::raise(number);
}

/// Flags of [`stop`]: within it, the signal has its usual effect.
const STOP_FLAGS: libc::c_int = libc::SA_RESETHAND | libc::SA_NODEFER | libc::SA_RESTART;

extern "C" fn stop(number: libc::c_int) {
    signals::keep_errno(|| {
        restore_terminal();
        SUSPENDED.store(true, Ordering::Release);
        // The process stops here, until SIGCONT.
        signals::raise(number);
        let _ = signals::replace_handler(number, stop, STOP_FLAGS);
        RESIZED.store(true, Ordering::Release);
    });
    signals::wake_in_handler(&RESIZE_WAKER);
}

extern "C" fn note_resize(_: libc::c_int) {
    RESIZED.store(true, Ordering::Release);
    signals::wake_in_handler(&RESIZE_WAKER);
}
