//! A terminal as one picture that programs draw and keys that they read, put right again in every case.
//!
//! Besides the guard's end these put it right: a panic (before its message is shown, which would be lost otherwise) and
//! `SIGQUIT` and `SIGABRT`. `SIGINT`, `SIGTERM` and `SIGHUP` are for [`crate::signals::Interrupts`], and end the program's
//! loop.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Once, OnceLock};

use crate::error::{Error, Result, check};
use crate::poll::{self, Interest, PollItem, Waker};
use crate::signals::{self, Interrupts};

/// The alternate screen, without a cursor, without wrapping at the right edge.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
/// All of that taken back, and colours, too.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The terminal that is to be put right, or -1; never closed while it stands here.
static TERMINAL: AtomicI32 = AtomicI32::new(-1);
/// How it was; never freed, as a signal may come at any time.
static BEFORE: AtomicPtr<libc::termios> = AtomicPtr::new(ptr::null_mut());
static RESIZED: AtomicBool = AtomicBool::new(false);
static RESIZE_DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
static RESIZE_WAKER: OnceLock<Waker> = OnceLock::new();

/// Why [`FullScreen::wait`] returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Woken {
    /// Keys can be read.
    pub keys: bool,
    /// The terminal has another size.
    pub resized: bool,
    /// A signal asks the program to end, or the terminal is gone.
    pub ending: bool,
}

/// The process's terminal while it is a picture. One at a time.
#[derive(Debug)]
pub struct FullScreen {
    terminal: File,
    resizes: &'static Waker,
}

impl FullScreen {
    /// Takes the process's terminal: what it showed is kept, keys come at once and unseen.
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
        let resizes = resize_waker()?;
        // SAFETY: termios is integers, for which zero is a value.
        let mut before: libc::termios = unsafe { core::mem::zeroed() };
        // SAFETY: `before` is ours alone.
        check(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut before) })?;
        // Leaked on purpose: a signal handler may look at it at any time.
        BEFORE.store(Box::into_raw(Box::new(before)), Ordering::Release);
        TERMINAL.store(terminal.as_raw_fd(), Ordering::Release);
        let mut screen = Self { terminal, resizes };
        watch_for_the_end()?;
        screen.take()?;
        Ok(screen)
    }

    /// Columns and rows of the terminal; 80 by 24 when it does not say.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the request writes one winsize, and `size` is one that is ours alone.
        unsafe { libc::ioctl(self.terminal.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
        let or = |told: u16, usual: usize| if told == 0 { usual } else { usize::from(told) };
        (or(size.ws_col, 80), or(size.ws_row, 24))
    }

    /// Writes to the terminal.
    pub fn write(&mut self, text: &str) -> Result<()> {
        self.terminal.write_all(text.as_bytes()).map_err(|cause| Error::system("writing to the terminal", cause))
    }

    /// Waits for keys, another size, a signal, or the end of `timeout`.
    pub fn wait(&self, interrupts: &Interrupts, timeout: Duration) -> Result<Woken> {
        let mut items = [
            PollItem::new(&self.terminal, Interest::READ),
            PollItem::new(interrupts, Interest::READ),
            PollItem::new(self.resizes, Interest::READ),
        ];
        poll::wait(&mut items, Some(timeout))?;
        let (keys, ending, resized) = (items[0].is_readable(), items[1].is_readable(), items[2].is_readable());
        if resized {
            self.resizes.drain();
        }
        Ok(Woken { keys, resized: RESIZED.swap(false, Ordering::AcqRel) || resized, ending })
    }

    /// The keys that were typed, as the bytes that the terminal makes of them; none when it is gone.
    pub fn read_keys(&mut self) -> Result<Vec<u8>> {
        let mut keys = vec![0; 256];
        let length = self.terminal.read(&mut keys).map_err(|cause| Error::system("reading keys", cause))?;
        keys.truncate(length);
        Ok(keys)
    }

    /// Gives the terminal back to the shell and stops the process, as Ctrl-Z does elsewhere; goes on when it is told to.
    pub fn suspend(&mut self) -> Result<()> {
        put_right();
        // SAFETY: raise only sends this process the signal that stops it, whose handling is the usual one.
        unsafe { libc::raise(libc::SIGTSTP) };
        self.take().map_err(|cause| Error::system("taking the terminal again", cause))
    }

    fn take(&mut self) -> io::Result<()> {
        let before = BEFORE.load(Ordering::Acquire);
        // SAFETY: `on` stored a pointer to a termios that is never freed.
        let mut raw = unsafe { *before };
        // SAFETY: `raw` is ours alone.
        unsafe { libc::cfmakeraw(&raw mut raw) };
        // SAFETY: `raw` is filled and lives through the call.
        check(unsafe { libc::tcsetattr(self.terminal.as_raw_fd(), libc::TCSAFLUSH, &raw const raw) })?;
        self.terminal.write_all(ENTER)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        put_right();
        TERMINAL.store(-1, Ordering::Release);
    }
}

/// Makes the terminal as it was. Does only what a signal handler may do (signal-safety(7)).
fn put_right() {
    let (terminal, before) = (TERMINAL.load(Ordering::Acquire), BEFORE.load(Ordering::Acquire));
    if terminal < 0 || before.is_null() {
        return;
    }
    // SAFETY: write(2) and tcsetattr(3) may be called in a signal handler; the pointers are to a constant and to a termios
    // that is never freed. If the terminal is gone there is nothing to put right.
    unsafe {
        libc::write(terminal, LEAVE.as_ptr().cast(), LEAVE.len());
        libc::tcsetattr(terminal, libc::TCSAFLUSH, before);
    }
}

/// Has the terminal put right when the program panics or is ended in a way that no guard sees, and notices resizing.
fn watch_for_the_end() -> io::Result<()> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            put_right();
            usual(panic);
        }));
    });
    for number in [libc::SIGQUIT, libc::SIGABRT] {
        signals::replace_handler(number, end, libc::SA_RESETHAND)?;
    }
    signals::replace_handler(libc::SIGWINCH, note_resize, libc::SA_RESTART)?;
    Ok(())
}

fn resize_waker() -> io::Result<&'static Waker> {
    let waker = if let Some(waker) = RESIZE_WAKER.get() {
        waker
    } else {
        let new = Waker::new()?;
        RESIZE_WAKER.get_or_init(|| new)
    };
    RESIZE_DESCRIPTOR.store(waker.as_fd().as_raw_fd(), Ordering::Release);
    Ok(waker)
}

extern "C" fn end(number: libc::c_int) {
    put_right();
    // SAFETY: raise may be called in a signal handler; the handling is the usual one again (SA_RESETHAND).
    unsafe { libc::raise(number) };
}

extern "C" fn note_resize(_: libc::c_int) {
    RESIZED.store(true, Ordering::Release);
    signals::wake_in_handler(&RESIZE_DESCRIPTOR);
}
